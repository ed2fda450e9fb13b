//! What the record holds, as it is stored (JSON, so that a newer version can read an older record).

use std::collections::BTreeSet;

use azera_types::{
    Author, ChatId, MemoryId, MessageId, PersonId, PersonaId, PlatformId, RealmId, Scope, Text, Timestamp,
};
use serde::{Deserialize, Serialize};

/// A place that something was built on besides its own, and how far back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "StoredSourceScope")]
pub struct SourceScope {
    /// The place.
    pub scope: Scope,
    /// When the oldest of what was used from it was said.
    pub from: Timestamp,
}

impl SourceScope {
    /// Whether whoever may see what has this need may see what has the other.
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
    /// Layout 1 did not say how far back: as far as there is.
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

/// One message of a person or a persona. The messages of a chat form a tree by `parent`; the chat's head says which
/// path is the present one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageRow {
    /// Its id.
    pub id: MessageId,
    /// Where it was said.
    pub chat: ChatId,
    /// Number of arrival, ascending over all chats.
    pub seq: u64,
    /// The message before it on its branch.
    pub parent: Option<MessageId>,
    /// Messages before it on its branch.
    pub depth: u64,
    /// Who said it.
    pub author: Author,
    /// What was said.
    pub text: Text,
    /// When, by the platform's clock for a person's message and by ours for a reply.
    pub at: Timestamp,
    /// The message it points at on the platform.
    pub reply_to: Option<MessageId>,
    /// For a reply: the message it answers.
    pub answers: Option<MessageId>,
    /// The persona that served the chat then; only it may read the message again.
    pub persona: PersonaId,
    /// The place it was said in.
    pub scope: Scope,
    /// For a reply: the other places it was built from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "needs")]
    pub source_scopes: Vec<SourceScope>,
    /// Whether it says something of its own worth finding again.
    #[serde(default)]
    pub memorable: bool,
    /// When it was last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_at: Option<Timestamp>,
}

/// When the bot answers in a chat that more than one person reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answering {
    /// When it is mentioned, replied to or called by name.
    #[default]
    Addressed,
    /// Every message that is not meant for somebody else.
    Always,
    /// Never.
    Never,
}

/// A chat, its settings and where it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatRow {
    /// Its id.
    pub id: ChatId,
    /// The platform that serves it.
    pub platform: PlatformId,
    /// The name people see.
    pub title: Option<String>,
    /// Who answers, by identity.
    pub persona: PersonaId,
    /// When it answers; the configured default if `None`.
    pub answering: Option<Answering>,
    /// The present branch.
    pub branch: String,
    /// The newest message of the present branch.
    pub head: Option<MessageId>,
    /// First seen.
    pub created_at: Timestamp,
    /// Newest message.
    pub last_at: Timestamp,
    /// The group it belongs to, if somebody put it in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The tags it was given, in order.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
    /// Who else answers there when called by name, by identity.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub invited: BTreeSet<PersonaId>,
}

impl ChatRow {
    /// What stays of it when all that was said in it is forgotten: its settings, as its platform still has it, and not what people
    /// say it is about. `with_realm` says that its realm is forgotten: what it is called and who was invited to it go, too.
    pub(crate) fn emptied(self, head: Option<MessageId>, with_realm: bool) -> Self {
        let emptied = Self { head, branch: MAIN_BRANCH.into(), group: None, tags: BTreeSet::new(), ..self };
        if with_realm { Self { title: None, invited: BTreeSet::new(), ..emptied } } else { emptied }
    }

    /// Whether a persona answers there: always, or when it is called.
    pub fn is_served_by(&self, persona: &PersonaId) -> bool {
        self.persona == *persona || self.invited.contains(persona)
    }
}

/// The name of the branch every chat begins with.
pub const MAIN_BRANCH: &str = "main";

/// A branch of a chat that is not the present one, or was once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchRow {
    /// Its name, unique in the chat.
    pub name: String,
    /// Its newest message.
    pub head: Option<MessageId>,
    /// The message it was branched from.
    pub forked_from: Option<MessageId>,
    /// When.
    pub created_at: Timestamp,
}

/// What a memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A message of a person.
    Message,
    /// A reply of the persona.
    Reply,
    /// Something a person asked it to keep.
    Fact,
    /// What the persona wrote for itself at the end of a conversation.
    Diary,
    /// What it wrote at the end of a day.
    Reflection,
    /// What it dreamt: imagined. It can be quoted and is never what happened.
    Dream,
    /// Its working notes of a chat; each chat has the newest alone.
    Note,
    /// A little piece that it made up out of what it heard and dreamt: imagined, like a dream.
    Piece,
    /// What it asked somebody who wanted to be looked in on.
    CheckIn,
}

/// How something came to be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceKind {
    /// Somebody said it.
    #[serde(rename = "told")]
    Stated,
    /// A persona made it of what it was told.
    Inferred,
    /// A persona made it up.
    Imagined,
}

impl EvidenceKind {
    /// The name shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stated => "told",
            Self::Inferred => "inferred",
            Self::Imagined => "imagined",
        }
    }
}

impl Kind {
    /// The name shown.
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

    /// How it came to be known.
    pub fn evidence(self) -> EvidenceKind {
        match self {
            Self::Message | Self::Fact => EvidenceKind::Stated,
            Self::Reply | Self::Diary | Self::Reflection | Self::Note | Self::CheckIn => EvidenceKind::Inferred,
            Self::Dream | Self::Piece => EvidenceKind::Imagined,
        }
    }

    /// Whether somebody said it in a conversation.
    pub fn is_said(self) -> bool {
        matches!(self, Self::Message | Self::Reply)
    }

    /// Whether the persona wrote it between messages.
    pub fn is_written(self) -> bool {
        matches!(self, Self::Diary | Self::Reflection | Self::Dream | Self::Note | Self::Piece | Self::CheckIn)
    }
}

/// One remembered thing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryRow {
    /// Its id.
    pub id: MemoryId,
    /// Whose memory.
    pub persona: PersonaId,
    /// What it is.
    pub kind: Kind,
    /// The place it comes from.
    pub scope: Scope,
    /// Other places it was built from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "needs")]
    pub source_scopes: Vec<SourceScope>,
    /// The chat it was said in.
    pub chat: Option<ChatId>,
    /// Number of the conversation within that chat and persona.
    pub session: u32,
    /// Who said it.
    pub author: Author,
    /// The messages it rests on.
    pub sources: Vec<MessageId>,
    /// What is remembered.
    pub text: Text,
    /// When it was said.
    pub at: Timestamp,
    /// Why it is worth keeping, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "worth")]
    pub salience: Option<crate::Salience>,
    /// How surprising it was, if that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surprise: Option<crate::Surprise>,
}

impl MemoryRow {
    /// The chat in whose conversation it stands. What was kept or written stands in none.
    pub(crate) fn conversation(&self) -> Option<&ChatId> {
        self.chat.as_ref().filter(|_| self.kind.is_said() && !self.sources.is_empty())
    }

    /// Whether it is a piece of what came with a message, which goes with that. What a person asked to keep rests on none.
    pub fn came_with_a_message(&self) -> bool {
        self.kind == Kind::Fact && !self.sources.is_empty()
    }

    /// Whether it may be in a place without resting on any message of it.
    pub(crate) fn stands_alone(&self) -> bool {
        self.sources.is_empty() || self.kind.is_written()
    }
}

/// What belongs to something a persona wrote besides the memory that it is.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct WritingRow {
    /// The memory.
    pub memory: MemoryId,
    /// What it is.
    pub kind: Kind,
    /// What the model was asked; `None` for what was imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Text>,
    /// The model that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Words of what it rests on that it took up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub themes: Vec<String>,
    /// The persona's mood when it wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mood: Option<String>,
    /// Where it was posted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posted: Option<Posted>,
    /// Who brought it here from elsewhere; `None` for what was written here.
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

/// The message that something written was posted as.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posted {
    /// Where.
    pub chat: ChatId,
    /// The message.
    pub message: MessageId,
}

/// A message taken in whose turn is not over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InboxRow {
    /// The message.
    pub message: MessageId,
    /// The platform that handed it in.
    pub platform: PlatformId,
    /// The person, the asker of the turn.
    pub person: PersonId,
    /// The platform says that it mentions the bot.
    pub mentions_bot: bool,
    /// Other people it mentions.
    pub mentions: Vec<PersonId>,
}

/// A reply not yet acknowledged by its platform.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutboxRow {
    /// The reply.
    pub message: MessageId,
    /// The platform that must show it.
    pub platform: PlatformId,
    /// Who asked for it, for whom the place is asked after when it is shown; `None` in rows of layout 1.
    #[serde(default)]
    pub asker: Option<PersonId>,
    /// When the oldest of what was said in its own place and stood in its prompt was said; `None` in rows of layout 1.
    #[serde(default)]
    pub from: Option<Timestamp>,
    /// The mind after the reply, as told to the outside.
    pub state: serde_json::Value,
}

/// What stood behind one reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WhyRow {
    /// The reply.
    pub reply: MessageId,
    /// Memories that stood in the prompt, in prompt order.
    pub recalled: Vec<WhyHit>,
    /// Layers that were down.
    pub missing: Vec<String>,
    /// The prompt's fragments and their tokens, in order.
    pub fragments: Vec<(String, usize)>,
    /// The model's name.
    pub model: String,
    /// Seed of the sampler.
    pub seed: u32,
    /// What it cost, as reported by the model.
    pub usage: serde_json::Value,
    /// Milliseconds of recall, the query's embedding included.
    pub recall_ms: f64,
    /// The messages of the conversation that stood in the prompt, by their places in the log, and those that the notes in it were
    /// made of, which [`Memory::reply`](crate::Memory::reply) adds; what answered before this was noted does not say.
    #[serde(default)]
    pub shown: Option<Vec<u64>>,
}

/// The signal of working notes that stood in a prompt. They make way for others, so that they may be gone without being forgotten.
pub const NOTES: &str = "notes";

/// One memory behind a reply. The text is read from the memory itself, so that what is forgotten is forgotten here too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WhyHit {
    /// Which.
    pub memory: MemoryId,
    /// Fused score.
    pub score: f32,
    /// Which signals found it.
    pub signals: Vec<String>,
}

/// One version of a persona.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PersonaRow {
    /// The id of its file, unique among its owner's. Its memories go by [`PersonaRow::identity`].
    pub id: PersonaId,
    /// The realm that owns it; `None` for built-in ones and the operator's.
    pub owner: Option<RealmId>,
    /// Ascending from 1.
    pub version: u32,
    /// Its markdown file.
    pub markdown: String,
    /// What a character card held beyond the persona (lorebook, greetings), as the host keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<serde_json::Value>,
    /// When it was added.
    pub added_at: Timestamp,
    /// By whom, if by a person.
    pub added_by: Option<PersonId>,
    /// Whether this version was a removal.
    #[serde(default)]
    pub removed: bool,
}
