//! The Matrix adapter: rooms, threads and direct chats of a homeserver, including encrypted ones, through matrix-sdk.
//! Begin with [`Matrix`].
//!
//! It only translates. Matrix ids are used unchanged, because each kind has its own prefix (`@`, `!`, `$`). The chat of
//! a thread is the room's id, a slash and the root's id.
//!
//! Each message is received once and its reply shown once, whatever happens in between:
//! - One worker per room handles its events in order. It stores the last one received ([`sync_state`]), and after each
//!   start and each gap in the sync it pages back to it. The record recognises messages that arrive twice this way.
//! - The sync's own token is not used for this: matrix-sdk stores it before anyone has handled the events that came
//!   with it.
//! - The first event of a reply has a transaction id derived from the answered message. A homeserver that has the event
//!   already returns the existing one. Everything after that edits the event.
//! - Events that cannot be decrypted are stored, and tried again after each sync.

mod answers;
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
mod questions;
mod rate_limit;
mod replies;
mod reply_slot;
mod room_upgrades;
mod rooms;
mod sending;
mod settings;
mod slow_commands;
mod sync;
mod sync_state;
mod voice_messages;
mod worker;

pub use connection::look;
pub use error::Error;
pub use health::Health;
pub use ids::{chat_id, person_id};
pub use login::LoginStatus;
pub use matrix::{Matrix, PLATFORM};
pub use settings::{Invites, Limits, Login, Settings};
