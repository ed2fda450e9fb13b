//! A proxy between the bot and its homeserver. It can hold back the answers to what the bot sends, so that the
//! homeserver has an event and the bot does not know. It can also cut the connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use super::person::PATIENCE;

#[derive(Default)]
struct State {
    /// True if answers to sent events are held back.
    keeps: bool,
    /// Only for this room, if one is set.
    room: Option<String>,
    /// Number of answers held back.
    held_back: usize,
    /// True if the connection is cut.
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
        // The thread ends with the test process.
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (to, shared) = (to.clone(), shared.clone());
                // Either side may hang up at any time.
                std::thread::spawn(move || pass_on(stream, &to, &shared).ok());
            }
        });
        Self { url, state }
    }

    /// Starts or stops holding back the answers to sent events.
    pub fn keep(&self, keeps: bool) {
        let mut state = self.state.0.lock().expect("no panic");
        (state.keeps, state.held_back, state.room) = (keeps, 0, None);
        drop(state);
        self.state.1.notify_all();
    }

    /// Holds back the answers to what is sent to one room.
    pub fn keep_posts_to(&self, room: &str) {
        self.keep(true);
        self.state.0.lock().expect("no panic").room = Some(room.trim_start_matches('!').to_owned());
    }

    /// Cuts or restores the connection, and breaks open streams.
    pub fn cut(&self, cut: bool) {
        let mut state = self.state.0.lock().expect("no panic");
        state.cut = cut;
        for stream in state.open.drain(..) {
            // The stream may be closed already.
            stream.shutdown(Shutdown::Both).ok();
        }
    }

    /// Waits until the homeserver has answered and the answer is held back.
    #[track_caller]
    pub fn until_stored(&self) {
        let state = self.state.0.lock().expect("no panic");
        let waited = self.state.1.wait_timeout_while(state, PATIENCE, |state| state.held_back == 0).expect("no panic");
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
        // The `!` before a room's id can be encoded in several ways, so compare without it.
        let meant = state_now.room.as_ref().is_none_or(|room| first.contains(room.as_str()));
        if state_now.keeps && meant {
            state_now.held_back += 1;
            state.1.notify_all();
            drop(state.1.wait_while(state_now, |state| state.keeps).expect("no panic"));
            return Ok(());
        }
    }
    stream.get_mut().write_all(&answer)
}
