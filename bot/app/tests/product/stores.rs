//! The product with its stores on servers: a real redis-server on loopback, and nothing at Qdrant's address.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::json;

use super::{at, azera, lines, of};
use crate::ports;

struct Redis {
    child: Child,
    port: u16,
}

/// Returns the redis-server program, which `make test` sets.
#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
fn program() -> String {
    std::env::var("AZERA_TEST_REDIS").unwrap_or_else(|_| "redis-server".into())
}

impl Redis {
    fn start() -> Self {
        let port = ports::reserved();
        let mut child = Command::new(program())
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("redis-server; `make test` fetches one");
        let mut said = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let is_ready = said.by_ref().map_while(Result::ok).any(|line| line.contains("Ready to accept connections"));
        assert!(is_ready, "no redis-server starts");
        std::thread::spawn(move || said.for_each(drop));
        Self { child, port }
    }

    /// Returns the number of stored keys.
    fn keys(&self) -> usize {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        stream.write_all(b"DBSIZE\r\n").expect("a question");
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).expect("an answer");
        line.trim().trim_start_matches(':').parse().expect("a number")
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn working_memory_uses_the_server_and_every_server_may_be_down() {
    let scratch = tempfile::tempdir().expect("a folder");
    let redis = Redis::start();
    let file = scratch.path().join("azera.toml");
    let text = format!(
        "[working_server]\nurl = \"redis://127.0.0.1:{}\"\n[vector_server]\nurl = \"http://127.0.0.1:{}\"\n",
        redis.port,
        ports::reserved()
    );
    std::fs::write(&file, text).expect("a configuration");
    let config = file.to_str().expect("a plain path");
    let data = scratch.path().join("data");
    let data = data.to_str().expect("a plain path");
    let dm = json!({"type": "chat", "at": at(0), "chat": "dm", "kind": "dm", "members": ["ann"]});
    let say = |minute: usize, text: &str| json!({"type": "message", "at": at(minute), "id": format!("m{minute}"), "chat": "dm", "person": "ann", "text": text});
    let search = |minute: usize, query: &str| json!({"type": "probe", "at": at(minute), "chat": "dm", "person": "ann", "query": query});
    let replay = |timeline: &[serde_json::Value]| {
        let text: String = timeline.iter().map(|line| format!("{line}\n")).collect();
        let arguments = ["--config", config, "replay", "-", "--data", data, "--model", "scripted"];
        let replayed = lines(&azera(scratch.path(), &arguments, &text));
        let probes = of(&replayed, "probe");
        assert!(probes[0]["hits"][0]["signals"].to_string().contains("semantic"), "{replayed:?}");
    };
    let doctor = || {
        let output = azera(scratch.path(), &["--config", config, "doctor", "--data", data], "");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && !said.contains("BAD"),
            "what has a stand-in keeps nobody from talking: {said}"
        );
        said
    };

    // A temporary replay leaves nothing on the servers of real memories.
    let scratch_run = [dm.clone(), say(1, "made up")].map(|line| format!("{line}\n")).concat();
    lines(&azera(scratch.path(), &["--config", config, "replay", "-", "--model", "scripted"], &scratch_run));
    assert_eq!(redis.keys(), 0);

    replay(&[dm.clone(), say(1, "my boat is called Petrichor"), search(100, "the boat called Petrichor")]);
    assert!(redis.keys() > 0, "embeddings lie on the server");
    let said = doctor();
    assert!(said.contains("ok    working memory: Redis "), "{said}");
    assert!(said.contains("see [vector_server] in the configuration"), "{said}");

    let forget = || {
        let arguments = ["--config", config, "memory", "--data", data, "forget", "--message", "m1", "--yes"];
        let output = azera(scratch.path(), &arguments, "");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("JSON")["servers"].clone()
    };
    // Redis has forgotten; Qdrant could not be reached.
    assert_eq!((forget(), redis.keys()), (json!("owed"), 0));

    drop(redis);
    replay(&[dm, say(200, "the boat is blue"), search(300, "what is my boat called?")]);
    assert!(doctor().contains("see [working_server] in the configuration"));
}
