//! The Discord adapter. It only translates: events on Discord go to the engine through [`azera_adapter::Host`], and the
//! engine's replies are shown through [`azera_adapter::Platform`]. Begin with [`Discord`], which also explains how
//! everything is shown exactly once.
//!
//! - A guild is a realm; a channel, a thread, a forum post or a DM is a chat; a user is a person.
//! - A channel is public in its realm if everyone in the guild can read it from its beginning and nobody is excluded.
//!   Every other channel is private to those who can view it at that moment. Permissions come from the gateway, so that
//!   a change counts at once.

mod application;
mod attachments;
mod autocomplete;
mod buttons;
mod channels;
mod commands;
mod connection;
mod directory;
mod discord;
mod dm_channels;
mod error;
mod failed;
mod gateway;
mod given_files;
mod greeting;
mod id;
mod inbound;
mod menus;
mod modals;
mod place_names;
mod presence;
mod questions;
mod rate_limit;
mod reactions;
#[cfg(feature = "voice")]
mod readers;
mod replies;
mod reply_cache;
mod request_pacer;
mod search;
mod sending;
mod servers;
mod settings;
mod split;
mod stream;
mod streaming;
mod sync_cursor;
mod thumb_turns;
mod typing;
#[cfg(feature = "voice")]
mod voice;
#[cfg(not(feature = "voice"))]
#[path = "voice_left_out.rs"]
mod voice;
mod voice_messages;
mod webhooks;

pub use application::Application;
pub use connection::application;
pub use discord::Discord;
pub use error::Error;
pub use id::PLATFORM;
pub use settings::{Limits, Settings, invite};
#[cfg(feature = "voice")]
pub use voice::{CallWaits, Engines, RecordingFolder, Speech};
