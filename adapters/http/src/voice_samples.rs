use async_trait::async_trait;
use thiserror::Error;

use crate::StoreError;

/// A recording of a voice to keep. `Debug` shows no sound.
#[derive(Clone, PartialEq, Eq)]
pub struct NewSample {
    /// A name for the voice: letters of ASCII in lower case, digits, `-` and `_`.
    pub name: String,
    /// Whose voice it is, and that this person agreed.
    pub consent: String,
    /// The file.
    pub bytes: Vec<u8>,
}

impl std::fmt::Debug for NewSample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NewSample[{} bytes]", self.bytes.len())
    }
}

/// A recording that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptSample {
    /// The voice's name, which is unique.
    pub name: String,
    /// The size of its WAV file.
    pub bytes: usize,
}

/// A recording in the list. `Debug` shows no consent, which names a person.
#[derive(Clone, PartialEq)]
pub struct ListedSample {
    /// The voice's name, which is unique.
    pub name: String,
    /// Whose voice it is, and that this person agreed.
    pub consent: String,
    /// How long it lasts, in seconds.
    pub seconds: f32,
    /// When it was added (RFC 3339).
    pub added_at: String,
}

impl std::fmt::Debug for ListedSample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ListedSample").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Why a recording is not kept.
#[derive(Debug, Error)]
pub enum SampleError {
    /// It is no recording of a voice. The text is for the owner.
    #[error("{0}")]
    Refused(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The recordings of voices that a speech server clones. Only owners see and change them.
#[async_trait]
pub trait VoiceSamples: Send + Sync {
    /// Checks a recording, and keeps it. The same recording under the same name is kept once.
    async fn add(&self, sample: NewSample) -> Result<KeptSample, SampleError>;

    /// Returns the recordings by their names.
    async fn list(&self) -> Result<Vec<ListedSample>, StoreError>;

    /// Removes a recording with everything that is known about it. Returns false if there is none of that name.
    async fn remove(&self, name: &str) -> Result<bool, StoreError>;

    /// Returns the WAV file of a recording; `None` if there is none of that name.
    async fn wav(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError>;
}
