//! Reads conversations that other programs exported: from bytes to one message after another.
//!
//! Begin with [`read`]. Each format has a file of its own; [`elements`] and [`lines`] cut the input into pieces of
//! bounded size. `commands` brings what a coding assistant ran into a form without secrets. A broken piece costs that piece alone and is reported with its number. This crate opens no file, and
//! it does not decide whose messages they are or who may read them.

mod calls;
mod chatgpt;
mod claude;
mod claude_code;
mod commands;
mod conversations;
mod discord;
mod elements;
mod format;
mod lines;
mod message;
mod outcome;
mod secrets;
mod shell;
mod sillytavern;
mod time;

use std::io::{self, BufRead};
use std::ops::ControlFlow;

use azera_types::TimeZone;
use thiserror::Error;

pub use claude_code::first_folder;
pub use commands::MAX_COMMAND_BYTES;
pub use format::{Format, HEAD_BYTES, UnknownFormat};
pub use message::{Flaw, Found, ImportedMessage, Ran, RanCommand, Role, SourceAuthor, SourceChat};

/// Most bytes of one line of a file with a message on each line.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// Most bytes of one conversation, in a file that holds a list of conversations.
pub const MAX_ELEMENT_BYTES: usize = 64 << 20;

/// The file cannot be read to its end.
#[derive(Debug, Error)]
pub enum ReadError {
    /// Reading failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is not what the format calls for.
    #[error("{0}")]
    Shape(&'static str),
}

/// What a reader needs besides the bytes.
#[derive(Debug, Clone)]
pub struct Source {
    /// The format.
    pub format: Format,
    /// The file's name without folder and ending. It names the conversation where the format has no name for it.
    pub stem: String,
    /// The zone of times that name none.
    pub zone: TimeZone,
}

/// What takes the messages. It ends the reading with [`ControlFlow::Break`].
pub type Take<'a> = dyn FnMut(Found) -> ControlFlow<()> + 'a;

/// Passes every message of `input` to `take`, in the order of each conversation, and what could not be read.
///
/// # Errors
///
/// [`ReadError::Io`] if the input fails, and [`ReadError::Shape`] if it is not of this format, or ends in the middle.
/// Everything before that place was passed on.
pub fn read(source: &Source, input: impl BufRead, take: &mut Take<'_>) -> Result<(), ReadError> {
    match source.format {
        Format::ClaudeCode => claude_code::read(source, input, take),
        Format::ChatGpt => chatgpt::read(source, input, take),
        Format::Claude => claude::read(source, input, take),
        Format::Discord => discord::read(source, input, take),
        Format::SillyTavern => sillytavern::read(source, input, take),
    }
}
