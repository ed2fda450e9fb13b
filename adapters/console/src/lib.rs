//! Azera in a terminal. One person talks; what they say and hear is a direct message of theirs, so `/as NAME` lets
//! somebody else speak who hears nothing of it.
//!
//! [`Console`] is the platform: it shows replies, as they are made and once they are complete. [`run`] is the other half:
//! it reads what is typed and hands it to the core. How it looks is a [`Format`]: a terminal, plain text for pipes, or JSON
//! lines.
//!
//! Invariants:
//! - A chat belongs to the person named in its id ([`owner`]) and its replies are shown while that person speaks, and
//!   to nobody else. As JSON lines they are for a program that speaks for several people and tells chats apart.
//! - A reply is shown whole once: streamed to its end, or printed when it is delivered, never both.
//! - Control characters of a reply never reach a terminal.

mod editor;
mod error;
mod format;
mod id;
mod json;
mod lines;
mod markdown;
mod plain;
mod platform;
mod run;
mod terminal;

pub use editor::CommandHint;
pub use error::Error;
pub use format::Format;
pub use id::{MAX_PERSON_BYTES, Person, chat_id, owner};
pub use platform::{Console, PLATFORM, REALM};
pub use run::{ExitSummary, FIRST_CHAT, Input, Options, run};
