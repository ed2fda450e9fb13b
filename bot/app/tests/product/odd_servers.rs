//! Chat servers that send more than the reply: none of it is shown, remembered or exported.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::azera;
use super::http::request;

/// A server that answers every chat request with the same body, and nothing else.
struct Server {
    address: String,
    stopped: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    fn start(kind: &'static str, body: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let stopped = Arc::new(AtomicBool::new(false));
        let stopping = stopped.clone();
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopping.load(Ordering::SeqCst) {
                    return;
                }
                // The client may hang up at any time.
                stream.and_then(|stream| answer(stream, kind, &body)).ok();
            }
        });
        Self { address, stopped, thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        TcpStream::connect(&self.address).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn answer(mut stream: TcpStream, kind: &str, body: &str) -> std::io::Result<()> {
    let (path, _) = request(&stream)?;
    let models = json!({"object": "list", "data": [{"id": "odd"}]}).to_string();
    let (kind, body) = if path.ends_with("/models") { ("application/json", models.as_str()) } else { (kind, body) };
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

fn events(pieces: &[&str], more: &str) -> String {
    let event = |text: &&str| format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"content": text}}]}));
    pieces.iter().map(event).collect::<String>() + more
}

const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

#[test]
fn only_the_reply_is_shown_remembered_and_exported() {
    const SSE: &str = "text/event-stream";
    let usage = |usage: &str| format!("{STOP}data: {{\"choices\":[],\"usage\":{usage}}}\n\ndata: [DONE]\n\n");
    let whole =
        json!({"choices": [{"message": {"content": [{"type": "text", "text": "A heron, I think."}]}}], "usage": null});
    for (name, kind, body) in [
        ("a lone end", SSE, events(&["MUSING about birds", ".\n</th", "ink>\n\nA heron,", " I think."], STOP)),
        ("another tag", SSE, events(&["<thin", "king>MUSING</thinking>A heron, I think."], STOP)),
        ("brackets", SSE, events(&["[THINK]MUSING[/THINK]", "A heron, I think."], STOP)),
        (
            "channels",
            SSE,
            events(
                &[
                    "<|channel|>analysis<|mess",
                    "age|>MUSING<|end|><|start|>assistant<|channel|>final<|message|>A heron,",
                    " I think.<|return|>",
                ],
                STOP,
            ),
        ),
        ("a special token", SSE, events(&["A heron, I think.<|im_", "end|>\n<|im_start|>user\nMUSING"], STOP)),
        (
            "another field",
            SSE,
            format!(
                "data: {}\n\n{}",
                json!({"choices": [{"delta": {"reasoning_content": "MUSING"}}]}),
                events(&["A heron, I think."], STOP)
            ),
        ),
        ("only a total", SSE, events(&["A heron,", " I think."], &usage("{\"total_tokens\":40}"))),
        (
            "no count",
            SSE,
            events(&["A heron,", " I think."], &usage("{\"prompt_tokens\":null,\"completion_tokens\":\"3\"}")),
        ),
        ("no end", SSE, events(&["A heron,", " I think."], "")),
        ("no stream", "application/json", whole.to_string()),
    ] {
        let server = Server::start(kind, body);
        let scratch = tempfile::tempdir().expect("a folder");
        let file = scratch.path().join("azera.toml");
        let text = format!(
            "[chat_server]\napi = \"openai\"\nurl = \"http://{}/v1\"\nmodel = \"odd\"\n[gardener]\nenabled = false\n",
            server.address
        );
        std::fs::write(&file, text).expect("a configuration");
        let config = file.to_str().expect("a plain path");
        let ask = "Which bird stands on the weir?\nWhich bird was it?\n";
        let output = azera(scratch.path(), &["--config", config, "chat", "--as", "Ann"], ask);
        let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{name}: {errors}");
        assert_eq!(out.trim(), "A heron, I think.\nA heron, I think.", "{name}");
        let exported = azera(scratch.path(), &["--config", config, "memory", "export", "--person", "console:ann"], "");
        let exported = String::from_utf8_lossy(&exported.stdout);
        assert!(exported.contains("A heron, I think.") && !exported.contains("MUSING"), "{name}: {exported}");
        assert!(!exported.contains("<|") && !exported.contains("think>"), "{name}: {exported}");
    }
}
