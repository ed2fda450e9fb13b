//! The web: the real binary with the default model, and the clients that people use.

mod media;
mod schema;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{azera, command};

/// How long the bot may take to start, or to take something in. It learns its classifiers meanwhile.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// A process of the bot. Dropping it ends it, so that a failed test leaves none behind.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A running `azera run` with nothing but the web.
pub struct Running {
    process: Process,
    /// The lines of its log.
    log: Receiver<String>,
    pub address: String,
    pub setup: Option<String>,
}

/// Waits for a line of a log.
#[track_caller]
fn heard(log: &Receiver<String>, words: &str) {
    let end = Instant::now() + PATIENCE;
    loop {
        match log.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) if line.contains(words) => return,
            Ok(_) => {}
            Err(_) => panic!("the bot did not log: {words}"),
        }
    }
}

impl Running {
    pub fn start(home: &Path, data: &str) -> Self {
        Self::with(home, data, &[], &[])
    }

    /// Starts with further arguments and settings.
    pub fn with(home: &Path, data: &str, arguments: &[&str], settings: &[(&str, &str)]) -> Self {
        let mut command = command(home, &[&["run", "--data", data][..], arguments].concat());
        command
            .env("AZERA__HTTP__ENABLED", "true")
            .env("AZERA__HTTP__LISTEN", "127.0.0.1:0")
            .env("AZERA__MEMORY__MIN_AGE_S", "0");
        command.envs(settings.iter().copied());
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("the binary runs");
        let mut process = Process(child);
        let output = BufReader::new(process.0.stderr.take().expect("a pipe"));
        let (sender, log) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                eprintln!("bot: {line}");
                sender.send(line).ok();
            }
        });
        heard(&log, "Azera listens");
        let file = std::fs::read_to_string(Path::new(data).join("web.json")).expect("the file of the web");
        let local: Value = serde_json::from_str(&file).expect("JSON");
        let text = |name: &str| local[name].as_str().map(str::to_owned);
        Self { process, log, address: text("address").expect("an address"), setup: text("setup") }
    }

    /// Waits until the bot logs these words, in a line after those that were waited for before.
    #[track_caller]
    pub fn logs(&self, words: &str) {
        heard(&self.log, words);
    }

    /// Sends a request. Returns the status, the headers and the body.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> (u16, String, Value) {
        let headers = [&[("Content-Type", "application/json")][..], headers].concat();
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, head, bytes) = self.exchange(method, path, &headers, body.as_bytes());
        let text = String::from_utf8_lossy(&bytes);
        (status, head, serde_json::from_str(&text).unwrap_or_else(|_| json!(text)))
    }

    /// Sends a request with any body. Returns the status, the headers and the body as it came.
    pub fn exchange(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, String, Vec<u8>) {
        let host = self.address.strip_prefix("http://").expect("an address of the web");
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        let mut stream = TcpStream::connect(host).expect("the web is there");
        write!(stream, "{request}Content-Length: {}\r\n\r\n", body.len()).expect("it reads");
        stream.write_all(body).expect("it reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it answers");
        let end = answer.windows(4).position(|end| end == b"\r\n\r\n").expect("an answer");
        let body = answer.split_off(end + 4);
        let head = String::from_utf8(answer).expect("a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        (status, head.trim_end().to_owned(), body)
    }

    /// Makes the owner's account. Returns the headers of a session.
    pub fn own(&self) -> [(String, String); 2] {
        let code = self.setup.as_ref().and_then(|link| link.rsplit_once('=')).expect("a link with a code").1;
        self.join("/api/setup", code, "Ann")
    }

    /// Makes an account. Returns the headers of a session.
    pub fn join(&self, path: &str, code: &str, name: &str) -> [(String, String); 2] {
        let body = json!({"code": code, "name": name, "password": "correct horse battery"});
        let (status, head, session) = self.send("POST", path, &[], &body);
        assert_eq!(status, 200, "{session}");
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a session");
        let cookie = cookie.split(';').next().expect("a cookie").to_owned();
        let csrf = session["csrf"].as_str().expect("a token").to_owned();
        [("Cookie".to_owned(), cookie), ("X-CSRF-Token".to_owned(), csrf)]
    }

    #[track_caller]
    fn get(&self, path: &str) -> Value {
        let (status, _, body) = self.send("GET", path, &[], &Value::Null);
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// Ends the bot as a crash does.
    pub fn kill(mut self) {
        self.process.0.kill().expect("it runs");
        self.process.0.wait().expect("it ends");
    }

    /// Ends the bot as a service manager does.
    pub fn stop(mut self) {
        let id = self.process.0.id().to_string();
        let killed = Command::new("kill").args(["-TERM", &id]).status().expect("there is kill");
        assert!(killed.success() && self.process.0.wait().expect("it ends").success(), "the bot ends cleanly");
    }
}

/// Returns the folder of the `openai` package, which `make test` sets.
#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
fn openai() -> PathBuf {
    let dir = std::env::var_os("AZERA_TEST_OPENAI");
    dir.map(PathBuf::from).expect("AZERA_TEST_OPENAI names the folder of the openai package; run `make test`")
}

/// Returns what a command of the running web prints.
#[track_caller]
pub fn web(home: &Path, data: &str, arguments: &[&str]) -> String {
    let output = azera(home, &[&["web"], arguments, &["--data", data]].concat(), "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
}

/// From the first link to a conversation with the official client, over a restart.
#[test]
fn openais_client_talks_with_a_persona() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (home, data) = (scratch.path(), scratch.path().join("data"));
    let data = data.to_str().expect("a path");
    let bot = Running::start(home, data);
    let link = bot.setup.clone().expect("nobody owns this Azera");
    assert_eq!(web(home, data, &[]), link);
    let code = link.rsplit_once('=').expect("a link with a code").1;
    let owner = json!({"code": code, "name": "Ann", "password": "correct horse battery"});
    let (status, _, session) = bot.send("POST", "/api/setup", &[], &owner);
    assert_eq!((status, &session["role"]), (200, &json!("owner")), "{session}");
    assert_eq!(web(home, data, &[]), bot.address);
    let key = web(home, data, &["key", "create", "laptop", "--scope", "chat", "--scope", "memory:read"]);
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/openai_client.py");
    let mut python = Command::new("python3");
    python.arg(client).arg(&bot.address).env("PYTHONPATH", openai()).env("NO_PROXY", "*");
    let output =
        crate::fed(python.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()), &format!("{key}\n"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let came: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let models = came["models"].as_array().expect("models");
    assert!(models.contains(&json!("azera")) && models.contains(&json!("areza")), "{came}");
    assert!(!models.contains(&json!("protag")), "roles of people are no models: {came}");
    assert!(!came["whole"].as_str().expect("a reply").is_empty());
    assert!(came["pieces"].as_array().expect("pieces").len() > 1, "the reply streams: {came}");
    assert_eq!(came["finish"], "stop");
    assert!(came["tokens"].as_u64() > Some(0) && came["streamed_tokens"].as_u64() > Some(0), "{came}");
    let errors = json!({
        "model": ["NotFoundError", "model_not_found"],
        "key": ["AuthenticationError", "unauthorized"],
        "turn": ["BadRequestError", "invalid"],
    });
    assert_eq!(came["errors"], errors);
    let metrics = bot.get("/metrics").to_string();
    assert!(metrics.contains("azera_turns_total{outcome=\\\"replied\\\"} 2"), "{metrics}");
    assert!(!metrics.contains("Ann") && !metrics.contains("maps"), "{metrics}");
    assert_eq!(bot.get("/ready"), json!({"status": "ready"}));
    bot.stop();
    let bot = Running::start(home, data);
    assert_eq!(bot.setup, None, "a restart makes no second owner");
    let bearer = format!("Bearer {key}");
    let authorization = [("Authorization", bearer.as_str())];
    let (_, _, chats) = bot.send("GET", "/api/chats", &authorization, &Value::Null);
    assert_eq!(chats["total"], 1, "{chats}");
    let path = format!("/api/chats/{}", chats["items"][0]["id"].as_str().expect("an id"));
    let (_, _, chat) = bot.send("GET", &path, &authorization, &Value::Null);
    let messages = chat["messages"].as_array().expect("messages");
    assert_eq!(messages.len(), 4, "each message is there once: {chat}");
    assert_eq!(messages[0]["content"], "Hello! My name is Ann, and I collect old maps.");
    let found = bot.send("POST", "/api/search", &authorization, &json!({"query": "old maps"})).2;
    assert!(found["results"].to_string().contains("old maps"), "{found}");
    let id = web(home, data, &["key", "list"]);
    let id = id.split("  ").next().expect("an id");
    web(home, data, &["key", "revoke", id]);
    assert_eq!(bot.send("GET", "/api/chats", &authorization, &Value::Null).0, 401);
    bot.stop();
}

/// The port may be taken. With no other platform, that ends the program; the message says what to do.
#[test]
fn a_taken_port_is_reported() {
    let scratch = tempfile::tempdir().expect("a folder");
    let data = scratch.path().join("data");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let mut command =
        command(scratch.path(), &["run", "--model", "scripted", "--data", data.to_str().expect("a path")]);
    command.env("AZERA__HTTP__ENABLED", "true").env("AZERA__HTTP__LISTEN", &address);
    let output = command.output().expect("the binary runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(told.contains(&format!("{address} is used by another program")) && told.contains("http.listen"), "{told}");
}
