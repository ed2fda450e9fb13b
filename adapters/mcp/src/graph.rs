//! Tools of the knowledge graph: `relations` and `graph_explore` read it, `relate` and `unrelate` say whether two names mean
//! the same.

use std::collections::{HashSet, VecDeque};

use azera_adapter::{Reading, ShownEntity, ShownRelation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::session::Caller;
use crate::texts::QUOTED;
use crate::writing::Done;

/// Most steps from the first name, and the number unless given.
const MAX_STEPS: usize = 3;
const STEPS: usize = 2;

/// Most entities that one exploration returns.
const MAX_ENTITIES: usize = 24;

/// Relations of one entity that an exploration follows.
const FOLLOWED: usize = 8;

/// A name.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfName {
    /// The name of somebody or something.
    pub(crate) name: String,
}

/// Where an exploration begins, and how far it goes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Beginning {
    /// The name of somebody or something.
    name: String,
    /// Most steps from it, 1 to 3; 2 unless given.
    #[serde(default)]
    steps: Option<usize>,
}

/// Two names of what people spoke about.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TwoNames {
    /// The one name, as people say it.
    name: String,
    /// The other name.
    other: String,
}

/// A relation.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Relation {
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
    /// Until when it held, such as `2026-08-03`: all who said it said something else instead. It is missing while it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_until: Option<String>,
    /// The ids of the memories that say it, newest first.
    memories: Vec<String>,
}

/// Somebody or something.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Entity {
    /// The name.
    name: String,
    /// `person`, `place`, `thing` or `project`, if relations show it.
    kind: Option<&'static str>,
    /// Other names of the same.
    other_names: Vec<String>,
    /// How many memories name it.
    mentions: usize,
    /// True if older memories may name it, too, which were too many to be read.
    is_cut: bool,
    /// How many steps it is away from the first name.
    steps: usize,
    /// How it belongs together with others, typed relations first.
    relations: Vec<Relation>,
}

/// A part of the graph.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Entities {
    /// What the texts are.
    notice: &'static str,
    /// The entities, nearest first.
    entities: Vec<Entity>,
}

impl From<ShownRelation> for Relation {
    fn from(shown: ShownRelation) -> Self {
        Self {
            said: shown.said,
            other: shown.other,
            is_plain: shown.is_plain,
            confidence: shown.confidence,
            since: shown.since.to_string(),
            held_until: shown.until,
            memories: shown.sources.iter().map(ToString::to_string).collect(),
        }
    }
}

impl Entity {
    fn shown(entity: ShownEntity, steps: usize) -> Self {
        Self {
            name: entity.name,
            kind: entity.kind,
            other_names: entity.other_names.into_iter().map(|(name, _)| name).collect(),
            mentions: entity.mentions,
            is_cut: entity.is_cut,
            steps,
            relations: entity.relations.into_iter().map(Relation::from).collect(),
        }
    }
}

impl Caller {
    async fn entities(&self, at: &Reading, name: &str) -> Result<Vec<ShownEntity>, Failure> {
        Ok(self.engine.memories.entities(&self.session.platform, at.clone(), name.to_owned()).await?)
    }

    pub(crate) async fn relations(&self, of: OfName) -> Result<Entities, Failure> {
        let at = self.begin().await?;
        let found = self.entities(&at, &of.name).await?;
        if found.is_empty() {
            return Err(unknown(&of.name));
        }
        let entities = found.into_iter().map(|entity| Entity::shown(entity, 0)).collect();
        Ok(Entities { notice: QUOTED, entities })
    }

    /// States that two names mean the same, or do not. The statement is a memory of the person, so forgetting it undoes it.
    pub(crate) async fn relate(&self, names: TwoNames, is_same: bool) -> Result<Done, Failure> {
        let (name, other) = (plain(&names.name, "name")?, plain(&names.other, "other")?);
        let verb = if is_same { "merge" } else { "split" };
        self.begin().await?;
        Ok(Done { answer: self.command(&format!("/graph {verb} {name} = {other}")).await? })
    }

    pub(crate) async fn explore(&self, from: Beginning) -> Result<Entities, Failure> {
        let most = from.steps.unwrap_or(STEPS);
        if !(1..=MAX_STEPS).contains(&most) {
            return Err(Failure::invalid(format!("{most} steps: use 1 to {MAX_STEPS}.")));
        }
        let at = self.begin().await?;
        let mut waiting = VecDeque::from([(from.name.clone(), 0)]);
        let mut asked: HashSet<String> = HashSet::new();
        let mut known: HashSet<String> = HashSet::new();
        let mut entities = Vec::new();
        while let Some((name, steps)) = waiting.pop_front().filter(|_| entities.len() < MAX_ENTITIES) {
            if !asked.insert(name.to_lowercase()) {
                continue;
            }
            for entity in self.entities(&at, &name).await? {
                if !known.insert(entity.name.to_lowercase()) || entities.len() >= MAX_ENTITIES {
                    continue;
                }
                if steps < most {
                    let next = entity.relations.iter().take(FOLLOWED).map(|relation| relation.other.clone());
                    waiting.extend(next.map(|name| (name, steps + 1)));
                }
                entities.push(Entity::shown(entity, steps));
            }
        }
        if entities.is_empty() {
            return Err(unknown(&from.name));
        }
        Ok(Entities { notice: QUOTED, entities })
    }
}

/// Returns a name that can stand in a command.
fn plain<'a>(name: &'a str, field: &str) -> Result<&'a str, Failure> {
    let name = name.trim();
    if name.is_empty() || name.contains('=') || name.contains(char::is_control) {
        return Err(Failure::invalid(format!("`{field}` must be a name on one line, without `=`.")));
    }
    Ok(name)
}

fn unknown(name: &str) -> Failure {
    Failure::refused(format!("Nobody named {name:?} in what this session may read. Try `recall`."))
}
