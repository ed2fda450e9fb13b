use std::sync::Arc;

use async_trait::async_trait;
use azera_types::{Author, MemoryId, MessageId, PlatformId, Scope, Text, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{HostError, MemoryIdText, Reading};

/// From when until when a memory holds. Times are days, months or years in the time zone of the place, as exactly as they
/// were named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holding {
    /// Since when its words say that it holds; `None` if they name no time before they were said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds_since: Option<String>,
    /// Until when it held; `None` while it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_until: Option<String>,
    /// The memory in which the same person said something else instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<MemoryIdText>,
}

/// A whole memory. `Debug` shows no text.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownMemory {
    /// Its id.
    pub id: MemoryId,
    /// Its kind, such as `message` or `dream`.
    pub kind: &'static str,
    /// How its content came to be known: `told`, `inferred` or `imagined`.
    pub evidence: &'static str,
    /// The scope it comes from.
    pub scope: Scope,
    /// The author.
    pub author: Author,
    /// Its source messages.
    pub sources: Vec<MessageId>,
    /// The text.
    pub text: Text,
    /// When it was said.
    pub at: Timestamp,
    /// From when until when it holds.
    pub holding: Holding,
}

/// A page of the list of memories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryPage {
    /// The kinds to list; empty for every kind.
    pub kinds: Vec<String>,
    /// List only memories that were stored before this one.
    pub before: Option<MemoryId>,
    /// Most memories to return.
    pub limit: usize,
}

/// A page of the list of what a person asked to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactPage {
    /// List only facts that begin with this word and a name in quotation marks.
    pub label: Option<&'static str>,
    /// List only facts that were stored before this memory.
    pub before: Option<MemoryId>,
    /// Most facts to return.
    pub limit: usize,
}

/// What a person asked to keep, newest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OwnFacts {
    /// The facts.
    pub facts: Vec<ShownMemory>,
    /// How many facts of the person were looked at.
    pub looked: usize,
    /// The last memory that was looked at, behind which more may follow; `None` if none is left.
    pub rest: Option<MemoryId>,
}

/// A relation of an entity. `Debug` shows no names.
#[derive(Clone, PartialEq)]
pub struct ShownRelation {
    /// The relation in words.
    pub said: String,
    /// The name of the other side.
    pub other: String,
    /// True if nothing more is known than that both are named in one sentence.
    pub is_plain: bool,
    /// How surely the words say it, and mean these two; 0 to 1.
    pub confidence: f32,
    /// When it was said first.
    pub since: Timestamp,
    /// Until when it held, as in [`Holding::held_until`]: all who said it said something else instead.
    pub until: Option<String>,
    /// The memories that say it, newest first.
    pub sources: Vec<MemoryId>,
}

impl std::fmt::Debug for ShownRelation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShownRelation").field("sources", &self.sources).finish_non_exhaustive()
    }
}

/// Somebody or something that people named. `Debug` shows no names.
#[derive(Clone, PartialEq)]
pub struct ShownEntity {
    /// The name.
    pub name: String,
    /// `person`, `place`, `thing` or `project`, if relations show it.
    pub kind: Option<&'static str>,
    /// Other names of the same, and how surely they mean it; 0 to 1.
    pub other_names: Vec<(String, f32)>,
    /// How many memories name it.
    pub mentions: usize,
    /// True if older memories may name it, too, which were too many to be read.
    pub is_cut: bool,
    /// How it belongs together with others, typed relations first.
    pub relations: Vec<ShownRelation>,
}

impl std::fmt::Debug for ShownEntity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ShownEntity[{} mentions]", self.mentions)
    }
}

/// The names that the knowledge graph knows best. `Debug` shows none.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ShownNames {
    /// Each name as it was written, with how many memories name it; the one named most first.
    pub most: Vec<(String, usize)>,
    /// True if older memories were too many to count.
    pub is_cut: bool,
}

impl std::fmt::Debug for ShownNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ShownNames[{}]", self.most.len())
    }
}

/// Is told how many of how many steps of a piece of work are done.
pub type Steps = Arc<dyn Fn(usize, usize) + Send + Sync>;

/// Something that is talked about. `Debug` shows no words.
#[derive(Clone, PartialEq)]
pub struct ShownTheme {
    /// Words that people use about it and not about other themes.
    pub words: Vec<String>,
    /// The place where it is talked about.
    pub scope: Scope,
    /// How many memories that may be read are about it.
    pub memories: usize,
    /// When it was talked about first and last.
    pub said: (Timestamp, Timestamp),
    /// The memory closest to the middle of it.
    pub typical: ShownMemory,
    /// The newest memory about it.
    pub newest: ShownMemory,
    /// The themes that it is made of, if they are several.
    pub parts: Vec<ShownTheme>,
}

impl std::fmt::Debug for ShownTheme {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ShownTheme[{} memories]", self.memories)
    }
}

/// A page of themes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ShownThemes {
    /// True if older memories were too many to count.
    pub is_cut: bool,
    /// The themes, those with most memories first.
    pub themes: Vec<ShownTheme>,
    /// How many there are on all pages.
    pub total: usize,
}

/// How many memories may be shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryCounts {
    /// The number by kind.
    pub by_kind: Vec<(&'static str, usize)>,
    /// How many of them wait to be indexed.
    pub queued: usize,
}

/// The engine's reads of whole memories. Like [`crate::Reader`], every read shows what the person may read in the chat at
/// that moment, of the persona that answers there, and nothing to a person who cannot read the chat.
#[async_trait]
pub trait MemoryReader: Send + Sync {
    /// Returns a memory; `None` if there is none that may be shown.
    async fn memory(&self, platform: &PlatformId, at: Reading, id: MemoryId) -> Result<Option<ShownMemory>, HostError>;

    /// Returns those of these memories that may be shown, in their order. What may be shown is asked once for all of them.
    async fn memories_by_id(
        &self,
        platform: &PlatformId,
        at: Reading,
        ids: Vec<MemoryId>,
    ) -> Result<Vec<ShownMemory>, HostError>;

    /// Returns a page of the memories, newest first.
    async fn memories(
        &self,
        platform: &PlatformId,
        at: Reading,
        page: MemoryPage,
    ) -> Result<Vec<ShownMemory>, HostError>;

    /// Returns facts that this person asked to keep, newest first. One call looks at some thousand of them at most, so it may
    /// return fewer though there are more.
    async fn own_facts(&self, platform: &PlatformId, at: Reading, page: FactPage) -> Result<OwnFacts, HostError>;

    /// Returns the names that are named most, and how many memories name each.
    async fn graph_names(&self, platform: &PlatformId, at: Reading) -> Result<ShownNames, HostError>;

    /// Returns what the knowledge graph says of a name: one entity, or several if it may mean several.
    async fn entities(&self, platform: &PlatformId, at: Reading, name: String) -> Result<Vec<ShownEntity>, HostError>;

    /// Returns what is talked about most: at most `limit` themes behind the first `skip`.
    async fn themes(
        &self,
        platform: &PlatformId,
        at: Reading,
        skip: usize,
        limit: usize,
    ) -> Result<ShownThemes, HostError>;

    /// Groups the memories that may be read into themes again, wherever anything is new. Returns how many places were
    /// grouped; `None` while memories wait to be indexed, which must be done first. It changes nothing that anybody said.
    /// `steps` is told of each place.
    async fn group_themes(&self, platform: &PlatformId, at: Reading, steps: Steps) -> Result<Option<usize>, HostError>;

    /// Counts the memories.
    async fn counts(&self, platform: &PlatformId, at: Reading) -> Result<MemoryCounts, HostError>;
}
