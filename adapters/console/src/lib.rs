//! The terminal adapter. One person talks; their conversation is a direct message. So `/as NAME` lets another person
//! speak who sees nothing of it.
//!
//! Begin with [`Console`], the platform, which shows replies while they are generated and when they are complete.
//! [`run`] reads the input and passes it to the engine. The output is a [`Format`]: a terminal, plain text for pipes,
//! or JSON lines.
//!
//! Invariants:
//! - A chat belongs to the person named in its id ([`owner`]). Its replies are shown only while that person speaks.
//!   JSON lines are the exception: they are for a program that speaks for several people.
//! - A reply is shown completely once: either streamed to its end, or printed when it is delivered.
//! - Control characters of a reply never reach a terminal. Pictures are decoded and written anew for it.

mod editor;
mod error;
mod files;
mod format;
mod id;
mod inline;
mod json;
mod lines;
mod markdown;
mod plain;
mod platform;
mod run;
mod saved;
mod shown;
mod sixel;
mod terminal;

pub use error::Error;
pub use format::Format;
pub use id::{MAX_PERSON_BYTES, Person, chat_id, owner};
pub use inline::{InlinePictures, TerminalNames, detect};
pub use lines::MessagePer;
pub use platform::{Console, PLATFORM, REALM};
pub use run::{ExitSummary, FIRST_CHAT, Input, Options, run};
