//! What a conversation needs, is asked for, and reports.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use azera_types::{MessageId, PersonId};
use azera_voice_api::{Audio, Error, SpeechToText, Style, TextToSpeech, VoiceActivity};
use azera_voice_room::{Expected, Said};

/// The engines of speech.
#[derive(Clone)]
pub struct Engines {
    /// Recognises speech.
    pub recogniser: Arc<dyn SpeechToText>,
    /// Speaks.
    pub speaker: Arc<dyn TextToSpeech>,
    /// How it speaks.
    pub style: Style,
    /// Returns a detector of speech for a new stream.
    pub activity: Arc<dyn Fn() -> Box<dyn VoiceActivity> + Send + Sync>,
}

impl Engines {
    /// Returns the engines with a persona's way to speak: its voice, if the speaker has it, its pace and liveliness.
    pub fn with_manner(mut self, voice: Option<String>, pace: Option<f32>, liveliness: Option<f32>) -> Self {
        let known = voice.filter(|id| self.speaker.voices().iter().any(|voice| voice.id == *id));
        self.style.voice = known.unwrap_or(self.style.voice);
        self.style.pace = pace.unwrap_or(self.style.pace);
        self.style.liveliness = liveliness.unwrap_or(self.style.liveliness);
        self
    }

    /// Checks that the speaker has the voice of the style.
    ///
    /// # Errors
    /// [`Error::UnknownVoice`]
    pub fn check(&self) -> Result<(), Error> {
        let voices = self.speaker.voices();
        if voices.iter().any(|voice| voice.id == self.style.voice) {
            return Ok(());
        }
        let known = voices.iter().map(|voice| voice.id.clone()).collect();
        Err(Error::UnknownVoice { voice: self.style.voice.clone(), known })
    }
}

/// Plays pieces of sound one after the other, and knows how much of them was played.
#[async_trait]
pub trait Player: Send {
    /// Adds a piece.
    fn push(&mut self, audio: Audio);

    /// Pauses where it is.
    fn pause(&mut self);

    /// Goes on after a pause.
    fn resume(&mut self);

    /// Returns true if nothing is left to play.
    fn is_done(&self) -> bool;

    /// Returns how long the pieces last that wait to be played.
    fn ahead(&self) -> Duration;

    /// Stops for good, and returns how much was played since the clock was started.
    async fn stop(&mut self) -> Duration;

    /// Starts the clock of another reply.
    fn restart_clock(&mut self);
}

/// A request to a conversation.
pub enum Request {
    /// A person is there, with what they decided about being heard; `None` if they were not asked yet.
    Joined {
        /// The person.
        person: PersonId,
        /// The displayed name.
        name: String,
        /// See above.
        decision: Option<bool>,
    },
    /// A person left.
    Left(PersonId),
    /// A person decided about being heard.
    Decided(PersonId, bool),
    /// The next piece of a reply. It is said as soon as it completes a sentence.
    Piece(MessageId, String),
    /// The pieces of a reply so far are no part of it.
    Retracted(MessageId),
    /// The whole text of a reply. If no piece of it came before, all of it is said.
    Whole(MessageId, String),
    /// Nobody answers the last question.
    Unanswered,
    /// A text that is no reply.
    Say(String),
    /// Stop speaking.
    Stop,
    /// Be quiet from now on, or talk again.
    Mute(bool),
}

/// What happens in the conversation.
#[derive(Debug)]
pub enum Report {
    /// Somebody said something, and began to say it so long ago.
    Said(Said, Duration),
    /// Somebody seems to say something to the bot; the answer can be prepared.
    Expected(Expected),
    /// A reply was not heard to its end, or, if it was cut before and went on, it was.
    Heard {
        /// The reply.
        reply: MessageId,
        /// The words that were heard; it may be empty.
        heard: String,
        /// True if that is all of the reply.
        is_whole: bool,
    },
    /// A reply was said as far as this. If it was stopped before and goes on, it is said again with all of it.
    Uttered {
        /// The reply.
        reply: MessageId,
        /// The words that were heard; never empty.
        heard: String,
        /// True if that is all of the reply.
        is_whole: bool,
    },
    /// Somebody asked the bot to be quiet from now on, or to talk again.
    Muted(bool),
    /// Ask a person whether they may be heard.
    Ask(PersonId),
    /// Nobody else is there.
    Alone,
}
