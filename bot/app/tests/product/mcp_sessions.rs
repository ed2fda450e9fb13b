//! `azera mcp` and `azera hook` on one data folder: what sessions taught is learnt and told.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::forgetting::find_in_home;
use crate::imports::{beside_a_chat, context, hook, run, search, transcript, waits};
use crate::mcp::{call, client, good, stdio};
use crate::servers::{Ollama, Served};
use crate::web::{PATIENCE, Running};
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
    /// Starts the process, and does not wait for it.
    fn start(home: &Path, person: &str) -> Self {
        Self::with(home, person, &[])
    }

    /// Starts the process with options that stand before its command.
    fn with(home: &Path, person: &str, options: &[&str]) -> Self {
        let data = home.join("data");
        let arguments = ["mcp", "--as", person, "--data", data.to_str().expect("a path")];
        let mut child = command(home, &[options, &arguments[..]].concat());
        let mut child = child.stderr(Stdio::inherit()).spawn().expect("the binary runs");
        let pipe = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, pipe, output, number: 0 }
    }

    fn begin(home: &Path) -> Self {
        Self::start(home, "Ann").greeted()
    }

    /// Makes the handshake.
    fn greeted(mut self) -> Self {
        let client = json!({"name": "tests", "version": "1"});
        self.ask("initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}));
        writeln!(self.pipe, "{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).expect("it reads");
        self
    }

    /// Returns the structured answer of a tool that worked.
    #[track_caller]
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        good(&self.ask("tools/call", json!({"name": tool, "arguments": arguments}))).clone()
    }

    /// Returns true if this process has the data folder.
    fn has_folder(&self, home: &Path) -> bool {
        let lock = std::fs::read_to_string(home.join("data/lock")).expect("the lock of the folder");
        lock.lines().next() == Some(self.child.id().to_string().as_str())
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
        assert!(self.ends_well());
    }

    /// Ends it; returns true if it could do everything that it does at its end.
    fn ends_well(self) -> bool {
        let Self { mut child, pipe, .. } = self;
        drop(pipe);
        child.wait().expect("it ends").success()
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
    let begun = Instant::now();
    while waits(home) {
        assert!(begun.elapsed() < PATIENCE, "a transcript still waits");
        open.ask("ping", json!({}));
    }
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
    // A hook that starts meanwhile tells the same, and nothing of a project that is not there.
    let hooked = hook(home, "start", "SessionStart", &file, home, &ARGUMENTS);
    assert_eq!(json!(context(&hooked)), told["structuredContent"]["text"]);
    let elsewhere = hook(home, "start", "SessionStart", &file, home, &["--as", "Ann", "--project", "gate"]);
    assert_eq!(elsewhere.trim(), "", "nothing is known of it");
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
fn an_assistant_beside_a_chat_is_told_who_has_the_folder_and_what_to_do() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let data = home.join("data");
    let mcp = || azera(home, &["mcp", "--data", data.to_str().expect("a path")], "");
    beside_a_chat(home, || {
        let refused = mcp();
        let says = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && says.contains("an `azera chat`") && says.contains("End that"), "{says}");
    });
    let free = mcp();
    assert!(free.status.success(), "{}", String::from_utf8_lossy(&free.stderr));
}

/// Returns the texts that a question finds.
#[track_caller]
fn found(open: &mut Open, query: &str) -> String {
    open.call("recall", &json!({"query": query}))["memories"].to_string()
}

/// Claude Code and Cursor start side by side. One has the folder, the others go through it; when it ends, one of them takes
/// over, and no client notices.
#[test]
fn assistants_that_start_at_once_all_have_the_memory_and_go_on_when_one_ends() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    for round in 0..10 {
        let started: [Open; 3] = std::array::from_fn(|_| Open::start(home, "Ann"));
        let mut all: Vec<Open> = started.into_iter().map(Open::greeted).collect();
        for (number, open) in all.iter_mut().enumerate() {
            let said = format!(
                "In round {round}, assistant {number} was told that the lighthouse opens at {round}:{number}0."
            );
            open.call("remember", &json!({"text": said}));
        }
        for open in &mut all {
            let told = open.call("list", &json!({}))["memories"].to_string();
            assert!((0..3).all(|number| told.contains(&format!("{round}:{number}0"))), "{round}: {told}");
        }
        let first = all.iter().position(|open| open.has_folder(home)).expect("one has the folder");
        let mut first = all.swap_remove(first);
        if round % 2 == 0 {
            first.end();
        } else {
            first.child.kill().expect("it ran");
            first.child.wait().expect("it ends");
        }
        for open in &mut all {
            assert!(found(open, "When does the lighthouse open?").contains("lighthouse"), "{round}");
        }
        assert_eq!(all.iter().filter(|open| open.has_folder(home)).count(), 1, "{round}: one took the folder over");
        all.into_iter().for_each(Open::end);
    }
    let data = home.join("data");
    let listed = azera(home, &["memory", "stats", "--json", "--data", data.to_str().expect("a path")], "");
    let stats: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    assert_eq!(stats["unaccounted"], 0, "{stats}");
}

/// The one that has the folder speaks for each guest's own person and with each guest's own rights.
#[test]
fn a_guest_reads_its_own_persons_memory_and_no_other() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let mut ann = Open::begin(home);
    let id = ann.call("remember", &json!({"text": "The lighthouse password is heliotrope."}))["id"].clone();
    let mut ben = Open::start(home, "Ben").greeted();
    assert!(ann.has_folder(home), "Ben is a guest");
    let listed = ben.ask("tools/list", json!({}));
    let tools = listed["tools"].as_array().expect("tools");
    assert!(tools.iter().all(|tool| tool["name"] != "vault_get") && tools.len() > 30, "it was started without --vault");
    let told = found(&mut ben, "What is the password of the lighthouse?");
    let got = ben.ask("tools/call", json!({"name": "get", "arguments": {"id": id}}));
    let forgotten = ben.ask("tools/call", json!({"name": "forget", "arguments": {"id": id}}));
    assert!(!format!("{told}{got}").contains("heliotrope"), "{told} {got}");
    assert!(got["isError"] == true && forgotten["isError"] == true, "{got} {forgotten}");
    // A first line that is none, and a persona that is not there, get an answer and nothing else.
    let socket = home.join("data/mcp.sock");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&socket).expect("a socket").permissions());
    assert_eq!(mode & 0o777, 0o600);
    let wrong = json!({"name": "Ann", "persona": "nobody", "vault": false}).to_string();
    for first in ["nonsense", "{}", &wrong] {
        let mut stream = std::os::unix::net::UnixStream::connect(&socket).expect("it listens");
        writeln!(stream, "{first}").expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let answer: Value = serde_json::from_str(&answer).expect("one line of JSON");
        assert!(answer["refused"].is_string(), "{first}: {answer}");
    }
    assert!(found(&mut ann, "What is the password of the lighthouse?").contains("heliotrope"));
    ann.end();
    let told = found(&mut ben, "What is the password of the lighthouse?");
    assert!(ben.has_folder(home) && !told.contains("heliotrope"), "{told}");
    ben.end();
}

/// Ann and Ben are linked through an account on the web, so Ann may read Ben's project. Her hook tells of her own alone, as it
/// does where it opens the folder itself.
#[test]
fn a_hook_beside_mcp_tells_of_its_own_account_alone() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (home, file) = (scratch.path(), scratch.path().join("session.jsonl"));
    std::fs::write(&file, transcript("s1", &SAID)).expect("a file");
    let (of_ann, of_ben) = (["--as", "Ann", "--project", "tower"], ["--as", "Ben", "--project", "tower"]);
    hook(home, "stop", "Stop", &file, home, &of_ben);
    let bot = Running::with(home, home.join("data").to_str().expect("a path"), &["--model", "scripted"], &[]);
    let session = bot.own();
    let headers: Vec<(&str, &str)> = session.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    for person in ["Ann", "Ben"] {
        let asked = json!({"session_id": "desk", "message": "/link"});
        let answer = bot.send("POST", "/api/chat", &headers, &asked).2.to_string();
        let code = answer.split("`/link ").nth(1).and_then(|rest| rest.get(..8)).expect("a code");
        run(home, &["link", code, "--as", person, "--yes"]);
    }
    bot.stop();
    let mut ann = Open::begin(home);
    let told = ann.call("context_budget", &json!({"project": "tower"}));
    assert!(told.to_string().contains("heliotrope"), "she may read it: {told}");
    assert_eq!(hook(home, "start", "SessionStart", &file, home, &of_ann).trim(), "", "it is not Ann's own");
    assert!(context(&hook(home, "start", "SessionStart", &file, home, &of_ben)).contains("heliotrope"));
    ann.end();
}

/// A guest that asks for much and reads nothing cannot keep the one that has the folder from its end.
#[test]
fn a_guest_that_does_not_read_holds_nobody_up() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let ann = Open::begin(home);
    let mut guest = std::os::unix::net::UnixStream::connect(home.join("data/mcp.sock")).expect("it listens");
    let speaker = json!({"name": "Ann", "persona": "azera", "vault": false});
    let client = json!({"name": "tests", "version": "1"});
    let begin = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    writeln!(guest, "{speaker}").expect("it reads");
    writeln!(guest, "{}", json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": begin}))
        .expect("it reads");
    writeln!(guest, "{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).expect("it reads");
    for id in 1..100 {
        writeln!(guest, "{}", json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"})).expect("it reads");
    }
    ann.end();
}

/// The backups are cleaned at once, and the disk is overwritten once everything can be embedded.
#[test]
fn what_mcp_forgets_while_the_embedding_server_is_away_is_overwritten_once_it_is_back() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (home, file) = (scratch.path(), scratch.path().join("azera.toml"));
    let ollama = Ollama::start(Served { digest: "first", dimension: 64 });
    let server = format!("api = \"ollama\"\nurl = \"http://{}\"\nmodel = \"finder\"\n", ollama.address);
    std::fs::write(&file, format!("[embedding_server]\n{server}")).expect("a configuration");
    let options = ["--config", file.to_str().expect("a path")];
    let begin = || Open::with(home, "Ann", &options).greeted();
    let mut open = begin();
    let id = open.call("remember", &json!({"text": "The lighthouse password is heliotrope."}))["id"].clone();
    open.end();
    let data = home.join("data");
    let backup = ["backup", "--data", data.to_str().expect("a path")];
    assert!(azera(home, &[&options[..], &backup[..]].concat(), "").status.success());
    ollama.set_away(true);
    let mut open = begin();
    // This one must be embedded before anything is overwritten.
    open.call("remember", &json!({"text": "The gate opens at nine."}));
    open.call("forget", &json!({"id": id}));
    assert!(!open.ends_well(), "not everything could be embedded");
    assert!(find_in_home(home, "heliotrope").is_some(), "it is overwritten later");
    ollama.set_away(false);
    begin().end();
    assert_eq!(find_in_home(home, "heliotrope"), None);
}
