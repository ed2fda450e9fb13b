//! People, each with a client (matrix-nio, or matrix-js-sdk for device verification), and what they see.

use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::homeserver::{Homeserver, SECRET, node, python};

/// How long anything may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// A message as shown in a room.
#[derive(Debug, Clone)]
pub struct Shown {
    pub event: String,
    pub room: String,
    pub sender: String,
    pub kind: String,
    /// Its text after every edit seen.
    pub body: String,
    /// The first content: an edit keeps the relations and mentions of what it edits.
    pub content: Value,
    /// The latest content.
    pub newest: Value,
    /// Times when the homeserver had the edits, in seconds by its clock.
    pub edits: Vec<f64>,
    pub encrypted: bool,
    /// Time when it was first seen, in seconds by the client's clock.
    pub at: f64,
    /// Time when the homeserver had it, in seconds by its clock.
    pub stored: f64,
}

pub struct Person {
    pub id: String,
    child: Child,
    input: ChildStdin,
    lines: Receiver<Value>,
    last_command_id: u64,
    /// Messages in the order seen, by their first event.
    pub seen: Vec<Shown>,
    at: BTreeMap<String, usize>,
    pub redacted: HashSet<String>,
    /// When the homeserver had the last sent message, in seconds by the client's clock.
    pub sent: f64,
    pub unreadable: usize,
    /// Members who joined and who left or declined, as far as seen.
    joined: HashSet<(String, String)>,
    left: HashSet<(String, String)>,
    invited: HashSet<String>,
    /// Events that could not be decrypted on arrival: sender and event.
    sealed: HashSet<(String, String)>,
    /// Read receipts seen: event and person.
    read: HashSet<(String, String)>,
    /// Typing notices seen: room and person.
    typed: HashSet<(String, String)>,
    /// The client's device id, if the client reports one.
    pub device: String,
}

impl Person {
    pub fn enter(homeserver: &Homeserver, scratch: &Path, name: &str) -> Self {
        let store = scratch.join(format!("person-{name}"));
        let client = python(&[&homeserver.url, SECRET, name, store.to_str().expect("a plain path")]);
        Self::at(client, name)
    }

    /// Creates a new device of a person, with a client that can verify devices.
    pub fn with_device(homeserver: &Homeserver, name: &str) -> Self {
        let made = python(&[&homeserver.url, SECRET, name, "-"]).status().expect("python3 runs");
        assert!(made.success());
        Self::at(node(&[&homeserver.url, name]), name)
    }

    fn at(mut client: Command, name: &str) -> Self {
        let mut child = client.spawn().expect("the client runs");
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
            last_command_id: 0,
            seen: Vec::new(),
            at: BTreeMap::new(),
            redacted: HashSet::new(),
            sent: f64::NAN,
            unreadable: 0,
            joined: HashSet::new(),
            left: HashSet::new(),
            invited: HashSet::new(),
            sealed: HashSet::new(),
            read: HashSet::new(),
            typed: HashSet::new(),
            device: String::new(),
        };
        person.device = person.hear_until("the client is there", |_, line| {
            (line["type"] == "ready").then(|| line["device"].as_str().unwrap_or_default().to_owned())
        });
        person
    }

    /// Handles the client's lines until a condition holds.
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

    /// Waits until what was seen meets a condition.
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
            "read" => drop(self.read.insert((text(&line["event"]), text(&line["user"])))),
            "typing" => {
                let users = line["users"].as_array().into_iter().flatten();
                self.typed.extend(users.map(|user| (text(&line["room"]), text(user))));
            }
            "event" => {
                let (event, content) = (text(&line["event"]), &line["content"]);
                if line["readable"] == false {
                    self.unreadable += 1;
                    self.sealed.insert((text(&line["sender"]), event.clone()));
                }
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
                shown.newest = content["m.new_content"].clone();
                shown.edits.push(line["stored"].as_f64().unwrap_or(f64::NAN));
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
            newest: content.clone(),
            edits: Vec::new(),
            encrypted: line["encrypted"] == true,
            at: line["at"].as_f64().unwrap_or(f64::NAN),
            stored: line["stored"].as_f64().unwrap_or(f64::NAN),
        });
    }

    /// Sends a command to the client and returns its answer.
    #[track_caller]
    pub fn act(&mut self, mut command: Value) -> Value {
        self.last_command_id += 1;
        let id = self.last_command_id;
        command["id"] = id.into();
        writeln!(self.input, "{command}").expect("the client listens");
        let answer = self.hear_until(&command.to_string(), |_, line| (line["id"] == id).then(|| line.clone()));
        assert_eq!(answer["type"], "done", "{command}: {answer}");
        answer
    }

    /// Creates a room and waits until the bot is in it.
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

    /// Returns true if an event could not be decrypted on arrival.
    pub fn unreadable_by(&self, sender: &str, event: &str) -> bool {
        self.sealed.contains(&(sender.to_owned(), event.to_owned()))
    }

    pub fn has_read(&self, event: &str, user: &str) -> bool {
        self.read.contains(&(event.to_owned(), user.to_owned()))
    }

    pub fn saw_typing(&self, room: &Room, user: &str) -> bool {
        self.typed.contains(&(room.id.clone(), user.to_owned()))
    }

    /// Handles the client's lines for a time, or until a condition holds.
    pub fn hear_for(&mut self, time: Duration, mut wanted: impl FnMut(&Self) -> bool) {
        let end = Instant::now() + time;
        while !wanted(self) {
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => self.take(&line),
                Err(_) => return,
            }
        }
    }

    /// Waits for an invitation and accepts it.
    #[track_caller]
    pub fn join(&mut self, room: &str) {
        self.until("an invitation", |person| person.invited.contains(room).then_some(()));
        self.act(json!({"do": "join", "room": room}));
    }

    /// Sends a text to a room and returns its event.
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

    /// Sends a file with an optional caption and returns its event.
    #[track_caller]
    pub fn send_file(&mut self, room: &Room, name: &str, bytes: &[u8], caption: Option<&str>) -> String {
        let data = STANDARD.encode(bytes);
        let command = json!({
            "do": "send_file", "room": room.id, "encrypted": room.encrypted, "name": name, "data": data, "caption": caption,
        });
        self.act(command)["event"].as_str().expect("an event").to_owned()
    }

    /// Sends a voice message and returns its event.
    #[track_caller]
    pub fn send_voice(&mut self, room: &Room, bytes: &[u8]) -> String {
        let command = json!({
            "do": "send_file", "room": room.id, "encrypted": room.encrypted, "name": "Voice message",
            "data": STANDARD.encode(bytes), "kind": "m.audio", "media_type": "audio/ogg",
            "more": {"org.matrix.msc3245.voice": {}},
        });
        self.act(command)["event"].as_str().expect("an event").to_owned()
    }

    /// Downloads the file of a message.
    #[track_caller]
    pub fn fetch(&mut self, what: Value) -> Vec<u8> {
        let mut command = json!({"do": "fetch"});
        command.as_object_mut().expect("an object").extend(what.as_object().expect("an object").clone());
        STANDARD.decode(self.act(command)["data"].as_str().expect("a text")).expect("base64")
    }

    /// Returns a person's messages in a room, including notices.
    pub fn said_by<'a>(&'a self, room: &'a Room, sender: &'a str) -> impl Iterator<Item = &'a Shown> {
        let gone = |shown: &&Shown| !self.redacted.contains(&shown.event);
        self.seen.iter().filter(move |shown| shown.room == room.id && shown.sender == sender).filter(gone)
    }

    /// Waits for a message whose text meets a condition.
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

/// A room, and whether it is encrypted.
#[derive(Debug, Clone)]
pub struct Room {
    pub id: String,
    pub encrypted: bool,
}
