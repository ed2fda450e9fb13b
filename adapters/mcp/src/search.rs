//! Tools that find memories: `recall`, `hybrid_search`, `search` and `similar`.

use std::collections::HashMap;

use azera_adapter::{Hit, Reading, SearchRequest, Searched, ShownMemory};
use azera_types::{MemoryId, Text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::memories::{Kind, Memory, names, parse_id};
use crate::paging::{self, List};
use crate::session::Caller;
use crate::texts::QUOTED;

/// The signal of memories whose words match.
const LEXICAL: &str = "lexical";

/// The signal of memories whose meaning matches.
const SEMANTIC: &str = "semantic";

/// Words to find.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Words {
    /// What to find: a question, a few words, a name or a date.
    pub(crate) query: String,
    /// Find only these kinds of memories. Leave it out for every kind.
    #[serde(default)]
    pub(crate) kinds: Vec<Kind>,
    /// Most memories of this page, 1 to 100; 20 unless given.
    #[serde(default)]
    pub(crate) limit: Option<usize>,
    /// Find only what was known at this time, such as `2026-06-30`, `2026-06-30T10:00`, `June 2026` or `last month`: what
    /// was said, imported or edited later is left out. Leave it out for now.
    #[serde(default)]
    pub(crate) as_of: Option<String>,
    /// `next_cursor` of the page before, with the same query, kinds and time.
    #[serde(default)]
    pub(crate) cursor: Option<String>,
}

/// A memory to compare with.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Like {
    /// The id of a memory, such as `m42`.
    pub(crate) id: String,
    /// Most memories of this page, 1 to 100; 20 unless given.
    #[serde(default)]
    pub(crate) limit: Option<usize>,
    /// `next_cursor` of the page before, with the same id.
    #[serde(default)]
    pub(crate) cursor: Option<String>,
}

/// What to find in the person's projects.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AcrossProjects {
    /// What to find: a question, a few words, a name or a date.
    pub(crate) query: String,
    /// The name of one project. Leave it out for all projects of the person.
    #[serde(default)]
    pub(crate) project: Option<String>,
    /// Most memories of this page, 1 to 100; 20 unless given.
    #[serde(default)]
    pub(crate) limit: Option<usize>,
    /// `next_cursor` of the page before, with the same query and project.
    #[serde(default)]
    pub(crate) cursor: Option<String>,
}

/// A memory that was found.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Found {
    /// The memory. Its text is the part that fits the query.
    #[serde(flatten)]
    pub(crate) memory: Memory,
    /// How well it fits. Larger is better; comparable within one search only.
    pub(crate) score: f32,
    /// Why it was found, such as `lexical` or `semantic`.
    pub(crate) signals: Vec<String>,
}

/// A page of what was found, best first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Results {
    /// What the texts are.
    pub(crate) notice: &'static str,
    /// The memories.
    pub(crate) memories: Vec<Found>,
    /// Parts of the search that did not work just now, such as `semantic` or `reranker`: something may be missing, or stand
    /// further behind. Empty while everything works.
    pub(crate) missing: Vec<String>,
    /// Pass this as `cursor` for the next page. It is missing on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

/// Which hits a tool keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// All signals together.
    Everything,
    /// Only memories whose words match.
    Words,
}

impl Caller {
    pub(crate) async fn search(&self, tool: &str, words: Words, by: By) -> Result<Results, Failure> {
        if words.query.trim().is_empty() {
            return Err(Failure::invalid("`query` is empty. Say what to find."));
        }
        let at = self.begin().await?;
        let kinds = names(&words.kinds);
        let as_of = words.as_of.as_deref();
        let arguments: Vec<&str> =
            [words.query.as_str(), as_of.unwrap_or_default()].into_iter().chain(kinds.iter().copied()).collect();
        let list = List::new(tool, &arguments);
        let request = SearchRequest { as_of: as_of.map(Text::new), ..request(&at, &words.query) };
        let mut found = self.engine.host.search(&self.session.platform, request).await?;
        found.hits.retain(|hit| kinds.is_empty() || kinds.contains(&hit.kind.as_str()));
        if by == By::Words {
            found.hits.retain(|hit| found_by(hit, LEXICAL));
        }
        self.results(&at, &list, found, words.cursor.as_deref(), words.limit).await
    }

    pub(crate) async fn similar(&self, like: Like) -> Result<Results, Failure> {
        let id = parse_id(&like.id)?;
        let at = self.begin().await?;
        let memory = self.memory_at(&at, id).await?;
        let list = List::new("similar", &[&like.id]);
        let mut found = self.hits(&at, &memory.text).await?;
        found.hits.retain(|hit| hit.memory.0 != id && found_by(hit, SEMANTIC));
        self.results(&at, &list, found, like.cursor.as_deref(), like.limit).await
    }

    pub(crate) async fn cross_project(&self, asked: AcrossProjects) -> Result<Results, Failure> {
        if asked.query.trim().is_empty() {
            return Err(Failure::invalid("`query` is empty. Say what to find."));
        }
        let at = self.begin().await?;
        let list = List::new("cross_project", &[&asked.query, asked.project.as_deref().unwrap_or_default()]);
        let request = request(&at, &asked.query);
        let found = self.engine.sessions.search_projects(&self.session.platform, request, asked.project).await?;
        self.results(&at, &list, found, asked.cursor.as_deref(), asked.limit).await
    }

    async fn hits(&self, at: &Reading, query: &str) -> Result<Searched, Failure> {
        Ok(self.engine.host.search(&self.session.platform, request(at, query)).await?)
    }

    /// Returns what was found, whole and as it may be shown now, best first, and what did not work.
    pub(crate) async fn found(&self, query: &str) -> Result<(Vec<Found>, Vec<String>), Failure> {
        if query.trim().is_empty() {
            return Err(Failure::invalid("`query` is empty. Say what to find."));
        }
        let at = self.begin().await?;
        let Searched { hits, missing } = self.hits(&at, query).await?;
        Ok((self.whole(&at, hits).await?, missing))
    }

    /// Returns the memories of hits. What was forgotten since is left out.
    async fn whole(&self, at: &Reading, hits: Vec<Hit>) -> Result<Vec<Found>, Failure> {
        let ids = hits.iter().map(|hit| hit.memory.0).collect();
        let whole = self.engine.memories.memories_by_id(&self.session.platform, at.clone(), ids).await?;
        let mut whole: HashMap<MemoryId, ShownMemory> = whole.into_iter().map(|memory| (memory.id, memory)).collect();
        let memories = hits.into_iter().filter_map(|hit| whole.remove(&hit.memory.0).map(|whole| found(hit, whole)));
        Ok(memories.collect())
    }

    async fn results(
        &self,
        at: &Reading,
        list: &List,
        Searched { hits, missing }: Searched,
        cursor: Option<&str>,
        limit: Option<usize>,
    ) -> Result<Results, Failure> {
        let after = list.after(cursor)?;
        let (hits, next_cursor) =
            paging::page(list, hits, after, paging::limit(limit)?, |hit| hit.memory.0.to_string())?;
        let memories = self.whole(at, hits).await?;
        Ok(Results { notice: QUOTED, memories, missing, next_cursor })
    }

    /// Returns a memory that may be shown.
    pub(crate) async fn shown(&self, at: &Reading, id: MemoryId) -> Result<Option<ShownMemory>, Failure> {
        Ok(self.engine.memories.memory(&self.session.platform, at.clone(), id).await?)
    }
}

/// Every page asks for the same number: what a search puts first depends on it.
fn request(at: &Reading, query: &str) -> SearchRequest {
    let (chat, person) = (at.chat.clone(), at.person.clone());
    SearchRequest { chat, person, query: Text::new(query), limit: Some(paging::MOST), as_of: None }
}

fn found_by(hit: &Hit, signal: &str) -> bool {
    hit.signals.iter().any(|found| found == signal)
}

fn found(hit: Hit, whole: ShownMemory) -> Found {
    // What a search knows of the past may be less than what is known now.
    let whole = ShownMemory { text: hit.text, holding: hit.holding, ..whole };
    let memory = Memory::from(whole);
    Found { memory, score: hit.score, signals: hit.signals }
}
