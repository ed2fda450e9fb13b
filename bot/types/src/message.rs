use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use unicode_normalization::{UnicodeNormalization, is_nfc};

use crate::{ChatId, InboundPart, MessageId, PersonId, PersonaId};

/// The largest message text, in bytes. Adapters cut longer texts at a character boundary.
pub const MAX_TEXT_BYTES: usize = 64 * 1024;

/// The longest display name, in characters.
pub const MAX_NAME_CHARS: usize = 64;

/// Returns a text with composed letters (Unicode's NFC), so that a letter with its accent is the same from every
/// keyboard.
pub fn composed(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfc(text) { Cow::Borrowed(text) } else { Cow::Owned(text.nfc().collect()) }
}

/// The text of a message. `Debug` shows only its length, so that no message text can slip into a log.
#[derive(Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Text(Arc<str>);

impl Text {
    /// Creates a text with composed letters ([`composed`]), cut to [`MAX_TEXT_BYTES`] at a character boundary and
    /// stripped of NUL.
    pub fn new(text: impl AsRef<str>) -> Self {
        let text = &*composed(text.as_ref());
        let cut = text.get(..text.floor_char_boundary(MAX_TEXT_BYTES)).unwrap_or(text);
        if cut.contains('\0') { Self(cut.replace('\0', "").into()) } else { Self(cut.into()) }
    }

    /// Creates a text of any length, stripped of NUL, for files in commands. The caller limits its length.
    pub fn uncut(text: impl AsRef<str>) -> Self {
        Self(text.as_ref().replace('\0', "").into())
    }

    /// Returns the text as a string.
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

/// The author of a message.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// A human, with the display name at the time.
    Person {
        /// The human's id.
        id: PersonId,
        /// The display name at the time.
        name: String,
    },
    /// A persona.
    Persona {
        /// The persona's id.
        id: PersonaId,
        /// The persona's name at the time.
        name: String,
    },
    /// The author of a forgotten message. Only the message's position in the conversation remains.
    Forgotten,
}

impl Author {
    /// Returns the display name; empty for a forgotten author.
    pub fn name(&self) -> &str {
        match self {
            Self::Person { name, .. } | Self::Persona { name, .. } => name,
            Self::Forgotten => "",
        }
    }

    /// Returns the human's id, if the author is a human.
    pub fn person(&self) -> Option<&PersonId> {
        match self {
            Self::Person { id, .. } => Some(id),
            Self::Persona { .. } | Self::Forgotten => None,
        }
    }
}

/// One message from a person, as an adapter hands it in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inbound {
    /// The platform's id of the message. A second message with the same id is the same message.
    pub id: MessageId,
    /// The chat that the message was sent in.
    pub chat: ChatId,
    /// The author.
    pub person: PersonId,
    /// The author's display name, at most [`MAX_NAME_CHARS`] characters.
    pub name: String,
    /// The message's text, with captions and the descriptions of its parts.
    pub text: Text,
    /// Its pictures, recordings and files, at most [`crate::MAX_PARTS`].
    pub parts: Vec<InboundPart>,
    /// When the message was sent, according to the platform.
    pub at: Timestamp,
    /// True if the platform says that the message mentions the bot.
    pub mentions_bot: bool,
    /// The other people whom the message mentions.
    pub mentions: Vec<PersonId>,
    /// The message that this one replies to.
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
    fn letters_of_a_text_are_composed() {
        assert_eq!(Text::new("Zoe\u{308}"), Text::new("Zo\u{eb}"));
        assert_eq!(Text::new("か\u{3099}"), Text::new("が"));
    }

    #[test]
    fn debug_does_not_show_the_body() {
        assert_eq!(format!("{:?}", Text::new("secret")), "Text[6 bytes]");
    }
}
