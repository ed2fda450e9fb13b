//! Reads the graph for people. Rows of the index lead to memories; what is shown is read from the memories themselves,
//! each under the read scope.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use azera_types::{MemoryId, PersonId, Timestamp};

use super::ended::{Ends, Saying, ended};
use super::extract::{Extracted, Node, extract};
use super::mentions::folded_name;
use super::related::{Related, related, scan};
use super::relations::Label;
use super::resolve::{Resolved, Seen, Stated, is_short_of, resolve};
use super::spread::rows_of_node;
use crate::domains::Graph;
use crate::rows::MemoryRow;
use crate::when::Calendar;
use crate::{Error, ReadScope, Stretch};

/// Most links returned of one entity.
pub const MAX_LINKS: usize = 40;

/// Most names that [`Graph::names`] returns.
pub const MAX_SUGGESTED: usize = 30;

/// Most memories read for one name: the newest ones, of which at least half name it in just this way if so many do.
const MAX_MEMORIES: usize = 400;

/// Most mentions read for one name: no further memory is read beyond it.
const MAX_MENTIONS: usize = 8_192;

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
    /// True if older memories may name it, too, which were too many to be read.
    pub is_cut: bool,
    /// How it is joined with others, typed relations first, and of those the ones that still hold.
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
    /// When it ceased to hold, because all who said it said something else instead; `None` while it holds.
    pub until: Option<Stretch>,
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

/// The names that are named most. `Debug` shows none.
#[derive(Clone, Default, PartialEq)]
pub struct Names {
    /// The names as they were written last, each with the number of memories that name it.
    pub most: Vec<(String, usize)>,
    /// True if there were too many to count all.
    pub is_cut: bool,
}

impl std::fmt::Debug for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Names[{}]", self.most.len())
    }
}

/// Memories with what they say of the graph.
pub(super) struct Sources(pub(super) Vec<(MemoryRow, Extracted)>);

impl Sources {
    /// Returns what every mention means, by memory and number.
    pub(super) fn resolved(&self) -> Vec<Vec<Resolved>> {
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
    pub fn about(self, read_scope: &ReadScope, name: &str, calendar: &Calendar) -> Result<Vec<Entity>, Error> {
        let Some(name) = folded_name(name) else { return Ok(Vec::new()) };
        let Related { nodes, is_cut } = related(self.0.store.as_ref(), read_scope, &name)?;
        let (sources, is_read_in_part) = self.sources_of(read_scope, &name, &nodes)?;
        let resolved = sources.resolved();
        let ends = self.ends(read_scope, &sources, calendar)?;
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
            wanted.iter().filter_map(|entity| entity_of(&sources, &resolved, &ends, entity)).collect();
        entities.iter_mut().for_each(|entity| entity.is_cut = is_cut || is_read_in_part);
        entities.sort_by(|a, b| b.mentions.cmp(&a.mentions).then_with(|| a.name.cmp(&b.name)));
        Ok(entities)
    }

    /// Returns the names that are named most where `read_scope` allows it, at most [`MAX_SUGGESTED`].
    pub fn names(self, read_scope: &ReadScope) -> Result<Names, Error> {
        let mut counts: HashMap<Node, (usize, MemoryId)> = HashMap::new();
        let is_cut = scan(self.0.store.as_ref(), read_scope, |row| {
            let count = counts.entry(row.node).or_insert((0, row.memory));
            *count = (count.0 + 1, count.1.max(row.memory));
        })?;
        let mut most: Vec<(Node, (usize, MemoryId))> = counts.into_iter().collect();
        most.sort_by(|a, b| b.1.0.cmp(&a.1.0).then_with(|| a.0.cmp(&b.0)));
        let mut names = Names { most: Vec::new(), is_cut };
        for (node, (count, memory)) in most.into_iter().take(MAX_SUGGESTED) {
            let Some(memory) = self.0.memories().get(read_scope, memory)? else { continue };
            let found = extract(&memory).mentions.into_iter().find(|mention| mention.node == node);
            names.most.extend(found.map(|mention| (mention.written, count)));
        }
        Ok(names)
    }

    /// Reads the memories of some nodes. Returns true if they are too many.
    fn sources_of(self, read_scope: &ReadScope, name: &str, nodes: &BTreeSet<Node>) -> Result<(Sources, bool), Error> {
        let (mut all, mut own): (BTreeSet<MemoryId>, BTreeSet<MemoryId>) = Default::default();
        for node in nodes {
            let rows = rows_of_node(self.0.store.as_ref(), read_scope, node, MAX_MEMORIES + 1)?;
            all.extend(rows.iter().map(|row| row.memory));
            if node.name == name {
                own.extend(rows.iter().map(|row| row.memory));
            }
        }
        let mut ids: BTreeSet<MemoryId> = own.into_iter().rev().take(MAX_MEMORIES / 2).collect();
        for id in all.iter().rev() {
            if ids.len() >= MAX_MEMORIES {
                break;
            }
            ids.insert(*id);
        }
        let (sources, is_cut) = self.read(read_scope, &ids)?;
        Ok((sources, is_cut || all.len() > ids.len()))
    }

    /// Reads memories, the newest first, up to [`MAX_MENTIONS`]. The record decides which of them may be shown. Returns
    /// true if some are left.
    pub(super) fn read(self, read_scope: &ReadScope, ids: &BTreeSet<MemoryId>) -> Result<(Sources, bool), Error> {
        let (mut sources, mut mentions, mut left) = (Vec::new(), 0, ids.len());
        for id in ids.iter().rev() {
            if mentions >= MAX_MENTIONS {
                break;
            }
            left -= 1;
            if let Some(memory) = self.0.memories().get(read_scope, *id)? {
                let found = extract(&memory);
                mentions += found.mentions.len();
                sources.push((memory, found));
            }
        }
        sources.reverse();
        Ok((Sources(sources), left > 0))
    }
}

/// Puts together what the memories say of one entity.
fn entity_of(sources: &Sources, resolved: &[Vec<Resolved>], ends: &Ends, entity: &Node) -> Option<Entity> {
    let mut names: BTreeMap<String, (Timestamp, String, f32)> = BTreeMap::new();
    let mut kinds: BTreeMap<EntityKind, usize> = BTreeMap::new();
    let mut links: BTreeMap<(Label, bool, Node), Drawn> = BTreeMap::new();
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
            let saying = ends.saying(memory, &edge.words);
            add_link(&mut links, (memory, saying), found, resolved, edge, is_own(edge.subject));
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
    let link = |(link, sayings): Drawn| EntityLink { until: ended(&sayings), ..link };
    let mut links: Vec<EntityLink> = links.into_values().map(link).collect();
    let rank = |link: &EntityLink| {
        (link.label == Label::Together, link.until.is_some(), std::cmp::Reverse(link.sources.len()))
    };
    links.sort_by(|a, b| rank(a).cmp(&rank(b)).then(b.said.1.cmp(&a.said.1)).then_with(|| a.other.cmp(&b.other)));
    links.truncate(MAX_LINKS);
    Some(Entity { name, person: entity.person.clone(), kind, other_names, mentions, named, is_cut: false, links })
}

/// A link, and by whose words it is drawn.
type Drawn = (EntityLink, Vec<Saying>);

fn add_link(
    links: &mut BTreeMap<(Label, bool, Node), Drawn>,
    (memory, saying): (&MemoryRow, Saying),
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
    let new = || EntityLink {
        label: edge.label,
        subject: written(edge.subject),
        object: written(edge.object),
        other: written(other_index),
        confidence,
        said: (memory.at, memory.at),
        until: None,
        sources: Vec::new(),
        words: String::new(),
    };
    let key = (edge.label, is_subject, other.entity.clone());
    let (link, sayings) = links.entry(key).or_insert_with(|| (new(), Vec::new()));
    sayings.push(saying);
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
