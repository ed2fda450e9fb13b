//! A model on a server with OpenAI's interface. It answers what the test wants, at the pace the test wants, and records
//! its prompts.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::request;

/// A word that pauses the answer in the middle.
pub const HOLD: &str = "slowly";

/// A phrase that makes the answer slow.
pub const AT_LENGTH: &str = "at length";

/// Time between two words of a slow answer.
const PACE: Duration = Duration::from_millis(400);

/// The pace of an answer.
#[derive(Clone, Copy, PartialEq)]
enum Pace {
    AtOnce,
    /// Paused in the middle.
    Held,
    /// Word by word.
    AtLength,
}

/// The end of every answer.
pub const END: &str = "That is all.";

#[derive(Default)]
struct State {
    /// The prompts received.
    prompts: Vec<String>,
    /// True if paused answers may continue.
    released: bool,
}

/// Answers `answer to qN` to a message that contains qN, and adds every secret in its prompt.
pub struct Model {
    pub url: String,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl Model {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let state: Arc<(Mutex<State>, Condvar)> = Arc::default();
        let shared = state.clone();
        // The thread ends with the test process.
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = shared.clone();
                // The client may hang up at any time.
                std::thread::spawn(move || answer(stream, &shared).ok());
            }
        });
        Self { url, state }
    }

    /// Returns the prompts so far.
    pub fn prompts(&self) -> Vec<String> {
        self.state.0.lock().expect("no panic").prompts.clone()
    }

    /// Lets all paused answers continue and pauses no more.
    pub fn release(&self) {
        self.state.0.lock().expect("no panic").released = true;
        self.state.1.notify_all();
    }
}

fn answer(mut stream: TcpStream, state: &(Mutex<State>, Condvar)) -> std::io::Result<()> {
    let (path, request) = request(&stream)?;
    let out = &mut stream;
    if path.ends_with("/embeddings") {
        let vectors = vectors(&request).to_string();
        return write!(
            out,
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{vectors}",
            vectors.len()
        );
    }
    if !path.ends_with("/chat/completions") {
        let models = json!({"data": [{"id": "talker"}, {"id": "embedder"}]}).to_string();
        return write!(out, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{models}", models.len());
    }
    let (said, pace) = reply(&request);
    state.0.lock().expect("no panic").prompts.push(request["messages"].to_string());
    write!(out, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
    let words: Vec<&str> = said.split_inclusive(' ').collect();
    let (first, rest) = words.split_at(words.len() / 2);
    let wait = || {
        if pace == Pace::AtLength {
            let held = state.0.lock().expect("no panic");
            drop(state.1.wait_timeout_while(held, PACE, |state| !state.released).expect("no panic"));
        }
    };
    for word in first {
        piece(out, word)?;
        wait();
    }
    if pace == Pace::Held {
        let held = state.0.lock().expect("no panic");
        drop(state.1.wait_while(held, |state| !state.released).expect("no panic"));
    }
    for word in rest {
        piece(out, word)?;
        wait();
    }
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    write!(out, "data: {end}\n\ndata: [DONE]\n\n")
}

/// Returns a vector for each text, by its words.
fn vectors(request: &Value) -> Value {
    let inputs = match &request["input"] {
        Value::Array(inputs) => inputs.clone(),
        one => vec![one.clone()],
    };
    let vector = |text: &str| {
        let mut vector = vec![0.01_f32; 64];
        for word in text.split(|c: char| !c.is_alphanumeric()) {
            let index = word.bytes().fold(7_usize, |sum, byte| (sum * 31 + usize::from(byte)) % vector.len());
            vector[index] += 1.0;
        }
        vector
    };
    let data: Vec<Value> = inputs
        .iter()
        .enumerate()
        .map(|(index, text)| json!({"index": index, "embedding": vector(text.as_str().unwrap_or_default())}))
        .collect();
    json!({"data": data, "model": "embedder", "usage": {"prompt_tokens": 1, "total_tokens": 1}})
}

fn piece(out: &mut TcpStream, text: &str) -> std::io::Result<()> {
    let piece = json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]});
    write!(out, "data: {piece}\n\n")?;
    out.flush()
}

/// Returns the reply to a prompt, and its pace.
fn reply(request: &Value) -> (String, Pace) {
    let texts: Vec<&str> = request["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|message| message["content"].as_str())
        .collect();
    let last = texts.last().copied().unwrap_or_default();
    if last.ends_with("Write the journal entry.") {
        let entry =
            "The lanterns over the bridge stay with me tonight; I would like to walk behind such a parade myself.";
        return (entry.to_owned(), Pace::AtOnce);
    }
    let words = |text: &'static str| move |word: &&str| word.starts_with(text);
    let word = |c: char| !c.is_alphanumeric() && c != '-';
    let question =
        |word: &&str| word.strip_prefix('q').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    let last_question = last.split(word).rfind(question).unwrap_or("nothing");
    let mut secrets: Vec<&str> = texts.iter().flat_map(|text| text.split(word)).filter(words("secret-")).collect();
    secrets.sort_unstable();
    secrets.dedup();
    let secret_text = if secrets.is_empty() { String::new() } else { format!(" I know {}.", secrets.join(" ")) };
    // Only the message itself, which follows the recalled memories.
    let newest = last.rsplit('\n').next().unwrap_or_default();
    let pace = match () {
        () if newest.contains(HOLD) => Pace::Held,
        () if newest.contains(AT_LENGTH) => Pace::AtLength,
        () => Pace::AtOnce,
    };
    (format!("This is the whole answer to {last_question}.{secret_text} {END}"), pace)
}
