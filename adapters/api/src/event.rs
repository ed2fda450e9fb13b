use azera_types::{ChatId, MessageId, PersonId, PersonaId};
use serde::{Deserialize, Serialize};

use crate::State;

/// What people read in a chat where a reply failed.
pub const NOT_ANSWERED: &str =
    "I could not answer. If the fault passes, I answer later. The operator finds the reason in the log.";

/// A reply that is being generated.
#[derive(Debug, Clone, Copy)]
pub struct Making<'a> {
    /// The chat.
    pub chat: &'a ChatId,
    /// The reply's id.
    pub reply: &'a MessageId,
    /// The persona that speaks.
    pub persona: &'a PersonaId,
    /// The displayed name.
    pub persona_name: &'a str,
    /// The person whom it answers; `None` for a post that nobody asked for.
    pub asker: Option<&'a PersonId>,
    /// True if the reply is help for somebody in danger. Show it as text, and never speak it.
    pub is_help: bool,
}

/// An event while a reply is generated, for display.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StreamEvent {
    /// The model starts to think.
    ThinkingStart,
    /// A piece of its thinking.
    Thinking {
        /// The text.
        text: String,
    },
    /// The model stops thinking.
    ThinkingEnd,
    /// A piece of the reply.
    Content {
        /// The text.
        text: String,
    },
    /// The content so far was thinking: it is no part of the reply. Content that follows is.
    Retracted,
    /// The reply is complete and will be delivered.
    Done {
        /// The mind after the reply.
        #[serde(flatten)]
        state: State,
    },
    /// The reply failed. What was streamed of it goes, and the person is told why. If the message is answered after all,
    /// nothing of that reply is streamed but [`StreamEvent::Done`], and all of it is delivered.
    Error {
        /// The cause, for the operator and for somebody who is alone with their own Azera. It may name addresses and files: where
        /// others read, [`NOT_ANSWERED`] takes its place.
        message: String,
    },
    /// What was streamed is no reply. It goes, and nobody is told anything: the message was forgotten meanwhile, or may
    /// be answered in other words.
    Withdrawn,
}

impl std::fmt::Debug for StreamEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::ThinkingStart => "ThinkingStart",
            Self::Thinking { .. } => "Thinking",
            Self::ThinkingEnd => "ThinkingEnd",
            Self::Content { .. } => "Content",
            Self::Retracted => "Retracted",
            Self::Done { .. } => "Done",
            Self::Error { .. } => "Error",
            Self::Withdrawn => "Withdrawn",
        })
    }
}
