//! What is read from an export.

use std::sync::Arc;

use azera_types::Timestamp;

/// A conversation in the source.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SourceChat {
    /// Its id in the source, the same in every export of it.
    pub id: String,
    /// Its title.
    pub title: Option<String>,
}

/// What an author is, as far as the source says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The person whose export it is.
    Owner,
    /// A program.
    Assistant,
    /// A person. The source does not say whether it is the one who exported the file.
    Person,
}

/// An author in the source.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SourceAuthor {
    /// The id in the source, the same in every export.
    pub id: String,
    /// The name to show. The author may choose it freely, so it proves nothing.
    pub name: String,
    /// The name of the author's account, which nobody else has, if the source has one.
    pub account: Option<String>,
}

/// One message of an export.
#[derive(Clone, PartialEq, Eq)]
pub struct ImportedMessage {
    /// The message's id in the source, the same in every export of it.
    pub id: String,
    /// The conversation.
    pub chat: Arc<SourceChat>,
    /// The author.
    pub author: SourceAuthor,
    /// What the author is.
    pub role: Role,
    /// When it was said, if the source says so.
    pub at: Option<Timestamp>,
    /// The text.
    pub text: String,
    /// The number of the line, or of the entry of the list, that it comes from; from 1.
    pub position: usize,
}

impl std::fmt::Debug for ImportedMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("ImportedMessage");
        shown.field("id", &self.id).field("role", &self.role).field("at", &self.at).field("position", &self.position);
        shown.finish_non_exhaustive()
    }
}

/// A command that an assistant ran. `Debug` shows no command.
#[derive(Clone, PartialEq, Eq)]
pub struct RanCommand {
    /// The id of the call in the source, the same in every export of it.
    pub id: String,
    /// The commands in one form, without secrets; at most [`crate::MAX_COMMAND_BYTES`].
    pub text: String,
    /// Whether it worked; `None` if the source does not tell.
    pub worked: Option<bool>,
    /// When it was run, if the source says so.
    pub at: Option<Timestamp>,
}

impl std::fmt::Debug for RanCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RanCommand").field("id", &self.id).field("worked", &self.worked).finish_non_exhaustive()
    }
}

/// What an assistant ran for one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// The conversation.
    pub chat: Arc<SourceChat>,
    /// The id in the source of the message that asked for it.
    pub message: String,
    /// The commands in their order.
    pub commands: Vec<RanCommand>,
}

/// A piece of the input that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// The number of the line, or of the entry of the list; from 1.
    pub position: usize,
    /// What is wrong with it. It never quotes the input.
    pub why: String,
}

/// One thing that a reader found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A message.
    Message(Box<ImportedMessage>),
    /// What an assistant ran for a message that was passed on before.
    Ran(Ran),
    /// Something that nobody said, with the reason to leave it out.
    LeftOut(&'static str),
    /// A piece that could not be read.
    Flaw(Flaw),
}

impl Found {
    /// Returns a flaw of the piece with this number.
    pub(crate) fn flaw(position: usize, why: impl Into<String>) -> Self {
        Self::Flaw(Flaw { position, why: why.into() })
    }

    /// Returns a flaw for a piece that is not the JSON that the format calls for. The parser's own message may quote the
    /// input, so only its place is told.
    pub(crate) fn bad_json(position: usize, error: &serde_json::Error) -> Self {
        let why = match error.classify() {
            serde_json::error::Category::Data => "it lacks a field, or a field has another type than expected",
            serde_json::error::Category::Eof => "the JSON ends in the middle",
            _ => "it is not JSON",
        };
        Self::flaw(position, format!("{why} (column {})", error.column()))
    }
}
