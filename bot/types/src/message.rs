use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{ChatId, MessageId, PersonId, PersonaId};

/// Bytes of one message that are taken in; adapters cut what is longer at a character.
pub const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Characters of a display name that are taken in.
pub const MAX_NAME_CHARS: usize = 64;

/// What somebody said. `Debug` shows its length alone, so that a body cannot slip into a log.
#[derive(Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Text(Arc<str>);

impl Text {
    /// The text, cut to [`MAX_TEXT_BYTES`] at a character, without NUL.
    pub fn new(text: impl AsRef<str>) -> Self {
        let text = text.as_ref();
        let cut = text.get(..text.floor_char_boundary(MAX_TEXT_BYTES)).unwrap_or(text);
        if cut.contains('\0') { Self(cut.replace('\0', "").into()) } else { Self(cut.into()) }
    }

    /// The text as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Text[{} bytes]", self.0.len())
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

/// Who said something.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// A human, with the name shown at the time.
    Person {
        /// Who.
        id: PersonId,
        /// The display name at the time.
        name: String,
    },
    /// A persona.
    Persona {
        /// Which.
        id: PersonaId,
        /// Its name at the time.
        name: String,
    },
    /// Somebody whose message was forgotten; the place in the conversation is all that is left.
    Forgotten,
}

impl Author {
    /// The name shown.
    pub fn name(&self) -> &str {
        match self {
            Self::Person { name, .. } | Self::Persona { name, .. } => name,
            Self::Forgotten => "",
        }
    }

    /// The human, if it is one.
    pub fn person(&self) -> Option<&PersonId> {
        match self {
            Self::Person { id, .. } => Some(id),
            Self::Persona { .. } | Self::Forgotten => None,
        }
    }
}

/// One message of a person, as an adapter hands it in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inbound {
    /// The platform's id of the message; a second message of the same id is the same message.
    pub id: MessageId,
    /// Where it was said.
    pub chat: ChatId,
    /// Who said it.
    pub person: PersonId,
    /// The name shown, at most [`MAX_NAME_CHARS`] characters.
    pub name: String,
    /// What was said.
    pub text: Text,
    /// When, by the platform.
    pub at: Timestamp,
    /// Whether the platform says that it mentions the bot.
    pub mentions_bot: bool,
    /// Other people it mentions.
    pub mentions: Vec<PersonId>,
    /// The message it replies to.
    pub reply_to: Option<MessageId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_at_a_character_and_loses_nul() {
        let long = "é".repeat(MAX_TEXT_BYTES);
        assert_eq!(Text::new(&long).len(), MAX_TEXT_BYTES);
        assert_eq!(Text::new(format!("x{long}")).len(), MAX_TEXT_BYTES - 1);
        assert_eq!(Text::new("a\0b").as_str(), "ab");
    }

    #[test]
    fn debug_does_not_show_the_body() {
        assert_eq!(format!("{:?}", Text::new("secret")), "Text[6 bytes]");
    }
}
