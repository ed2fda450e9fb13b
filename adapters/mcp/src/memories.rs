//! Tools that read whole memories: `get`, `list`, `core_memory` and `stats`.

use azera_adapter::{MemoryPage, Reading, ShownMemory};
use azera_types::{Author, MemoryId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::paging::{self, List};
use crate::session::Caller;
use crate::texts::QUOTED;

/// A kind of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// What a person said.
    Message,
    /// What the persona answered.
    Reply,
    /// What a person asked the persona to keep.
    Fact,
    /// What the persona wrote at the end of a conversation.
    Diary,
    /// What the persona wrote at the end of a day.
    Reflection,
    /// A dream: it never happened.
    Dream,
    /// The persona's working notes.
    Note,
    /// A short creative piece: it never happened.
    Piece,
    /// A question after days of silence.
    CheckIn,
}

impl Kind {
    fn as_str(self) -> &'static str {
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
}

/// Returns the names of kinds.
pub(crate) fn names(kinds: &[Kind]) -> Vec<&'static str> {
    kinds.iter().map(|kind| kind.as_str()).collect()
}

/// Returns the id that a client wrote.
pub(crate) fn parse_id(id: &str) -> Result<MemoryId, Failure> {
    id.trim().parse().map_err(|_| Failure::invalid(format!("{id:?} is no id of a memory. Ids look like m42.")))
}

/// A memory.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Memory {
    /// Its id, such as `m42`.
    pub(crate) id: String,
    /// Its kind, such as `message`, `fact` or `dream`.
    pub(crate) kind: &'static str,
    /// How it came to be known: `told`, `inferred`, or `imagined`, which never happened.
    pub(crate) evidence: &'static str,
    /// Who said or wrote it. It is empty if they are forgotten.
    pub(crate) author: String,
    /// When it was said (RFC 3339).
    pub(crate) at: String,
    /// Who may read it, such as `dm:PERSON`.
    pub(crate) scope: String,
    /// The ids of the messages that it comes from.
    pub(crate) sources: Vec<String>,
    /// Since when its words say that it holds, such as `2026-05`. It is missing if they name no time before they were said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) holds_since: Option<String>,
    /// Until when it held, such as `2026-08-03`. If it is there, the statement is no longer true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) held_until: Option<String>,
    /// The id of the memory in which the same person said something else instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) replaced_by: Option<String>,
    /// The text, as quoted data.
    pub(crate) text: String,
}

impl From<ShownMemory> for Memory {
    fn from(memory: ShownMemory) -> Self {
        let author = match &memory.author {
            Author::Forgotten => String::new(),
            author => author.name().to_owned(),
        };
        Self {
            id: memory.id.to_string(),
            kind: memory.kind,
            evidence: memory.evidence,
            author,
            at: memory.at.to_string(),
            scope: memory.scope.to_string(),
            sources: memory.sources.iter().map(ToString::to_string).collect(),
            holds_since: memory.holding.holds_since,
            held_until: memory.holding.held_until,
            replaced_by: memory.holding.replaced_by.map(|by| by.0.to_string()),
            text: memory.text.to_string(),
        }
    }
}

/// One memory.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfId {
    /// The id of a memory, such as `m42`.
    pub(crate) id: String,
}

/// A memory, marked as data.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OneMemory {
    /// What the text is.
    pub(crate) notice: &'static str,
    /// The memory.
    pub(crate) memory: Memory,
}

/// Which memories to list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listed {
    /// List only these kinds of memories. Leave it out for every kind.
    #[serde(default)]
    pub(crate) kinds: Vec<Kind>,
    /// Most memories of this page, 1 to 100; 20 unless given.
    #[serde(default)]
    pub(crate) limit: Option<usize>,
    /// `next_cursor` of the page before, with the same kinds.
    #[serde(default)]
    pub(crate) cursor: Option<String>,
}

/// A page of memories, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MemoryList {
    /// What the texts are.
    pub(crate) notice: &'static str,
    /// The memories.
    pub(crate) memories: Vec<Memory>,
    /// Pass this as `cursor` for the next page. It is missing on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

/// A text that quotes memories.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Quoting {
    /// What the text is.
    pub(crate) notice: &'static str,
    /// The text, in Markdown.
    pub(crate) text: String,
}

/// The number of memories of a kind.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Count {
    /// The kind.
    pub(crate) kind: &'static str,
    /// How many there are.
    pub(crate) memories: usize,
}

/// How much is remembered.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Counts {
    /// The persona that remembers.
    pub(crate) persona: String,
    /// All memories that this session may read.
    pub(crate) total: usize,
    /// The same by kind.
    pub(crate) by_kind: Vec<Count>,
    /// How many of them wait to be indexed. They are found by their words only.
    pub(crate) waiting: usize,
}

impl Caller {
    pub(crate) async fn memory_at(&self, at: &Reading, id: MemoryId) -> Result<ShownMemory, Failure> {
        let memory = self.shown(at, id).await?;
        memory.ok_or_else(|| Failure::refused(format!("There is no memory {id} that this session may read.")))
    }

    pub(crate) async fn get(&self, of: OfId) -> Result<OneMemory, Failure> {
        let id = parse_id(&of.id)?;
        let at = self.begin().await?;
        Ok(OneMemory { notice: QUOTED, memory: self.memory_at(&at, id).await?.into() })
    }

    pub(crate) async fn list(&self, listed: Listed) -> Result<MemoryList, Failure> {
        let kinds = names(&listed.kinds);
        let list = List::new("list", &kinds);
        let before = list.after(listed.cursor.as_deref())?.map(parse_id).transpose()?;
        let limit = paging::limit(listed.limit)?;
        let at = self.begin().await?;
        let kinds = kinds.into_iter().map(str::to_owned).collect();
        // One more than asked for tells whether there is a next page.
        let page = MemoryPage { kinds, before, limit: limit + 1 };
        let mut found = self.engine.memories.memories(&self.session.platform, at, page).await?;
        let has_more = found.len() > limit;
        found.truncate(limit);
        let next_cursor = found.last().filter(|_| has_more).map(|last| list.cursor(&last.id.to_string()));
        Ok(MemoryList { notice: QUOTED, memories: found.into_iter().map(Memory::from).collect(), next_cursor })
    }

    pub(crate) async fn core_memory(&self) -> Result<Quoting, Failure> {
        self.begin().await?;
        Ok(Quoting { notice: QUOTED, text: self.command("/me").await? })
    }

    pub(crate) async fn stats(&self) -> Result<Counts, Failure> {
        let at = self.begin().await?;
        let persona = self.persona(&at).await?.to_string();
        let counts = self.engine.memories.counts(&self.session.platform, at).await?;
        let by_kind: Vec<Count> = counts.by_kind.into_iter().map(|(kind, memories)| Count { kind, memories }).collect();
        let total = by_kind.iter().map(|count| count.memories).sum();
        Ok(Counts { persona, total, by_kind, waiting: counts.queued })
    }
}
