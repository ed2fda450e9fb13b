//! Kills the real process at random points under load, and checks what remains after each kill.
//!
//! The receiver is this test, behind a pipe that outlives the process. Several people talk at once, and everything
//! written to the pipe before the kill counts as shown. Like every platform, the test knows a reply by its id and shows
//! each id once. It counts repeated replies.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::forgetting::on_disk;
use crate::{azera, command};

/// Kills per data folder.
const KILLS: usize = 20;

/// How long a process may neither say anything nor end, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// People who talk at once. The last one also forgets messages.
const PEOPLE: [&str; 7] = ["ann", "ben", "cid", "dot", "eve", "fay", "leo"];

/// When to kill the process.
#[derive(Clone, Copy, Debug)]
enum When {
    /// A time after its start.
    Started(Duration),
    /// A time after its first event.
    Talking(Duration),
    /// After this number of events.
    Events(usize),
    /// After this number of reply pieces: the message is acknowledged, and the reply is incomplete.
    Pieces(usize),
    /// After this number of replies: they are sent, and the last one is not acknowledged.
    Replies(usize),
}

impl When {
    fn random(dice: &mut Dice) -> Self {
        let ms = |dice: &mut Dice, most| Duration::from_millis(dice.throw(most));
        match dice.throw(8) {
            0 => Self::Started(ms(dice, 800)),
            1..=2 => Self::Talking(ms(dice, 1_000)),
            3 => Self::Events(1 + dice.throw(250) as usize),
            4..=5 => Self::Pieces(1 + dice.throw(60) as usize),
            _ => Self::Replies(1 + dice.throw(60) as usize),
        }
    }
}

/// Number of data folders, with [`KILLS`] kills each; `make soak` asks for more.
#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
fn rounds() -> usize {
    let kills = std::env::var("AZERA_SOAK_KILLS").ok().map(|kills| kills.parse().expect("a number of kills"));
    kills.unwrap_or(KILLS).div_ceil(KILLS)
}

/// A deterministic random generator (xorshift, Marsaglia 2003).
pub struct Dice(pub u64);

impl Dice {
    pub fn throw(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// Something sent to the process.
#[derive(Clone, Debug)]
enum Said {
    Message {
        person: &'static str,
        text: String,
    },
    /// A command, and the person it is about.
    Export(&'static str),
    Remember(String),
    Forget(String),
    Stats,
}

/// What arrived at the other end of the pipe, over all sessions.
#[derive(Clone, Default)]
struct Shown {
    /// Replies by id: chat, answered message, text.
    replies: HashMap<String, (String, String, String)>,
    /// Messages of which at least the first reply piece was shown: chat and id.
    acknowledged: HashSet<(String, String)>,
    /// How often a known reply came again.
    again: usize,
    /// Facts whose `/remember` was acknowledged.
    remembered: HashSet<String>,
    /// Messages of leo whose forgetting was acknowledged.
    forgotten: Vec<String>,
    /// Every text sent.
    said: HashSet<String>,
}

impl Shown {
    fn reply(&mut self, event: &Value) {
        let text = |field: &str| event[field].as_str().expect("a text").to_owned();
        let reply = (text("chat"), text("to"), text("text"));
        if let Some(before) = self.replies.insert(text("id"), reply.clone()) {
            assert_eq!(before, reply, "a reply came again with another content");
            self.again += 1;
        }
    }

    /// Returns messages that were answered with more than one reply.
    fn doubles(&self) -> Vec<&String> {
        let mut answered: BTreeMap<&String, usize> = BTreeMap::new();
        for (_, to, _) in self.replies.values() {
            *answered.entry(to).or_default() += 1;
        }
        answered.into_iter().filter(|(_, count)| *count > 1).map(|(to, _)| to).collect()
    }

    /// Compares what a person was shown with their record. With `all`, nothing may be pending.
    fn compare(&self, person: &str, export: &Value, all: bool) {
        let mut recorded = HashMap::new();
        for message in export["messages"].as_array().expect("messages") {
            let text = message["text"].as_str().expect("a text");
            assert!(self.said.contains(text), "nobody said {text:?}");
            let answers = message["answers"].as_array().expect("answers");
            assert!(answers.len() <= 1, "{message} has more than one answer");
            assert!(!all || answers.len() == 1, "{message} was never answered");
            recorded.insert(message["id"].as_str().expect("an id"), answers.first());
        }
        let texts: HashSet<&str> = export["messages"]
            .as_array()
            .expect("messages")
            .iter()
            .filter_map(|message| message["text"].as_str())
            .collect();
        assert_eq!(texts.len(), recorded.len(), "something {person} said once is there twice");
        let chat = format!("console:{person}:main");
        // Messages of leo may be forgotten, together with their answers.
        let lasting = |of: &String| *of == chat && person != "leo";
        for (_, message) in self.acknowledged.iter().filter(|(of, _)| lasting(of)) {
            assert!(recorded.contains_key(message.as_str()), "{message} was acknowledged and is lost");
        }
        for (id, (of, to, text)) in &self.replies {
            if !lasting(of) {
                continue;
            }
            let answer = recorded.get(to.as_str()).unwrap_or_else(|| panic!("{to} was answered and is lost"));
            let answer = answer.unwrap_or_else(|| panic!("the answer {id} was shown and is lost"));
            assert_eq!((&answer["id"], &answer["text"]), (&json!(id), &json!(text)));
        }
        if all && person != "leo" {
            for (message, answer) in recorded {
                let answer = answer.and_then(|answer| answer["id"].as_str()).expect("an answer");
                assert!(self.replies.contains_key(answer), "the answer to {message} was never shown");
            }
        }
        if person == "ann" {
            let memories = export["memories"].as_array().expect("memories");
            let facts: HashSet<&str> = memories.iter().filter_map(|memory| memory["text"].as_str()).collect();
            for fact in &self.remembered {
                assert!(facts.contains(fact.as_str()), "{fact:?} was kept and is lost");
            }
        }
        for text in &self.forgotten {
            assert!(!texts.contains(text.as_str()), "{text:?} was forgotten and is back");
        }
    }
}

/// One process, from start to end.
struct Session {
    child: Child,
    /// The log file of all sessions.
    log: PathBuf,
    events: Receiver<Value>,
    /// Commands in the order sent; their answers come in the same order.
    commands: Arc<Mutex<Vec<Said>>>,
    answered: usize,
    /// What was shown before this session. Exports come first, while pending messages are still being answered. So an
    /// export may be older than the replies shown before it.
    before: Shown,
}

impl Session {
    /// Starts the process and sends `talk` as fast as it reads.
    fn start(scratch: &Path, model: &str, talk: Vec<Said>, shown: &Mutex<Shown>) -> Self {
        let data = scratch.join("data");
        let arguments = ["chat", "--json", "--as", "ann", "--model", model, "--data"];
        let mut command = command(scratch, &[&arguments[..], &[data.to_str().expect("a path")]].concat());
        let log = scratch.join("log");
        let file = File::options().create(true).append(true).open(&log).expect("a log");
        let mut child = command.stderr(file).spawn().expect("the binary runs");
        let (input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let (sender, events) = channel();
        std::thread::spawn(move || listen(output, &sender));
        let commands = Arc::new(Mutex::new(Vec::new()));
        // A text counts as said before it is written, because half of it may arrive.
        for said in &talk {
            if let Said::Message { text, .. } = said {
                shown.lock().expect("no panic").said.insert(text.clone());
            }
        }
        let before = shown.lock().expect("no panic").clone();
        let given = commands.clone();
        std::thread::spawn(move || speak(input, talk, &given));
        Self { child, log, events, commands, answered: 0, before }
    }

    /// Handles one event.
    fn hear(&mut self, event: &Value, shown: &mut Shown) {
        match event["type"].as_str() {
            Some("reply") => shown.reply(event),
            Some("content") => {
                let text = |field: &str| event[field].as_str().expect("a text");
                let message = text("reply").rsplit_once("~r").expect("a reply is named after its message").0;
                shown.acknowledged.insert((text("chat").to_owned(), message.to_owned()));
            }
            Some("command") => {
                let given = self.commands.lock().expect("no panic")[self.answered].clone();
                self.answered += 1;
                assert_eq!(event["ok"], true, "{given:?}: {event}");
                match given {
                    Said::Export(person) => {
                        let export = serde_json::from_str(event["text"].as_str().expect("a text")).expect("JSON");
                        self.before.compare(person, &export, false);
                    }
                    Said::Remember(fact) => drop(shown.remembered.insert(fact)),
                    Said::Forget(text) => shown.forgotten.push(text),
                    Said::Message { .. } | Said::Stats => {}
                }
            }
            Some("error") => panic!("{event}"),
            _ => {}
        }
    }

    /// Reads events until the time to kill, and kills the process. Events written before the kill still arrive.
    fn kill(mut self, shown: &Mutex<Shown>, when: When) {
        let (mut heard, mut pieces, mut replies) = (0, 0, 0);
        let far = Instant::now() + Duration::from_secs(3_600);
        let mut until = if let When::Started(after) = when { Instant::now() + after } else { far };
        loop {
            match self.events.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(event) => {
                    heard += 1;
                    pieces += usize::from(event["type"] == "content");
                    replies += usize::from(event["type"] == "reply");
                    if let (1, When::Talking(after)) = (heard, when) {
                        until = Instant::now() + after;
                    }
                    let now = match when {
                        When::Events(count) => heard >= count,
                        When::Pieces(count) => pieces >= count,
                        When::Replies(count) => replies >= count,
                        When::Started(_) | When::Talking(_) => false,
                    };
                    if now {
                        self.child.kill().expect("it can be killed");
                    }
                    self.hear(&event, &mut shown.lock().expect("no panic"));
                    if now {
                        break;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.child.kill().expect("it can be killed");
                    break;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let last = self.last_of_log();
                    panic!("it ended by itself: {:?}, and said, last first: {last:#?}", self.child.wait());
                }
            }
        }
        self.child.wait().expect("it ends");
        while let Some(event) = self.next_event() {
            self.hear(&event, &mut shown.lock().expect("no panic"));
        }
    }

    /// Reads events until the process ends cleanly.
    fn end(mut self, shown: &Mutex<Shown>) {
        while let Some(event) = self.next_event() {
            self.hear(&event, &mut shown.lock().expect("no panic"));
        }
        assert!(self.child.wait().expect("it ends").success());
    }

    /// Returns the next event; `None` after the last one.
    fn next_event(&mut self) -> Option<Value> {
        match self.events.recv_timeout(PATIENCE) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                self.child.kill().expect("it can be killed");
                panic!("it neither says anything nor ends, and said, last first: {:#?}", self.last_of_log());
            }
        }
    }

    /// Returns the last lines of the log, the newest first.
    fn last_of_log(&self) -> Vec<String> {
        let log = std::fs::read_to_string(&self.log).expect("a log");
        log.lines().rev().take(8).map(str::to_owned).collect()
    }
}

/// Writes lines as fast as the process reads them, until it is gone.
fn speak(mut input: ChildStdin, talk: Vec<Said>, commands: &Mutex<Vec<Said>>) {
    let mut speaking = "ann";
    for said in talk {
        let (person, line) = match &said {
            Said::Message { person, text } => (*person, text.clone()),
            Said::Export(person) => (*person, "/memory export".to_owned()),
            Said::Remember(fact) => ("ann", format!("/remember {fact}")),
            Said::Forget(_) => ("leo", "/forget last quotes".to_owned()),
            Said::Stats => (speaking, "/memory stats".to_owned()),
        };
        if !matches!(said, Said::Message { .. }) {
            commands.lock().expect("no panic").push(said);
        }
        let turn = if person == speaking { String::new() } else { format!("/as {person}\n") };
        speaking = person;
        if input.write_all(format!("{turn}{line}\n").as_bytes()).is_err() {
            return;
        }
    }
}

/// Sends each whole line on.
fn listen(output: ChildStdout, sender: &std::sync::mpsc::Sender<Value>) {
    for line in BufReader::new(output).lines() {
        // The kill may cut the last line, which then was not shown.
        let Ok(event) = serde_json::from_str(&line.expect("UTF-8")) else { return };
        if sender.send(event).is_err() {
            return;
        }
    }
}

/// Returns the input of one session: everyone exports their data, then all talk.
fn talk(round: usize, session: usize, dice: &mut Dice) -> Vec<Said> {
    let mut said: Vec<Said> = PEOPLE.map(Said::Export).to_vec();
    let mut last_of_leo = None;
    for number in 0..400 {
        let person = PEOPLE[dice.throw(PEOPLE.len() as u64) as usize];
        let name = format!("{round}-{session}-{number}");
        said.push(match (dice.throw(40), &last_of_leo) {
            (0, _) => Said::Remember(format!("the fact number {name}")),
            (1, _) => Said::Stats,
            (2..=3, Some(_)) => Said::Forget(last_of_leo.take().expect("just seen")),
            _ => {
                let words = ["tide", "ladder", "copper", "orchard", "lantern", "gravel"];
                let word = words[dice.throw(words.len() as u64) as usize];
                let text = format!("{person} says {word} {name}-{:08x}", dice.throw(1 << 32));
                if person == "leo" {
                    last_of_leo = Some(text.clone());
                }
                Said::Message { person, text }
            }
        });
    }
    said
}

/// Checks the record and indexes of a stopped process.
#[track_caller]
fn check(scratch: &Path, more: &[&str]) -> Value {
    let data = scratch.join("data");
    let data = data.to_str().expect("a path");
    let output = azera(scratch, &[&["memory", "check", "--json", "--data", data], more].concat(), "");
    let found = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{found}{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&found).expect("JSON")
}

#[test]
fn a_kill_at_any_point_loses_nothing_and_repeats_nothing() {
    let began = Instant::now();
    let (mut kills, mut replies, mut again) = (0, 0, 0);
    for round in 0..rounds() {
        let scratch = tempfile::tempdir().expect("a folder");
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (round as u64 + 1) << 32);
        let shown = Mutex::new(Shown::default());
        for session in 0..KILLS {
            let talk = talk(round, session, &mut dice);
            // A real model takes time between the first piece and the last, so kill it after some pieces.
            let real = round > 0 && session == KILLS / 2;
            let when = if real { When::Pieces(1 + dice.throw(200) as usize) } else { When::random(&mut dice) };
            let model = if real { "default" } else { "scripted" };
            Session::start(scratch.path(), model, talk, &shown).kill(&shown, when);
            kills += 1;
            let doubles = shown.lock().expect("no panic").doubles().len();
            assert_eq!(doubles, 0, "{:?}", shown.lock().expect("no panic").doubles());
            check(scratch.path(), &[]);
        }
        // Without new messages, pending ones are answered. Then compare everything.
        Session::start(scratch.path(), "scripted", Vec::new(), &shown).end(&shown);
        let shown = shown.into_inner().expect("no panic");
        let left = check(scratch.path(), &["--deep", "--mend"]);
        assert_eq!((&left["record"]["open_turns"], &left["record"]["undelivered"]), (&json!(0), &json!(0)), "{left}");
        assert_eq!(
            (&left["queued"], &left["mended"], &left["wrong_vectors"]),
            (&json!(0), &json!(0), &json!(0)),
            "{left}"
        );
        for person in PEOPLE {
            shown.compare(person, &export(scratch.path(), person), true);
        }
        assert!(shown.doubles().is_empty());
        for text in &shown.forgotten {
            let name = text.rsplit(' ').next().expect("a word");
            assert_eq!(on_disk(&scratch.path().join("data"), name), None, "{text}");
        }
        replies += shown.replies.len();
        again += shown.again;
        assert!(shown.replies.len() > KILLS, "there was no load");
    }
    eprintln!(
        "{kills} kills in {:.0?}: {replies} replies shown, {again} of them again under the same id, 0 lost, 0 doubled",
        began.elapsed()
    );
}

fn export(scratch: &Path, person: &str) -> Value {
    let data = scratch.join("data");
    let id = format!("console:{person}");
    let output = azera(scratch, &["memory", "export", "--person", &id, "--data", data.to_str().expect("a path")], "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Kills restores of two records. Afterwards one of the two must be there, whole.
#[test]
fn a_restore_killed_at_any_point_leaves_one_record_whole() {
    let scratch = tempfile::tempdir().expect("a folder");
    let data = scratch.path().join("data");
    let data = data.to_str().expect("a path");
    let run = |arguments: &[&str]| {
        let output = azera(scratch.path(), &[arguments, &["--data", data]].concat(), "");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let files = ["small", "large"].map(|name| scratch.path().join(format!("{name}.zip")));
    let files = files.each_ref().map(|file| file.to_str().expect("a path"));
    let counts = [3, 40];
    for (file, messages) in files.iter().zip(counts) {
        let lines: String = (0..messages).map(|number| format!("message {number}\n")).collect();
        let talk = ["chat", "--as", "ann", "--model", "scripted", "--data", data];
        assert!(azera(scratch.path(), &talk, &lines).status.success());
        run(&["backup", "--to", file]);
    }
    let counts = [counts[0], counts[0] + counts[1]];
    // The large record is current. The time of restoring it sets the range of kill times.
    let began = Instant::now();
    run(&["restore", files[1], "--replace"]);
    let whole = began.elapsed().as_micros() as u64;
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let mut present = 1;
    let mut taken = [0, 0];
    for round in 0..rounds() * KILLS {
        let wanted = 1 - present;
        let mut restore = command(scratch.path(), &["restore", files[wanted], "--replace", "--data", data])
            .spawn()
            .expect("the binary runs");
        let (sender, ended) = channel();
        let output = restore.stdout.take().expect("a pipe");
        // The command prints only at its end, so this waits for the end or the timeout.
        std::thread::spawn(move || sender.send(BufReader::new(output).lines().count()));
        // The first is killed before it begins, the second runs to its end, and the others die at any point.
        let within = match round {
            0 => Duration::ZERO,
            1 => Duration::from_secs(300),
            _ => Duration::from_micros(dice.throw(whole * 3 / 2)),
        };
        if ended.recv_timeout(within).is_err() {
            restore.kill().expect("it can be killed");
        }
        restore.wait().expect("it ends");
        let found = check(scratch.path(), &[])["record"]["messages"].as_u64().expect("a count");
        let is = counts.iter().position(|count| *count == found).unwrap_or_else(|| panic!("{found} messages"));
        taken[usize::from(is == wanted)] += 1;
        present = is;
    }
    eprintln!("of {} killed restores {} had taken place", taken[0] + taken[1], taken[1]);
    assert!(taken.iter().all(|count| *count > 0), "none took place, or all: {taken:?}");
}
