use std::time::Duration;

use async_trait::async_trait;
use azera_types::{PersonaId, PlatformId};

use crate::{FileContent, HostError, Reading};

/// A text to speak. `Debug` shows no text.
#[derive(Clone, PartialEq, Eq)]
pub struct SpeechRequest {
    /// The text as somebody wrote it, with markup, numbers and links.
    pub text: String,
    /// The persona that speaks; the one that answers in the chat if `None`.
    pub persona: Option<PersonaId>,
    /// The voice that must speak; the persona's own if `None`.
    pub voice: Option<String>,
}

impl std::fmt::Debug for SpeechRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SpeechRequest").field("persona", &self.persona).finish_non_exhaustive()
    }
}

/// The answer to a text to speak.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpeechAnswer {
    /// It was spoken.
    Sound {
        /// A WAV file: 16 bit, mono.
        wav: FileContent,
        /// How long it lasts.
        duration: Duration,
    },
    /// It cannot be spoken. The text says why.
    Refused(String),
    /// Too many texts wait.
    Busy,
    /// Nothing speaks here. The text says how that changes.
    Unavailable(String),
}

/// The engine's voice, and whether it hears, for platforms that ask for sound.
#[async_trait]
pub trait SpeechHost: Send + Sync {
    /// Returns why nothing speaks here, and how that changes; `None` if something speaks.
    fn silence(&self) -> Option<String>;

    /// Returns why nobody hears voice messages here, and how that changes; `None` if something recognises speech.
    fn deafness(&self) -> Option<String>;

    /// Speaks a text. Nothing of it is kept.
    ///
    /// # Errors
    /// [`HostError::NotAllowed`] for a person who cannot read the chat.
    async fn say(&self, platform: &PlatformId, at: Reading, request: SpeechRequest) -> Result<SpeechAnswer, HostError>;
}
