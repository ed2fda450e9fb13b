//! Full disks: Azera reports them, loses nothing acknowledged, and continues when there is space again.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{azera, command};

/// The error text of a full disk.
const FULL: &str = "no room left on the disk";

/// How long to wait until Azera continues, which takes a second, or ends.
const PATIENCE: Duration = Duration::from_secs(300);

/// A process that the test talks to line by line.
struct Talk {
    child: Child,
    input: ChildStdin,
    events: Receiver<Value>,
    /// Answered messages: their ids and texts. The text is empty if only the reply was seen.
    answered: HashMap<String, String>,
    /// The log file.
    log: PathBuf,
}

impl Talk {
    fn with(mut command: Command, home: &Path) -> Self {
        let log = home.join("log");
        command.stderr(File::create(&log).expect("a log"));
        let mut child = command.spawn().expect("the binary runs");
        let (input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let (sender, events) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let event = serde_json::from_str(&line.expect("UTF-8")).expect("a JSON object a line");
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        Self { child, input, events, answered: HashMap::new(), log }
    }

    /// Sends a line and returns the event that ends its handling.
    fn say(&mut self, line: &str) -> Value {
        writeln!(self.input, "{line}").expect("it listens");
        loop {
            let event = self.events.recv_timeout(PATIENCE);
            let event = event.unwrap_or_else(|_| panic!("{line:?} is neither answered nor refused: {}", self.log()));
            match event["type"].as_str() {
                // A reply may belong to an earlier message.
                Some("reply") => drop(self.answered.entry(id(&event["to"])).or_default()),
                Some("turn") => {
                    self.answered.insert(id(&event["to"]), line.to_owned());
                    return event;
                }
                Some("command" | "silent") => return event,
                Some("error") if event["to"].is_string() => return event,
                _ => {}
            }
        }
    }

    /// Sends lines until one is answered.
    fn say_until_answered(&mut self, what: &str) {
        let began = Instant::now();
        for number in 0.. {
            let event = self.say(&format!("{what} {number}"));
            if event["type"] == "turn" {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "it does not go on: {event} {}", self.log());
        }
    }

    /// Sends lines until one is refused, and checks the reason.
    fn say_until_full(&mut self, what: &str) {
        for number in 0..10_000 {
            let event = self.say(&format!("{what} {number}"));
            if event["type"] == "error" {
                assert!(event["message"].as_str().expect("a text").contains(FULL), "{event}");
                return;
            }
        }
        panic!("the disk is not full");
    }

    /// Checks that a command is answered, if only with the reason for a failure. The store may have stopped in the
    /// middle of a change that must finish before it can even read.
    fn ask_while_full(&mut self) {
        let answer = self.say("/memory stats");
        let text = answer["text"].as_str().expect("a text");
        assert!(answer["ok"] == true || text.contains(FULL), "{answer}");
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).expect("the log")
    }

    /// Ends the process and returns the answered messages.
    fn end(self) -> HashMap<String, String> {
        let Self { mut child, input, events, mut answered, log } = self;
        drop(input);
        loop {
            match events.recv_timeout(PATIENCE) {
                Ok(event) if event["type"] == "reply" => drop(answered.entry(id(&event["to"])).or_default()),
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    child.kill().expect("it can be killed");
                    panic!("it does not end: {}", std::fs::read_to_string(log).expect("the log"));
                }
            }
        }
        // Refused messages give a failure status, but the process ends by itself.
        let ended = child.wait().expect("it ends");
        assert!(ended.code().is_some(), "{}", std::fs::read_to_string(log).expect("the log"));
        answered
    }
}

fn id(of: &Value) -> String {
    of.as_str().expect("an id").to_owned()
}

/// Returns the arguments of a chat on a folder.
fn chat(data: &str) -> [&str; 8] {
    ["chat", "--json", "--as", "ann", "--model", "scripted", "--data", data]
}

/// Wraps the binary in a shell, for settings before it starts. `$0` is the binary, `$@` its arguments.
fn in_shell(home: &Path, script: &str, arguments: &[&str]) -> Command {
    let bare = command(home, &[]);
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(bare.get_program()).args(arguments).env_clear();
    command.envs(bare.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns the check of record and indexes, and ann's messages with their answers.
fn inspect(home: &Path, data: &str) -> (Value, Value) {
    let json = |arguments: &[&str]| {
        let output = azera(home, &[arguments, &["--data", data]].concat(), "");
        let output_text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}{output_text}", String::from_utf8_lossy(&output.stdout));
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    (json(&["memory", "check", "--json"]), json(&["memory", "export", "--person", "console:ann"]))
}

/// Checks that every answered message is there with its one answer, and that every other stored message was answered in
/// the end.
#[track_caller]
fn nothing_is_lost(answered: &HashMap<String, String>, check: &Value, export: &Value) {
    assert_eq!(check["good"], true, "{check}");
    assert_eq!((&check["record"]["open_turns"], &check["record"]["undelivered"]), (&json!(0), &json!(0)), "{check}");
    let messages = export["messages"].as_array().expect("messages");
    for message in messages {
        assert_eq!(message["answers"].as_array().map(Vec::len), Some(1), "{message}");
    }
    for (id, text) in answered {
        let found = messages.iter().find(|message| message["id"] == **id);
        let found = found.unwrap_or_else(|| panic!("{text:?} was answered and is lost"));
        assert!(text.is_empty() || found["text"] == **text, "{found}");
    }
}

/// Limits the size of a process's files, which acts like a full disk; `None` lifts the limit.
fn limit_files(child: &Child, bytes: Option<u64>) {
    let limit = bytes.map_or("unlimited".to_owned(), |bytes| bytes.to_string());
    let done = Command::new("prlimit")
        .args(["--pid", &child.id().to_string(), &format!("--fsize={limit}:")])
        .status()
        .expect("prlimit, of util-linux, is needed to test full disks");
    assert!(done.success());
}

#[test]
fn a_disk_that_is_full_for_a_while_loses_nothing() {
    let home = tempfile::tempdir().expect("a folder");
    let data = home.path().join("data");
    let folder = data.to_str().expect("a path");
    // A write beyond the limit must fail, not end the process.
    let mut talk = Talk::with(in_shell(home.path(), r#"trap "" XFSZ; exec "$0" "$@""#, &chat(folder)), home.path());
    assert_eq!(talk.say("the harbour code is 1111")["type"], "turn");
    for round in 0..3 {
        let log = data.join("record").join("g1").join("db");
        limit_files(&talk.child, Some(log.metadata().expect("the record's log").len()));
        talk.say_until_full(&format!("while it fills up for the {round}th time"));
        for number in 0..20 {
            let event = talk.say(&format!("while it is full for the {round}th time {number}"));
            assert!(event["message"].as_str().is_some_and(|text| text.contains(FULL)), "{event}");
        }
        talk.ask_while_full();
        limit_files(&talk.child, None);
        talk.say_until_answered(&format!("when there is room for the {round}th time"));
    }
    let answered = talk.end();
    let (check, export) = inspect(home.path(), folder);
    nothing_is_lost(&answered, &check, &export);
}

#[test]
fn a_start_on_a_full_disk_reports_it_and_damages_nothing() {
    let home = tempfile::tempdir().expect("a folder");
    let data = home.path().join("data");
    let folder = data.to_str().expect("a path");
    let lines: String = (0..40).map(|number| format!("line {number}\n")).collect();
    assert!(azera(home.path(), &chat(folder), &lines).status.success());
    for blocks in [1, 8, 64] {
        let script = format!(r#"trap "" XFSZ; ulimit -S -f {blocks}; exec "$0" "$@""#);
        let output = in_shell(home.path(), &script, &chat(folder)).output().expect("it runs");
        let output_text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_some(), "{output_text}");
        assert!(
            output.status.success() || output_text.contains(FULL) || output_text.contains("File too large"),
            "{output_text}"
        );
    }
    let (check, export) = inspect(home.path(), folder);
    assert_eq!(check["good"], true, "{check}");
    assert_eq!(export["messages"].as_array().map(Vec::len), Some(40));
}

/// Fills a separate file system to the last byte. Mapped files that cannot be written must not end the process. Needs a
/// user namespace, which some machines do not allow.
#[test]
#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
fn a_disk_filled_to_the_last_byte_loses_nothing() {
    let home = tempfile::tempdir().expect("a folder");
    let data = home.path().join("data");
    std::fs::create_dir(&data).expect("a folder");
    let folder = data.to_str().expect("a path");
    let namespace = Command::new("unshare").args(["-rm", "sh", "-c", "mount -t tmpfs tmpfs /mnt"]).output();
    if !namespace.as_ref().is_ok_and(|output| output.status.success()) {
        assert!(
            std::env::var_os("AZERA_SOAK_KILLS").is_none(),
            "no user namespace to mount a small disk in: {namespace:?}"
        );
        eprintln!("not tested: this machine gives no user namespace to mount a small disk in");
        return;
    }
    // Inspect the small disk before it disappears with the namespace.
    let script = r#"mount -t tmpfs -o size=96m tmpfs "$DATA" && "$0" "$@";
        "$0" memory check --json --data "$DATA" > "$OUT/check" && "$0" memory export --person console:ann --data "$DATA" > "$OUT/export""#;
    let inner = in_shell(home.path(), script, &chat(folder));
    let mut command = Command::new("unshare");
    command.arg("-rm").arg(inner.get_program()).args(inner.get_args()).env_clear();
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("DATA", &data).env("OUT", home.path());
    // The disk is used to its end.
    command.env("AZERA__DATA__MIN_FREE_MB", "0");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut talk = Talk::with(command, home.path());
    assert_eq!(talk.say("the harbour code is 1111")["type"], "turn");
    let disk = format!("/proc/{}/root{}", talk.child.id(), data.display());
    for round in 0..3 {
        let filler = Path::new(&disk).join("filler");
        let mut file = File::create(&filler).expect("the small disk can be reached");
        while file.write_all(&[7; 65_536]).is_ok() {}
        while file.write_all(&[7]).is_ok() {}
        drop(file);
        talk.say_until_full(&format!("while it fills up for the {round}th time"));
        talk.ask_while_full();
        std::fs::remove_file(&filler).expect("the filler goes");
        talk.say_until_answered(&format!("when there is room for the {round}th time"));
    }
    let answered = talk.end();
    let read =
        |name: &str| serde_json::from_slice(&std::fs::read(home.path().join(name)).expect("a file")).expect("JSON");
    nothing_is_lost(&answered, &read("check"), &read("export"));
}
