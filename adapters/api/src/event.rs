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
    /// The reply failed. The platform removes what was streamed of it, and tells the person. If the message is answered
    /// after all, that reply is not streamed: only [`StreamEvent::Done`] comes, and the whole reply is delivered.
    Error {
        /// The cause, for the operator. It may name addresses and files, so people in chats read [`NOT_ANSWERED`]
        /// instead.
        message: String,
    },
    /// What was streamed is no reply, and nothing failed: the message was forgotten meanwhile, or may be answered in other
    /// words. The platform removes it and tells nobody.
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
