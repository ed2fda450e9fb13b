//! What one memory says of the graph. It is computed from the memory's row alone, so it can always be computed again.

use std::ops::Range;

use azera_types::PersonId;
use serde::Serialize;

use super::mentions::{self, folded_name};
use super::read::EntityKind;
use super::relations::{self, Label, Side};
use super::sentences::sentences;
use super::statement;
use crate::rows::{Kind, MemoryRow};

/// Most names read from one memory.
const MAX_NAMES: usize = 64;

/// Confidence of a statement that two names mean one or two things.
const SURE: f32 = 1.0;

/// A node: a folded name, or a person who said something under that name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) person: Option<PersonId>,
}

impl Node {
    pub(crate) fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), person: None }
    }
}

/// A node as one memory names it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mention {
    pub(super) node: Node,
    /// As it was written.
    pub(super) written: String,
    /// Its place in the text; `None` for the author.
    pub(super) place: Option<Range<usize>>,
    pub(super) kind: Option<EntityKind>,
}

/// A relation between two mentions, by their numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Edge {
    pub(super) subject: usize,
    pub(super) object: usize,
    pub(super) label: Label,
    pub(super) confidence: f32,
    /// The words that say it, in the text.
    pub(super) words: Range<usize>,
}

/// The part of the graph that rests on one memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Extracted {
    pub(super) mentions: Vec<Mention>,
    pub(super) edges: Vec<Edge>,
}

/// Returns true if a memory holds a person's own words that were built on nothing else. Only those make up the graph.
fn is_source(memory: &MemoryRow) -> bool {
    matches!(memory.kind, Kind::Message | Kind::Fact)
        && memory.author.person().is_some()
        && memory.source_scopes.is_empty()
}

/// Returns what a memory says of the graph.
pub(super) fn extract(memory: &MemoryRow) -> Extracted {
    if !is_source(memory) {
        return Extracted::default();
    }
    let text = memory.text.as_str();
    if let Some(stated) = statement::parse(text) {
        return statement_of(text, &stated);
    }
    let sentences = sentences(text);
    let mut names = mentions::names(text, &sentences);
    let mut left = MAX_NAMES;
    for names in &mut names {
        names.truncate(left);
        left -= names.len();
    }
    let relations = relations::relations(&sentences, &names);
    let mut found = Extracted::default();
    for named in names.iter().flatten() {
        let written = text.get(named.from..named.to).unwrap_or_default().to_owned();
        let place = Some(named.from..named.to);
        found.mentions.push(Mention { node: Node::named(&*named.name), written, place, kind: None });
    }
    let author = author_of(memory);
    if let Some(author) = author.filter(|_| !found.mentions.is_empty()) {
        found.mentions.push(author);
    }
    let author = found.mentions.iter().position(|mention| mention.place.is_none());
    let index = |side: Side| match side {
        Side::Author => author,
        Side::Name(number) => Some(number),
    };
    for relation in relations {
        let Some((subject, object)) = index(relation.subject).zip(index(relation.object)) else { continue };
        for (number, kind) in [(subject, relation.subject_kind), (object, relation.object_kind)] {
            if let Some(mention) = found.mentions.get_mut(number) {
                mention.kind = mention.kind.or(kind);
            }
        }
        let (label, confidence, words) = (relation.label, relation.confidence, relation.words);
        found.edges.push(Edge { subject, object, label, confidence, words });
    }
    found
}

/// Returns the author as a mention; `None` if the author's name has no letters.
fn author_of(memory: &MemoryRow) -> Option<Mention> {
    let person = memory.author.person()?.clone();
    let name = folded_name(memory.author.name()).or_else(|| folded_name(person.as_str()))?;
    let node = Node { name, person: Some(person) };
    Some(Mention { node, written: memory.author.name().to_owned(), place: None, kind: Some(EntityKind::Person) })
}

fn statement_of(text: &str, stated: &statement::Statement) -> Extracted {
    let mention = |place: &Range<usize>| {
        let written = text.get(place.clone())?;
        let node = Node::named(folded_name(written)?);
        Some(Mention { node, written: written.to_owned(), place: Some(place.clone()), kind: None })
    };
    let Some((one, other)) = mention(&stated.one).zip(mention(&stated.other)) else { return Extracted::default() };
    let label = if stated.is_same { Label::Same } else { Label::Different };
    let edge = Edge { subject: 0, object: 1, label, confidence: SURE, words: 0..text.len() };
    Extracted { mentions: vec![one, other], edges: vec![edge] }
}

/// A relation that a memory says, for the export of its author's data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Said {
    subject: String,
    relation: &'static str,
    object: String,
    /// The words that say it, as a range of bytes of the text.
    from: usize,
    to: usize,
}

/// Returns the relations that a memory says.
pub(crate) fn said(memory: &MemoryRow) -> Vec<Said> {
    let found = extract(memory);
    let written = |index: usize| found.mentions.get(index).map(|mention| mention.written.clone()).unwrap_or_default();
    let said = |edge: &Edge| Said {
        subject: written(edge.subject),
        relation: edge.label.words(),
        object: written(edge.object),
        from: edge.words.start,
        to: edge.words.end,
    };
    found.edges.iter().map(said).collect()
}
