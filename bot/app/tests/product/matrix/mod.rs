//! Matrix: a real homeserver, people with a client that is not the bot's library, and the real binary between them. What counts is
//! what people see.

mod bot;
mod homeserver;
mod model;
mod once;
mod person;
mod proxy;
mod talk;

use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use bot::{BOT, Bot};
use homeserver::Homeserver;
use model::Model;
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
        Self::open_with(&[])
    }

    /// One whose bot has these settings besides the usual ones.
    fn open_with(more: &'static [(&'static str, &'static str)]) -> Self {
        let scratch = tempfile::tempdir().expect("a folder");
        let homeserver = Homeserver::start(scratch.path());
        let model = Model::start();
        let bot = Bot::start(&homeserver, scratch.path(), &model, more);
        let ann = Person::enter(&homeserver, scratch.path(), "ann");
        Self { ann, bot, model, homeserver, scratch }
    }

    fn folder(&self) -> &Path {
        self.scratch.path()
    }

    /// A room of Ann and the bot.
    #[track_caller]
    fn direct(&mut self, encrypted: bool) -> Room {
        let id =
            self.ann.room_with(BOT, json!({"encrypted": encrypted, "direct": true, "preset": "trusted_private_chat"}));
        Room { id, encrypted }
    }
}

/// What the model says to `q{number}`.
fn answer_to(number: usize) -> String {
    format!("This is the whole answer to q{number}.")
}

impl Person {
    /// Waits for the whole answer to a question.
    #[track_caller]
    fn until_answered(&mut self, room: &Room, number: usize) -> person::Shown {
        let whole = answer_to(number);
        self.until_said(room, BOT, &whole, |body| body.starts_with(&whole))
    }

    /// How often each of these questions was answered, and in which order.
    fn answers(&self, room: &Room) -> Vec<usize> {
        let number = |body: &str| {
            body.strip_prefix("This is the whole answer to q").and_then(|rest| rest.split('.').next()?.parse().ok())
        };
        self.said_by(room, BOT).filter_map(|shown| number(&shown.body)).collect()
    }
}
