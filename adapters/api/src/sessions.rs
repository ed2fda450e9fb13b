use async_trait::async_trait;
use azera_types::{ChatId, MemoryId, MessageId, PlatformId, Scope, Timestamp};

use crate::{HostError, Reading, SearchRequest, Searched};

/// Commands that were run one after the other in a project. `Debug` shows no command.
#[derive(Clone, PartialEq)]
pub struct ShownProcedure {
    /// The name of the project.
    pub project: String,
    /// The commands.
    pub steps: Vec<String>,
    /// How often the last one was run to a known end after all others had worked.
    pub tries: usize,
    /// In how many of these tries it worked.
    pub worked: usize,
    /// The lower bound of the share that works, with 95 % confidence: that of the step that is least sure.
    pub sure: f64,
    /// When they were run first and last.
    pub span: (Timestamp, Timestamp),
    /// The memories of the messages for which they were run, the newest first.
    pub memories: Vec<MemoryId>,
}

impl std::fmt::Debug for ShownProcedure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ShownProcedure[{} of {}]", self.worked, self.tries)
    }
}

/// What shows a problem, or its end. `Debug` shows no text.
#[derive(Clone, PartialEq)]
pub struct ShownEvidence {
    /// `failing command`, `said to fail`, `not managed` or `unanswered question`, `solved` for an end; in conversations also
    /// `plan`, `problem` and `reason`.
    pub kind: &'static str,
    /// The command, or the words.
    pub text: String,
    /// When it was seen.
    pub at: Timestamp,
    /// The session in which it was seen.
    pub session: ChatId,
    /// The memory of the message that it rests on.
    pub memory: Option<MemoryId>,
}

impl std::fmt::Debug for ShownEvidence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShownEvidence").field("kind", &self.kind).field("memory", &self.memory).finish_non_exhaustive()
    }
}

/// A coding session. `Debug` shows no text.
#[derive(Clone, PartialEq)]
pub struct ShownSession {
    /// Its id.
    pub id: ChatId,
    /// The name of the project.
    pub project: String,
    /// What was asked first.
    pub title: String,
    /// When its first and its last message were said.
    pub span: (Timestamp, Timestamp),
    /// Number of the person's messages.
    pub requests: usize,
    /// Number of commands that were run.
    pub commands: usize,
    /// How it ended: `ended`, `open`, `continued` or `resolved`.
    pub ending: &'static str,
    /// The problem, if one was seen.
    pub problem: Option<ShownEvidence>,
    /// What shows that it is solved.
    pub solved: Option<ShownEvidence>,
    /// Sessions about the same problem, the oldest first.
    pub linked: Vec<ChatId>,
    /// The memory of its first message.
    pub memory: Option<MemoryId>,
}

impl std::fmt::Debug for ShownSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShownSession").field("id", &self.id).field("ending", &self.ending).finish_non_exhaustive()
    }
}

/// Something that a person left open in a conversation, and what became of it. `Debug` shows no text.
#[derive(Clone, PartialEq)]
pub struct ShownMatter {
    /// What it is: a `plan`, a `problem` or an `unanswered question`.
    pub evidence: ShownEvidence,
    /// Whose it is.
    pub by: String,
    /// `open`, `continued` or `resolved`.
    pub state: &'static str,
    /// What the person said later about how it went.
    pub solved: Option<ShownEvidence>,
}

impl std::fmt::Debug for ShownMatter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShownMatter").field("state", &self.state).finish_non_exhaustive()
    }
}

/// A conversation between two quiet times. `Debug` shows no text.
#[derive(Clone, PartialEq)]
pub struct ShownConversation {
    /// Its id: that of its first message.
    pub id: MessageId,
    /// The chat.
    pub chat: ChatId,
    /// The name of the chat, if it has one and the person reads it.
    pub place: Option<String>,
    /// Who may read it.
    pub scope: Scope,
    /// What it was about, in somebody's own words.
    pub title: String,
    /// The memory that says so.
    pub memory: Option<MemoryId>,
    /// A reason that somebody gave in it.
    pub why: Option<ShownEvidence>,
    /// The earlier conversation that the reason points at, and what was said there.
    pub cause: Option<(MessageId, ShownEvidence)>,
    /// The people who spoke.
    pub people: Vec<String>,
    /// Other names that were mentioned.
    pub names: Vec<String>,
    /// When its first and its last message were said.
    pub span: (Timestamp, Timestamp),
    /// Number of messages.
    pub messages: usize,
    /// How it ended: `ended`, `open`, `continued` or `resolved`.
    pub ending: &'static str,
    /// What people left open in it.
    pub matters: Vec<ShownMatter>,
    /// The earlier conversation that it goes on with.
    pub continues: Option<MessageId>,
}

impl std::fmt::Debug for ShownConversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShownConversation").field("id", &self.id).field("ending", &self.ending).finish_non_exhaustive()
    }
}

/// The engine's reads of what was learnt in coding sessions, and of everyday conversations. Like [`crate::Reader`], every read shows what the person may
/// read in the chat at that moment, of the persona that answers there, and nothing to a person who cannot read the chat.
/// `project` names one project; `None` means all that may be read.
#[async_trait]
pub trait SessionReader: Send + Sync {
    /// Returns the procedures, the surest first.
    async fn procedures(
        &self,
        platform: &PlatformId,
        at: Reading,
        project: Option<String>,
    ) -> Result<Vec<ShownProcedure>, HostError>;

    /// Returns the sessions, the newest first.
    async fn coding_sessions(
        &self,
        platform: &PlatformId,
        at: Reading,
        project: Option<String>,
    ) -> Result<Vec<ShownSession>, HostError>;

    /// Returns the everyday conversations that may be read, the newest first.
    async fn conversations(&self, platform: &PlatformId, at: Reading) -> Result<Vec<ShownConversation>, HostError>;

    /// Searches in the memories of projects alone, best first.
    async fn search_projects(
        &self,
        platform: &PlatformId,
        line: SearchRequest,
        project: Option<String>,
    ) -> Result<Searched, HostError>;

    /// Returns what is remembered of a project, in about `tokens` tokens; `None` if there is no such project that may be
    /// read.
    async fn project_context(
        &self,
        platform: &PlatformId,
        at: Reading,
        project: String,
        tokens: usize,
    ) -> Result<Option<String>, HostError>;
}
