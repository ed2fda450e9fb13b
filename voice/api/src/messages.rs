//! Speech as messages: a whole recording is heard, and a whole text is spoken.

use std::time::Duration;

use async_trait::async_trait;
use azera_types::{Text, VoiceNote};
use thiserror::Error;

use crate::{Manner, Voice};

/// Hears recordings.
#[async_trait]
pub trait Listener: Send + Sync {
    /// Returns the size of the largest recording that it takes, in bytes.
    fn max_bytes(&self) -> u64;

    /// Recognises what is said in a sound file of this media type, probably in this language, a BCP 47 tag. Dropping the
    /// future ends the work.
    ///
    /// # Errors
    /// [`HearError`] says what to tell the person who sent it.
    async fn hear(&self, file: Vec<u8>, mime: &str, language: Option<&str>) -> Result<Heard, HearError>;
}

/// What a [`Listener`] heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// The words; empty if nobody speaks.
    pub text: Text,
}

/// Why a recording could not be heard. No text of an error contains what was said.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HearError {
    /// It lasts longer than is heard.
    #[error("it lasts longer than {} s", .most_seconds)]
    TooLong {
        /// The most seconds.
        most_seconds: u32,
    },
    /// It cannot be read as sound.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// Too many recordings wait already.
    #[error("too many recordings wait")]
    Busy,
    /// The engine cannot be loaded, or failed.
    #[error("speech cannot be recognised: {0}")]
    Unavailable(String),
}

/// Speaks texts.
#[async_trait]
pub trait Speaker: Send + Sync {
    /// Returns the voices that can speak now, the usual one first.
    ///
    /// # Errors
    /// [`SpeakError::Unavailable`] if the engine cannot be opened.
    async fn voices(&self) -> Result<Vec<Voice>, SpeakError>;

    /// Speaks a text as somebody wrote it, with markup, numbers and links. Dropping the future ends the work.
    ///
    /// # Errors
    /// [`SpeakError`] says why there is no sound. The text alone can be sent then.
    async fn speak(&self, text: &str, manner: &Manner) -> Result<VoiceNote, SpeakError>;

    /// Speaks a text like [`Speaker::speak`], into a WAV file.
    ///
    /// # Errors
    /// [`SpeakError`] says why there is no sound.
    async fn record(&self, text: &str, manner: &Manner) -> Result<Recorded, SpeakError>;
}

/// Speech in a WAV file.
#[derive(Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The file: 16 bit, mono, at the rate of the voice.
    pub wav: Vec<u8>,
    /// How long the sound lasts.
    pub duration: Duration,
}

/// Leaves out the sound.
impl std::fmt::Debug for Recorded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Recorded[{:?}]", self.duration)
    }
}

/// Why a text was not spoken. No text of an error contains what should have been said.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SpeakError {
    /// Nothing of the text is read aloud.
    #[error("nothing of it is read aloud")]
    Silent,
    /// The speech would last longer than a voice message may.
    #[error("it would last longer than {} s", .most_seconds)]
    TooLong {
        /// The most seconds.
        most_seconds: u32,
    },
    /// Nobody has the voice that must speak.
    #[error("nobody has that voice here")]
    NoVoice,
    /// The voice that must speak cannot speak now. The text is for the log.
    #[error("that voice does not work at the moment, and no other may take its place")]
    VoiceAway(String),
    /// Too many texts wait already.
    #[error("too many texts wait")]
    Busy,
    /// The engine cannot be loaded, or failed.
    #[error("the voice cannot speak: {0}")]
    Unavailable(String),
}
