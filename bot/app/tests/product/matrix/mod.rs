//! Matrix: a real homeserver, people with a client library other than the bot's, and the real binary between them. The
//! tests check what people see.

mod bot;
mod homeserver;
mod journal;
#[path = "../local_web.rs"]
mod local_web;
mod many;
mod model;
mod once;
mod owner;
mod person;
mod personas;
mod pictures;
mod privacy;
mod proxy;
mod talk;
mod trust;
mod upgrade;
mod voice;

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use bot::{BOT, Bot, Settings, settings};
use homeserver::Homeserver;
use model::{END, Model};
use person::{Person, Room};
use proxy::Proxy;

/// A homeserver, a model, a bot, and Ann.
struct Scene {
    ann: Person,
    bot: Bot,
    model: Model,
    homeserver: Homeserver,
    scratch: TempDir,
}

impl Scene {
    fn open() -> Self {
        Self::open_with(Settings::new())
    }

    /// Opens a scene whose bot has extra settings.
    fn open_with(more: Settings) -> Self {
        Self::open_in(tempfile::tempdir().expect("a folder"), more)
    }

    /// Opens a scene whose bot finds a folder as its home.
    fn open_in(scratch: TempDir, more: Settings) -> Self {
        let homeserver = Homeserver::start(scratch.path());
        let model = Model::start();
        let bot = Bot::start(&homeserver, scratch.path(), &model, more);
        let ann = Person::enter(&homeserver, scratch.path(), "ann");
        Self { ann, bot, model, homeserver, scratch }
    }

    fn folder(&self) -> &Path {
        self.scratch.path()
    }

    /// Adds another person.
    fn person(&self, name: &str) -> Person {
        Person::enter(&self.homeserver, self.folder(), name)
    }

    /// Creates a room with Ann, the bot and another person.
    #[track_caller]
    fn room_with(&mut self, other: &mut Person, more: Value) -> Room {
        let encrypted = more["encrypted"] == true;
        let room = Room { id: self.ann.room_with(BOT, more), encrypted };
        self.bring_in(&room, other);
        room
    }

    /// Adds a room of Ann's to a space, in the state of both.
    #[track_caller]
    fn put_in(&mut self, space: &Room, room: &Room) {
        let via = json!({"via": ["localhost"]});
        for (at, kind, key) in [(&space.id, "m.space.child", &room.id), (&room.id, "m.space.parent", &space.id)] {
            self.ann.act(json!({"do": "state", "room": at, "kind": kind, "key": key, "content": via}));
        }
    }

    /// Invites a person to a room of Ann's and waits until they have joined.
    #[track_caller]
    fn bring_in(&mut self, room: &Room, other: &mut Person) {
        self.ann.act(json!({"do": "invite", "room": room.id, "user": other.id}));
        other.join(&room.id);
        self.ann.until("they come in", |ann| ann.is_in(&room.id, &other.id).then_some(()));
        other.until("they are in", |other| other.is_in(&room.id, &other.id).then_some(()));
    }

    /// Creates a room with Ann and the bot.
    #[track_caller]
    fn direct(&mut self, encrypted: bool) -> Room {
        let id =
            self.ann.room_with(BOT, json!({"encrypted": encrypted, "direct": true, "preset": "trusted_private_chat"}));
        Room { id, encrypted }
    }
}

/// The model's answer to `q{number}` if its prompt has no secret.
fn answer_to(number: usize) -> String {
    format!("This is the whole answer to q{number}. {END}")
}

impl Person {
    /// Waits for the complete answer to a question, including any secrets.
    #[track_caller]
    fn until_answered(&mut self, room: &Room, number: usize) -> person::Shown {
        let begins = format!("This is the whole answer to q{number}.");
        self.until_said(room, BOT, &begins, |body| body.starts_with(&begins) && body.ends_with(END))
    }

    /// Returns the numbers of the answered questions, in the order of the answers.
    fn answers(&self, room: &Room) -> Vec<usize> {
        let number = |body: &str| {
            body.strip_prefix("This is the whole answer to q").and_then(|rest| rest.split('.').next()?.parse().ok())
        };
        self.said_by(room, BOT).filter_map(|shown| number(&shown.body)).collect()
    }
}
