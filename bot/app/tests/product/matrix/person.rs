//! People, each with a client of their own (matrix-nio), and what they see.

use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::homeserver::{Homeserver, SECRET, python};

/// How long anything may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// A message as it stands in a room.
#[derive(Debug, Clone)]
pub struct Shown {
    pub event: String,
    pub room: String,
    pub sender: String,
    pub kind: String,
    /// Its text after every edit seen.
    pub body: String,
    /// What it was sent as at first: an edit keeps the relations and mentions of what it edits.
    pub content: Value,
    pub edits: usize,
    pub encrypted: bool,
    /// When it was first seen, in seconds by the client's clock.
    pub at: f64,
}

pub struct Person {
    pub id: String,
    child: Child,
    input: ChildStdin,
    lines: Receiver<Value>,
    asked: u64,
    /// Messages in the order they were seen, by their first event.
    pub seen: Vec<Shown>,
    at: BTreeMap<String, usize>,
    pub redacted: HashSet<String>,
    /// When the homeserver had what was sent last, in seconds by the client's clock.
    pub sent: f64,
    pub unreadable: usize,
    /// Who is in a room, and who is not any more or would not come, as far as seen.
    joined: HashSet<(String, String)>,
    left: HashSet<(String, String)>,
    invited: HashSet<String>,
}

impl Person {
    pub fn enter(homeserver: &Homeserver, scratch: &Path, name: &str) -> Self {
        let store = scratch.join(format!("person-{name}"));
        let mut child = python(&[&homeserver.url, SECRET, name, store.to_str().expect("a plain path")])
            .spawn()
            .expect("python3 runs");
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let event = serde_json::from_str(&line).expect("a JSON object a line");
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take().expect("a pipe");
        let mut person = Self {
            id: format!("@{name}:localhost"),
            child,
            input,
            lines,
            asked: 0,
            seen: Vec::new(),
            at: BTreeMap::new(),
            redacted: HashSet::new(),
            sent: f64::NAN,
            unreadable: 0,
            joined: HashSet::new(),
            left: HashSet::new(),
            invited: HashSet::new(),
        };
        person.hear_until("the client is there", |_, line| (line["type"] == "ready").then_some(()));
        person
    }

    /// Takes in what the client says until something is as wanted.
    #[track_caller]
    fn hear_until<T>(&mut self, what: &str, mut wanted: impl FnMut(&Self, &Value) -> Option<T>) -> T {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("{} waited in vain: {what}; seen: {:#?}", self.id, self.seen)
            };
            self.take(&line);
            if let Some(found) = wanted(self, &line) {
                return found;
            }
        }
    }

    /// Waits until what was seen is as wanted.
    #[track_caller]
    pub fn until<T>(&mut self, what: &str, mut wanted: impl FnMut(&Self) -> Option<T>) -> T {
        while let Ok(line) = self.lines.try_recv() {
            self.take(&line);
        }
        match wanted(self) {
            Some(found) => found,
            None => self.hear_until(what, |person, _| wanted(person)),
        }
    }

    fn take(&mut self, line: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match text(&line["type"]).as_str() {
            "invited" => drop(self.invited.insert(text(&line["room"]))),
            "event" => {
                let (event, content) = (text(&line["event"]), &line["content"]);
                self.unreadable += usize::from(line["readable"] == false);
                match text(&line["kind"]).as_str() {
                    "m.room.redaction" => drop(self.redacted.insert(text(&line["redacts"]))),
                    "m.room.member" => {
                        let member = (text(&line["room"]), text(&line["state_key"]));
                        if content["membership"] == "join" {
                            self.joined.insert(member);
                        } else if content["membership"] == "leave" {
                            self.joined.remove(&member);
                            self.left.insert(member);
                        }
                    }
                    "m.room.message" => self.message(&event, line, content),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn message(&mut self, event: &str, line: &Value, content: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if content["m.relates_to"]["rel_type"] == "m.replace" {
            if let Some(at) = self.at.get(&text(&content["m.relates_to"]["event_id"])) {
                let shown = &mut self.seen[*at];
                shown.body = text(&content["m.new_content"]["body"]);
                shown.edits += 1;
            }
            return;
        }
        if self.at.contains_key(event) {
            return;
        }
        self.at.insert(event.to_owned(), self.seen.len());
        self.seen.push(Shown {
            event: event.to_owned(),
            room: text(&line["room"]),
            sender: text(&line["sender"]),
            kind: text(&content["msgtype"]),
            body: text(&content["body"]),
            content: content.clone(),
            edits: 0,
            encrypted: line["encrypted"] == true,
            at: line["at"].as_f64().unwrap_or(f64::NAN),
        });
    }

    /// Lets the client do something; gives its answer.
    #[track_caller]
    pub fn act(&mut self, mut command: Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        command["id"] = id.into();
        writeln!(self.input, "{command}").expect("the client listens");
        let answer = self.hear_until(&command.to_string(), |_, line| (line["id"] == id).then(|| line.clone()));
        assert_eq!(answer["type"], "done", "{command}: {answer}");
        answer
    }

    /// Makes a room and waits until the bot is in it.
    #[track_caller]
    pub fn room_with(&mut self, bot: &str, more: Value) -> String {
        let mut command = json!({"do": "create", "invite": [bot]});
        command.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let room = self.act(command)["room"].as_str().expect("a room").to_owned();
        self.until("the bot comes in", |person| person.is_in(&room, bot).then_some(()));
        room
    }

    pub fn is_in(&self, room: &str, user: &str) -> bool {
        self.joined.contains(&(room.to_owned(), user.to_owned()))
    }

    pub fn has_left(&self, room: &str, user: &str) -> bool {
        self.left.contains(&(room.to_owned(), user.to_owned()))
    }

    /// Accepts an invitation that has come or comes.
    #[track_caller]
    pub fn join(&mut self, room: &str) {
        self.until("an invitation", |person| person.invited.contains(room).then_some(()));
        self.act(json!({"do": "join", "room": room}));
    }

    /// Says something in a room; gives its event.
    #[track_caller]
    pub fn say(&mut self, room: &Room, text: &str) -> String {
        self.send(room, json!({"msgtype": "m.text", "body": text}))
    }

    #[track_caller]
    pub fn send(&mut self, room: &Room, content: Value) -> String {
        let command = json!({"do": "send", "room": room.id, "encrypted": room.encrypted, "content": content});
        let answer = self.act(command);
        self.sent = answer["at"].as_f64().expect("a time");
        answer["event"].as_str().expect("an event").to_owned()
    }

    /// What somebody said in a room so far, notices and all.
    pub fn said_by<'a>(&'a self, room: &'a Room, sender: &'a str) -> impl Iterator<Item = &'a Shown> {
        let gone = |shown: &&Shown| !self.redacted.contains(&shown.event);
        self.seen.iter().filter(move |shown| shown.room == room.id && shown.sender == sender).filter(gone)
    }

    /// Waits for a message of somebody whose text is as wanted.
    #[track_caller]
    pub fn until_said(&mut self, room: &Room, sender: &str, what: &str, wanted: impl Fn(&str) -> bool) -> Shown {
        let found = |person: &Self| person.said_by(room, sender).find(|shown| wanted(&shown.body)).cloned();
        self.until(what, found)
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A room, and whether what is said there is encrypted.
#[derive(Debug, Clone)]
pub struct Room {
    pub id: String,
    pub encrypted: bool,
}
