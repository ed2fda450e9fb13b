//! A proxy between the bot and its homeserver that can keep the answer to what the bot sends: the homeserver has it, and the bot does not
//! know.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use super::person::PATIENCE;

#[derive(Default)]
struct State {
    /// Whether answers to what is sent are kept.
    keeps: bool,
    /// How many are.
    kept: usize,
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
        *self.state.0.lock().expect("no panic") = State { keeps, kept: 0 };
        self.state.1.notify_all();
    }

    /// Waits until the homeserver has answered and the answer is kept.
    #[track_caller]
    pub fn until_kept(&self) {
        let state = self.state.0.lock().expect("no panic");
        let waited = self.state.1.wait_timeout_while(state, PATIENCE, |state| state.kept == 0).expect("no panic");
        assert!(!waited.1.timed_out(), "the bot sent nothing");
    }
}

fn pass_on(stream: TcpStream, to: &str, state: &(Mutex<State>, Condvar)) -> std::io::Result<()> {
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
    let sends = head.lines().next().is_some_and(|line| line.starts_with("PUT") && line.contains("/send/m.room."));
    if sends {
        let mut state_now = state.0.lock().expect("no panic");
        if state_now.keeps {
            state_now.kept += 1;
            state.1.notify_all();
            drop(state.1.wait_while(state_now, |state| state.keeps).expect("no panic"));
            return Ok(());
        }
    }
    stream.get_mut().write_all(&answer)
}
