//! The bot on Discord: the real binary against a fake Discord.

mod bot;
mod buttons;
mod commands;
mod crowd;
mod files;
mod forms;
mod imagine;
mod journal;
mod linked;
mod load;
#[path = "../product/local_web.rs"]
mod local_web;
mod model;
mod once;
mod owner;
#[path = "../product/painter.rs"]
mod painter;
mod personas;
mod pictures;
mod places;
mod privacy;
mod replies;
mod seen;
mod servers;
mod steps;
mod voice;
mod voice_messages;
mod voice_samples;
mod xtts;

use azera_fake_discord::{FakeDiscord, World};
use serde_json::Value;

use crate::bot::description;

/// Starts a fake that checks every request, if Discord's description is available.
pub fn fake() -> FakeDiscord {
    FakeDiscord::start(description().as_deref())
}

/// Returns the texts of the bot's answers to a message, as shown now.
pub fn answers(world: &World, channel: u64, question: u64) -> Vec<String> {
    world.answers(channel, question).iter().map(|message| text(message)).collect()
}

/// Returns a message's text.
pub fn text(message: &Value) -> String {
    message["content"].as_str().unwrap_or_default().to_owned()
}

/// Waits until a message has this finished answer, which has its buttons.
#[track_caller]
pub fn answered_for_good(fake: &FakeDiscord, channel: u64, question: u64, with: &str) {
    fake.wait(&format!("{with:?} in answer to {question}, with buttons"), |world| {
        let is_whole = |message: &&Value| text(message) == with && message["components"] != serde_json::json!([]);
        world.answers(channel, question).into_iter().any(|message| is_whole(&message)).then_some(())
    });
}

/// Waits until a message has this answer.
#[track_caller]
pub fn answered(fake: &FakeDiscord, channel: u64, question: u64, with: &str) {
    fake.wait(&format!("{with:?} in answer to {question}"), |world| {
        (answers(world, channel, question).iter().any(|answer| answer == with)).then_some(())
    });
}

/// Checks that every request followed Discord's description.
#[track_caller]
pub fn as_described(fake: &FakeDiscord) {
    let violations = fake.world(|world| world.violations.clone());
    assert!(violations.is_empty(), "{violations:#?}");
}
