//! Extraction by a chat model on a server: servers written for the test, on loopback, that refuse what real ones refuse.

use std::io::Write;
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use super::http::request;
use super::{azera, lines};

/// Starts a server with both interfaces, and returns its address. It serves until the test ends.
fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // The client may hang up at any time.
            stream.and_then(answer).ok();
        }
    });
    address
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let (path, body) = request(&stream)?;
    let content = || quotes(body["messages"].as_array().and_then(|messages| messages.last()));
    let (status, answer) = match path.as_str() {
        "/api/tags" => ("200 OK", json!({"models": [{"name": "talker:latest", "digest": "t"}]}).to_string()),
        "/api/show" => {
            let model = json!({"model_info": {"x.context_length": 8192}, "capabilities": ["completion"]});
            ("200 OK", model.to_string())
        }
        "/v1/models" => ("200 OK", json!({"data": [{"id": "talker"}]}).to_string()),
        "/api/chat" if is_strict(&body["format"]) => {
            ("200 OK", format!("{}\n", json!({"message": {"content": content()}, "done": true})))
        }
        "/v1/chat/completions" if is_strict_format(&body["response_format"]) => {
            let chunk = json!({"choices": [{"delta": {"content": content()}, "finish_reason": "stop"}]});
            ("200 OK", format!("data: {chunk}\n\ndata: [DONE]\n\n"))
        }
        _ => ("400 Bad Request", json!({"error": {"message": "this schema is not supported"}}).to_string()),
    };
    let kind = if path == "/v1/chat/completions" { "text/event-stream" } else { "application/json" };
    let length = answer.len();
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    stream.write_all(answer.as_bytes())
}

fn is_strict_format(format: &Value) -> bool {
    let schema = &format["json_schema"];
    format["type"] == "json_schema" && schema["strict"] == true && is_strict(&schema["schema"])
}

/// Returns true if a schema keeps to what strict servers take: no optional property, no keyword that they do not know.
fn is_strict(schema: &Value) -> bool {
    let Some(fields) = schema.as_object() else { return false };
    let known = ["type", "properties", "required", "additionalProperties", "items", "enum"];
    let whole = match schema["properties"].as_object() {
        Some(properties) => {
            let names: Vec<&String> = properties.keys().collect();
            schema["required"] == json!(names)
                && schema["additionalProperties"] == false
                && properties.values().all(is_strict)
        }
        None => true,
    };
    whole && fields.keys().all(|key| known.contains(&key.as_str())) && fields.get("items").is_none_or(is_strict)
}

/// Quotes every message that may be quoted, and one that nobody wrote.
fn quotes(message: Option<&Value>) -> String {
    let transcript = message.and_then(|message| message["content"].as_str()).unwrap_or_default();
    let quote = |line: &str| {
        let (number, rest) = line.strip_prefix('[')?.split_once(']')?;
        let (number, quote): (usize, _) = (number.parse().ok()?, rest.split_once(": ")?.1);
        Some(json!({"message": number, "needs": 0, "quote": quote, "type": "fact", "weight": "high"}))
    };
    let invented = json!({"message": 1, "needs": 0, "quote": "I own a zoo", "type": "fact", "weight": "high"});
    let items: Vec<Value> = transcript.lines().filter_map(quote).chain([invented]).collect();
    json!({"items": items}).to_string()
}

const CONVERSATION: &str = r#"{"turns": [
    {"id": "t1", "speaker": "Ann", "text": "my berth is number twelve"},
    {"id": "t2", "speaker": "Azera", "bot": true, "text": "Noted."},
    {"id": "t3", "speaker": "Ann", "text": "hm"}],
    "facts": [{"kind": "fact", "text": "", "sources": ["t1"], "keys": [["twelve"]]}]}"#;

#[test]
fn a_model_on_a_server_extracts_by_a_strict_schema() {
    let address = serve();
    for (api, url) in [("ollama", format!("http://{address}")), ("openai", format!("http://{address}/v1"))] {
        let scratch = tempfile::tempdir().expect("a folder");
        let (file, said) = (scratch.path().join("azera.toml"), scratch.path().join("said.jsonl"));
        let config = format!("[chat_server]\napi = \"{api}\"\nurl = \"{url}\"\nmodel = \"talker\"\n");
        std::fs::write(&file, config).expect("a configuration");
        std::fs::write(&said, CONVERSATION.replace('\n', " ")).expect("a conversation");
        let (file, said) = (file.to_str().expect("a plain path"), said.to_str().expect("a plain path"));
        let arguments = ["--config", file, "eval", "extraction", said, "--model", "default", "--json"];
        let told = lines(&azera(scratch.path(), &arguments, ""));
        let by_model = told.iter().find(|line| line["by"] == "model").expect("a line about the model");
        assert_eq!((&by_model["kept"], &by_model["right"]), (&json!(2), &json!(1)), "{api}: {told:?}");
        let items = told.last().expect("a line about its items");
        let counts = ["items", "kept", "untraceable", "repeated"].map(|name| items[name].as_u64());
        assert_eq!(counts, [Some(3), Some(2), Some(1), Some(0)], "{api}: {told:?}");
    }
}
