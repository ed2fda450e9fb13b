//! A proxy between the bot and its homeserver that can keep the answer to what the bot sends, so that the homeserver has it and the bot does not
//! know, and that can cut the line.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use super::person::PATIENCE;

#[derive(Default)]
struct State {
    /// Whether answers to what is sent are kept.
    keeps: bool,
    /// To which room alone, if so.
    room: Option<String>,
    /// How many are.
    retained: usize,
    /// Whether nobody gets through.
    cut: bool,
    /// The bot's connections.
    open: Vec<TcpStream>,
}

pub struct Proxy {
    pub url: String,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl Proxy {
    pub fn start(homeserver: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let to = homeserver.strip_prefix("http://").expect("an address on loopback").to_owned();
        let state: Arc<(Mutex<State>, Condvar)> = Arc::default();
        let shared = state.clone();
        // It ends with the test process.
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (to, shared) = (to.clone(), shared.clone());
                // Either side may hang up whenever it likes.
                std::thread::spawn(move || pass_on(stream, &to, &shared).ok());
            }
        });
        Self { url, state }
    }

    /// Keeps the answers to what is sent, from now on or no more.
    pub fn keep(&self, keeps: bool) {
        let mut state = self.state.0.lock().expect("no panic");
        (state.keeps, state.retained, state.room) = (keeps, 0, None);
        drop(state);
        self.state.1.notify_all();
    }

    /// Keeps the answers to what is sent to a room.
    pub fn keep_posts_to(&self, room: &str) {
        self.keep(true);
        self.state.0.lock().expect("no panic").room = Some(room.trim_start_matches('!').to_owned());
    }

    /// Cuts the line, or mends it. What is under way is broken off.
    pub fn cut(&self, cut: bool) {
        let mut state = self.state.0.lock().expect("no panic");
        state.cut = cut;
        for stream in state.open.drain(..) {
            // It may be closed already.
            stream.shutdown(Shutdown::Both).ok();
        }
    }

    /// Waits until the homeserver has answered and the answer is kept.
    #[track_caller]
    pub fn until_stored(&self) {
        let state = self.state.0.lock().expect("no panic");
        let waited = self.state.1.wait_timeout_while(state, PATIENCE, |state| state.retained == 0).expect("no panic");
        assert!(!waited.1.timed_out(), "the bot sent nothing");
    }
}

fn pass_on(stream: TcpStream, to: &str, state: &(Mutex<State>, Condvar)) -> std::io::Result<()> {
    {
        let mut state = state.0.lock().expect("no panic");
        if state.cut {
            return stream.shutdown(Shutdown::Both);
        }
        state.open.push(stream.try_clone()?);
    }
    let mut stream = BufReader::new(stream);
    let (mut head, mut line, mut length) = (String::new(), String::new(), 0);
    while stream.read_line(&mut line)? > 2 {
        let name = line.split(':').next().unwrap_or_default().to_lowercase();
        match name.as_str() {
            "content-length" => length = line.split(':').nth(1).and_then(|n| n.trim().parse().ok()).unwrap_or(0),
            "connection" => line.clear(),
            _ => {}
        }
        head.push_str(&line);
        line.clear();
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let mut server = TcpStream::connect(to)?;
    write!(server, "{head}Connection: close\r\n\r\n")?;
    server.write_all(&body)?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    let first = head.lines().next().unwrap_or_default();
    if first.starts_with("PUT") && first.contains("/send/m.room.") {
        let mut state_now = state.0.lock().expect("no panic");
        // The mark before a room's name is written in more than one way.
        let meant = state_now.room.as_ref().is_none_or(|room| first.contains(room.as_str()));
        if state_now.keeps && meant {
            state_now.retained += 1;
            state.1.notify_all();
            drop(state.1.wait_while(state_now, |state| state.keeps).expect("no panic"));
            return Ok(());
        }
    }
    stream.get_mut().write_all(&answer)
}
