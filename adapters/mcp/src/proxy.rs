//! Passes a session over a stream on to the `/mcp` of a running Azera.
//!
//! Messages are passed on as they are. What a client may do is decided by the running Azera alone, by the key.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, JoinSet};

/// The code of errors that the way to the server causes.
pub(crate) const UNREACHABLE: i64 = -32_000;

/// The field of a request that names the version of the protocol it follows.
const VERSION_FIELD: &str = "io.modelcontextprotocol/protocolVersion";

/// Why a session could not be passed on.
#[derive(Debug, Error)]
pub enum ProxyError {
    /// The address or the key cannot be sent.
    #[error("{0}")]
    Setting(&'static str),
    /// The stream of the client broke.
    #[error("the client's stream broke: {0}")]
    Stream(#[from] std::io::Error),
    /// The HTTP client cannot be made.
    #[error("cannot make a client: {0}")]
    Client(reqwest::Error),
}

/// The way to a running Azera.
#[derive(Clone)]
pub struct Upstream {
    client: reqwest::Client,
    url: reqwest::Url,
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Upstream({})", self.url)
    }
}

impl Upstream {
    /// Creates the way to an address that ends in `/mcp`, with a key and a persona.
    ///
    /// # Errors
    /// The address is no address, or the key cannot stand in a header.
    pub fn new(url: &str, key: &str, persona: Option<&str>) -> Result<Self, ProxyError> {
        let mut url = reqwest::Url::parse(url).map_err(|_| ProxyError::Setting("--url is no address"))?;
        if !is_private(&url) {
            return Err(ProxyError::Setting("--url names another machine without https, so others could read the key"));
        }
        if let Some(persona) = persona {
            url.query_pairs_mut().append_pair("persona", persona);
        }
        let mut headers = HeaderMap::new();
        let bearer = HeaderValue::from_str(&format!("Bearer {}", key.trim()));
        let mut bearer = bearer.map_err(|_| ProxyError::Setting("AZERA_MCP_KEY holds characters that no key has"))?;
        bearer.set_sensitive(true);
        headers.insert(reqwest::header::AUTHORIZATION, bearer);
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        // Redirects and proxies of the environment are not used: only the configuration says where the key goes.
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy();
        let client = client.default_headers(headers).build().map_err(ProxyError::Client)?;
        Ok(Self { client, url })
    }

    /// Passes messages on until the client closes its side and every request is answered.
    ///
    /// # Errors
    /// The client's stream breaks.
    pub async fn pass_on<R, W>(self, input: R, output: W) -> Result<(), ProxyError>
    where
        R: AsyncRead + Send + Unpin,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (answers, written) = unbounded_channel();
        let writer = tokio::spawn(write(output, written));
        let mut lines = BufReader::new(input).lines();
        let mut calls =
            Calls { upstream: self, version: None, running: JoinSet::new(), by_id: HashMap::new(), answers };
        while let Some(line) = lines.next_line().await? {
            if !line.trim().is_empty() {
                calls.take(line).await;
            }
        }
        while calls.running.join_next().await.is_some() {}
        drop(calls);
        writer.await.map_err(std::io::Error::other)??;
        Ok(())
    }

    /// Sends one message. Each answer goes to `answers` as a line.
    async fn send(&self, message: &Value, body: String, version: Option<&str>, answers: &UnboundedSender<String>) {
        if let Err(detail) = self.exchange(message, body, version, answers).await
            && let Some(id) = message.get("id").filter(|_| message.get("method").is_some())
        {
            let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": UNREACHABLE, "message": detail}});
            answers.send(error.to_string()).ok();
        }
    }

    async fn exchange(
        &self,
        message: &Value,
        body: String,
        version: Option<&str>,
        answers: &UnboundedSender<String>,
    ) -> Result<(), String> {
        let mut request = self.client.post(self.url.clone()).body(body);
        for (name, value) in mirrored(message, version) {
            request = request.header(name, value);
        }
        let unreachable = |error: reqwest::Error| format!("Azera does not answer: {}.", error.without_url());
        let mut response = request.send().await.map_err(unreachable)?;
        let media_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if media_type.starts_with("text/event-stream") {
            let mut events = Events::default();
            while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
                for message in events.push(&chunk) {
                    answers.send(message).ok();
                }
            }
            return Ok(());
        }
        let (status, is_json) = (response.status(), media_type.starts_with("application/json"));
        let text = response.text().await.map_err(unreachable)?;
        match serde_json::from_str::<Value>(&text) {
            Ok(answer) if is_json && answer.get("jsonrpc").is_some() => {
                answers.send(answer.to_string()).ok();
                Ok(())
            }
            _ if status.is_success() && text.is_empty() => Ok(()),
            Ok(problem) => {
                let detail = problem.get("detail").and_then(Value::as_str).unwrap_or("no reason is given");
                Err(format!("Azera refuses ({status}): {detail}"))
            }
            Err(_) => Err(format!("Azera refuses ({status}).")),
        }
    }
}

/// Returns true if nobody on the way can read what is sent there.
fn is_private(url: &reqwest::Url) -> bool {
    let name = url.host_str().unwrap_or_default();
    let address = name.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    url.scheme() == "https" || name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// The calls of a session.
struct Calls {
    upstream: Upstream,
    /// The version that the client and the server agreed on.
    version: Option<String>,
    running: JoinSet<()>,
    by_id: HashMap<String, AbortHandle>,
    answers: UnboundedSender<String>,
}

impl Calls {
    async fn take(&mut self, line: String) {
        let message: Value = match serde_json::from_str(&line) {
            Ok(message) => message,
            Err(error) => {
                let error = json!({"code": -32_700, "message": format!("this is no JSON: {error}")});
                self.answers.send(json!({"jsonrpc": "2.0", "id": null, "error": error}).to_string()).ok();
                return;
            }
        };
        let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
        if method == "initialize" {
            return self.initialize(message, line).await;
        }
        if method == "notifications/cancelled" {
            // A request ends when its connection does.
            let id = message.pointer("/params/requestId").map(Value::to_string).unwrap_or_default();
            if let Some(call) = self.by_id.remove(&id) {
                call.abort();
            }
            return;
        }
        let id = message.get("id").map(Value::to_string);
        let (upstream, version, answers) = (self.upstream.clone(), self.version.clone(), self.answers.clone());
        let call = self.running.spawn(async move {
            upstream.send(&message, line, version.as_deref(), &answers).await;
        });
        while self.running.try_join_next().is_some() {}
        self.by_id.retain(|_, call| !call.is_finished());
        if let Some(id) = id {
            self.by_id.insert(id, call);
        }
    }

    /// Begins a session: the answer names the version that later requests repeat.
    async fn initialize(&mut self, message: Value, line: String) {
        let (own, mut heard) = unbounded_channel();
        self.upstream.send(&message, line, None, &own).await;
        drop(own);
        while let Some(answer) = heard.recv().await {
            if let Ok(answer) = serde_json::from_str::<Value>(&answer)
                && let Some(version) = answer.pointer("/result/protocolVersion").and_then(Value::as_str)
            {
                self.version = Some(version.to_owned());
            }
            self.answers.send(answer).ok();
        }
    }
}

/// Returns the headers that repeat parts of a message, as streamable HTTP asks.
fn mirrored(message: &Value, agreed: Option<&str>) -> Vec<(&'static str, String)> {
    let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str);
    let own = message.pointer("/params/_meta").and_then(|meta| meta.get(VERSION_FIELD)).and_then(Value::as_str);
    let method = text("/method");
    let name = match method {
        Some("tools/call" | "prompts/get") => text("/params/name"),
        Some("resources/read") => text("/params/uri"),
        _ => None,
    };
    let plain = |value: &str| {
        let is_plain = value.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && value.trim() == value;
        if is_plain { value.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(value)) }
    };
    let headers = [
        ("mcp-protocol-version", own.or(agreed).map(str::to_owned)),
        ("mcp-method", method.map(plain)),
        ("mcp-name", name.map(plain)),
    ];
    headers.into_iter().filter_map(|(header, value)| Some((header, value?))).collect()
}

/// The events of a stream so far.
#[derive(Default)]
struct Events {
    rest: Vec<u8>,
    data: String,
}

impl Events {
    /// Returns the messages that are complete with this chunk.
    fn push(&mut self, chunk: &[u8]) -> Vec<String> {
        self.rest.extend_from_slice(chunk);
        let mut messages = Vec::new();
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\r', '\n']);
            if line.is_empty() {
                let data = std::mem::take(&mut self.data);
                if !data.is_empty() {
                    messages.push(data);
                }
            } else if let Some(data) = line.strip_prefix("data:") {
                // A message is one line of JSON, so lines of its data can be joined.
                self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
            }
        }
        messages
    }
}

async fn write<W: AsyncWrite + Unpin>(mut output: W, mut lines: UnboundedReceiver<String>) -> std::io::Result<()> {
    while let Some(line) = lines.recv().await {
        output.write_all(line.as_bytes()).await?;
        output.write_all(b"\n").await?;
        output.flush().await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_whole_however_they_are_cut() {
        let stream =
            "event: message\r\nid: 1\r\ndata: {\"a\":\r\ndata:\"ü\"}\r\n\r\n: ping\n\nretry: 3\ndata:\n\ndata: {}\n\n";
        for size in [1, 2, 3, 7, stream.len()] {
            let mut events = Events::default();
            let messages: Vec<String> = stream.as_bytes().chunks(size).flat_map(|chunk| events.push(chunk)).collect();
            assert_eq!(messages, ["{\"a\":\"ü\"}", "{}"], "{size}");
        }
    }

    #[test]
    fn a_key_is_sent_to_no_other_machine_in_the_clear() {
        for url in
            ["http://127.0.0.1:3000/mcp", "http://localhost/mcp", "http://[::1]:1/mcp", "https://example.org/mcp"]
        {
            assert!(Upstream::new(url, "azk_a_b", None).is_ok(), "{url}");
        }
        for url in ["http://example.org/mcp", "http://localhost.example.org/mcp", "http://10.0.0.1/mcp", "nonsense"] {
            assert!(Upstream::new(url, "azk_a_b", None).is_err(), "{url}");
        }
        assert!(Upstream::new("http://localhost/mcp", "a\nb", None).is_err());
        let upstream = Upstream::new("http://localhost/mcp", "azk_secret", Some("a&b")).unwrap();
        assert_eq!(format!("{upstream:?}"), "Upstream(http://localhost/mcp?persona=a%26b)");
    }

    #[test]
    fn headers_repeat_the_message() {
        let call = json!({"id": 1, "method": "tools/call", "params": {"name": "recall", "_meta": {VERSION_FIELD: "2026-07-28"}}});
        let want = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "recall")];
        assert_eq!(mirrored(&call, Some("2025-11-25")), want.map(|(name, value)| (name, value.to_owned())));
        let read = json!({"id": 1, "method": "resources/read", "params": {"uri": "azera://memory/ü"}});
        let name = mirrored(&read, None).pop().unwrap();
        assert_eq!(name, ("mcp-name", "=?base64?YXplcmE6Ly9tZW1vcnkvw7w=?=".to_owned()));
    }
}
