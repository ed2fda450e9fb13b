//! A local server with the hub's paths: metadata on the hub's own address, large files behind a redirect to another
//! host, ranges, and the faults that a test configures.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use crate::fixtures::sha256;

/// A file, and how it is served.
#[derive(Clone)]
pub struct Served {
    pub bytes: Vec<u8>,
    /// The ETag; for large files, their SHA-256.
    pub etag: String,
    /// True to serve the file behind a redirect, like large files.
    pub large: bool,
    /// True if ranges can be requested. A description always can.
    pub ranges: bool,
    /// True to send the headers that identify a hub.
    pub described: bool,
    /// How many bytes each next transfer sends before it breaks. Later transfers are complete.
    pub cuts: Vec<usize>,
    /// True to keep a broken transfer open without sending more.
    pub hang: bool,
}

impl Served {
    pub fn large(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.to_vec(),
            etag: sha256(bytes),
            large: true,
            ranges: true,
            described: true,
            cuts: Vec::new(),
            hang: false,
        }
    }
}

/// A request to the server.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedRequest {
    pub path: String,
    pub range: Option<String>,
    pub token: Option<String>,
}

#[derive(Default)]
struct Shared {
    files: HashMap<String, Served>,
    status: Option<u16>,
    log: Vec<RecordedRequest>,
}

pub struct HubServer {
    pub endpoint: String,
    shared: Arc<Mutex<Shared>>,
    task: JoinHandle<()>,
}

impl Drop for HubServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl HubServer {
    /// Starts a server on a free port with one file, `owner/tiny/tiny.gguf`.
    pub async fn start(file: Served) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Mutex::new(Shared::default()));
        let serving = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, port, Arc::clone(&serving)));
            }
        });
        let server = Self { endpoint: format!("http://127.0.0.1:{port}"), shared, task };
        server.put("tiny.gguf", file);
        server
    }

    /// Serves `file` under this name in `owner/tiny`.
    pub fn put(&self, name: &str, file: Served) {
        self.shared.lock().unwrap().files.insert(format!("/owner/tiny/resolve/main/{name}"), file);
    }

    /// Answers every request with a status.
    pub fn fail_with(&self, status: u16) {
        self.shared.lock().unwrap().status = Some(status);
    }

    /// Returns all requests so far.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.lock().unwrap().log.clone()
    }

    /// Returns the ranges of the transfers so far, without descriptions and redirects.
    pub fn transfers(&self) -> Vec<Option<String>> {
        let transfer = |requests: &RecordedRequest| {
            requests.path.starts_with("/cdn/") && requests.range.as_deref() != Some("bytes=0-0")
        };
        self.requests().into_iter().filter(transfer).map(|requests| requests.range).collect()
    }
}

async fn answer(stream: TcpStream, port: u16, shared: Arc<Mutex<Shared>>) {
    let mut stream = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
            return;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let path = lines[0].split(' ').nth(1).unwrap().to_owned();
    let header = |name: &str| {
        lines[1..].iter().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then(|| value.to_owned())
        })
    };
    let requests = RecordedRequest { path: path.clone(), range: header("range"), token: header("authorization") };
    let (head, body, hang) = respond(&requests, port, &mut shared.lock().unwrap());
    let stream = stream.get_mut();
    // The client may hang up first.
    if stream.write_all(head.as_bytes()).await.is_ok() && stream.write_all(&body).await.is_ok() && hang {
        std::future::pending::<()>().await;
    }
}

fn respond(requests: &RecordedRequest, port: u16, shared: &mut Shared) -> (String, Vec<u8>, bool) {
    shared.log.push(requests.clone());
    let plain = |status: u16, headers: &str| {
        (format!("HTTP/1.1 {status} -\r\ncontent-length: 0\r\nconnection: close\r\n{headers}\r\n"), Vec::new(), false)
    };
    if let Some(status) = shared.status {
        return plain(status, "");
    }
    let at_store = requests.path.strip_prefix("/cdn");
    let Some(file) = shared.files.get_mut(at_store.unwrap_or(&requests.path)) else { return plain(404, "") };
    let headers = match (file.described, file.large) {
        (false, _) => String::new(),
        (true, true) => format!("etag: \"other\"\r\nx-linked-etag: \"{}\"\r\nx-repo-commit: 1a2b\r\n", file.etag),
        (true, false) => format!("etag: \"{}\"\r\nx-repo-commit: 1a2b\r\n", file.etag),
    };
    if file.large && at_store.is_none() {
        return plain(302, &format!("{headers}location: http://localhost:{port}/cdn{}\r\n", requests.path));
    }
    let total = file.bytes.len();
    let description = requests.range.as_deref() == Some("bytes=0-0");
    let range = requests.range.as_deref().filter(|_| file.ranges || description).and_then(|range| {
        let (start, end) = range.strip_prefix("bytes=")?.split_once('-')?;
        let start: usize = start.parse().ok()?;
        Some(start..end.parse().map_or(total, |end: usize| end + 1))
    });
    let (status, range, content_range) = match range {
        Some(range) => {
            let line = format!("content-range: bytes {}-{}/{total}\r\n", range.start, range.end - 1);
            (206, range, line)
        }
        None => (200, 0..total, String::new()),
    };
    let mut body = file.bytes[range].to_vec();
    let head = format!(
        "HTTP/1.1 {status} -\r\ncontent-length: {}\r\nconnection: close\r\n{content_range}{headers}\r\n",
        body.len()
    );
    let cut = if description || file.cuts.is_empty() { None } else { Some(file.cuts.remove(0)) };
    if let Some(cut) = cut {
        body.truncate(cut);
    }
    (head, body, cut.is_some() && file.hang)
}
