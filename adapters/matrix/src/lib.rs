//! Matrix: rooms, threads and direct chats of a homeserver, encrypted ones included, through matrix-sdk.
//!
//! It translates and does nothing else. Ids of Matrix are taken as they are, for each kind bears a mark of its own (`@`, `!`,
//! `$`); a thread's chat is its room's id and its root's, with a slash between.
//!
//! Each message is handed in once and its answer shown once, whatever happens in between:
//! - A room's events go through one worker, in order. The last one handed in is noted ([`sync_state`]), and after each start and
//!   each gap in the sync the worker pages back to it. What is handed in twice by that, the record knows already.
//! - The sync's own token is not relied on: matrix-sdk stores it before anybody has seen what came with it.
//! - The first event of a reply has a transaction id that follows from the message answered, so a homeserver that has it
//!   already gives the event it made then. Everything after that replaces its content.
//! - What cannot be decrypted yet is noted, and tried again after each sync.

mod audience;
mod avatars;
mod commands;
mod connection;
mod content;
mod error;
mod events;
mod files;
mod health;
mod ids;
mod login;
mod markdown;
mod matrix;
mod media;
mod platform;
mod rate_limit;
mod replies;
mod room_upgrades;
mod rooms;
mod sending;
mod settings;
mod sync;
mod sync_state;
mod worker;

pub use connection::look;
pub use error::Error;
pub use health::Health;
pub use ids::{chat_id, person_id};
pub use login::LoginStatus;
pub use matrix::{Matrix, PLATFORM};
pub use settings::{Invites, Limits, Login, Settings};
