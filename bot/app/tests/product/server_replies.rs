//! Replies of models on servers that come out badly unless Azera does something about it.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::azera;
use super::http::request;

/// Pieces of thinking and of content that a server sends, and why it stops.
struct Spoken {
    thinking: Vec<String>,
    content: Vec<String>,
    done_reason: &'static str,
}

impl Spoken {
    fn content(pieces: impl IntoIterator<Item = impl Into<String>>, done_reason: &'static str) -> Self {
        Self { thinking: Vec::new(), content: pieces.into_iter().map(Into::into).collect(), done_reason }
    }

    fn lines(&self) -> String {
        let line = |field: &str, piece: &String| format!("{}\n", json!({"message": {field: piece}, "done": false}));
        let thinking = self.thinking.iter().map(|piece| line("thinking", piece));
        let content = self.content.iter().map(|piece| line("content", piece));
        let end = format!("{}\n", json!({"message": {}, "done": true, "done_reason": self.done_reason}));
        thinking.chain(content).chain([end]).collect()
    }
}

/// An Ollama server with a model of this `about` that replies as `speak` says. Returns its address and the requests.
fn ollama(about: Value, speak: fn(&Value) -> Spoken) -> (String, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
    let log = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // The client may hang up at any time.
            answer(stream, &about, speak, &log).ok();
        }
    });
    (format!("http://{address}"), asked)
}

fn answer(
    mut stream: TcpStream,
    about: &Value,
    speak: fn(&Value) -> Spoken,
    log: &Mutex<Vec<Value>>,
) -> std::io::Result<()> {
    let (path, body) = request(&stream)?;
    let text = match path.as_str() {
        "/api/tags" => json!({"models": [{"name": "talker:latest", "digest": "t"}]}).to_string(),
        "/api/show" => about.to_string(),
        _ => {
            let lines = speak(&body).lines();
            log.lock().expect("no panic").push(body);
            lines
        }
    };
    write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{text}")
}

/// A server with OpenAI's interface whose model thinks and says nothing. Returns its address and the requests.
fn thinker() -> (String, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
    let log = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // The client may hang up at any time.
            think(stream, &log).ok();
        }
    });
    (format!("http://{address}/v1"), asked)
}

fn think(mut stream: TcpStream, log: &Mutex<Vec<Value>>) -> std::io::Result<()> {
    let (path, body) = request(&stream)?;
    if path.ends_with("/models") {
        let listed = json!({"data": [{"id": "talker"}]});
        return write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{listed}");
    }
    log.lock().expect("no panic").push(body);
    let thought = json!({"choices": [{"delta": {"reasoning_content": "hm "}}]});
    let end = json!({"choices": [{"delta": {}, "finish_reason": "length"}]});
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close";
    write!(stream, "{head}\r\n\r\ndata: {thought}\n\ndata: {end}\n\ndata: [DONE]\n\n")
}

/// Talks with the model on a server, and returns what is shown.
fn talk(home: &Path, url: &str, more: &str, said: &str) -> String {
    let file = home.join("azera.toml");
    let server = format!("[chat_server]\napi = \"ollama\"\nurl = \"{url}\"\nmodel = \"talker\"\n");
    std::fs::write(&file, format!("{server}[gardener]\nenabled = false\n{more}")).expect("a configuration");
    let config = file.to_str().expect("a plain path");
    let output = azera(home, &["--config", config, "chat", "--as", "Ann"], said);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_model_that_spends_everything_on_thoughts_is_asked_again_without_them() {
    let about = json!({"model_info": {"x.context_length": 4096}, "capabilities": ["completion", "thinking"]});
    let (url, asked) = ollama(about, |body| match body["think"].as_bool() {
        Some(true) => Spoken { thinking: vec!["hm ".to_owned(); 400], content: Vec::new(), done_reason: "length" },
        _ => Spoken::content(["The heron ", "stands there."], "stop"),
    });
    let scratch = tempfile::tempdir().expect("a folder");
    let shown = talk(scratch.path(), &url, "[models]\nthinking = true\n", "Which bird stands on the weir?\n");
    assert!(shown.contains("The heron stands there."), "{shown}");
    let asked = asked.lock().expect("no panic");
    let limits: Vec<(&Value, &Value)> =
        asked.iter().map(|body| (&body["think"], &body["options"]["num_predict"])).collect();
    let [(first, with_thoughts), (second, without)] = limits[..] else { panic!("two requests: {limits:?}") };
    assert_eq!((first, second), (&json!(true), &json!(false)));
    let room = with_thoughts.as_u64().zip(without.as_u64()).map(|(with, without)| with - without);
    assert_eq!(room, Some(1_024), "{limits:?}");
}

#[test]
fn a_paragraph_that_a_server_repeats_is_shown_once() {
    const PARAGRAPH: &str =
        "The heron stands on the weir each morning. It waits for the small fish, and the fish wait for it.";
    let (url, asked) = ollama(json!({}), |_| {
        let words = [PARAGRAPH; 7].join("\n\n");
        Spoken::content(words.split_inclusive(' '), "stop")
    });
    let scratch = tempfile::tempdir().expect("a folder");
    let shown = talk(scratch.path(), &url, "", "Which bird stands on the weir?\nAnd what does it do?\n");
    assert_eq!(shown.matches(PARAGRAPH).count(), 6, "three times for each question: {shown}");
    assert_eq!(shown.matches("The heron").count(), 6, "{shown}");
    let prompt = asked.lock().expect("no panic").pop().expect("a second question").to_string();
    assert_eq!(prompt.matches("The heron stands").count(), 3, "what was cut is not remembered either: {prompt}");
}

#[test]
fn a_model_that_cannot_be_told_not_to_think_is_asked_twice() {
    let (url, asked) = thinker();
    let scratch = tempfile::tempdir().expect("a folder");
    let file = scratch.path().join("azera.toml");
    let server = format!("[chat_server]\napi = \"openai\"\nurl = \"{url}\"\nmodel = \"talker\"\n");
    std::fs::write(&file, format!("{server}[gardener]\nenabled = false\n")).expect("a configuration");
    let config = file.to_str().expect("a plain path");
    azera(scratch.path(), &["--config", config, "chat", "--as", "Ann"], "Which bird stands on the weir?\n");
    assert_eq!(asked.lock().expect("no panic").len(), 2, "one retry");
}

#[test]
fn a_reply_that_its_limit_cut_ends_with_a_whole_sentence() {
    let (url, _) = ollama(json!({}), |_| {
        let story = "The keeper lit the lamp again that night. ".repeat(2) + "Then the wind turned and the bo";
        Spoken::content(story.split_inclusive(' '), "length")
    });
    let scratch = tempfile::tempdir().expect("a folder");
    let limit = "[models]\nmax_reply_tokens = 24\n";
    let shown = talk(scratch.path(), &url, limit, "Tell me a story.\n");
    assert!(shown.trim().ends_with("that night.") && !shown.contains("Then the wind"), "{shown}");
}
