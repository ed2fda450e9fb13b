use std::collections::BTreeSet;

use async_trait::async_trait;
use azera_types::{Author, ChatId, MemoryId, MessageId, PersonId, PersonaId, PlatformId, Text, Timestamp};

use crate::{HostError, State};

/// Who reads, and where. The chat decides what may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The chat.
    pub chat: ChatId,
    /// The person.
    pub person: PersonId,
}

/// A persona that a place may use.
#[derive(Clone, PartialEq, Eq)]
pub struct PersonaSummary {
    /// Its identity, by which chats choose it.
    pub id: PersonaId,
    /// The displayed name.
    pub name: String,
    /// True for a role that people play.
    pub is_user: bool,
    /// The first line of what it is for.
    pub intent: String,
    /// The number of its version.
    pub version: u32,
    /// When this version was stored.
    pub at: Timestamp,
    /// Its whole file.
    pub markdown: String,
}

impl std::fmt::Debug for PersonaSummary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PersonaSummary").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A chat that a person can read.
#[derive(Clone, PartialEq, Eq)]
pub struct ChatSummary {
    /// The chat.
    pub chat: ChatId,
    /// The name that people see.
    pub title: Option<String>,
    /// The identity of the persona that answers.
    pub persona: PersonaId,
    /// The name of the current branch.
    pub branch: String,
    /// Its group.
    pub group: Option<String>,
    /// Its tags.
    pub tags: BTreeSet<String>,
    /// When it was first seen.
    pub created_at: Timestamp,
    /// When the newest message that may be shown was said.
    pub last_at: Option<Timestamp>,
}

impl std::fmt::Debug for ChatSummary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChatSummary").field("chat", &self.chat).finish_non_exhaustive()
    }
}

/// A branch of a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchSummary {
    /// Its name, unique within the chat.
    pub name: String,
    /// The message after which it begins.
    pub forked_from: Option<MessageId>,
    /// When it was created.
    pub created_at: Timestamp,
}

/// A message of a chat.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownMessage {
    /// Its id.
    pub id: MessageId,
    /// The author.
    pub author: Author,
    /// The text.
    pub text: Text,
    /// The words of a voice message without the mark before them; `None` for other messages, and for one that was not heard.
    pub spoken: Option<Text>,
    /// When it was said.
    pub at: Timestamp,
    /// The message that it answers, if it is a reply.
    pub answers: Option<MessageId>,
}

/// Which writings to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WritingKind {
    /// Dreams.
    Dream,
    /// Journal entries and the diary.
    Journal,
    /// Short creative pieces.
    Piece,
}

/// A text that a persona wrote in the background.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownWriting {
    /// Its id.
    pub id: MemoryId,
    /// Its kind, such as `dream` or `diary`.
    pub kind: &'static str,
    /// The text.
    pub text: Text,
    /// The persona's mood at that time.
    pub mood: Option<String>,
    /// Words from its sources that it took up.
    pub themes: Vec<String>,
    /// When it was written.
    pub at: Timestamp,
}

/// A chat model that answers, or could.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSummary {
    /// Its name.
    pub name: String,
    /// One line of description for people.
    pub title: String,
    /// Whether it is on this machine, or on a server that Azera uses.
    pub is_installed: bool,
    /// The size of its file; `None` if it has none here.
    pub bytes: Option<u64>,
    /// How much of it is downloaded, in percent, during a download.
    pub fetched: Option<u8>,
}

/// How a persona feels in a place.
#[derive(Debug, Clone, PartialEq)]
pub struct MindSummary {
    /// The persona.
    pub persona: PersonaId,
    /// Mood and energy; empty before its first reply there.
    pub state: State,
    /// When it last answered there.
    pub last_exchange: Option<Timestamp>,
    /// When it last dreamed.
    pub last_dream: Option<Timestamp>,
}

/// The engine's reads for platforms that show more than replies, such as lists of chats. Like [`crate::Host`], every read
/// shows what the person may read in the chat at that moment, and nothing to a person who cannot read the chat.
#[async_trait]
pub trait Reader: Send + Sync {
    /// Returns the personas that the chat may use, those of its realm first.
    async fn personas(&self, platform: &PlatformId, at: Reading) -> Result<Vec<PersonaSummary>, HostError>;

    /// Returns the platform's chats that the person can read, and that everybody who reads in this chat may know of. The
    /// newest come first.
    async fn chats(&self, platform: &PlatformId, at: Reading) -> Result<Vec<ChatSummary>, HostError>;

    /// Returns those of [`Reader::chats`] whose title contains all of these words, or in which a message does. A word may be
    /// the beginning of a longer one. The engine looks at the newest 1,000 such messages for each persona.
    async fn find_chats(&self, platform: &PlatformId, at: Reading, words: &Text)
    -> Result<Vec<ChatSummary>, HostError>;

    /// Returns the chat itself; `None` if it is not known, or if the person cannot read it.
    async fn chat(&self, platform: &PlatformId, at: Reading) -> Result<Option<ChatSummary>, HostError>;

    /// Returns the newest `limit` messages of the chat's current branch, oldest first.
    async fn messages(&self, platform: &PlatformId, at: Reading, limit: usize) -> Result<Vec<ShownMessage>, HostError>;

    /// Returns the branches of the chat, oldest first.
    async fn branches(&self, platform: &PlatformId, at: Reading) -> Result<Vec<BranchSummary>, HostError>;

    /// Returns the newest `limit` writings of the persona that answers in the chat, newest first.
    async fn writings(
        &self,
        platform: &PlatformId,
        at: Reading,
        kind: WritingKind,
        limit: usize,
    ) -> Result<Vec<ShownWriting>, HostError>;

    /// Returns how the persona that answers in the chat feels there. `None` for a person who cannot read the chat.
    async fn mind(&self, platform: &PlatformId, at: Reading) -> Result<Option<MindSummary>, HostError>;

    /// Returns the known chat models. They are no secret, and the same everywhere.
    async fn models(&self) -> Result<Vec<ModelSummary>, HostError>;
}
