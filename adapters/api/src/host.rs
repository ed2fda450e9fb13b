use async_trait::async_trait;
use azera_types::{
    ChatId, Inbound, MemoryId, MessageId, PersonId, PersonaId, PlatformId, RealmId, Scope, Text, Timestamp,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Chart, OptionKind, State};

/// Why the core could not do what an adapter asked.
#[derive(Debug, Error)]
pub enum HostError {
    /// Too much is waiting; the message was not taken in. Ask again later.
    #[error("too many messages are waiting")]
    Busy,
    /// The core is shutting down; the message was not taken in.
    #[error("Azera is shutting down")]
    Stopping,
    /// The chat is unknown or the person cannot read it.
    #[error("that person cannot write in that chat")]
    NotAllowed,
    /// There is no room on the disk. What was taken in before is safe; this message may have to be said again.
    #[error("there is no room left on the disk; what was said before is safe, and I go on when there is room again")]
    Full,
    /// Something failed inside; the message, if it was one, is in the record and will be taken up again at the next
    /// start.
    #[error("{0}")]
    Failed(String),
}

/// A chat an adapter serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatInfo {
    /// Which.
    pub chat: ChatId,
    /// The name people see, if it has one.
    pub title: Option<String>,
    /// The persona that answers there until somebody chooses another; the configured one if `None`. Counts only when
    /// the chat is first seen.
    pub persona: Option<PersonaId>,
}

/// A remembered thing as shown to the outside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// Which memory.
    pub memory: MemoryIdText,
    /// What kind of memory.
    pub kind: String,
    /// Where it comes from.
    pub scope: Scope,
    /// The messages it rests on, most specific first.
    pub sources: Vec<MessageId>,
    /// Fused score; larger is better, comparable within one recall only.
    pub score: f32,
    /// Which signals found it.
    pub signals: Vec<String>,
    /// Its text, cut to the snippet length.
    pub text: Text,
}

/// A [`MemoryId`] written the way people see it (`m42`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MemoryIdText(pub MemoryId);

impl From<MemoryIdText> for String {
    fn from(id: MemoryIdText) -> Self {
        id.0.to_string()
    }
}

impl TryFrom<String> for MemoryIdText {
    type Error = azera_types::IdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}

/// What a reply cost the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnUsage {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Of these, reused from the cache.
    pub cached_tokens: usize,
    /// Of these, evaluated for this reply.
    pub evaluated_tokens: usize,
    /// Tokens generated.
    pub completion_tokens: usize,
    /// Milliseconds until the first token, waiting included.
    pub ttft_ms: f64,
    /// Generated tokens a second.
    pub tokens_per_s: f64,
}

/// A turn that was answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// The reply's id.
    pub reply: MessageId,
    /// The message answered.
    pub to: MessageId,
    /// Where.
    pub chat: ChatId,
    /// Who answered.
    pub persona: PersonaId,
    /// What was said.
    pub text: Text,
    /// The mind after it.
    pub state: State,
    /// What it cost.
    pub usage: TurnUsage,
    /// The memories that stood in the prompt.
    pub recalled: Vec<Hit>,
}

/// Why a message was not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// It was meant for somebody else.
    NotAddressed,
    /// It mentions or answers another person.
    MeantForAnother,
    /// The chat's setting says never.
    Muted,
    /// The same message was taken in before.
    Duplicate,
    /// It has no text.
    Empty,
}

impl SkipReason {
    /// The reason in words.
    pub fn why(self) -> &'static str {
        match self {
            Self::NotAddressed => "not addressed",
            Self::MeantForAnother => "meant for another person",
            Self::Muted => "the chat is set to silent",
            Self::Duplicate => "already taken in",
            Self::Empty => "nothing to answer",
        }
    }
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It was answered, and the answer delivered.
    Replied(Box<Turn>),
    /// It was recorded and remembered, not answered.
    Skipped(SkipReason),
}

/// A command a person gave in a chat, as typed, with its leading slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// Where.
    pub chat: ChatId,
    /// By whom.
    pub person: PersonId,
    /// The name shown.
    pub name: String,
    /// The whole line.
    pub text: Text,
    /// The message it is about, where the platform lets people point at one: a reply, or a message that was answered. The
    /// last one if `None`. Heeded by `/why`, `/regenerate`, `/swipe`, `/forget`, `/branch NAME` and `/remember` without words;
    /// one that is not of this chat, or may not be read here now, counts as not there.
    pub about: Option<MessageId>,
}

/// What a command answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandAnswer {
    /// Whether it did what it was told.
    pub ok: bool,
    /// What to show, in Markdown, to the person who asked and nobody else.
    pub text: String,
    /// The chat to go on in, for platforms whose person can move (`/new`).
    pub go_to: Option<ChatId>,
    /// The person wants to leave (`/quit`).
    pub leave: bool,
    /// What the person may say to it, for platforms with buttons; the text names the lines, too.
    pub choices: Vec<Choice>,
    /// The numbers in it, for platforms that can draw; the text tells them, too.
    pub chart: Option<Chart>,
}

/// Something to choose: what a button says, and the line that it gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// What stands on it.
    pub label: String,
    /// The line, with its leading slash; short enough for an id (80 bytes).
    pub line: String,
}

/// What somebody has typed of an option, for platforms that offer what it may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutocompleteRequest {
    /// Where.
    pub chat: ChatId,
    /// Who types.
    pub person: PersonId,
    /// The name shown.
    pub name: String,
    /// What is typed.
    pub kind: OptionKind,
    /// As far as it is typed.
    pub typed: String,
}

/// Something that an option may be, for the person who types it alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutocompleteOption {
    /// What is shown, in one line.
    pub label: String,
    /// What stands in the command.
    pub value: String,
}

/// What is offered at most.
pub const MAX_AUTOCOMPLETE_OPTIONS: usize = 25;

/// A recall asked for by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchRequest {
    /// In which chat; decides what may be shown.
    pub chat: ChatId,
    /// By whom.
    pub person: PersonId,
    /// What is looked for.
    pub query: Text,
    /// Hits at most; the persona's own limit if `None`.
    pub limit: Option<usize>,
}

/// What adapters may ask of the core. Every call names its platform by the one it was attached with.
#[async_trait]
pub trait Host: Send + Sync {
    /// Makes a chat known; a chat known already keeps its settings.
    async fn open_chat(&self, platform: &PlatformId, info: ChatInfo) -> Result<(), HostError>;

    /// Takes in a message. Returns when it has been answered and the answer delivered, or left unanswered; the message
    /// is in the record, flushed, before anything else happens.
    async fn message(&self, platform: &PlatformId, inbound: Inbound) -> Result<Outcome, HostError>;

    /// Takes in a message and returns as soon as it is in the record, flushed: `true`, or `false` if it was there already.
    /// It is answered afterwards by itself, in its turn. For platforms that hand in what comes in order and must know how far
    /// they are.
    async fn take_in(&self, platform: &PlatformId, inbound: Inbound) -> Result<bool, HostError>;

    /// A person changed a message: the record follows, and if it was answered the answer is made anew. `None` if the
    /// message is unknown.
    async fn edited(
        &self,
        platform: &PlatformId,
        id: &MessageId,
        text: Text,
        at: Timestamp,
    ) -> Result<Option<Outcome>, HostError>;

    /// A person deleted a message: it is forgotten, and the replies built on it with it.
    async fn deleted(&self, platform: &PlatformId, id: &MessageId) -> Result<(), HostError>;

    /// What a message brought with it besides its text, as the rest of a long file: remembered as part of it, shown where it may
    /// be shown, and gone when it is. For messages that were taken in; an edited one has to bring it again. `version` is the edit
    /// it came with, by the time that [`Host::edited`] is told; what an earlier version brought than the one that stands is words
    /// taken back, and not remembered.
    async fn attached(
        &self,
        platform: &PlatformId,
        message: &MessageId,
        version: Option<Timestamp>,
        pieces: Vec<Text>,
    ) -> Result<(), HostError>;

    /// The bot belongs to a realm no more: all that was said in its public chats and in `chats`, which lie in it, is forgotten.
    async fn left(&self, platform: &PlatformId, realm: &RealmId, chats: Vec<ChatId>) -> Result<(), HostError>;

    /// Runs a command.
    async fn command(&self, platform: &PlatformId, line: CommandLine) -> Result<CommandAnswer, HostError>;

    /// What somebody may mean by what they type, at most [`MAX_AUTOCOMPLETE_OPTIONS`]; nothing for a person who cannot read the chat.
    async fn autocomplete(
        &self,
        platform: &PlatformId,
        line: AutocompleteRequest,
    ) -> Result<Vec<AutocompleteOption>, HostError>;

    /// Recall alone: no reply, nothing remembered. Nothing for a person who cannot read the chat.
    async fn search(&self, platform: &PlatformId, line: SearchRequest) -> Result<Vec<Hit>, HostError>;

    /// Waits until nothing is under way any more: turns answered, replies delivered, memories indexed, and every job
    /// done that is due by now.
    async fn settle(&self) -> Result<(), HostError>;
}
