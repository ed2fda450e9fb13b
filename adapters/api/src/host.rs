use async_trait::async_trait;
use azera_types::{
    ChatId, InboundPart, MemoryId, MessageId, Part, PersonId, PersonaId, PlatformId, Scope, Text, Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::{Chart, Holding, HostError, InboundEvent, OptionKind, Receipt, State};

/// A chat of an adapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatInfo {
    /// The chat's id.
    pub chat: ChatId,
    /// The name that people see, if it has one.
    pub title: Option<String>,
    /// The persona of a new chat; the configured default if `None`. Known chats keep theirs.
    pub persona: Option<PersonaId>,
}

/// A memory as shown to people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// The memory's id.
    pub memory: MemoryIdText,
    /// Its kind.
    pub kind: String,
    /// The scope it comes from.
    pub scope: Scope,
    /// Its source messages, most specific first.
    pub sources: Vec<MessageId>,
    /// Fused score; larger is better; comparable within one recall only.
    pub score: f32,
    /// Names of the signals that found it.
    pub signals: Vec<String>,
    /// Its text, cut to the snippet length.
    pub text: Text,
    /// From when until when it holds.
    #[serde(flatten)]
    pub holding: Holding,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Searched {
    /// The memories, best first.
    pub hits: Vec<Hit>,
    /// Names of the parts of recall that did not work, such as `semantic`; the hits come from the others.
    pub missing: Vec<String>,
}

/// A [`MemoryId`] as people see it (`m42`).
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

/// Token usage and timing of a reply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnUsage {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Prompt tokens reused from the cache.
    pub cached_tokens: usize,
    /// Prompt tokens evaluated for this reply.
    pub evaluated_tokens: usize,
    /// Generated tokens.
    pub completion_tokens: usize,
    /// Milliseconds until the first token, with waiting.
    pub ttft_ms: f64,
    /// Generated tokens per second.
    pub tokens_per_s: f64,
}

/// A turn with a reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// The reply's id.
    pub reply: MessageId,
    /// The answered message.
    pub to: MessageId,
    /// The chat.
    pub chat: ChatId,
    /// The persona that answered.
    pub persona: PersonaId,
    /// The text of the reply.
    pub text: Text,
    /// The mind after the reply.
    pub state: State,
    /// Token usage and timing.
    pub usage: TurnUsage,
    /// The memories in the prompt.
    pub recalled: Vec<Hit>,
}

/// Why a message gets no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// It is not addressed to the bot.
    NotAddressed,
    /// It mentions or answers another person.
    MeantForAnother,
    /// The chat is set to never answer.
    Muted,
    /// The same message was received before.
    Duplicate,
    /// It has no text.
    Empty,
    /// It was forgotten before its reply was stored.
    Forgotten,
}

impl SkipReason {
    /// Returns the reason in words.
    pub fn why(self) -> &'static str {
        match self {
            Self::NotAddressed => "not addressed",
            Self::MeantForAnother => "meant for another person",
            Self::Muted => "the chat is set to silent",
            Self::Duplicate => "already taken in",
            Self::Empty => "nothing to answer",
            Self::Forgotten => "the message was forgotten",
        }
    }
}

/// The result of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It was answered, and the reply was delivered.
    Replied(Box<Turn>),
    /// It was not answered. It is stored and remembered, unless it was forgotten.
    Skipped(SkipReason),
}

/// A command in a chat, as typed, with the slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// The chat.
    pub chat: ChatId,
    /// The person.
    pub person: PersonId,
    /// The person's displayed name.
    pub name: String,
    /// The whole line.
    pub text: Text,
    /// The message that the person selected: a reply, or an answered message. `None` means the last one. `/why`,
    /// `/regenerate`, `/swipe`, `/forget`, `/branch NAME`, `/imagine`, `/picture` and `/remember` without words use it. A
    /// message of another chat, or one that may not be read here now, counts as missing.
    pub about: Option<MessageId>,
    /// A picture that came with the line. `/imagine` and `/picture remix` start from it.
    pub picture: Option<GivenPicture>,
}

/// A PNG, JPEG or WebP picture that a person gives with a command. `Debug` shows neither description nor content.
#[derive(Clone, PartialEq, Eq)]
pub struct GivenPicture {
    /// What the person wrote about it.
    pub description: Option<Text>,
    /// The file, of at most [`crate::MAX_GIVEN_PICTURE_BYTES`].
    pub content: FileContent,
}

impl std::fmt::Debug for GivenPicture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GivenPicture[{:?}]", self.content)
    }
}

/// The answer to a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandAnswer {
    /// True if the command succeeded.
    pub ok: bool,
    /// The text in Markdown. Only the person who asked may see it.
    pub text: String,
    /// The chat to continue in, for platforms that can switch chats (`/new`).
    pub go_to: Option<ChatId>,
    /// True if the person wants to leave (`/quit`).
    pub leave: bool,
    /// Suggested next commands, for platforms with buttons; the text names them, too.
    pub choices: Vec<Choice>,
    /// The numbers in the answer, for platforms that can draw; the text contains them, too.
    pub chart: Option<Chart>,
    /// Files that come with the text. Only the person who asked may see them.
    pub files: Vec<AnswerFile>,
    /// A form with the values that the command can change, for platforms with forms; the text says how to type them.
    pub form: Option<CommandForm>,
}

/// A form that completes a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandForm {
    /// Its title, at most 45 characters.
    pub title: String,
    /// The line that the values complete, at most 80 bytes.
    pub line: String,
    /// Its fields, at most 5. The first is text behind the line; the others are written `--name value`.
    pub fields: Vec<FormField>,
}

/// A field of a form. `Debug` shows no value.
#[derive(Clone, PartialEq, Eq)]
pub struct FormField {
    /// The name of the option.
    pub name: &'static str,
    /// What it is, at most 45 characters.
    pub label: &'static str,
    /// The value now.
    pub value: String,
    /// The most characters of a value, at most 4,000.
    pub max_chars: usize,
    /// The value of an empty field; `None` if it must not be empty.
    pub when_empty: Option<&'static str>,
}

impl std::fmt::Debug for FormField {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FormField({}, {} bytes)", self.name, self.value.len())
    }
}

/// A button with the command line that it sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The label.
    pub label: String,
    /// The line with its slash, at most 80 bytes, so that it fits into a button's id.
    pub line: String,
}

/// A request for suggestions while a person types an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutocompleteRequest {
    /// The chat.
    pub chat: ChatId,
    /// The person.
    pub person: PersonId,
    /// The person's displayed name.
    pub name: String,
    /// The kind of the option.
    pub kind: OptionKind,
    /// The text typed so far.
    pub typed: String,
}

/// A suggested value, for the person who types only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutocompleteOption {
    /// The label, one line.
    pub label: String,
    /// The value in the command.
    pub value: String,
}

/// Most suggestions for one request.
pub const MAX_AUTOCOMPLETE_OPTIONS: usize = 25;

/// A message after an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The whole text, with captions and the descriptions of its parts.
    pub text: Text,
    /// All its parts. Those of the message before are let go of.
    pub parts: Vec<InboundPart>,
    /// When it was edited, according to the platform.
    pub at: Timestamp,
}

/// A file in an answer. `Debug` shows neither name nor content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerFile {
    /// Its name, type and description.
    pub part: Part,
    /// Its content.
    pub content: FileContent,
}

/// The bytes of a file. `Debug` shows only how many they are.
#[derive(Clone, PartialEq, Eq)]
pub struct FileContent(pub Vec<u8>);

impl std::fmt::Debug for FileContent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FileContent[{} bytes]", self.0.len())
    }
}

/// A search of the memories, without a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchRequest {
    /// The chat, which decides what may be shown.
    pub chat: ChatId,
    /// The person.
    pub person: PersonId,
    /// The text to search for.
    pub query: Text,
    /// Most hits; the persona's own limit if `None`.
    pub limit: Option<usize>,
    /// Search only what was known at this time, such as `2026-06-30`, `2026-06-30T10:00`, `June` or `last month`. Days and
    /// times of day without an offset from UTC are those of the place.
    pub as_of: Option<Text>,
}

/// The interface of the engine that adapters call. Every call names the platform that the adapter was attached with.
#[async_trait]
pub trait Host: Send + Sync {
    /// Stores what happened on a platform and flushes it. This is the one way in. The receipt says what was stored, and
    /// waits for the reply if the caller wants that: a platform that delivers messages in order must know how far they
    /// are, and goes on.
    ///
    /// # Errors
    ///
    /// Fails if nothing could be stored. What fails later is an error of [`Receipt::outcome`].
    async fn submit(&self, platform: &PlatformId, event: InboundEvent) -> Result<Receipt, HostError>;

    /// Runs a command.
    async fn command(&self, platform: &PlatformId, line: CommandLine) -> Result<CommandAnswer, HostError>;

    /// Returns suggestions for an option, at most [`MAX_AUTOCOMPLETE_OPTIONS`]; none for a person who cannot read the
    /// chat.
    async fn autocomplete(
        &self,
        platform: &PlatformId,
        line: AutocompleteRequest,
    ) -> Result<Vec<AutocompleteOption>, HostError>;

    /// Searches the memories; there is no reply, and nothing is remembered. No hits for a person who cannot read the
    /// chat.
    async fn search(&self, platform: &PlatformId, line: SearchRequest) -> Result<Searched, HostError>;

    /// Waits until all work is done: turns answered, replies delivered, memories indexed, and due background jobs
    /// finished.
    async fn settle(&self) -> Result<(), HostError>;
}
