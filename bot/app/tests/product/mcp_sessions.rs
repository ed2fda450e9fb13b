//! `azera mcp` and `azera hook` on one data folder: what sessions taught is learnt and told.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout};

use serde_json::{Value, json};

use crate::imports::{beside_a_chat, context, hook, search, transcript, waits};
use crate::mcp::{call, client, good, stdio};
use crate::{azera, command};

const ARGUMENTS: [&str; 4] = ["--as", "Ann", "--project", "tower"];
const SAID: [(&str, &str); 1] = [("user", "The lighthouse opens with a heliotrope key.")];

/// A client that keeps `azera mcp` open.
struct Open {
    child: Child,
    pipe: ChildStdin,
    output: BufReader<ChildStdout>,
    number: u32,
}

impl Open {
    fn begin(home: &Path) -> Self {
        let data = home.join("data");
        let mut child = command(home, &["mcp", "--as", "Ann", "--data", data.to_str().expect("a path")]);
        let mut child = child.spawn().expect("the binary runs");
        let pipe = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut open = Self { child, pipe, output, number: 0 };
        let client = json!({"name": "tests", "version": "1"});
        open.ask("initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}));
        writeln!(open.pipe, "{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).expect("it reads");
        open
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.number += 1;
        let asked = json!({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params});
        writeln!(self.pipe, "{asked}").expect("it reads");
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).expect("it answers"), 0, "it ended before it answered {asked}");
            let answer: Value = serde_json::from_str(&line).expect("JSON");
            if answer["id"] == self.number {
                return answer["result"].clone();
            }
        }
    }

    fn end(self) {
        let Self { mut child, pipe, .. } = self;
        drop(pipe);
        assert!(child.wait().expect("it ends").success());
    }
}

/// `context_budget` tells the next assistant of a project what `azera hook start` tells, and tells nobody else.
#[test]
fn a_session_over_mcp_is_told_what_hooks_taught() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (home, file) = (scratch.path(), scratch.path().join("session.jsonl"));
    std::fs::write(&file, transcript("s1", &SAID)).expect("a file");
    hook(home, "stop", "Stop", &file, home, &ARGUMENTS);
    let told = context(&hook(home, "start", "SessionStart", &file, home, &ARGUMENTS));
    assert!(told.contains("heliotrope"), "{told}");
    let steps = json!([
        call("context_budget", &json!({"project": " Tower"})),
        call("context_budget", &json!({"project": "gate"})),
    ]);
    let data = home.join("data");
    let mcp = |person| ["mcp", "--data", data.to_str().expect("a path"), "--as", person];
    let came = client(&stdio(home, &mcp("Ann"), "auto", &steps));
    assert_eq!(good(&came[0])["text"], json!(told));
    assert_eq!(came[1]["isError"], true, "there is no such project: {}", came[1]);
    let came = client(&stdio(home, &mcp("Ben"), "auto", &steps));
    assert_eq!(came[0]["isError"], true, "it is Ann's project: {}", came[0]);
}

/// Waits until nothing is left to import. Each request gives the server a moment.
#[track_caller]
fn until_taken_in(open: &mut Open, home: &Path) {
    let is_taken_in = (0..1_000_000).any(|_| {
        open.ask("ping", json!({}));
        !waits(home)
    });
    assert!(is_taken_in, "a transcript still waits");
}

/// No hook can open the folder beside `azera mcp`, so it takes in what they leave: while it runs, and when it starts again.
#[test]
fn what_hooks_leave_is_learnt_while_mcp_has_the_folder_and_when_it_starts() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let (file, later) = (home.join("session.jsonl"), home.join("later.jsonl"));
    std::fs::write(&file, transcript("s1", &SAID)).expect("a file");
    beside_a_chat(home, || {
        hook(home, "stop", "Stop", &file, home, &ARGUMENTS);
    });
    assert!(waits(home));
    let mut open = Open::begin(home);
    until_taken_in(&mut open, home);
    let told = open.ask("tools/call", json!({"name": "context_budget", "arguments": {"project": "tower"}}));
    assert!(told["structuredContent"]["text"].to_string().contains("heliotrope"), "{told}");
    std::fs::write(&later, transcript("s2", &[("user", "The gate opens with a zeppelin key.")])).expect("a file");
    hook(home, "stop", "Stop", &later, home, &ARGUMENTS);
    open.end();
    let mut open = Open::begin(home);
    until_taken_in(&mut open, home);
    open.end();
    let found = search(home, "What opens the gate?", &["--as", "Ann"]);
    assert!(found.iter().any(|hit| hit.contains("zeppelin")), "{found:?}");
}

#[test]
fn a_second_assistant_is_told_who_has_the_folder_and_what_to_do() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let data = home.join("data");
    let open = Open::begin(home);
    let refused = azera(home, &["mcp", "--data", data.to_str().expect("a path")], "");
    let says = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && says.contains("another assistant's `azera mcp`"), "{says}");
    assert!(says.contains("start `azera run`") && says.contains("azera web key create"), "{says}");
    open.end();
    let free = azera(home, &["mcp", "--data", data.to_str().expect("a path")], "");
    assert!(free.status.success(), "{}", String::from_utf8_lossy(&free.stderr));
}
