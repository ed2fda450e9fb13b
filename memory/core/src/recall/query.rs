//! What recall is asked.

use std::collections::HashSet;

use azera_types::{MessageId, PersonId, Timestamp};

use super::Question;

/// How deep recall searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Candidates that each search contributes before fusion.
    pub candidates: usize,
}

impl Default for Limits {
    /// With 50, recall drops by a hundredth; 200 gains nothing.
    fn default() -> Self {
        Self { candidates: 100 }
    }
}

/// A query for [`crate::domains::Recall::find`].
#[derive(Debug, Clone)]
pub struct Query {
    /// The parsed question.
    pub question: Question,
    /// Vector of [`Question::embed`]; `None` if the embedding model is down.
    pub vector: Option<Vec<f32>>,
    /// Vector of [`super::AskedEvent::embed`], if the question names an event and the embedding model is up.
    pub event_vector: Option<Vec<f32>>,
    /// The person who is answered. Their ratings in the place of the answer count, and nobody else's.
    pub asker: Option<PersonId>,
    /// The current time.
    pub now: Timestamp,
    /// Whether to find memories that are newer than [`crate::MemoryConfig::min_age`], too. A prompt shows the latest
    /// messages anyway; a person who searches wants them. What a person asked to keep is found at once either way.
    pub include_latest: bool,
    /// Messages that the prompt already shows.
    pub exclude: HashSet<MessageId>,
    /// How deep to search.
    pub limits: Limits,
    /// Number of hits wanted.
    pub results: usize,
}
