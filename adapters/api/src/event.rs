use azera_types::{ChatId, MessageId, PersonaId};
use serde::{Deserialize, Serialize};

use crate::State;

/// A reply in the making.
#[derive(Debug, Clone, Copy)]
pub struct Making<'a> {
    /// Where.
    pub chat: &'a ChatId,
    /// Which.
    pub reply: &'a MessageId,
    /// Who speaks.
    pub persona: &'a PersonaId,
    /// The name to show.
    pub persona_name: &'a str,
}

/// What happens while a reply is made, as platforms show it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StreamEvent {
    /// The model begins to think aloud.
    ThinkingStart,
    /// A piece of its thinking.
    Thinking {
        /// The piece.
        text: String,
    },
    /// The thinking is over.
    ThinkingEnd,
    /// A piece of the reply.
    Content {
        /// The piece.
        text: String,
    },
    /// The reply is complete and will be delivered as a whole.
    Done {
        /// The mind after the reply.
        #[serde(flatten)]
        state: State,
    },
    /// The reply failed; nothing will be delivered.
    Error {
        /// What to show the person.
        message: String,
    },
}

impl std::fmt::Debug for StreamEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::ThinkingStart => "ThinkingStart",
            Self::Thinking { .. } => "Thinking",
            Self::ThinkingEnd => "ThinkingEnd",
            Self::Content { .. } => "Content",
            Self::Done { .. } => "Done",
            Self::Error { .. } => "Error",
        })
    }
}
