//! The product with its models on a server: an Ollama written for the test, on loopback.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::http::request;
use super::{at, azera, lines, of};

/// The current state of the models on the server.
#[derive(Clone, Copy)]
pub struct Served {
    pub digest: &'static str,
    pub dimension: usize,
}

/// A word that the server refuses to embed.
const REFUSED: &str = "unspeakable";

pub struct Ollama {
    pub address: String,
    away: Arc<AtomicBool>,
    stopped: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Ollama {
    pub fn start(served: Served) -> Self {
        Self::listen(TcpListener::bind("127.0.0.1:0").expect("a port"), served)
    }

    /// Lets it answer each request with an error, or as usual again.
    pub fn set_away(&self, is_away: bool) {
        self.away.store(is_away, Ordering::SeqCst);
    }

    /// Replaces this server with another one on the same port.
    fn replace(self, served: Served) -> Self {
        let address = self.address.clone();
        drop(self);
        Self::listen(TcpListener::bind(address).expect("the same port"), served)
    }

    fn listen(listener: TcpListener, served: Served) -> Self {
        let address = listener.local_addr().expect("an address").to_string();
        let (away, stopped) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (is_away, stopping) = (away.clone(), stopped.clone());
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopping.load(Ordering::SeqCst) {
                    return;
                }
                // The client may hang up at any time.
                stream.and_then(|stream| answer(stream, served, is_away.load(Ordering::SeqCst))).ok();
            }
        });
        Self { address, away, stopped, thread: Some(thread) }
    }
}

impl Drop for Ollama {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Wake the thread, so that it sees the flag and releases the port.
        TcpStream::connect(&self.address).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn answer(mut stream: TcpStream, served: Served, is_away: bool) -> std::io::Result<()> {
    let (path, body) = request(&stream)?;
    let texts = body["input"].as_array().cloned().unwrap_or_default();
    let refused = texts.iter().any(|text| text.as_str().is_some_and(|text| text.contains(REFUSED)));
    let answer = match path.as_str() {
        _ if is_away => json!({"error": "it is being maintained"}).to_string(),
        "/api/embed" if refused => json!({"error": "not such a word"}).to_string(),
        "/api/tags" => json!({"models": [{"name": "talker:latest", "digest": "t"}, {"name": "finder:latest", "digest": served.digest}]}).to_string(),
        // Text Embeddings Inference: texts about brass are the best.
        "/rerank" => {
            let texts = body["texts"].as_array().cloned().unwrap_or_default();
            let is_brass = |text: &Value| text.as_str().is_some_and(|text| text.contains("brass"));
            let score = |(index, text): (usize, &Value)| json!({"index": index, "score": f64::from(u8::from(is_brass(text)))});
            Value::from(texts.iter().enumerate().map(score).collect::<Vec<_>>()).to_string()
        }
        "/api/show" => json!({"model_info": {"x.context_length": 4096}, "capabilities": ["completion"]}).to_string(),
        "/api/embed" => {
            let vectors: Vec<_> = texts.iter().map(|text| vector(text.as_str().unwrap_or_default(), served)).collect();
            json!({"embeddings": vectors}).to_string()
        }
        _ => [
            json!({"message": {"role": "assistant", "content": "From "}, "done": false}),
            json!({"message": {"role": "assistant", "content": "afar."}, "done": false}),
            json!({"done": true, "done_reason": "stop", "prompt_eval_count": 42, "eval_count": 3}),
        ]
        .map(|line| format!("{line}\n"))
        .concat(),
    };
    let status = match (is_away, refused) {
        (true, _) => "503 Service Unavailable",
        (false, true) => "400 Bad Request",
        (false, false) => "200 OK",
    };
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", answer.len());
    stream.write_all(head.as_bytes())?;
    stream.write_all(answer.as_bytes())
}

/// Returns a vector; texts with common words get similar ones.
fn vector(text: &str, served: Served) -> Vec<f64> {
    let mut vector = vec![0.01; served.dimension];
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 3) {
        let hash = word.bytes().fold(7_usize, |hash, byte| (hash * 31 + usize::from(byte)) % 1_000_003);
        vector[hash % served.dimension] += 1.0;
    }
    vector
}

#[track_caller]
fn replay(scratch: &Path, config: &str, model: &str, timeline: &[Value]) -> Vec<Value> {
    let text: String = timeline.iter().map(|line| format!("{line}\n")).collect();
    let data = scratch.join("data");
    let data = data.to_str().expect("a plain path");
    lines(&azera(scratch, &["--config", config, "replay", "-", "--data", data, "--model", model], &text))
}

/// Returns the signals of each probe's first hit; null without a hit.
fn signals(replayed: &[Value]) -> Vec<String> {
    of(replayed, "probe").iter().map(|search| search["hits"][0]["signals"].to_string()).collect()
}

#[test]
fn servers_serve_chat_and_embeddings_through_a_model_change_and_an_outage() {
    let scratch = tempfile::tempdir().expect("a folder");
    let ollama = Ollama::start(Served { digest: "first", dimension: 64 });
    let file = scratch.path().join("azera.toml");
    let server = |model: &str| format!("api = \"ollama\"\nurl = \"http://{}\"\nmodel = \"{model}\"\n", ollama.address);
    let text = format!("[chat_server]\n{}[embedding_server]\n{}", server("talker"), server("finder"));
    std::fs::write(&file, text).expect("a configuration");
    let config = file.to_str().expect("a plain path");
    let dm = json!({"type": "chat", "at": at(0), "chat": "dm", "kind": "dm", "members": ["ann"]});
    let search = |minute: usize, query: &str| json!({"type": "probe", "at": at(minute), "chat": "dm", "person": "ann", "query": query});
    let say = |minute: usize, text: &str| json!({"type": "message", "at": at(minute), "id": format!("m{minute}"), "chat": "dm", "person": "ann", "text": text});

    let replayed = replay(
        scratch.path(),
        config,
        "default",
        &[dm.clone(), say(1, "my boat is called Petrichor"), search(100, "the boat called Petrichor")],
    );
    let reply = of(&replayed, "reply")[0];
    assert_eq!((&reply["text"], &reply["prompt_tokens"]), (&json!("From afar."), &json!(42)), "{replayed:?}");
    assert!(signals(&replayed)[0].contains("semantic"), "{replayed:?}");
    let listed = azera(scratch.path(), &["--config", config, "models", "list"], "");
    assert!(String::from_utf8_lossy(&listed.stdout).contains("in use, on a server"));
    let doctor = azera(
        scratch.path(),
        &["--config", config, "doctor", "--data", scratch.path().join("data").to_str().expect("a path")],
        "",
    );
    let said = String::from_utf8_lossy(&doctor.stdout);
    assert!(said.contains("ok    chat model: talker on Ollama at http://"), "{said}");
    assert!(said.contains("ok    embedding model: finder on Ollama") && said.contains("64 numbers"), "{said}");

    // Commands that need no model leave the indexes of the server's model alone.
    let personas = azera(
        scratch.path(),
        &["--config", config, "persona", "--data", scratch.path().join("data").to_str().expect("a path"), "list"],
        "",
    );
    let log = String::from_utf8_lossy(&personas.stderr).into_owned();
    assert!(personas.status.success() && !log.contains("embedding all memories again"), "{log}");
    let replayed = replay(scratch.path(), config, "scripted", &[dm.clone(), search(150, "the boat called Petrichor")]);
    assert!(signals(&replayed)[0].contains("semantic"), "{replayed:?}");

    // Another model under the same name is noticed, and all memories are embedded again.
    let ollama = ollama.replace(Served { digest: "second", dimension: 96 });
    let replayed = replay(
        scratch.path(),
        config,
        "talker",
        &[dm.clone(), say(200, "hello"), search(300, "the boat called Petrichor")],
    );
    assert_eq!(of(&replayed, "reply")[0]["text"], "From afar.");
    assert!(signals(&replayed)[0].contains("semantic"), "{replayed:?}");

    // Without the server, recall searches by words. Ask a new question, because the vector of the old one is cached.
    drop(ollama);
    let replayed = replay(scratch.path(), config, "scripted", &[dm, search(400, "what boat is Petrichor?")]);
    let found = &signals(&replayed)[0];
    assert!(found.contains("lexical") && !found.contains("semantic"), "{replayed:?}");
    let data = scratch.path().join("data");
    let doctor =
        azera(scratch.path(), &["--config", config, "doctor", "--data", data.to_str().expect("a plain path")], "");
    let said = String::from_utf8_lossy(&doctor.stdout);
    assert!(
        said.contains("note  embedding model: until it answers") && said.contains("1 of these must be mended"),
        "{said}"
    );
    let doctor = azera(scratch.path(), &["--config", config, "doctor"], "");
    let said = String::from_utf8_lossy(&doctor.stdout);
    assert!(!doctor.status.success() && said.contains("cannot be reached") && said.contains("is it running"), "{said}");
    forget_without_embeddings(scratch.path(), config);
}

/// Forgetting cleans backups and gives a receipt while nothing can be embedded. Only the disk must wait.
fn forget_without_embeddings(home: &Path, config: &str) {
    let data = home.join("data");
    let data = data.to_str().expect("a plain path");
    let backup = azera(home, &["--config", config, "backup", "--data", data], "");
    assert!(backup.status.success(), "{}", String::from_utf8_lossy(&backup.stderr));
    let forget = ["--config", config, "memory", "--data", data, "forget", "--message", "m1", "--yes"];
    let forgot = azera(home, &forget, "");
    let said = String::from_utf8_lossy(&forgot.stderr);
    assert!(forgot.status.success() && said.contains("forgotten bytes are overwritten at a later start"), "{said}");
    let receipt: Value = serde_json::from_slice(&forgot.stdout).expect("a receipt");
    let told = ["messages", "bytes_on_disk", "backups_rewritten"].map(|name| &receipt[name]);
    assert_eq!(told, [&json!(1), &json!("owed"), &json!(1)], "{receipt}");
}

#[test]
fn a_rerank_server_orders_what_is_found_and_may_be_away() {
    let scratch = tempfile::tempdir().expect("a folder");
    let served = Served { digest: "first", dimension: 64 };
    let (ollama, reranker) = (Ollama::start(served), Ollama::start(served));
    let file = scratch.path().join("azera.toml");
    let server = |model: &str| format!("api = \"ollama\"\nurl = \"http://{}\"\nmodel = \"{model}\"\n", ollama.address);
    let text = format!(
        "[chat_server]\n{}[embedding_server]\n{}[rerank_server]\napi = \"tei\"\nurl = \"http://{}\"\nweight = 1.0\n\
         timeout_ms = 10000\n",
        server("talker"),
        server("finder"),
        reranker.address
    );
    std::fs::write(&file, text).expect("a configuration");
    let config = file.to_str().expect("a plain path");
    let dm = json!({"type": "chat", "at": at(0), "chat": "dm", "kind": "dm", "members": ["ann"]});
    let search = |minute: usize, query: &str| json!({"type": "probe", "at": at(minute), "chat": "dm", "person": "ann", "query": query});
    let say = |minute: usize, text: &str| json!({"type": "message", "at": at(minute), "id": format!("m{minute}"), "chat": "dm", "person": "ann", "text": text});
    let (pier, brass) = ("the harbour lamp shines over the pier", "somebody polished the lamp, it is made of brass");
    let said = [dm.clone(), say(1, pier), say(2, brass), search(100, "what about the harbour lamp?")];
    let replayed = replay(scratch.path(), config, "scripted", &said);
    let hit = &of(&replayed, "probe")[0]["hits"][0];
    assert!(hit["text"] == brass && hit["signals"].to_string().contains("reranked"), "{replayed:?}");
    let data = scratch.path().join("data");
    let doctor = || {
        let arguments = ["--config", config, "doctor", "--data", data.to_str().expect("a plain path")];
        String::from_utf8_lossy(&azera(scratch.path(), &arguments, "").stdout).into_owned()
    };
    let told = doctor();
    assert!(told.contains("ok    rerank server: Text Embeddings Inference at http://127.0.0.1"), "{told}");
    drop(reranker);
    let replayed = replay(scratch.path(), config, "scripted", &[dm, search(200, "what of the harbour lamp?")]);
    let hit = &of(&replayed, "probe")[0]["hits"][0];
    assert!(hit["text"] == pier && !hit["signals"].to_string().contains("reranked"), "{replayed:?}");
    let told = doctor();
    assert!(told.contains("note  rerank server:") && told.contains("recall keeps its own order"), "{told}");
}

#[test]
fn a_text_that_the_embedding_server_refuses_blocks_no_other() {
    let scratch = tempfile::tempdir().expect("a folder");
    let ollama = Ollama::start(Served { digest: "first", dimension: 64 });
    let file = scratch.path().join("azera.toml");
    let text =
        format!("[embedding_server]\napi = \"ollama\"\nurl = \"http://{}\"\nmodel = \"finder\"\n", ollama.address);
    std::fs::write(&file, text).expect("a configuration");
    let config = file.to_str().expect("a plain path");
    let say = |minute: usize, text: &str| json!({"type": "message", "at": at(minute), "id": format!("m{minute}"), "chat": "dm", "person": "ann", "text": text});
    let search = |minute: usize, query: &str| json!({"type": "probe", "at": at(minute), "chat": "dm", "person": "ann", "query": query});
    let replayed = replay(
        scratch.path(),
        config,
        "scripted",
        &[
            json!({"type": "chat", "at": at(0), "chat": "dm", "kind": "dm", "members": ["ann"]}),
            say(1, "my unspeakable boat is called Marigold"),
            say(200, "my house is called Petrichor"),
            search(400, "what is called Petrichor?"),
            search(401, "what is called Marigold?"),
        ],
    );
    let found = signals(&replayed);
    assert!(found[0].contains("semantic") && found[1].contains("lexical"), "{replayed:?}");
    let data = scratch.path().join("data");
    let arguments = ["--config", config, "memory", "check", "--deep", "--json", "--data"];
    let check = azera(scratch.path(), &[&arguments[..], &[data.to_str().expect("a path")]].concat(), "");
    let check: Value = serde_json::from_slice(&check.stdout).expect("JSON");
    assert_eq!((&check["good"], &check["queued"]), (&json!(true), &json!(0)), "{check}");
}
