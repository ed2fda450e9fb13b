//! Contracts of speech. An engine implements [`SpeechToText`], [`TextToSpeech`] or [`VoiceActivity`]; callers know no
//! engine by name. This crate does no signal processing and reads no files.
//!
//! Calls of engines block for as long as they compute. Run them on a thread for blocking work. [`Listener`] and
//! [`Speaker`] stand above the engines: they take whole voice messages and texts, and do not block.

mod audio;
mod call_recordings;
mod error;
mod manner;
mod messages;
mod samples;

use std::ops::ControlFlow;
use std::time::Duration;

use azera_types::Text;

pub use audio::{Audio, RECOGNITION_RATE, SampleRate};
pub use call_recordings::{CallRecording, CallRecordings, ForgottenCalls};
pub use error::Error;
pub use manner::{Manner, MissingVoices, is_same_language, main_language, recognised_language};
pub use messages::{HearError, Heard, Listener, Recorded, SpeakError, Speaker};
pub use samples::{CLONE_MARK, Given, Sample, SampleError, SampleStore};

/// Samples of one frame of [`VoiceActivity`]: 32 ms at [`RECOGNITION_RATE`].
pub const FRAME_SAMPLES: usize = 512;

/// Recognises speech.
pub trait SpeechToText: Send + Sync {
    /// Returns the engine's name with its model, such as `whisper-base`.
    fn name(&self) -> &str;

    /// Recognises one utterance at [`RECOGNITION_RATE`]. `is_wanted` is asked between steps; once it returns false, the
    /// call fails with [`Error::Cancelled`]. It may take long to answer, while other calls go first: an engine asks it on the
    /// thread of its caller, and holds nothing then that other calls need.
    ///
    /// # Errors
    /// [`Error::WrongRate`] for another rate, [`Error::TooLong`] for more than the engine takes at once.
    fn transcribe(&self, utterance: &Audio, is_wanted: &(dyn Fn() -> bool + Sync)) -> Result<Transcript, Error>;

    /// Recognises one utterance like [`SpeechToText::transcribe`]. It is probably in this language, a BCP 47 tag. An engine
    /// that has no use for the hint leaves it out.
    ///
    /// # Errors
    /// Those of [`SpeechToText::transcribe`].
    fn transcribe_in(
        &self,
        utterance: &Audio,
        _language: Option<&str>,
        is_wanted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Transcript, Error> {
        self.transcribe(utterance, is_wanted)
    }
}

/// What an engine recognised in one utterance.
#[derive(Clone, PartialEq)]
pub struct Transcript {
    /// The words as a sentence; empty if nothing was said.
    pub text: Text,
    /// Its words in order; empty for engines that give no times.
    pub words: Vec<SpokenWord>,
    /// Mean probability of its tokens, 0 to 1.
    pub confidence: f32,
    /// Probability that the utterance contains no speech, 0 to 1.
    pub no_speech: f32,
}

/// Leaves out what people said.
impl std::fmt::Debug for Transcript {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Transcript[{} bytes, confidence {:.2}, no speech {:.2}]",
            self.text.len(),
            self.confidence,
            self.no_speech
        )
    }
}

/// One word of a transcript.
#[derive(Clone, PartialEq)]
pub struct SpokenWord {
    /// The word as written.
    pub text: Text,
    /// When it begins, from the start of the utterance.
    pub start: Duration,
    /// When it ends, from the start of the utterance.
    pub end: Duration,
}

/// Leaves out what people said.
impl std::fmt::Debug for SpokenWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SpokenWord[{:?} to {:?}]", self.start, self.end)
    }
}

/// Speaks text.
pub trait TextToSpeech: Send + Sync {
    /// Returns the voices that the engine has now, its usual one first.
    fn voices(&self) -> Vec<Voice>;

    /// Returns true if a voice can read a text in a language, a BCP 47 tag. Most voices have one language.
    fn reads(&self, voice: &Voice, language: &str) -> bool {
        is_same_language(&voice.language, language)
    }

    /// Speaks one sentence and hands over its sound piece by piece while it is made. A caller that breaks ends the
    /// call without an error. The sentence is plain words: numbers, markup and links are written out before.
    ///
    /// # Errors
    /// [`Error::UnknownVoice`] for a voice that [`TextToSpeech::voices`] does not list.
    fn speak(&self, sentence: &str, style: &Style, take: &mut dyn FnMut(Piece) -> ControlFlow<()>)
    -> Result<(), Error>;
}

/// A piece of a sentence's sound.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// The sound.
    pub audio: Audio,
    /// When each word that ends in this piece ends, from the piece's beginning, in order. Words stand between white space.
    /// Empty in all pieces of an engine that does not know it.
    pub word_ends: Vec<Duration>,
}

impl From<Audio> for Piece {
    /// Returns a piece whose words have no known end.
    fn from(audio: Audio) -> Self {
        Self { audio, word_ends: Vec::new() }
    }
}

/// A voice of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Voice {
    /// Id by which people choose it, such as `en-us-joe`.
    pub id: String,
    /// BCP 47 tag of the language that it speaks.
    pub language: String,
    /// Rate of its sound.
    pub rate: SampleRate,
    /// Name of the engine that has it.
    pub engine: String,
}

/// How something is spoken.
#[derive(Debug, Clone, PartialEq)]
pub struct Style {
    /// Id of the voice.
    pub voice: String,
    /// Whether no other voice may take its place. An engine that cannot speak with it then fails.
    pub needs_voice: bool,
    /// Pace as a factor; 1 is the voice's own and 2 is twice as fast.
    pub pace: f32,
    /// Pitch as a factor; 1 is the voice's own and 1.2 is 20 % higher. It does not change the pace.
    pub pitch: f32,
    /// How lively it sounds, as a factor; 1 is the voice's own and 0 is the same each time.
    pub liveliness: f32,
    /// BCP 47 tag of the language that is spoken; without one, the language of the voice.
    pub language: Option<String>,
}

impl Style {
    /// Returns the style of a voice as it is.
    pub fn of(voice: impl Into<String>) -> Self {
        Self { voice: voice.into(), needs_voice: false, pace: 1.0, pitch: 1.0, liveliness: 1.0, language: None }
    }
}

/// Tells speech from other sounds. It keeps what it heard, so each stream has its own.
pub trait VoiceActivity: Send {
    /// Returns the probability, from 0 to 1, that the next frame of the stream is speech. Frames follow each other
    /// without gaps.
    fn probability(&mut self, frame: &[f32; FRAME_SAMPLES]) -> Result<f32, Error>;

    /// Forgets what it heard, as at the start of another stream.
    fn reset(&mut self);
}
