//! The bot on Discord, as the real binary against a Discord of the tests' own.

mod bot;
mod buttons;
mod commands;
mod files;
mod forms;
mod journal;
mod linked;
mod load;
mod model;
mod once;
mod personas;
mod pictures;
mod places;
mod privacy;
mod replies;
mod servers;

use azera_discord_peer::{Peer, World};
use serde_json::Value;

use crate::bot::description;

/// A peer that checks every request, where Discord's description is there.
pub fn peer() -> Peer {
    Peer::start(description().as_deref())
}

/// The bot's answers to a message: what is shown now.
pub fn answers(world: &World, channel: u64, asked: u64) -> Vec<String> {
    world.answers(channel, asked).iter().map(|message| text(message)).collect()
}

/// What a message says.
pub fn text(message: &Value) -> String {
    message["content"].as_str().unwrap_or_default().to_owned()
}

/// Waits until a message is answered with this, and the answer is as it stays: then it has its buttons.
#[track_caller]
pub fn answered_for_good(peer: &Peer, channel: u64, asked: u64, with: &str) {
    peer.wait(&format!("{with:?} in answer to {asked}, with buttons"), |world| {
        let is_whole = |message: &&Value| text(message) == with && message["components"] != serde_json::json!([]);
        world.answers(channel, asked).into_iter().any(|message| is_whole(&message)).then_some(())
    });
}

/// Waits until a message is answered with this.
#[track_caller]
pub fn answered(peer: &Peer, channel: u64, asked: u64, with: &str) {
    peer.wait(&format!("{with:?} in answer to {asked}"), |world| {
        (answers(world, channel, asked).iter().any(|answer| answer == with)).then_some(())
    });
}

/// Nothing that was asked of the peer was against Discord's description.
#[track_caller]
pub fn as_described(peer: &Peer) {
    let violations = peer.world(|world| world.violations.clone());
    assert!(violations.is_empty(), "{violations:#?}");
}
