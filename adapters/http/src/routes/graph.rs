//! The knowledge graph around a name, and the memories that state it.

use std::collections::HashSet;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{Method, StatusCode};
use azera_adapter::{Reading, ShownEntity, ShownMemory, ShownRelation};
use azera_types::MemoryId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::accounts::{Caller, Scope};
use crate::endpoint::{Endpoint, Need, Parameter, Params, Parted};
use crate::problem::Problem;
use crate::web::Shared;

/// The chat whose persona remembers.
const HOME: &str = "main";

/// Longest name, in characters.
const MAX_NAME_CHARS: usize = 200;

/// Most entities of one name.
const MAX_ENTITIES: usize = 4;

/// Relations of an entity without a limit, and the most of them.
const USUAL: usize = 20;
const MOST: usize = 100;

/// Most source memories named for one relation.
const MAX_SOURCES: usize = 8;

/// How many neighbours are asked for their own relations, and how many names are shown behind them.
const FOLLOWED: usize = 6;
const MAX_FURTHER: usize = 12;

/// A name, and how many relations to show of it.
#[derive(Deserialize)]
struct Asked {
    name: String,
    limit: Option<usize>,
}

/// Another name of the same.
#[derive(Debug, Serialize, JsonSchema)]
struct OtherName {
    /// The name.
    name: String,
    /// How surely it means the same; 0 to 1.
    confidence: f32,
}

/// How two belong together.
#[derive(Debug, Serialize, JsonSchema)]
struct GraphRelation {
    /// The relation in words.
    said: String,
    /// The name of the other side.
    other: String,
    /// True if nothing more is known than that both are named in one sentence.
    is_plain: bool,
    /// How surely the words say it, and mean these two; 0 to 1.
    confidence: f32,
    /// When it was said first (RFC 3339).
    since: String,
    /// Until when it held, such as `2026-08-03`; missing while it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_until: Option<String>,
    /// The ids of the memories that say it, newest first; at most 8.
    memories: Vec<String>,
}

/// Somebody or something that people named.
#[derive(Debug, Serialize, JsonSchema)]
struct GraphEntity {
    /// The name.
    name: String,
    /// `person`, `place`, `thing` or `project`, if relations show it.
    kind: Option<&'static str>,
    /// Other names of the same.
    other_names: Vec<OtherName>,
    /// How many memories name it.
    mentions: usize,
    /// True if older memories may name it, too, which were too many to be read.
    is_cut: bool,
    /// How many relations there are, also those behind the limit.
    total: usize,
    /// How it belongs together with others, typed relations first.
    relations: Vec<GraphRelation>,
}

/// Somebody or something that a neighbour of the name belongs together with.
#[derive(Debug, Serialize, JsonSchema)]
struct Further {
    /// The name.
    name: String,
    /// The neighbour.
    by: String,
    /// How the two belong together.
    relation: GraphRelation,
}

/// What the graph says of a name.
#[derive(Debug, Serialize, JsonSchema)]
struct Graph {
    /// One entity, or several if the name may mean several; the one named most first.
    entities: Vec<GraphEntity>,
    /// Who and what is indirectly related.
    further: Vec<Further>,
}

/// A whole memory.
#[derive(Debug, Serialize, JsonSchema)]
struct WholeMemory {
    /// Its id.
    id: String,
    /// The text.
    content: String,
    /// Its kind, such as `message` or `dream`.
    kind: &'static str,
    /// How its content came to be known: `told`, `inferred` or `imagined`.
    evidence: &'static str,
    /// Who said it.
    author: String,
    /// Where it comes from, such as `dm:PERSON`.
    scope: String,
    /// When it was said (RFC 3339).
    said_at: String,
    /// Since when its words say that it holds, such as `2026-05`.
    #[serde(skip_serializing_if = "Option::is_none")]
    holds_since: Option<String>,
    /// Until when it held, such as `2026-08-03`; missing while it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_until: Option<String>,
    /// The id of the memory that replaced it.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced_by: Option<String>,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    const ASKS: &[Parameter] = &[
        Parameter { name: "name", help: "The name of somebody or something.", required: true },
        Parameter { name: "limit", help: "Most relations of one entity, 1 to 100; 20 without it.", required: false },
    ];
    let read = Need::Scope(Scope::MemoryRead);
    let of_name = "Show the relations of a name, with the memories that state them";
    vec![
        Endpoint::new(Method::GET, "/api/memories/graph", read, of_name, graph)
            .asks(ASKS)
            .answers::<Graph>()
            .also(&[(404, "Nothing that may be shown names it.")]),
        Endpoint::new(Method::GET, "/api/memories/{id}", read, "Show a memory", memory)
            .answers::<WholeMemory>()
            .also(&[(404, "There is no such memory, or it may not be shown.")]),
    ]
}

async fn graph(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Params(asked): Params<Asked>,
) -> Result<axum::Json<Graph>, Problem> {
    let name = asked.name.trim();
    if name.is_empty() || name.chars().count() > MAX_NAME_CHARS {
        return Err(Problem::invalid(format!("`name` is empty or too long. Use 1 to {MAX_NAME_CHARS} characters.")));
    }
    let limit = asked.limit.unwrap_or(USUAL);
    if !(1..=MOST).contains(&limit) {
        return Err(Problem::invalid(format!("`limit` is {limit}. Use 1 to {MOST}.")));
    }
    let at = shared.reading(&caller, HOME)?;
    let mut found = shared.memories()?.entities(&shared.platform, at.clone(), name.to_owned()).await?;
    if found.is_empty() {
        let detail = format!("Nobody and nothing named \"{name}\" is in what may be shown to you. Try another name.");
        return Err(Problem::new(StatusCode::NOT_FOUND, "not_found", detail));
    }
    found.truncate(MAX_ENTITIES);
    let further = shared.further(&at, &found).await?;
    let entities = found.into_iter().map(|entity| GraphEntity::shown(entity, limit)).collect();
    Ok(axum::Json(Graph { entities, further }))
}

async fn memory(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Parted(id): Parted<String>,
) -> Result<axum::Json<WholeMemory>, Problem> {
    let missing = || Problem::not_found("memory");
    let id: MemoryId = id.parse().map_err(|_| missing())?;
    let at = shared.reading(&caller, HOME)?;
    let found = shared.memories()?.memory(&shared.platform, at, id).await?;
    Ok(axum::Json(found.ok_or_else(missing)?.into()))
}

impl Shared {
    /// Returns who and what stands behind the neighbours of some entities, and is no neighbour itself.
    async fn further(&self, at: &Reading, found: &[ShownEntity]) -> Result<Vec<Further>, Problem> {
        let own: HashSet<String> = found.iter().flat_map(names).collect();
        let mut seen = own.clone();
        let relations = || found.iter().flat_map(|entity| &entity.relations);
        let near: Vec<&str> = relations()
            .map(|relation| relation.other.as_str())
            .filter(|other| seen.insert(other.to_lowercase()))
            .collect();
        let mut further = Vec::new();
        for by in near.into_iter().take(FOLLOWED) {
            let mut reached = self.memories()?.entities(&self.platform, at.clone(), by.to_owned()).await?;
            // A neighbour's name may also mean somebody else, who has nothing to do with these.
            reached.retain(|entity| entity.relations.iter().any(|it| own.contains(&it.other.to_lowercase())));
            for relation in reached.into_iter().flat_map(|entity| entity.relations) {
                if further.len() >= MAX_FURTHER {
                    return Ok(further);
                }
                if !relation.is_plain && seen.insert(relation.other.to_lowercase()) {
                    let (name, by) = (relation.other.clone(), by.to_owned());
                    further.push(Further { name, by, relation: relation.into() });
                }
            }
        }
        Ok(further)
    }
}

/// Returns every name of an entity in lower case.
fn names(entity: &ShownEntity) -> Vec<String> {
    let others = entity.other_names.iter().map(|(name, _)| name);
    std::iter::once(&entity.name).chain(others).map(|name| name.to_lowercase()).collect()
}

impl GraphEntity {
    fn shown(entity: ShownEntity, limit: usize) -> Self {
        let other = |(name, confidence)| OtherName { name, confidence };
        Self {
            name: entity.name,
            kind: entity.kind,
            other_names: entity.other_names.into_iter().map(other).collect(),
            mentions: entity.mentions,
            is_cut: entity.is_cut,
            total: entity.relations.len(),
            relations: entity.relations.into_iter().take(limit).map(GraphRelation::from).collect(),
        }
    }
}

impl From<ShownRelation> for GraphRelation {
    fn from(shown: ShownRelation) -> Self {
        Self {
            said: shown.said,
            other: shown.other,
            is_plain: shown.is_plain,
            confidence: shown.confidence,
            since: shown.since.to_string(),
            held_until: shown.until,
            memories: shown.sources.iter().take(MAX_SOURCES).map(ToString::to_string).collect(),
        }
    }
}

impl From<ShownMemory> for WholeMemory {
    fn from(memory: ShownMemory) -> Self {
        Self {
            id: memory.id.to_string(),
            content: memory.text.to_string(),
            kind: memory.kind,
            evidence: memory.evidence,
            author: memory.author.name().to_owned(),
            scope: memory.scope.to_string(),
            said_at: memory.at.to_string(),
            holds_since: memory.holding.holds_since,
            held_until: memory.holding.held_until,
            replaced_by: memory.holding.replaced_by.map(|by| by.0.to_string()),
        }
    }
}
