//! The rows of the record as they are stored. They are JSON, so that a newer version can read an older record.

use std::collections::{BTreeMap, BTreeSet};

use azera_types::{
    Author, ChatId, MemoryId, MessageId, Part, PersonId, PersonaId, PlatformId, RealmId, Scope, Text, Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::imports::ImportedChat;
pub use crate::ran_command::RanCommand;

/// A scope that a text is built on besides its own, and how far back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "StoredSourceScope")]
pub struct SourceScope {
    /// The scope.
    pub scope: Scope,
    /// The time of the oldest source from that scope.
    pub from: Timestamp,
}

impl SourceScope {
    /// Returns true if every reader allowed by `self` is also allowed by `other`.
    pub(crate) fn implies(&self, other: &Self) -> bool {
        self.scope == other.scope && self.from <= other.from
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum StoredSourceScope {
    Since {
        scope: Scope,
        from: Timestamp,
    },
    /// Layout 1 did not store how far back, so this counts from the beginning.
    Whole(Scope),
}

impl From<StoredSourceScope> for SourceScope {
    fn from(stored: StoredSourceScope) -> Self {
        match stored {
            StoredSourceScope::Since { scope, from } => Self { scope, from },
            StoredSourceScope::Whole(scope) => Self { scope, from: Timestamp::MIN },
        }
    }
}

/// A message of a person or a persona. The messages of a chat form a tree through `parent`; the chat's head marks the
/// current path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageRow {
    /// Its id.
    pub id: MessageId,
    /// The chat it was said in.
    pub chat: ChatId,
    /// Its number in the order of arrival over all chats.
    pub seq: u64,
    /// The message before it on its branch.
    pub parent: Option<MessageId>,
    /// Number of messages before it on its branch.
    pub depth: u64,
    /// The author.
    pub author: Author,
    /// The text.
    pub text: Text,
    /// When it was said: by the platform's clock for a person's message, by the local clock for a reply.
    pub at: Timestamp,
    /// The message that it replies to on the platform.
    pub reply_to: Option<MessageId>,
    /// The message that it answers, if it is a reply.
    pub answers: Option<MessageId>,
    /// The persona that served the chat then. Only this persona may read the message again.
    pub persona: PersonaId,
    /// The scope it was said in.
    pub scope: Scope,
    /// The other scopes that it was built on, if it is a reply.
    #[serde(default, rename = "needs", skip_serializing_if = "Vec::is_empty")]
    pub source_scopes: Vec<SourceScope>,
    /// True if it says something new that is worth recalling.
    #[serde(default)]
    pub memorable: bool,
    /// When it was last edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_at: Option<Timestamp>,
    /// When it came here, if that was not when it was said: when it was imported. Rows of older versions lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub came_at: Option<Timestamp>,
    /// Its pictures, recordings and files. Their captions and descriptions are part of the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// True if it was emptied because its import was undone. It may then be imported again, under another id.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undone: bool,
    /// What a coding assistant ran for it, if it was imported from a session with one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ran: Vec<RanCommand>,
}

/// When the bot answers in a chat with several people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answering {
    /// When a message mentions it, replies to it or calls it by name.
    #[default]
    Addressed,
    /// Every message that is not addressed to somebody else.
    Always,
    /// Never.
    Never,
}

/// When replies in a chat are also spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VoiceReplies {
    /// When a voice message is answered.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// A chat with its settings and its head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatRow {
    /// Its id.
    pub id: ChatId,
    /// The platform that the chat is on.
    pub platform: PlatformId,
    /// The name that people see.
    pub title: Option<String>,
    /// The identity of the persona that answers.
    pub persona: PersonaId,
    /// When the persona answers; `None` is the configured default.
    pub answering: Option<Answering>,
    /// The name of the current branch.
    pub branch: String,
    /// The newest message of the current branch.
    pub head: Option<MessageId>,
    /// When the chat was first seen.
    pub created_at: Timestamp,
    /// Time of the newest message.
    pub last_at: Timestamp,
    /// The group that somebody put it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Its tags, sorted.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
    /// Identities of the invited personas, which answer when somebody calls them by name.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub invited: BTreeSet<PersonaId>,
    /// When replies are also spoken; `None` is the configured default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voice_replies: Option<VoiceReplies>,
    /// The voices that were chosen here, by the identities of the personas that speak with them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub voices: BTreeMap<PersonaId, String>,
    /// Where it came from, if somebody imported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportedChat>,
}

impl ChatRow {
    /// Returns the settings that remain when everything said in the chat is forgotten, because the platform still has it.
    /// Group and tags go. If its realm is forgotten (`with_realm`), so do title, invitations, chosen voices and origin.
    pub(crate) fn emptied(self, head: Option<MessageId>, with_realm: bool) -> Self {
        let emptied = Self { head, branch: MAIN_BRANCH.into(), group: None, tags: BTreeSet::new(), ..self };
        if !with_realm {
            return emptied;
        }
        let imported = emptied.imported.as_ref().map(|_| ImportedChat::Forgotten);
        Self { title: None, invited: BTreeSet::new(), voices: BTreeMap::new(), imported, ..emptied }
    }

    /// Returns true if a persona answers there, always or by invitation.
    pub fn is_served_by(&self, persona: &PersonaId) -> bool {
        self.persona == *persona || self.invited.contains(persona)
    }
}

/// Name of the first branch of every chat.
pub const MAIN_BRANCH: &str = "main";

/// A branch of a chat that is, or was, not the current one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchRow {
    /// Its name, unique within the chat.
    pub name: String,
    /// Its newest message.
    pub head: Option<MessageId>,
    /// The message after which it begins.
    pub forked_from: Option<MessageId>,
    /// When it was created.
    pub created_at: Timestamp,
}

/// The kind of a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A message of a person.
    Message,
    /// A reply of the persona.
    Reply,
    /// A fact that a person asked the persona to remember, or a chunk of a long file.
    Fact,
    /// An entry that the persona wrote at the end of a conversation.
    Diary,
    /// An entry that the persona wrote at the end of a day.
    Reflection,
    /// A dream of the persona. It is imagined: the persona may quote it, but it never happened.
    Dream,
    /// The persona's working notes of a chat; each chat has only the newest.
    Note,
    /// A short creative piece, imagined like a dream.
    Piece,
    /// A check-in that the persona sent to a person who asked for them.
    CheckIn,
}

/// How the content of a memory came to be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceKind {
    /// A person said it.
    #[serde(rename = "told")]
    Stated,
    /// A persona concluded it from what people said.
    Inferred,
    /// A persona imagined it.
    Imagined,
}

impl EvidenceKind {
    /// Returns the displayed name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stated => "told",
            Self::Inferred => "inferred",
            Self::Imagined => "imagined",
        }
    }
}

impl Kind {
    /// Returns the displayed name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Reply => "reply",
            Self::Fact => "fact",
            Self::Diary => "diary",
            Self::Reflection => "reflection",
            Self::Dream => "dream",
            Self::Note => "note",
            Self::Piece => "piece",
            Self::CheckIn => "check-in",
        }
    }

    /// Returns how the content of this kind came to be known.
    pub fn evidence(self) -> EvidenceKind {
        match self {
            Self::Message | Self::Fact => EvidenceKind::Stated,
            Self::Reply | Self::Diary | Self::Reflection | Self::Note | Self::CheckIn => EvidenceKind::Inferred,
            Self::Dream | Self::Piece => EvidenceKind::Imagined,
        }
    }

    /// Returns true if it was said in a conversation.
    pub fn is_said(self) -> bool {
        matches!(self, Self::Message | Self::Reply)
    }

    /// Returns true if a background job of the persona wrote it.
    pub fn is_written(self) -> bool {
        matches!(self, Self::Diary | Self::Reflection | Self::Dream | Self::Note | Self::Piece | Self::CheckIn)
    }
}

/// One memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryRow {
    /// Its id.
    pub id: MemoryId,
    /// The persona that remembers it.
    pub persona: PersonaId,
    /// Its kind.
    pub kind: Kind,
    /// The scope it comes from.
    pub scope: Scope,
    /// The other scopes that it was built on.
    #[serde(default, rename = "needs", skip_serializing_if = "Vec::is_empty")]
    pub source_scopes: Vec<SourceScope>,
    /// The chat it was said in.
    pub chat: Option<ChatId>,
    /// Number of its session within the chat and persona.
    pub session: u32,
    /// The author.
    pub author: Author,
    /// Its source messages.
    pub sources: Vec<MessageId>,
    /// The text.
    pub text: Text,
    /// When it was said.
    pub at: Timestamp,
    /// Its salience, if it is worth remembering.
    #[serde(default, rename = "worth", skip_serializing_if = "Option::is_none")]
    pub salience: Option<crate::Salience>,
    /// How surprising it was, if that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surprise: Option<crate::Surprise>,
    /// The newer statement that its person put in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<crate::ReplacedBy>,
    /// True if its speaker does not want it to count as known in the whole place, however often it was said.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub apart: bool,
}

impl MemoryRow {
    /// Returns the chat whose conversation it belongs to; `None` for facts and writings.
    pub(crate) fn conversation(&self) -> Option<&ChatId> {
        self.chat.as_ref().filter(|_| self.kind.is_said() && !self.sources.is_empty())
    }

    /// Returns true if it is a chunk of a long file, which is removed with its message. Facts that a person asked to
    /// remember have no source message.
    pub fn came_with_a_message(&self) -> bool {
        self.kind == Kind::Fact && !self.sources.is_empty()
    }

    /// Returns true if no message of its chat need be its source.
    pub(crate) fn stands_alone(&self) -> bool {
        self.sources.is_empty() || self.kind.is_written()
    }
}

/// Data of a writing besides its memory.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct WritingRow {
    /// The memory.
    pub memory: MemoryId,
    /// Its kind.
    pub kind: Kind,
    /// The prompt of the model; `None` for an imported writing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Text>,
    /// The model that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Words from its sources that it took up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub themes: Vec<String>,
    /// The persona's mood at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mood: Option<String>,
    /// The message it was posted as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posted: Option<Posted>,
    /// The person who imported it; `None` if the persona wrote it here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported_by: Option<PersonId>,
}

impl std::fmt::Debug for WritingRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("WritingRow");
        shown.field("memory", &self.memory).field("kind", &self.kind).field("posted", &self.posted);
        shown.finish_non_exhaustive()
    }
}

/// The message that a writing was posted as.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posted {
    /// The chat.
    pub chat: ChatId,
    /// The message.
    pub message: MessageId,
}

/// A received message whose turn has not ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InboxRow {
    /// The message.
    pub message: MessageId,
    /// The platform it came from.
    pub platform: PlatformId,
    /// The person who sent it, and for whom the turn runs.
    pub person: PersonId,
    /// True if the platform says that it mentions the bot.
    pub mentions_bot: bool,
    /// Other people whom it mentions.
    pub mentions: Vec<PersonId>,
    /// How often its turn ended in a panic.
    #[serde(default)]
    pub panics: u32,
}

/// A reply that its platform has not acknowledged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutboxRow {
    /// The reply.
    pub message: MessageId,
    /// The platform that must show it.
    pub platform: PlatformId,
    /// The person who asked. Before delivery, the platform is asked for the place as this person sees it. `None` in
    /// rows of layout 1.
    #[serde(default)]
    pub asker: Option<PersonId>,
    /// Time of the oldest message of its own place in its prompt; `None` in rows of layout 1.
    #[serde(default)]
    pub from: Option<Timestamp>,
    /// The mind after the reply, as reported to the platform.
    pub state: serde_json::Value,
    /// The help lines of a reply to somebody in danger; otherwise empty. Platforms show such a reply as text alone.
    #[serde(default)]
    pub help: String,
}

/// The sources of one reply, which `/why` shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WhyRow {
    /// The reply.
    pub reply: MessageId,
    /// Memories in the prompt, in prompt order.
    pub recalled: Vec<WhyHit>,
    /// Indexes that failed.
    pub missing: Vec<String>,
    /// The prompt's fragments and their token counts, in order.
    pub fragments: Vec<(String, usize)>,
    /// Name of the model.
    pub model: String,
    /// Seed of the sampler.
    pub seed: u32,
    /// Token usage, as reported by the model.
    pub usage: serde_json::Value,
    /// Duration of recall in milliseconds, with the embedding of the query.
    pub recall_ms: f64,
    /// Numbers of the conversation's messages in the prompt, and of those that its notes were made from;
    /// [`Turns::reply`](crate::Turns::reply) adds the latter. `None` in replies from before this was stored.
    #[serde(default)]
    pub shown: Option<Vec<u64>>,
}

/// The signal name of working notes in a prompt. Newer notes replace them, so they may be missing without being
/// forgotten.
pub const NOTES: &str = "notes";

/// A memory in the prompt of a reply. Its text is read from the memory itself, so that a forgotten memory is forgotten
/// here, too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WhyHit {
    /// The memory.
    pub memory: MemoryId,
    /// Its fused score.
    pub score: f32,
    /// Names of the signals that found it.
    pub signals: Vec<String>,
    /// The parts of its text in the prompt, as ranges of bytes; the whole text if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: crate::Shown,
    /// Other statements that said the same. Whoever shows them reads each again, so nothing else of them is stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub same: Vec<MemoryId>,
}

/// One version of a persona.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PersonaRow {
    /// Id of the file, unique for its owner. Its memories belong to [`PersonaRow::identity`].
    pub id: PersonaId,
    /// The realm that owns it; `None` for built-in personas and the operator's.
    pub owner: Option<RealmId>,
    /// Number of the version, from 1.
    pub version: u32,
    /// The Markdown file.
    pub markdown: String,
    /// Contents of a character card that the file cannot hold (lorebook, greetings), in the host's format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<serde_json::Value>,
    /// When it was added.
    pub added_at: Timestamp,
    /// The person who added it, if any.
    pub added_by: Option<PersonId>,
    /// True if this version removes the persona.
    #[serde(default)]
    pub removed: bool,
}
