//! A fake server for tests. It answers each path as configured, chunk by chunk, and records the requests.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use azera_breaker::Limits;
use azera_model_remote::{Api, ApiKey, RetryPolicy, ServerConfig};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// A request to the fake server.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    pub path: String,
    pub authorization: Option<String>,
    pub body: Value,
}

/// An answer of the fake server.
#[derive(Clone)]
pub enum Answer {
    /// A status, headers and a whole body.
    Whole(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// A stream of this content type in these chunks, and what happens after them.
    Stream(&'static str, Vec<Vec<u8>>, Then),
    /// The answer that this function computes from the request.
    Made(Arc<dyn Fn(&RecordedRequest) -> Answer + Send + Sync>),
}

#[derive(Clone, Copy, PartialEq)]
pub enum Then {
    End,
    Die,
    Hang,
}

pub const SSE: &str = "text/event-stream";
pub const NDJSON: &str = "application/x-ndjson";

impl Answer {
    pub fn json(value: &Value) -> Self {
        Self::Whole(200, Vec::new(), value.to_string().into_bytes())
    }

    pub fn refusal(status: u16, value: &Value) -> Self {
        Self::Whole(status, Vec::new(), value.to_string().into_bytes())
    }

    pub fn status(status: u16) -> Self {
        Self::Whole(status, Vec::new(), Vec::new())
    }

    pub fn stream(kind: &'static str, text: &str) -> Self {
        Self::Stream(kind, vec![text.as_bytes().to_vec()], Then::End)
    }

    pub fn hanging(kind: &'static str, text: &str) -> Self {
        Self::Stream(kind, vec![text.as_bytes().to_vec()], Then::Hang)
    }
}

#[derive(Default)]
struct Shared {
    answers: HashMap<String, VecDeque<Answer>>,
    log: Vec<RecordedRequest>,
    closed: usize,
}

pub struct FakeServer {
    pub url: String,
    shared: Arc<Mutex<Shared>>,
    changed: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl FakeServer {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (shared, changed): (Arc<Mutex<Shared>>, Arc<Notify>) = Default::default();
        let (serving, changing) = (shared.clone(), changed.clone());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, serving.clone(), changing.clone()));
            }
        });
        Self { url, shared, changed, task }
    }

    /// Sets the answers of a path, one after another. The last one repeats.
    pub fn on(&self, path: &str, answers: impl IntoIterator<Item = Answer>) -> &Self {
        self.shared.lock().unwrap().answers.insert(path.to_owned(), answers.into_iter().collect());
        self
    }

    /// Returns the requests to a path so far.
    pub fn requests(&self, path: &str) -> Vec<RecordedRequest> {
        self.shared.lock().unwrap().log.iter().filter(|requests| requests.path == path).cloned().collect()
    }

    /// Waits until a path has had this many requests.
    pub async fn wait_for_requests(&self, path: &str, times: usize) {
        self.until(|shared| shared.log.iter().filter(|requests| requests.path == path).count() >= times).await;
    }

    /// Waits until the client has closed this many connections during an answer.
    pub async fn closed_times(&self, times: usize) {
        self.until(|shared| shared.closed >= times).await;
    }

    async fn until(&self, reached: impl Fn(&Shared) -> bool) {
        loop {
            let changed = self.changed.notified();
            if reached(&self.shared.lock().unwrap()) {
                return;
            }
            changed.await;
        }
    }

    /// Returns the configuration to reach the fake server as this kind of server, with quick retries.
    pub fn config(&self, api: Api) -> ServerConfig {
        ServerConfig {
            api,
            url: self.url.clone(),
            model: "tiny".into(),
            key: Some(ApiKey::new("sk-hush")),
            section: "chat_server".into(),
            patience: RetryPolicy {
                retry_delay: Duration::from_millis(1),
                breaker: Limits { failures: 5, ..Limits::default() },
                ..RetryPolicy::default()
            },
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Mutex<Shared>>, changed: Arc<Notify>) {
    stream.set_nodelay(true).ok();
    let mut stream = BufReader::new(stream);
    let Some(requests) = read(&mut stream).await else { return };
    let mut answer = {
        let mut shared = shared.lock().unwrap();
        shared.log.push(requests.clone());
        let missing = || Answer::refusal(404, &json!({"detail": "Not Found"}));
        match shared.answers.get_mut(&requests.path) {
            None => missing(),
            Some(answers) if answers.len() > 1 => answers.pop_front().unwrap(),
            Some(answers) => answers.front().cloned().unwrap_or_else(missing),
        }
    };
    changed.notify_waiters();
    while let Answer::Made(make) = answer {
        answer = make(&requests);
    }
    let stream = stream.get_mut();
    // The client may hang up at any time.
    if write(stream, answer).await.is_none() {
        let mut rest = [0; 64];
        while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
        shared.lock().unwrap().closed += 1;
        changed.notify_waiters();
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<RecordedRequest> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    loop {
        line.clear();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            text => lines.push(text.to_owned()),
        }
    }
    let path = lines.first()?.split(' ').nth(1)?.to_owned();
    let header = |name: &str| {
        let mut fields = lines.iter().skip(1).filter_map(|line| line.split_once(": "));
        fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
    };
    let mut body = vec![0; header("content-length").map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.ok()?;
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(RecordedRequest { path, authorization: header("authorization"), body })
}

/// Writes an answer. Returns `None` if the connection must hang afterwards.
async fn write(stream: &mut TcpStream, answer: Answer) -> Option<()> {
    match answer {
        Answer::Made(_) => Some(()),
        Answer::Whole(status, headers, body) => {
            let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status} -\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
                 connection: close\r\n{headers}\r\n"
            );
            stream.write_all(head.as_bytes()).await.ok();
            stream.write_all(&body).await.ok();
            Some(())
        }
        Answer::Stream(kind, chunks, then) => {
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
            );
            let mut bytes = head.into_bytes();
            for chunk in chunks.iter().filter(|chunk| !chunk.is_empty()) {
                bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                bytes.extend_from_slice(chunk);
                bytes.extend_from_slice(b"\r\n");
            }
            if then == Then::End {
                bytes.extend_from_slice(b"0\r\n\r\n");
            }
            stream.write_all(&bytes).await.ok();
            (then != Then::Hang).then_some(())
        }
    }
}
