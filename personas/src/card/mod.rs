//! Character cards: the formats V1, V2 and V3 in which other programs exchange characters, as JSON or in a PNG.
//! `import` finds the card in a file, `convert` and `export` convert between cards and personas, and `lorebook` and
//! `matching` handle lorebooks. Persona files themselves are handled outside of this module.
//!
//! Specifications: <https://github.com/malfoyslastname/character-card-spec-v2> and
//! <https://github.com/kwaroran/character-card-spec-v3>.

mod charx;
mod convert;
mod examples;
mod export;
mod fields;
mod haystack;
mod import;
mod json;
mod lore_fields;
mod lorebook;
mod macros;
mod matching;
mod pattern;
mod png;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use export::to_card;
pub use import::import_card;
pub use lorebook::{Key, Logic, LoreEntry, Lorebook, Recursion, Sources};
pub use matching::Talk;

use crate::persona::Persona;

/// The format of a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardSpec {
    /// Six flat fields, without a format name.
    V1,
    /// `chara_card_v2`.
    V2,
    /// `chara_card_v3`.
    V3,
}

impl fmt::Display for CardSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1 => "character card V1",
            Self::V2 => "character card V2",
            Self::V3 => "character card V3",
        })
    }
}

/// The parts of a card that a persona cannot hold. The host stores them with the persona (this type serializes), puts
/// lorebook entries into prompts and greetings at the start of chats, and passes them to [`to_card`], so that an export
/// loses nothing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CardData {
    /// First messages to choose from, the card's main one first.
    pub greetings: Vec<String>,
    /// First messages for chats of several people only.
    pub group_greetings: Vec<String>,
    /// Facts for conversations about their keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lorebook: Option<Lorebook>,
    /// Other fields, unchanged: creator, tags, notes, assets, `extensions`, unknown ones; and each field that the persona
    /// holds in another form, such as a text with macros or one that was cut.
    pub extras: Map<String, Value>,
}

impl CardData {
    /// Returns the lorebook, with the card's texts that its entries may search.
    pub fn into_lorebook(self) -> Option<Lorebook> {
        let mut book = self.lorebook?;
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        book.creator_notes = text(self.extras.get("creator_notes"));
        book.depth_prompt = text(self.extras.get("extensions").and_then(|found| found.pointer("/depth_prompt/prompt")));
        Some(book)
    }
}

/// A note about the import of a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The card's field.
    pub field: String,
    /// Where it went, or what was changed or dropped.
    pub message: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// An imported card.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedCard {
    /// The persona, valid according to [`crate::parse`].
    pub persona: Persona,
    /// The other parts of the card.
    pub data: CardData,
    /// Its picture as a PNG file without texts and metadata, if there is one and it is not too large.
    pub avatar: Option<Vec<u8>>,
    /// The card's format.
    pub spec: CardSpec,
    /// Notes about the mapping, in the order of the card's fields.
    pub notes: Vec<Note>,
}

/// Key in [`CardData::extras`] of fields next to `data` at the top level of a card.
const TOP_LEVEL: &str = "card_top_level";
/// Key of the names of those that are the same in `data`.
const REPEATED: &str = "card_top_level_repeats";
/// Titles of texts for which persona files have no section.
pub(crate) const PERSONALITY_TITLE: &str = "Personality";
const INSTRUCTIONS_TITLE: &str = "Instructions";

/// Returns the intent of a persona from a card, which has no field for it.
pub(crate) fn default_intent(name: &str) -> String {
    format!("Be {name}, in character, in every conversation with {{{{user}}}}.")
}
