//! The rows of [`Table::Graph`]: one for each memory and node in it, with the node's neighbours in that memory. They are
//! computed from the memory, written and removed with it, and hold nothing that the memory does not say.
//!
//! A key is persona, scope, name, person and memory. So the nodes of one persona in one scope form one range.

use std::collections::BTreeMap;

use azera_types::{MemoryId, PersonId, Timestamp};

use super::extract::{Node, extract};
use super::relations::Label;
use crate::rows::MemoryRow;
use crate::{Batch, Error, Table, keys};

/// How strongly a memory joins two nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tie {
    /// Both are names of different things.
    Different = 0,
    /// Both are named in one sentence.
    Together = 1,
    /// A relation joins them.
    Typed = 2,
    /// Both are names of one thing.
    Same = 3,
}

impl Tie {
    fn of(label: Label) -> Self {
        match label {
            Label::Role(_) | Label::Verb(_) => Self::Typed,
            Label::Same => Self::Same,
            Label::Different => Self::Different,
            Label::Together => Self::Together,
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        [Self::Different, Self::Together, Self::Typed, Self::Same].into_iter().find(|tie| *tie as u8 == byte)
    }
}

/// Returns the rows of a memory, keys and values.
pub(crate) fn rows_of(memory: &MemoryRow) -> Vec<(Vec<u8>, Vec<u8>)> {
    let found = extract(memory);
    let mut nodes: BTreeMap<&Node, BTreeMap<&Node, Tie>> = BTreeMap::new();
    for mention in &found.mentions {
        nodes.entry(&mention.node).or_default();
    }
    for edge in &found.edges {
        let node = |index: usize| found.mentions.get(index).map(|mention| &mention.node);
        let Some((subject, object)) = node(edge.subject).zip(node(edge.object)).filter(|(a, b)| a != b) else {
            continue;
        };
        for (one, other) in [(subject, object), (object, subject)] {
            let tie = nodes.entry(one).or_default().entry(other).or_insert(Tie::of(edge.label));
            *tie = (*tie).max(Tie::of(edge.label));
        }
    }
    let scope = memory.scope.to_string();
    let row = |(node, neighbours): (&Node, BTreeMap<&Node, Tie>)| {
        let person = node.person.as_ref().map_or("", PersonId::as_str);
        let key = keys::numbered(&[memory.persona.as_str(), &scope, &node.name, person], memory.id.0);
        (key, value(memory.at, &neighbours))
    };
    nodes.into_iter().map(row).collect()
}

/// Adds the rows of a memory.
pub(crate) fn put(batch: &mut Batch, memory: &MemoryRow) {
    for (key, value) in rows_of(memory) {
        batch.put(Table::Graph, key, value);
    }
}

/// Removes the rows of a memory.
pub(crate) fn remove(batch: &mut Batch, memory: &MemoryRow) {
    for (key, _) in rows_of(memory) {
        batch.remove(Table::Graph, key);
    }
}

/// Replaces the rows of a memory whose text changed.
pub(crate) fn change(batch: &mut Batch, old: &MemoryRow, new: &MemoryRow) {
    remove(batch, old);
    put(batch, new);
}

fn value(at: Timestamp, neighbours: &BTreeMap<&Node, Tie>) -> Vec<u8> {
    let mut value = at.as_millisecond().to_be_bytes().to_vec();
    for (node, tie) in neighbours {
        value.push(*tie as u8);
        value.extend_from_slice(&node_key(node));
    }
    value
}

/// Returns the part of a key that is the same for all rows of a node in a scope.
pub(super) fn node_key(node: &Node) -> Vec<u8> {
    keys::prefix(&[&node.name, node.person.as_ref().map_or("", PersonId::as_str)])
}

/// Returns when the memory of a row was said; `None` if the row is damaged.
pub(super) fn said_at(value: &[u8]) -> Option<Timestamp> {
    let (at, _) = value.split_first_chunk::<8>()?;
    Timestamp::from_millisecond(i64::from_be_bytes(*at)).ok()
}

/// A row, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) node: Node,
    pub(super) memory: MemoryId,
    pub(super) at: Timestamp,
    pub(super) neighbours: Vec<(Node, Tie)>,
}

/// Reads a row under the prefix of a persona and a scope.
pub(super) fn read(prefix: &[u8], key: &[u8], value: &[u8]) -> Result<Row, Error> {
    let damaged = || Error::Damaged { table: Table::Graph.name(), why: "a row cannot be read".into() };
    let memory = MemoryId(keys::number(Table::Graph.name(), key)?);
    let named = key.get(prefix.len()..key.len().saturating_sub(8)).ok_or_else(damaged)?;
    let mut parts = keys::parts(named);
    let node = node(parts.next(), parts.next()).ok_or_else(damaged)?;
    let at = said_at(value).ok_or_else(damaged)?;
    let mut rest = value.get(8..).unwrap_or_default();
    let mut neighbours = Vec::new();
    while let Some((tie, behind)) = rest.split_first() {
        let mut parts = behind.splitn(3, |byte| *byte == 0);
        let other = self::node(parts.next(), parts.next()).ok_or_else(damaged)?;
        neighbours.push((other, Tie::from_byte(*tie).ok_or_else(damaged)?));
        rest = parts.next().ok_or_else(damaged)?;
    }
    Ok(Row { node, memory, at, neighbours })
}

fn node(name: Option<&[u8]>, person: Option<&[u8]>) -> Option<Node> {
    let name = std::str::from_utf8(name?).ok()?.to_owned();
    let person = std::str::from_utf8(person?).ok()?;
    let person = if person.is_empty() { None } else { Some(PersonId::new(person).ok()?) };
    Some(Node { name, person })
}
