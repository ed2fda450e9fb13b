use async_trait::async_trait;
use thiserror::Error;

/// Sees pictures.
#[async_trait]
pub trait Viewer: Send + Sync {
    /// Returns the most bytes of a file.
    fn max_bytes(&self) -> u64;

    /// Describes what a picture file shows, in one line of at most [`MAX_DESCRIPTION_CHARS`] characters. It is a guess.
    ///
    /// # Errors
    /// [`SeeError`] says why there is no description.
    async fn describe(&self, file: Vec<u8>) -> Result<String, SeeError>;

    /// Says what a picture file shows, as far as the rules for drawn pictures ask.
    ///
    /// # Errors
    /// [`SeeError`] says why there is no verdict. Nobody may take that for a harmless picture.
    async fn judge(&self, file: Vec<u8>) -> Result<Verdict, SeeError>;
}

/// What a model that sees says about a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// It shows nudity or something sexual.
    pub is_sexual: bool,
    /// It shows somebody who looks younger than 18.
    pub has_minor: bool,
}

/// The longest description, in characters.
pub const MAX_DESCRIPTION_CHARS: usize = 600;

/// The reasons why a picture is neither described nor judged. The texts contain nothing of the picture.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SeeError {
    /// The file is damaged, too large, or no picture that can be read.
    #[error("{0}")]
    Unreadable(String),
    /// The model does not answer now; the same picture may succeed later.
    #[error("{0}")]
    Unavailable(String),
    /// The model answered, and the answer says nothing that was asked.
    #[error("{0}")]
    Unclear(String),
    /// The configuration is wrong; every picture fails until somebody changes it.
    #[error("{0}")]
    Configuration(String),
}
