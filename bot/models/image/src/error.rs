use std::time::Duration;

use thiserror::Error;

/// The reasons why there is no picture to show now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outage {
    /// It cannot be reached, or is left alone for a while. No picture was begun.
    Away,
    /// It gave no picture in time.
    Slow,
    /// It ran out of memory.
    OutOfMemory,
    /// It failed while it drew.
    Failed,
    /// It drew a picture, and what looks at pictures before people see them gives no clear answer, however often it is
    /// asked.
    Unjudged,
    /// It drew a picture, and what looks at pictures before people see them never answered.
    Unseen,
}

impl Outage {
    /// Returns the trouble that a server's words about a failure name.
    pub fn of_words(words: &str) -> Self {
        let words = words.to_lowercase().replace([' ', '_', '-'], "");
        if words.contains("outofmemory") { Self::OutOfMemory } else { Self::Failed }
    }
}

/// The reasons why a model drew no picture. The texts never contain a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ImageError {
    /// The caller cancelled the request.
    #[error("the picture was cancelled")]
    Cancelled,
    /// The model cannot draw now; the same request may succeed later.
    #[error("{why}")]
    Unavailable {
        /// What happened.
        why: String,
        /// The kind of trouble, for people who must not learn where the server is.
        outage: Outage,
        /// How long to wait before the next attempt, if that is known.
        retry_in: Option<Duration>,
    },
    /// The model does not draw this; the same request fails again.
    #[error("{0}")]
    Refused(String),
    /// The server's own check of the result withheld the picture.
    #[error("the server withheld the picture, because its safety check flagged it")]
    Flagged,
    /// The configuration is wrong; every request fails until somebody changes it.
    #[error("{0}")]
    Configuration(String),
    /// The answer or the picture in it cannot be used.
    #[error("{0}")]
    Protocol(String),
}

impl ImageError {
    /// Returns true if the same request may succeed later with nothing changed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }

    /// Returns an error that passes by itself.
    pub fn unavailable(why: impl Into<String>) -> Self {
        Self::outage(Outage::Failed, why)
    }

    /// Returns an error of this kind that passes by itself.
    pub fn outage(outage: Outage, why: impl Into<String>) -> Self {
        Self::Unavailable { why: why.into(), outage, retry_in: None }
    }
}
