//! A client that sends exactly what it is told, and keeps one cookie.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A browser, or a program with a key.
#[derive(Clone)]
pub struct Client {
    address: SocketAddr,
    pub cookie: Option<String>,
    pub csrf: Option<String>,
    key: Option<String>,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// The body as it came, without the marks of chunks removed.
    pub bytes: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    /// Returns the events of a stream: name and data of each.
    pub fn events(&self) -> Vec<(String, String)> {
        let parse = |block: &str| {
            let field =
                |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(|it| it.trim().to_owned());
            Some((field("event:").unwrap_or_default(), field("data:")?))
        };
        self.body.split("\n\n").filter_map(parse).collect()
    }
}

/// A client that follows the events.
pub struct Follower {
    stream: TcpStream,
    read: String,
}

impl Follower {
    /// Reads until a text appears, and returns what came so far; or all that came, if the stream ends before.
    pub async fn until(&mut self, text: &str) -> String {
        let mut buffer = [0; 4 << 10];
        while !self.read.contains(text) {
            let read = self.stream.read(&mut buffer).await.unwrap();
            if read == 0 {
                break;
            }
            self.read.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
        self.read.clone()
    }
}

/// A request without its body.
pub struct Begun(TcpStream);

impl Begun {
    /// Sends some of the body, and returns what comes back.
    pub async fn send(mut self, body: &[u8]) -> Answer {
        self.0.write_all(body).await.unwrap();
        parsed(&mut self.0).await
    }
}

impl Client {
    /// Follows the events, from an earlier one if it is named, and returns when the stream has begun.
    pub async fn follow(&self, last: Option<&str>) -> Follower {
        let mut head = format!("GET /api/events HTTP/1.1\r\nHost: {}\r\n", self.address);
        let key = self.key.as_ref().map(|key| format!("Bearer {key}"));
        for (name, value) in
            [("Cookie", self.cookie.clone()), ("Authorization", key), ("Last-Event-ID", last.map(str::to_owned))]
        {
            if let Some(value) = value {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
        let mut follower = Follower { stream, read: String::new() };
        follower.until("event: re").await;
        follower
    }

    pub fn new(address: SocketAddr) -> Self {
        Self { address, cookie: None, csrf: None, key: None }
    }

    /// Returns the same browser at another address of the web.
    pub fn at(&self, address: SocketAddr) -> Self {
        Self { address, ..self.clone() }
    }

    pub fn with_key(&self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), cookie: None, csrf: None, ..self.clone() }
    }

    /// Sends a request as a page of the web would, and keeps the session that comes back.
    pub async fn send(&mut self, method: &str, path: &str, body: Option<Value>) -> Answer {
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let answer = self.send_with(method, path, &[("Content-Type", "application/json")], &body).await;
        if let Some(cookie) = answer.header("set-cookie") {
            let pair = cookie.split(';').next().unwrap().to_owned();
            self.cookie = Some(pair).filter(|pair| !pair.ends_with('='));
        }
        if let Some(csrf) = answer.json()["csrf"].as_str() {
            self.csrf = Some(csrf.to_owned());
        }
        answer
    }

    /// Sends a request with these headers.
    pub async fn send_with(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.send_bytes(method, path, headers, body.as_bytes()).await
    }

    /// Sends a request with these headers and a body that need be no text.
    pub async fn send_bytes(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        let is_named = |name: &str| headers.iter().any(|(named, _)| named.eq_ignore_ascii_case(name));
        let own = [
            ("Host", Some(self.address.to_string())),
            ("Cookie", self.cookie.clone()),
            ("X-CSRF-Token", self.csrf.clone()),
            ("Authorization", self.key.as_ref().map(|key| format!("Bearer {key}"))),
        ];
        for (name, value) in own.into_iter().filter(|(name, _)| !is_named(name)) {
            if let Some(value) = value {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        self.raw(&[format!("{head}\r\n").as_bytes(), body].concat()).await
    }

    /// Sends a head, and waits until the server has read it and asks for the body.
    pub async fn begin(&self, head: &str) -> Begun {
        const ASKS: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(format!("{head}Expect: 100-continue\r\n\r\n").as_bytes()).await.unwrap();
        let mut asked = [0; ASKS.len()];
        stream.read_exact(&mut asked).await.unwrap();
        assert_eq!(asked, ASKS);
        Begun(stream)
    }

    /// Sends bytes, and returns what comes back.
    pub async fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        // The server may answer, and close, before it has read everything.
        if stream.write_all(bytes).await.is_err() {
            return parsed(&mut stream).await;
        }
        parsed(&mut stream).await
    }
}

/// First events of the stream that does not end.
const ENDLESS: [&str; 2] = ["event: ready\n", "event: reset\n"];

async fn parsed(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 << 10];
    while let Ok(read) = stream.read(&mut buffer).await {
        if read == 0 {
            break;
        }
        bytes.extend_from_slice(buffer.get(..read).unwrap_or_default());
        // The stream of events does not end. Its first event says that the client listens.
        if ENDLESS.iter().any(|first| bytes.windows(first.len()).any(|found| found == first.as_bytes())) {
            break;
        }
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text.as_str(), ""));
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|status| status.parse().ok());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let is_chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let body = if is_chunked { unchunked(body) } else { body.to_owned() };
    let start = bytes.windows(4).position(|end| end == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
    let bytes = bytes.split_off(start);
    Answer { status: status.unwrap_or(0), headers, body, bytes }
}

fn unchunked(mut rest: &str) -> String {
    let mut whole = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap_or(0);
        if size == 0 {
            break;
        }
        let (chunk, next) = after.split_at_checked(size).unwrap_or((after, ""));
        whole.push_str(chunk);
        rest = next.strip_prefix("\r\n").unwrap_or(next);
    }
    whole
}
