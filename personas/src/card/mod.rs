//! Character cards: the V1, V2 and V3 formats by which other programs exchange characters, as JSON or inside a PNG.
//!
//! Specifications: <https://github.com/malfoyslastname/character-card-spec-v2> and
//! <https://github.com/kwaroran/character-card-spec-v3>.

mod export;
mod fields;
mod import;
mod lorebook;
mod matching;
mod png;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use export::to_card;
pub use import::import_card;
pub use lorebook::{LoreEntry, Lorebook};

use crate::persona::Persona;

/// The format of a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardSpec {
    /// Six flat fields, without a name for itself.
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

/// What a card holds beyond the persona. The host keeps it beside the persona (it serializes), puts lorebook entries into
/// prompts and greetings at the start of chats, and hands it to [`to_card`] so that nothing is lost on export.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CardData {
    /// First messages to choose from, the card's main one first.
    pub greetings: Vec<String>,
    /// First messages for chats of several people only.
    pub group_greetings: Vec<String>,
    /// Facts that come up when the talk comes to them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lorebook: Option<Lorebook>,
    /// Fields that have no place in a persona, as they were: creator, tags, notes, assets, `extensions`, unknown ones,
    /// and the whole of a text that had to be cut.
    pub extras: Map<String, Value>,
}

/// One thing that happened to a card on its way in.
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

/// A card, read.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedCard {
    /// The persona, valid as [`crate::parse`] has it.
    pub persona: Persona,
    /// What else the card held.
    pub data: CardData,
    /// Its picture as a PNG file without texts and metadata, if it came with one that is not too large.
    pub avatar: Option<Vec<u8>>,
    /// The format it was in.
    pub spec: CardSpec,
    /// What was mapped where, and what was changed or dropped, in the order of the card's fields.
    pub notes: Vec<Note>,
}

/// Key in [`CardData::extras`] of what stood beside `data` at the top of a card.
const TOP_LEVEL: &str = "card_top_level";
/// Titles under which texts that our sections do not ask for are kept.
const PERSONALITY_TITLE: &str = "Personality";
const INSTRUCTIONS_TITLE: &str = "Instructions";
