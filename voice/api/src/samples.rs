//! Recordings of people's voices, with which a server speaks.

use async_trait::async_trait;
use azera_types::{PersonId, Timestamp};
use thiserror::Error;

/// Begins the id of a voice that was recorded by somebody in a chat. Nothing else begins with it, no list for people
/// names such a voice, and it is never an engine's usual one.
pub const CLONE_MARK: char = '~';

/// A recording of a voice.
#[derive(Clone, PartialEq)]
pub struct Sample {
    /// The id of the voice, as engines of speech take it.
    pub id: String,
    /// The name by which people choose it.
    pub name: String,
    /// Who gave it, and whose voice it is. `None` for one that the operator keeps with a consent in words.
    pub given: Option<Given>,
    /// How long it lasts, in seconds.
    pub seconds: f32,
}

/// A recording that somebody gave in a chat.
#[derive(Clone, PartialEq, Eq)]
pub struct Given {
    /// Whose voice it is.
    pub whose: PersonId,
    /// Who gave it.
    pub by: PersonId,
    /// The place in which `whose` was asked, if somebody else gave it. It is spoken with there alone.
    pub place: Option<String>,
    /// When it was given.
    pub at: Timestamp,
    /// When `whose` agreed; `None` while they are asked.
    pub agreed_at: Option<Timestamp>,
}

impl Sample {
    /// Returns true if the person whose voice it is agreed.
    pub fn is_agreed(&self) -> bool {
        self.given.as_ref().is_none_or(|given| given.agreed_at.is_some())
    }
}

/// Leaves out the names.
impl std::fmt::Debug for Sample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sample[{:.1} s, agreed {}]", self.seconds, self.is_agreed())
    }
}

/// Why a recording is not kept, or cannot be read.
#[derive(Debug, Error)]
pub enum SampleError {
    /// It is no recording of a voice. The text says what to do better.
    #[error("{0}")]
    Unfit(String),
    /// The store is full or fails. The text is for the log.
    #[error("{0}")]
    Store(String),
}

/// Keeps recordings of voices. No engine of speech sees one before the person whose voice it is agreed, or after it was
/// removed.
#[async_trait]
pub trait SampleStore: Send + Sync {
    /// Says for people why nothing speaks with recordings here, and what to do; `None` if something does.
    async fn obstacle(&self) -> Option<String>;

    /// Checks a recording and keeps it in the form that is needed, under an id that begins with [`CLONE_MARK`].
    ///
    /// # Errors
    /// [`SampleError`] says why nothing is kept.
    async fn keep(&self, name: &str, given: Given, file: Vec<u8>) -> Result<Sample, SampleError>;

    /// Returns all recordings by their names.
    ///
    /// # Errors
    /// [`SampleError::Store`]
    async fn list(&self) -> Result<Vec<Sample>, SampleError>;

    /// Records that the person whose voice it is agreed. Returns false if there is no such recording.
    ///
    /// # Errors
    /// [`SampleError::Store`]
    async fn agree(&self, id: &str, at: Timestamp) -> Result<bool, SampleError>;

    /// Removes a recording with everything that is known about it, and what engines of speech made of it. Returns false
    /// if there is none.
    ///
    /// # Errors
    /// [`SampleError::Store`]
    async fn remove(&self, id: &str) -> Result<bool, SampleError>;
}
