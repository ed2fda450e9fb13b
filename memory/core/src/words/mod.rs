//! Words: how a text is split into words for search, how spellings are made comparable, and which words tell two
//! statements apart. What is known of each language stands in `languages.toml`. Begin with [`document_words`],
//! [`query_words`] and [`same_statement`].

mod change;
mod digest;
mod fold;
mod languages;
mod lookup;
mod split;
mod statement;

pub use change::tells_of_change;
pub(crate) use digest::digest;
pub use fold::{fold, fold_case};
pub(crate) use lookup::{lookup_words, spaced_words};
pub(crate) use split::is_written_alike;
pub use split::{carries_meaning, document_words, query_words};
pub(crate) use statement::{Statement, is_function_word};
pub use statement::{
    has_number, is_number, known_language, replaces_numbers, same_statement, telling_words, turning_words,
};
