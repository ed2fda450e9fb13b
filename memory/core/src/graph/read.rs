//! Reads the graph for people. Rows of the index lead to memories; what is shown is read from the memories themselves,
//! each under the read scope.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use azera_types::{MemoryId, PersonId, Timestamp};

use super::extract::{Extracted, Node, extract};
use super::mentions::folded_name;
use super::relations::Label;
use super::resolve::{Resolved, Seen, Stated, is_short_of, resolve};
use super::rows;
use super::spread::{prefix_of, rows_of_node};
use crate::domains::Graph;
use crate::rows::MemoryRow;
use crate::{Error, Order, ReadScope, Table};

/// Most links returned of one entity.
pub const MAX_LINKS: usize = 40;

/// Most names that [`Graph::names`] returns.
pub const MAX_SUGGESTED: usize = 30;

/// Most memories read for one name.
const MAX_MEMORIES: usize = 400;

/// Most rows that a look over all names reads in one scope.
const MAX_SCANNED: usize = 20_000;

/// Most nodes that one name leads to.
const MAX_NODES: usize = 24;

/// Rows read at a time.
const PAGE: usize = 512;

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntityKind {
    /// Somebody.
    Person,
    /// Somewhere.
    Place,
    /// Something, an organisation or an animal.
    Thing,
    /// Something that people work on.
    Project,
}

impl EntityKind {
    /// Returns the displayed name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Place => "place",
            Self::Thing => "thing",
            Self::Project => "project",
        }
    }
}

/// Somebody or something that people name. `Debug` shows no names.
#[derive(Clone, PartialEq)]
pub struct Entity {
    /// The name, as it was written last.
    pub name: String,
    /// The person, if somebody speaks under that name.
    pub person: Option<PersonId>,
    /// What it is, as far as relations show.
    pub kind: Option<EntityKind>,
    /// Other names that mean the same, each with the least confidence of its mentions.
    pub other_names: Vec<(String, f32)>,
    /// The memories that name it.
    pub mentions: usize,
    /// When it was named first and last.
    pub named: (Timestamp, Timestamp),
    /// How it is joined with others, typed relations first.
    pub links: Vec<EntityLink>,
}

impl std::fmt::Debug for Entity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Entity[{} mentions, {} links]", self.mentions, self.links.len())
    }
}

/// How an entity is joined with another one. `Debug` shows no names.
#[derive(Clone, PartialEq)]
pub struct EntityLink {
    /// The relation.
    pub label: Label,
    /// The names of both sides, as they were written last.
    pub subject: String,
    /// See [`EntityLink::subject`].
    pub object: String,
    /// The name of the other entity.
    pub other: String,
    /// How surely the words say it, and mean these two; 0 to 1.
    pub confidence: f32,
    /// When it was said first and last.
    pub said: (Timestamp, Timestamp),
    /// The memories that say it, newest first.
    pub sources: Vec<MemoryId>,
    /// The newest words that say it.
    pub words: String,
}

impl std::fmt::Debug for EntityLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EntityLink").field("label", &self.label).field("sources", &self.sources).finish_non_exhaustive()
    }
}

/// One mention and what it means.
#[derive(Clone, PartialEq)]
pub struct MentionOf {
    /// The memory.
    pub memory: MemoryId,
    /// Its place in the memory's text, in bytes.
    pub place: std::ops::Range<usize>,
    /// A name and a person that stand for the entity.
    pub entity: (String, Option<PersonId>),
    /// How surely.
    pub confidence: f32,
}

impl std::fmt::Debug for MentionOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MentionOf({})", self.memory)
    }
}

/// Memories with what they say of the graph.
struct Sources(Vec<(MemoryRow, Extracted)>);

impl Sources {
    /// Returns what every mention means, by memory and number.
    fn resolved(&self) -> Vec<Vec<Resolved>> {
        let mut seen = Vec::new();
        let mut stated = Vec::new();
        for (memory, found) in &self.0 {
            for (number, mention) in found.mentions.iter().enumerate() {
                let other = |edge: &super::extract::Edge| match number {
                    number if edge.subject == number => Some(edge.object),
                    number if edge.object == number => Some(edge.subject),
                    _ => None,
                };
                let edges = found.edges.iter().filter(|edge| !matches!(edge.label, Label::Same | Label::Different));
                let beside = edges.filter_map(other).filter_map(|index| found.mentions.get(index));
                seen.push(Seen {
                    node: &mention.node,
                    author: memory.author.person(),
                    chat: memory.chat.as_ref(),
                    at: memory.at,
                    beside: beside.map(|mention| &mention.node).collect(),
                });
            }
            for edge in found.edges.iter().filter(|edge| matches!(edge.label, Label::Same | Label::Different)) {
                let name = |index: usize| found.mentions.get(index).map(|mention| mention.node.name.as_str());
                let Some((one, other)) = name(edge.subject).zip(name(edge.object)) else { continue };
                stated.push(Stated { one, other, is_same: edge.label == Label::Same, at: memory.at });
            }
        }
        let mut resolved = resolve(&seen, &stated).into_iter();
        self.0.iter().map(|(_, found)| resolved.by_ref().take(found.mentions.len()).collect()).collect()
    }
}

impl Graph<'_> {
    /// Returns what is known of a name, as far as `read_scope` allows: one entity, or several if the name may mean
    /// several. The one named most comes first.
    pub fn about(self, read_scope: &ReadScope, name: &str) -> Result<Vec<Entity>, Error> {
        let Some(name) = folded_name(name) else { return Ok(Vec::new()) };
        let nodes = self.nodes_of(read_scope, &name)?;
        let sources = self.sources_of(read_scope, &nodes)?;
        let resolved = sources.resolved();
        let mut wanted: BTreeSet<Node> = BTreeSet::new();
        for ((_, found), resolved) in sources.0.iter().zip(&resolved) {
            for (mention, resolved) in found.mentions.iter().zip(resolved) {
                if mention.node.name == name || is_short_of(&name, &mention.node.name) && nodes.contains(&mention.node)
                {
                    wanted.insert(resolved.entity.clone());
                }
            }
        }
        let mut entities: Vec<Entity> =
            wanted.iter().filter_map(|entity| entity_of(&sources, &resolved, entity)).collect();
        entities.sort_by(|a, b| b.mentions.cmp(&a.mentions).then_with(|| a.name.cmp(&b.name)));
        Ok(entities)
    }

    /// Returns the names that are named most where `read_scope` allows it, with the number of their memories.
    pub fn names(self, read_scope: &ReadScope) -> Result<Vec<(String, usize)>, Error> {
        let mut counts: HashMap<Node, (usize, MemoryId)> = HashMap::new();
        self.scan(read_scope, |row| {
            let count = counts.entry(row.node).or_insert((0, row.memory));
            *count = (count.0 + 1, count.1.max(row.memory));
        })?;
        let mut most: Vec<(Node, (usize, MemoryId))> = counts.into_iter().collect();
        most.sort_by(|a, b| b.1.0.cmp(&a.1.0).then_with(|| a.0.cmp(&b.0)));
        let mut names: Vec<(String, usize)> = Vec::new();
        for (node, (count, memory)) in most.into_iter().take(MAX_SUGGESTED) {
            let Some(memory) = self.0.memories().get(read_scope, memory)? else { continue };
            let found = extract(&memory).mentions.into_iter().find(|mention| mention.node == node);
            names.extend(found.map(|mention| (mention.written, count)));
        }
        Ok(names)
    }

    /// Returns every mention that `read_scope` allows and what it means, in the order of the memories.
    pub fn mentions(self, read_scope: &ReadScope) -> Result<Vec<MentionOf>, Error> {
        let mut ids = BTreeSet::new();
        self.scan(read_scope, |row| {
            ids.insert(row.memory);
        })?;
        let sources = self.read(read_scope, ids.into_iter())?;
        let resolved = sources.resolved();
        let of = |((memory, found), resolved): (&(MemoryRow, Extracted), Vec<Resolved>)| {
            let id = memory.id;
            let named = found.mentions.iter().zip(resolved).filter_map(move |(mention, resolved)| {
                let (entity, confidence) = ((resolved.entity.name, resolved.entity.person), resolved.confidence);
                Some(MentionOf { memory: id, place: mention.place.clone()?, entity, confidence })
            });
            named.collect::<Vec<_>>()
        };
        Ok(sources.0.iter().zip(resolved).flat_map(of).collect())
    }

    /// Returns the nodes that a name may have to do with: its own, longer and shorter ones, and those that statements
    /// join with one of them.
    fn nodes_of(self, read_scope: &ReadScope, name: &str) -> Result<BTreeSet<Node>, Error> {
        let (mut all, mut stated): (BTreeSet<Node>, Vec<(Node, Node)>) = (BTreeSet::new(), Vec::new());
        self.scan(read_scope, |row| {
            let same = row.neighbours.iter().filter(|(_, tie)| matches!(tie, rows::Tie::Same | rows::Tie::Different));
            stated.extend(same.map(|(other, _)| (row.node.clone(), other.clone())));
            all.insert(row.node);
        })?;
        let mut names: BTreeSet<String> = BTreeSet::from([name.to_owned()]);
        for _ in 0..3 {
            let related = |node: &&Node| {
                names
                    .iter()
                    .any(|name| *name == node.name || is_short_of(name, &node.name) || is_short_of(&node.name, name))
            };
            let mut more: BTreeSet<String> = all.iter().filter(related).map(|node| node.name.clone()).collect();
            for (one, other) in &stated {
                if names.contains(&one.name) {
                    more.insert(other.name.clone());
                }
            }
            let before = names.len();
            names.extend(more);
            if names.len() == before {
                break;
            }
        }
        let people: BTreeSet<&PersonId> =
            all.iter().filter(|node| names.contains(&node.name)).filter_map(|node| node.person.as_ref()).collect();
        let wanted = |node: &&Node| {
            names.contains(&node.name) || node.person.as_ref().is_some_and(|person| people.contains(person))
        };
        let mut found: Vec<&Node> = all.iter().filter(wanted).collect();
        // The name itself first.
        found.sort_by_key(|node| node.name != name);
        Ok(found.into_iter().take(MAX_NODES).cloned().collect())
    }

    fn sources_of(self, read_scope: &ReadScope, nodes: &BTreeSet<Node>) -> Result<Sources, Error> {
        let mut ids = BTreeSet::new();
        for node in nodes {
            ids.extend(rows_of_node(self.0.store.as_ref(), read_scope, node)?.into_iter().map(|row| row.memory));
        }
        let newest = ids.into_iter().rev().take(MAX_MEMORIES).collect::<BTreeSet<_>>();
        self.read(read_scope, newest.into_iter())
    }

    /// Reads memories. The record decides which of them may be shown.
    fn read(self, read_scope: &ReadScope, ids: impl Iterator<Item = MemoryId>) -> Result<Sources, Error> {
        let mut sources = Vec::new();
        for id in ids {
            if let Some(memory) = self.0.memories().get(read_scope, id)? {
                let found = extract(&memory);
                sources.push((memory, found));
            }
        }
        Ok(Sources(sources))
    }

    /// Visits the rows of all names that may be read, at most [`MAX_SCANNED`] in each scope.
    fn scan(self, read_scope: &ReadScope, mut visit: impl FnMut(rows::Row)) -> Result<(), Error> {
        for grant in read_scope.grants() {
            let prefix = prefix_of(read_scope, grant);
            let (mut after, mut left): (Option<Vec<u8>>, usize) = (None, MAX_SCANNED);
            loop {
                let page = self.0.store.scan(Table::Graph, &prefix, after.as_deref(), Order::Ascending, PAGE)?;
                for (key, value) in &page {
                    let row = rows::read(&prefix, key, value)?;
                    if grant.since.is_none_or(|since| row.at >= since) {
                        visit(row);
                    }
                }
                left = left.saturating_sub(page.len());
                if page.len() < PAGE || left == 0 {
                    break;
                }
                after = page.into_iter().next_back().map(|(key, _)| key);
            }
        }
        Ok(())
    }
}

/// Puts together what the memories say of one entity.
fn entity_of(sources: &Sources, resolved: &[Vec<Resolved>], entity: &Node) -> Option<Entity> {
    let mut names: BTreeMap<String, (Timestamp, String, f32)> = BTreeMap::new();
    let mut kinds: BTreeMap<EntityKind, usize> = BTreeMap::new();
    let mut links: BTreeMap<(Label, bool, Node), EntityLink> = BTreeMap::new();
    let mut named: Option<(Timestamp, Timestamp)> = None;
    let mut mentions = 0;
    for ((memory, found), resolved) in sources.0.iter().zip(resolved) {
        let is_own = |index: usize| resolved.get(index).is_some_and(|resolved| resolved.entity == *entity);
        let own = found.mentions.iter().zip(resolved).filter(|(_, resolved)| resolved.entity == *entity);
        let mut is_named = false;
        for (mention, resolved) in own {
            is_named |= mention.place.is_some();
            let (at, confidence) = (memory.at, resolved.confidence);
            let name = names.entry(mention.node.name.clone()).or_insert((at, mention.written.clone(), confidence));
            if at >= name.0 {
                (name.0, name.1) = (at, mention.written.clone());
            }
            name.2 = name.2.min(confidence);
            if let Some(kind) = mention.kind {
                *kinds.entry(kind).or_default() += 1;
            }
            named = Some(named.map_or((at, at), |(first, last)| (first.min(at), last.max(at))));
        }
        mentions += usize::from(is_named);
        for edge in found.edges.iter().filter(|edge| is_own(edge.subject) != is_own(edge.object)) {
            add_link(&mut links, memory, found, resolved, edge, is_own(edge.subject));
        }
    }
    let named = named?;
    let last = names.values().max_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.len().cmp(&b.1.len())))?.1.clone();
    // The fullest name stands for the others.
    let name = names.values().map(|(_, written, _)| written).max_by_key(|name| name.split(' ').count());
    let name = name.filter(|name| name.contains(' ')).cloned().unwrap_or(last);
    let others = names.values().filter(|(_, written, _)| *written != name);
    let other_names = others.map(|(_, written, confidence)| (written.clone(), *confidence)).collect();
    let kind = kinds.into_iter().max_by_key(|(_, count)| *count).map(|(kind, _)| kind);
    let mut links: Vec<EntityLink> = links.into_values().collect();
    let rank = |link: &EntityLink| (link.label == Label::Together, std::cmp::Reverse(link.sources.len()));
    links.sort_by(|a, b| rank(a).cmp(&rank(b)).then(b.said.1.cmp(&a.said.1)).then_with(|| a.other.cmp(&b.other)));
    links.truncate(MAX_LINKS);
    Some(Entity { name, person: entity.person.clone(), kind, other_names, mentions, named, links })
}

fn add_link(
    links: &mut BTreeMap<(Label, bool, Node), EntityLink>,
    memory: &MemoryRow,
    found: &Extracted,
    resolved: &[Resolved],
    edge: &super::extract::Edge,
    is_subject: bool,
) {
    let written = |index: usize| found.mentions.get(index).map(|mention| mention.written.clone()).unwrap_or_default();
    let other_index = if is_subject { edge.object } else { edge.subject };
    let Some(other) = resolved.get(other_index) else { return };
    let sure = |index: usize| resolved.get(index).map_or(0.0, |resolved| resolved.confidence);
    let confidence = edge.confidence * sure(edge.subject) * sure(edge.object);
    let link = links.entry((edge.label, is_subject, other.entity.clone())).or_insert_with(|| EntityLink {
        label: edge.label,
        subject: written(edge.subject),
        object: written(edge.object),
        other: written(other_index),
        confidence,
        said: (memory.at, memory.at),
        sources: Vec::new(),
        words: String::new(),
    });
    if memory.at >= link.said.1 {
        (link.subject, link.object, link.other) = (written(edge.subject), written(edge.object), written(other_index));
        link.words = memory.text.as_str().get(edge.words.clone()).unwrap_or_default().to_owned();
    }
    link.said = (link.said.0.min(memory.at), link.said.1.max(memory.at));
    link.confidence = link.confidence.max(confidence);
    if !link.sources.contains(&memory.id) {
        link.sources.insert(0, memory.id);
    }
}
