//! The crate's error.

use crate::problem::Problem;

/// Why a persona or a character card is refused. Trying again never helps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is not a persona id.
    #[error("{id:?} is no persona id: use 1 to 48 of a-z, 0-9 and -, not beginning or ending with -")]
    Id {
        /// The text, cut to the longest id.
        id: String,
    },
    /// The persona has errors; the list may also contain warnings.
    #[error("the persona has {} problem(s), the first: {}", problems.len(), problems.first().map(ToString::to_string).unwrap_or_default())]
    Invalid {
        /// The problems, by line of the persona's normal form.
        problems: Vec<Problem>,
    },
    /// Something is larger than its limit.
    #[error("{what} is larger than the limit of {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The limit, with its unit.
        limit: String,
    },
    /// The bytes are neither JSON nor PNG, or a picture without a card.
    #[error("this is no character card: {reason}")]
    NotACard {
        /// The reason, and what a card is.
        reason: String,
    },
    /// The PNG file is damaged.
    #[error("the PNG file is damaged at byte {offset}: {reason}")]
    Png {
        /// Position in the file.
        offset: usize,
        /// The fault.
        reason: &'static str,
    },
    /// The card's JSON cannot be parsed.
    #[error("the card's JSON is damaged at line {line}, column {column}: {reason}")]
    Json {
        /// Line in the JSON, from 1.
        line: usize,
        /// Column in that line, from 1.
        column: usize,
        /// The parser's message.
        reason: String,
    },
    /// A field of the JSON has a wrong type or is missing.
    #[error("the card's field `{field}` {reason}")]
    Field {
        /// Path of the field.
        field: String,
        /// The fault.
        reason: &'static str,
    },
}
