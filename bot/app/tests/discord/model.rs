//! A chat model for the tests: it repeats the secrets in its prompt, or stops in the middle of a reply until the test
//! lets it continue.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};

/// Returns the two parts of a reply to a request. The second part waits for the gate.
pub type Script = Arc<dyn Fn(&Value) -> (String, String) + Send + Sync>;

/// A server with OpenAI's interface.
pub struct Model {
    pub url: String,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn pass(&self) {
        let mut open = self.open.lock().expect("no test panics while it holds this");
        while !*open {
            open = self.changed.wait(open).expect("no test panics while it holds this");
        }
    }
}

impl Model {
    /// Starts a model that replies by a script. The gate is open.
    pub fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let gate = Arc::new(Gate { open: Mutex::new(true), changed: Condvar::new() });
        let served = gate.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (script, gate) = (script.clone(), served.clone());
                // A client that hangs up ends only its own answer.
                std::thread::spawn(move || answer(stream, &script, &gate).ok());
            }
        });
        Self { url, gate }
    }

    /// Starts a model that repeats every secret in its prompt.
    pub fn telling_everything() -> Self {
        Self::start(Arc::new(|body| {
            let messages = body["messages"].as_array().into_iter().flatten();
            let prompt_texts: Vec<&str> = messages.filter_map(|message| message["content"].as_str()).collect();
            let known: Vec<&str> =
                SECRETS.into_iter().filter(|word| prompt_texts.iter().any(|text| text.contains(word))).collect();
            (format!("I know: {}.", known.join(", ")), String::new())
        }))
    }

    /// Makes replies stop in the middle from now on.
    pub fn close(&self) {
        *self.gate.open.lock().expect("no test panics while it holds this") = false;
    }

    /// Lets replies continue.
    pub fn open(&self) {
        *self.gate.open.lock().expect("no test panics while it holds this") = true;
        self.gate.changed.notify_all();
    }
}

/// Words that give a secret away.
pub const SECRETS: [&str; 4] = ["heliotrope", "obsidian", "tangerine", "zeppelin"];

fn answer(mut stream: TcpStream, script: &Script, gate: &Gate) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let header = header.trim().to_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    if line.starts_with("GET") {
        let list = json!({"object": "list", "data": [{"id": "tester", "object": "model"}]}).to_string();
        return write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{list}",
            list.len()
        );
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let (first, second) = script(&body);
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
    piece(&mut stream, &json!({"content": first}), Value::Null)?;
    gate.pass();
    if !second.is_empty() {
        piece(&mut stream, &json!({"content": second}), Value::Null)?;
    }
    piece(&mut stream, &json!({}), json!("stop"))?;
    write!(stream, "data: [DONE]\n\n")
}

fn piece(stream: &mut TcpStream, delta: &Value, finish: Value) -> std::io::Result<()> {
    let chunk = json!({"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "tester",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    write!(stream, "data: {chunk}\n\n")?;
    stream.flush()
}
