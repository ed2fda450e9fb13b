//! Voice channels: what the engine asks of a platform that has some, and what the platform asks of the engine.

use async_trait::async_trait;
use azera_types::{ChatId, MessageId, PersonId, PersonaId, PlatformId, Text};
use thiserror::Error;

use crate::{HostError, PlatformError, RecordStatus, SentRecording};

/// Why something cannot be done in a voice channel. The texts are for the person who asked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum VoiceError {
    /// The person is in no voice channel that the bot can see.
    #[error("You are in no voice channel that I can see. Join one first.")]
    NotInChannel,
    /// The bot is in no voice channel with the person.
    #[error("I am not in a voice channel with you. `/voice join` brings me there.")]
    NotThere,
    /// The bot talks with others in another channel of the same place.
    #[error("I am talking in another voice channel. `/voice leave` there frees me.")]
    Elsewhere,
    /// The bot lacks a permission.
    #[error(
        "I may not join that voice channel. Give me the permissions View Channel and Connect there, and Speak if it is \
         no stage."
    )]
    NoPermission,
    /// The channel takes no more people.
    #[error("That voice channel is full. Make room for me, or give me the permission Move Members there.")]
    Full,
    /// The bot was not let in, and nobody said why.
    #[error(
        "I was not let into that voice channel in time, and was not told why. Check my permission Connect and how many \
         people the channel takes, then try `/voice join` again."
    )]
    Refused,
    /// Somebody moved the bot, threw it out or let it leave before it was in.
    #[error(
        "I did not stay in that voice channel: before I was connected, I was moved or disconnected, or left. \
         `/voice join` tries again."
    )]
    Interrupted,
    /// Nobody can hear the bot there.
    #[error(
        "I say nothing, because nobody can hear me in that voice channel: a moderator muted me, I may not speak there, or \
         everybody there is deafened."
    )]
    Silenced,
    /// The bot was asked to be quiet there.
    #[error("I am muted in that voice channel, so I say nothing. `/voice unmute` lets me talk again.")]
    Muted,
    /// Nothing speaks with the chosen voice any more.
    #[error(
        "That voice is not here any more. `/voice say TEXT` says it with my own, and `/voice samples` lists recordings."
    )]
    NoVoice,
    /// The captions that a button belongs to run no longer.
    #[error("These captions have ended.")]
    CaptionsEnded,
    /// The recording that a button belongs to runs no longer.
    #[error("This recording has ended.")]
    RecordingEnded,
    /// Speech does not work on this machine; the text says why and what to do.
    #[error("{0}")]
    Unavailable(String),
}

/// A voice channel that the bot came into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinedCall {
    /// Its name.
    pub name: String,
    /// True if the bot can ask people there whether it may hear them.
    pub may_ask: bool,
}

/// The state of a voice channel with the bot in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoiceStatus {
    /// The chat of the call. Somebody in it may ask from the text chat of another voice channel.
    pub voice_chat: ChatId,
    /// People in the channel, without bots.
    pub people: usize,
    /// Packets of people who consented.
    pub packets_heard: u64,
    /// Packets that were dropped before decoding, because the person did not consent.
    pub packets_dropped: u64,
    /// Packets that were decoded.
    pub packets_decoded: u64,
}

/// What somebody wants of the captions or of the recording of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallWish {
    /// To know whether it runs.
    Show,
    /// That it begins. Captions stand in the text channel where they ask; a recording begins once everybody agreed.
    On,
    /// That it ends.
    Off,
    /// To be in it. With a name, only in the one of that name: see [`CaptionStatus::name`] and
    /// [`RecordStatus::name`](crate::RecordStatus::name).
    Agree(Option<String>),
    /// Not to be in it.
    Refuse,
}

impl CallWish {
    /// Reads the words behind a command; `None` if they say nothing of the kind.
    pub fn read(words: &str) -> Option<Self> {
        Some(match words {
            "" => Self::Show,
            "on" => Self::On,
            "off" => Self::Off,
            "yes" => Self::Agree(None),
            "no" => Self::Refuse,
            _ => Self::Agree(Some(words.strip_prefix("yes ")?.trim().to_owned())),
        })
    }
}

/// Captions of a call: its words, as they are said, in a text channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptionStatus {
    /// Names these captions, also in a button that agrees to them and to no others.
    pub name: String,
    /// The name of the person who turned them on.
    pub by: String,
    /// Where they stand, as the platform links it.
    pub place: String,
    /// How many people agreed to them.
    pub people: usize,
    /// True if the words of the person who asks stand in them.
    pub shows_yours: bool,
}

/// The voice channels of a platform. `chat` is where the person asks, and `person` who asks.
#[async_trait]
pub trait VoiceChannels: Send + Sync {
    /// Returns the chat of the voice channel that the person is in, or else of the voice channel where they ask. What is
    /// said in a voice channel is a chat of its own, apart from what is written there.
    async fn chat_of(&self, chat: &ChatId, person: &PersonId) -> Option<ChatId>;

    /// Returns the text chat of the voice channel `voice_chat`. Whoever answers there also talks in the voice channel.
    fn text_chat_of(&self, voice_chat: &ChatId) -> Option<ChatId>;

    /// Tells that the personas of a text chat, or how they speak, have changed. A call in a voice channel with this text
    /// chat takes that in.
    async fn personas_changed(&self, chat: &ChatId);

    /// Gives a person in danger the help lines of a reply that cannot be given in `voice_chat`, because they left it or
    /// because somebody came who may not read the question. So they may be there, and a reply may follow all the same. The
    /// lines say nothing about anybody. `question` is the message that is answered: the same lines for it are written once
    /// within a short time. Does nothing if the chat is no voice channel.
    ///
    /// # Errors
    /// The platform cannot be reached.
    async fn send_help(
        &self,
        question: &MessageId,
        voice_chat: &ChatId,
        person: &PersonId,
        lines: &str,
    ) -> Result<(), PlatformError>;

    /// Joins the voice channel that the person is in, and asks those who are there whether it may hear them.
    async fn join(&self, chat: &ChatId, person: &PersonId) -> Result<JoinedCall, VoiceError>;

    /// Leaves the voice channel that the person is in.
    async fn leave(&self, chat: &ChatId, person: &PersonId) -> Result<(), VoiceError>;

    /// Says a text in the voice channel that the person is in.
    ///
    /// # Errors
    /// The bot is not there with them, it is muted, or nobody can hear it.
    async fn say(&self, chat: &ChatId, person: &PersonId, text: &str) -> Result<(), VoiceError>;

    /// Says a text there in a manner of its own.
    ///
    /// # Errors
    /// Those of [`VoiceChannels::say`], and [`VoiceError::NoVoice`] if nobody has the voice that it needs.
    async fn say_in(&self, chat: &ChatId, person: &PersonId, text: &str, manner: CallManner) -> Result<(), VoiceError>;

    /// Is quiet from now on in the voice channel that the person is in, or talks again.
    async fn mute(&self, chat: &ChatId, person: &PersonId, is_muted: bool) -> Result<(), VoiceError>;

    /// Stops speaking in the voice channel that the person is in.
    async fn stop(&self, chat: &ChatId, person: &PersonId) -> Result<(), VoiceError>;

    /// Tells that a person decided whether they may be heard in the voice channel `voice_chat`. Returns whether they are
    /// heard from now on: while captions run, only people who agreed to them are.
    async fn decided(&self, voice_chat: &ChatId, person: &PersonId, may_be_heard: bool) -> bool;

    /// Shows or changes the captions of the call in the voice channel that the person is in. Returns `None` if none run
    /// afterwards. Agreement ends with the captions, and what the person chose for other times stays as it is.
    async fn captions(
        &self,
        chat: &ChatId,
        person: &PersonId,
        wish: CallWish,
    ) -> Result<Option<CaptionStatus>, VoiceError>;

    /// Takes back what is shown of messages in voice channels, because they were forgotten. Other messages are left out.
    async fn withdraw(&self, gone: &[(ChatId, MessageId)]);

    /// Shows or changes the recording of the call in the voice channel that the person is in. Returns `None` if none runs
    /// afterwards. Agreement ends with the recording.
    async fn record(
        &self,
        chat: &ChatId,
        person: &PersonId,
        wish: CallWish,
    ) -> Result<Option<RecordStatus>, VoiceError>;

    /// Returns whether a person can see a voice channel now.
    async fn sees(&self, voice_chat: &ChatId, person: &PersonId) -> bool;

    /// Sends a recording to a person alone, as direct messages. Returns how many of its files they got; 0 if they take
    /// no direct messages.
    ///
    /// # Errors
    /// The platform cannot be reached, and they got nothing.
    async fn send_recording(&self, recording: SentRecording<'_>) -> Result<usize, PlatformError>;

    /// Tells that everything of a person is forgotten. They agree to no recording any more.
    async fn forgotten(&self, person: &PersonId);

    /// Returns the state of the voice channel that the person is in.
    async fn status(&self, chat: &ChatId, person: &PersonId) -> Result<VoiceStatus, VoiceError>;
}

/// The personas of a voice channel.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallPersona {
    /// Names by which people call those that answer there. The first is the name of the one that usually does.
    pub names: Vec<String>,
    /// How that one speaks.
    pub manner: CallManner,
}

/// How a persona speaks in a voice channel.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallManner {
    /// Id of its voice. Without one, or where nobody has it, the usual voice speaks.
    pub voice: Option<String>,
    /// Whether no other voice may speak where nobody has this one.
    pub needs_voice: bool,
    /// Pace as a factor of the voice's own.
    pub pace: Option<f32>,
    /// Pitch as a factor of the voice's own.
    pub pitch: Option<f32>,
    /// Liveliness as a factor of the voice's own.
    pub liveliness: Option<f32>,
    /// BCP 47 tag of the language that it speaks, and that people probably speak with it.
    pub language: Option<String>,
}

/// What somebody seems to be saying.
#[derive(Clone, PartialEq, Eq)]
pub struct ExpectedMessage {
    /// The chat of the voice channel.
    pub chat: ChatId,
    /// Who speaks.
    pub person: PersonId,
    /// The displayed name.
    pub name: String,
    /// The words so far; empty at the beginning.
    pub text: Text,
}

/// Leaves out what people say.
impl std::fmt::Debug for ExpectedMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExpectedMessage").field("chat", &self.chat).field("bytes", &self.text.len()).finish()
    }
}

/// What a platform with voice channels asks of the engine, besides [`crate::Host`].
#[async_trait]
pub trait VoiceHost: Send + Sync {
    /// Returns the personas of a voice channel: those of the channel's text chat, if it has one.
    async fn call_persona(&self, platform: &PlatformId, voice_chat: &ChatId) -> Result<CallPersona, HostError>;

    /// Returns how a persona speaks in a voice channel.
    async fn call_manner(
        &self,
        platform: &PlatformId,
        voice_chat: &ChatId,
        persona: &PersonaId,
    ) -> Result<CallManner, HostError>;

    /// Returns whether a person may be heard in a voice channel; `None` if they were never asked there. A person who
    /// was asked and did not answer may not be heard.
    async fn may_be_heard(&self, voice_chat: &ChatId, person: &PersonId) -> Result<Option<bool>, HostError>;

    /// Records that a person was asked, so that they are not asked again.
    async fn was_asked(&self, voice_chat: &ChatId, person: &PersonId) -> Result<(), HostError>;

    /// Records how much of a reply was heard. The rest of it is gone from the history, and the reply is not generated to
    /// its end. `is_whole` is true for a reply that was stopped before, went on, and was heard to its end. That nothing
    /// was heard never takes back what was heard before.
    async fn heard(&self, reply: &MessageId, heard: Text, is_whole: bool) -> Result<(), HostError>;

    /// Returns true if a message stands in the record, and false if it was forgotten; `None` if the record does not know
    /// it.
    async fn stands(&self, message: &MessageId) -> Result<Option<bool>, HostError>;

    /// Forgets utterances and replies, as far as they are a person's own or answer one of theirs. Returns how many.
    async fn forget_said(&self, person: &PersonId, said: &[MessageId]) -> Result<usize, HostError>;

    /// Prepares the answer to a message that somebody is saying. Nothing of it is stored or shown.
    async fn expect(&self, platform: &PlatformId, message: ExpectedMessage);
}
