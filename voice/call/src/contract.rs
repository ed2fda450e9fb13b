//! What a conversation needs, is asked for, and reports.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use azera_types::{MessageId, PersonId};
use azera_voice_api::{
    Audio, CLONE_MARK, Error, Manner, MissingVoices, Piece, SpeechToText, Style, TextToSpeech, Transcript, Voice,
    VoiceActivity,
};
use azera_voice_room::{Expected, RecognitionId, Said};
use azera_voice_spoken::{CodeNote, Options};

use crate::on_demand::OnDemand;

/// Returns a detector of speech for a new stream.
pub type OpenActivity = Arc<dyn Fn() -> Box<dyn VoiceActivity> + Send + Sync>;

/// The engines of speech, and how they speak. Clones share which missing voices the log has named.
#[derive(Clone)]
pub struct Engines {
    /// Recognises speech.
    pub recogniser: Arc<dyn SpeechToText>,
    /// Speaks.
    pub speaker: Arc<dyn TextToSpeech>,
    /// Opens detectors of speech.
    pub activity: OpenActivity,
    /// How the speaker speaks by itself.
    usual: Style,
    /// How the persona of the conversation speaks.
    pub(crate) style: Style,
    missing: Arc<MissingVoices>,
    /// How texts are read aloud, apart from the language.
    reading: Options,
    /// The engines that are loaded when somebody speaks.
    pub(crate) on_demand: Option<Arc<OnDemand>>,
}

impl Engines {
    /// Puts the engines together. `usual` is how the speaker speaks for a persona without a manner of its own. If the speaker
    /// has no such voice any more, its first one takes the place: a server that came back tells other voices than before.
    pub fn new(
        recogniser: Arc<dyn SpeechToText>,
        speaker: Arc<dyn TextToSpeech>,
        usual: Style,
        activity: OpenActivity,
    ) -> Self {
        let (style, missing, reading) = (usual.clone(), Arc::default(), Options::default());
        Self { recogniser, speaker, activity, style, usual, missing, reading, on_demand: None }
    }

    /// Returns the engines with options for reading texts aloud, such as the time zone. The voice decides on the language.
    pub fn reading(mut self, options: Options) -> Self {
        self.reading = options;
        self
    }

    /// Returns the engines as ones that are loaded when somebody speaks.
    pub fn loaded_on_demand(mut self, on_demand: Arc<OnDemand>) -> Self {
        self.on_demand = Some(on_demand);
        self
    }

    /// Loads what will be needed, unless it is loaded. It takes up to two seconds.
    ///
    /// # Errors
    /// A model cannot be read.
    pub fn load(&self) -> Result<(), Error> {
        self.on_demand.as_ref().map_or(Ok(()), |on_demand| on_demand.load(&self.style.voice))
    }

    /// Loads the voice of a style in the background, because something will be said with it.
    pub(crate) fn load_voice_soon(&self, style: &Style) {
        let Some(on_demand) = self.on_demand.clone() else { return };
        let voice = style.voice.clone();
        tokio::task::spawn_blocking(move || on_demand.load_voice(&voice).ok());
    }

    /// Returns how a text is read aloud in a style: in its language if the voice can, or else in that of the voice.
    pub(crate) fn options_of(&self, style: &Style) -> Options {
        let voices = self.speaker.voices();
        let voice = voices.iter().find(|voice| voice.id == style.voice).or_else(|| first_of(&voices));
        let of_voice = voice.map_or("en", |voice| voice.language.as_str());
        let can_read = |language: &&str| voice.is_none_or(|voice| self.speaker.reads(voice, language));
        self.reading.clone().in_language(style.language.as_deref().filter(can_read).unwrap_or(of_voice))
    }

    /// Returns the engines with the manner of the conversation's persona.
    pub fn with_manner(mut self, manner: &Manner) -> Self {
        self.style = self.style_of(manner);
        self
    }

    /// Returns the engines for a line whose listeners get code as a direct message, because they see no chat of it.
    pub fn sending_code(mut self) -> Self {
        self.reading.code = CodeNote::InMessage;
        self
    }

    /// Returns the style of a manner. If nobody has its voice, the usual one speaks unless the manner needs that voice, and
    /// the log says so once.
    pub(crate) fn style_of(&self, manner: &Manner) -> Style {
        let voices = self.speaker.voices();
        let mut usual = self.usual.clone();
        if !voices.iter().any(|voice| voice.id == usual.voice)
            && let Some(first) = first_of(&voices)
        {
            usual.voice.clone_from(&first.id);
        }
        let style = manner.style(&voices, &usual);
        self.missing.note(manner, &style);
        style
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
        // Recordings of people are nobody else's business.
        let known = voices.into_iter().map(|voice| voice.id).filter(|id| !id.starts_with(CLONE_MARK)).collect();
        Err(Error::UnknownVoice { voice: self.style.voice.clone(), known })
    }
}

/// Returns the first voice that nobody recorded.
fn first_of(voices: &[Voice]) -> Option<&Voice> {
    voices.iter().find(|voice| !voice.id.starts_with(CLONE_MARK))
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
    /// Another persona has the conversation, or it has changed: the names by which people call it, and its manner.
    Persona(Vec<String>, Manner),
    /// Whom a reply answers that begins. Without it, it answers the oldest question that has no reply.
    AskedBy(MessageId, PersonId),
    /// How a reply is said that begins. Without it, it is said in the manner of the conversation's persona.
    Manner(MessageId, Manner),
    /// The next piece of a reply. It is said as soon as it completes a sentence.
    Piece(MessageId, String),
    /// The pieces of a reply so far are no part of it.
    Retracted(MessageId),
    /// The whole text of a reply. If no piece of it came before, all of it is said. An empty text ends a reply that broke
    /// off; it may come again.
    Whole(MessageId, String),
    /// Nobody answers the oldest question of this person that has no reply; with `None` the oldest of all.
    Unanswered(Option<PersonId>),
    /// A text that is no reply.
    Say(String),
    /// A text that is no reply, in a manner of its own.
    SayIn(String, Manner),
    /// Stop speaking. Nobody can ask for the rest afterwards.
    Stop,
    /// Be quiet from now on, or talk again. Like [`Request::Stop`], it leaves no rest that goes on.
    Mute(bool),
    /// Nobody can hear the line from now on, or people can again. Until then nothing is said, and nothing goes on later.
    Silence(bool),
}

/// What the engines tell the conversation; give it back with [`crate::Talk::told`].
pub enum Told {
    /// A recognition ended; `None` if it failed.
    Recognised(RecognitionId, Option<Transcript>),
    /// A piece of sound of a sentence.
    Made(u64, Piece),
    /// All sound of a sentence was made.
    SentenceMade(u64),
    /// A sentence cannot be said, or not to its end.
    Failed {
        /// The sentence.
        sentence: u64,
        /// True if it needs its voice, so that no other one says it.
        needs_voice: bool,
    },
    /// The sound for when an answer takes long.
    Bridge(Audio),
}

/// What happens in the conversation.
pub enum Report {
    /// Somebody said something, and began to say it so long ago.
    Said(Said, Duration),
    /// Somebody seems to say something to the bot; the answer can be prepared.
    Expected(Expected),
    /// A reply was not heard to its end, or, if it was cut before and went on, it was. Does not come for
    /// a reply that broke off.
    Heard {
        /// The reply.
        reply: MessageId,
        /// The words that were heard; it may be empty.
        heard: String,
        /// True if that is all of the reply.
        is_whole: bool,
    },
    /// A reply was said as far as this. If it was stopped before and goes on, it is said again with all of it. Does not come
    /// for a reply that broke off.
    Uttered {
        /// The reply.
        reply: MessageId,
        /// The words that were heard; never empty.
        heard: String,
        /// True if that is all of the reply.
        is_whole: bool,
    },
    /// The voice cannot say a reply to its end. Comes once until a sentence is said again.
    Voiceless,
    /// A text is not said to its end, because the voice that must say it cannot. Comes once for each text.
    ChosenVoiceAway,
    /// What somebody said cannot be recognised, because recognition fails. Comes once until it works again.
    CannotHear,
    /// Somebody asked the bot to be quiet from now on, or to talk again.
    Muted(bool),
    /// Nobody else is there.
    Alone,
}

/// Leaves out what people said and heard.
impl std::fmt::Debug for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Said(said, ago) => f.debug_tuple("Said").field(said).field(ago).finish(),
            Self::Expected(expected) => f.debug_tuple("Expected").field(expected).finish(),
            Self::Heard { reply, heard, is_whole } => {
                write!(f, "Heard[{reply}, {} bytes, whole: {is_whole}]", heard.len())
            }
            Self::Uttered { reply, heard, is_whole } => {
                write!(f, "Uttered[{reply}, {} bytes, whole: {is_whole}]", heard.len())
            }
            Self::Voiceless => f.write_str("Voiceless"),
            Self::ChosenVoiceAway => f.write_str("ChosenVoiceAway"),
            Self::CannotHear => f.write_str("CannotHear"),
            Self::Muted(is_muted) => f.debug_tuple("Muted").field(is_muted).finish(),
            Self::Alone => f.write_str("Alone"),
        }
    }
}
