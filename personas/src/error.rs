//! The crate's error.

use crate::problem::Problem;

/// Why a persona or a character card could not be taken. None of these goes away by trying again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is no persona id.
    #[error("{id:?} is no persona id: use 1 to 48 of a-z, 0-9 and -, not beginning or ending with -")]
    Id {
        /// The text given, cut to the length an id may have.
        id: String,
    },
    /// The persona has errors; the list may hold warnings too.
    #[error("the persona has {} problem(s), the first: {}", problems.len(), problems.first().map(ToString::to_string).unwrap_or_default())]
    Invalid {
        /// What is wrong, by line of the persona's normal form.
        problems: Vec<Problem>,
    },
    /// Something is larger than its limit.
    #[error("{what} is larger than the limit of {limit}")]
    TooLarge {
        /// What was too large.
        what: &'static str,
        /// The limit, with its unit.
        limit: String,
    },
    /// The bytes are neither JSON nor PNG, or a picture without a card in it.
    #[error("this is no character card: {reason}")]
    NotACard {
        /// Why, and what would be one.
        reason: String,
    },
    /// The PNG file is damaged.
    #[error("the PNG file is damaged at byte {offset}: {reason}")]
    Png {
        /// Where in the file.
        offset: usize,
        /// What is wrong there.
        reason: &'static str,
    },
    /// The card's JSON does not parse.
    #[error("the card's JSON is damaged at line {line}, column {column}: {reason}")]
    Json {
        /// Line in the JSON, the first being 1.
        line: usize,
        /// Column in that line, the first being 1.
        column: usize,
        /// The parser's words.
        reason: String,
    },
    /// The JSON parses but a field has a wrong type or is missing.
    #[error("the card's field `{field}` {reason}")]
    Field {
        /// Path of the field.
        field: String,
        /// What is wrong with it.
        reason: &'static str,
    },
}
