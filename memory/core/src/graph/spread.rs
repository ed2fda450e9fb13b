//! Spreading from the nodes that a text names: a best-first search with limits. A row counts only in a scope that may
//! be read, and only if it is not older than the readers may see.

use std::collections::{BinaryHeap, HashMap, HashSet};

use azera_types::{MemoryId, Timestamp};

use super::extract::Node;
use super::rows::{self, Row, Tie};
use super::sentences::{Token, sentences};
use crate::domains::Graph;
use crate::recall::question::is_filler;
use crate::words::is_function_word;
use crate::{Error, Grant, Order, ReadScope, Store, Table, keys};

/// Most nodes whose rows are read.
const MAX_NODES: usize = 24;

/// Newest rows read of one node in one scope.
const MAX_ROWS: usize = 16;

/// Most rows read in all.
const MAX_READ: usize = 256;

/// Most names of a text that are looked up, over all scopes.
const MAX_LOOKUPS: usize = 384;

/// Words of the longest name that is looked up.
const MAX_WORDS: usize = 3;

/// Most longer names that one name may stand for.
const MAX_LONGER: usize = 2;

/// How much of a node's weight reaches a neighbour.
const TYPED: f32 = 0.7;
const TOGETHER: f32 = 0.35;

/// Weight below which nothing is followed.
const LEAST: f32 = 0.1;

/// Rows from which a node passes on less: it is named by everybody.
const BUSY: f32 = 8.0;

/// What spreading reached.
#[derive(Debug, Default)]
struct Spread {
    /// The weight of each memory that names a node reached over at least one edge.
    memories: HashMap<MemoryId, f32>,
    /// Rows read.
    read: usize,
}

/// The nodes that a text names, with their weights.
type Seeds = Vec<(Node, f32)>;

/// Returns the prefix of the rows of a persona in a scope.
pub(super) fn prefix_of(read_scope: &ReadScope, grant: &Grant) -> Vec<u8> {
    keys::prefix(&[read_scope.persona().as_str(), &grant.scope.to_string()])
}

/// Returns the nodes that a text names and that may be read, at most [`MAX_NODES`].
fn seeds(store: &dyn Store, read_scope: &ReadScope, text: &str) -> Result<Seeds, Error> {
    let sentences = sentences(text);
    let words = sentences.iter().flat_map(|sentence| &sentence.tokens).filter_map(Token::word);
    let words: Vec<&str> = words.collect();
    let mut seeds = Seeds::new();
    let mut lookups = 0;
    for length in (1..=MAX_WORDS).rev() {
        for name in words.windows(length) {
            let is_plain = |word: &&str| is_filler(word) || is_function_word(word);
            if name.first().is_some_and(is_plain) || name.last().is_some_and(is_plain) {
                continue;
            }
            let name = name.join(" ");
            for grant in read_scope.grants() {
                lookups += 1;
                if lookups > MAX_LOOKUPS || seeds.len() >= MAX_NODES {
                    return Ok(seeds);
                }
                for (node, weight) in named(store, read_scope, grant, &name)? {
                    if !seeds.iter().any(|(known, _)| *known == node) {
                        seeds.push((node, weight));
                    }
                }
            }
        }
    }
    Ok(seeds)
}

/// Returns the nodes of one name in one scope: those of exactly this name, and longer names that it may stand for if
/// they are few.
fn named(store: &dyn Store, read_scope: &ReadScope, grant: &Grant, name: &str) -> Result<Seeds, Error> {
    let prefix = prefix_of(read_scope, grant);
    let mut found = Seeds::new();
    let exactly = [prefix.as_slice(), name.as_bytes(), b"\0"].concat();
    for row in page(store, &prefix, &exactly, grant)? {
        if !found.iter().any(|(known, _)| *known == row.node) {
            found.push((row.node, 1.0));
        }
    }
    let mut longer: Vec<Node> = Vec::new();
    for row in page(store, &prefix, &[prefix.as_slice(), name.as_bytes(), b" "].concat(), grant)? {
        if !longer.contains(&row.node) {
            longer.push(row.node);
        }
    }
    if longer.len() <= MAX_LONGER {
        found.extend(longer.into_iter().map(|node| (node, 0.8)));
    }
    Ok(found)
}

/// Returns the newest rows under a prefix that may be read.
fn page(store: &dyn Store, scope: &[u8], prefix: &[u8], grant: &Grant) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for (key, value) in store.scan(Table::Graph, prefix, None, Order::Descending, MAX_ROWS)? {
        let row = rows::read(scope, &key, &value)?;
        if grant.since.is_none_or(|since| row.at >= since) {
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Returns the newest rows of a node in all scopes that may be read.
pub(super) fn rows_of_node(store: &dyn Store, read_scope: &ReadScope, node: &Node) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for grant in read_scope.grants() {
        let prefix = prefix_of(read_scope, grant);
        let person = node.person.as_ref().map_or("", |person| person.as_str());
        let own = [prefix.as_slice(), &keys::prefix(&[&node.name, person])].concat();
        rows.extend(page(store, &prefix, &own, grant)?);
    }
    Ok(rows)
}

impl Graph<'_> {
    /// Returns the memories to which the graph leads over at least one edge from the names in a text, heaviest first, with
    /// a weight of at most 1. Memories said after `until` are left out.
    pub fn reach(self, read_scope: &ReadScope, text: &str, until: Timestamp) -> Result<Vec<(MemoryId, f32)>, Error> {
        let seeds = seeds(self.0.store.as_ref(), read_scope, text)?;
        let found = spread(self.0.store.as_ref(), read_scope, &seeds, until)?;
        let mut reached: Vec<(MemoryId, f32)> = found.memories.into_iter().collect();
        reached.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
        Ok(reached)
    }
}

/// A node that waits to be read.
#[derive(Debug)]
struct Waiting {
    weight: f32,
    steps: usize,
    node: Node,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    /// The heaviest first; the order of names makes it the same every time.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.weight.total_cmp(&other.weight).then_with(|| other.node.cmp(&self.node))
    }
}

/// Spreads from the seeds over the graph as `read_scope` allows it, up to memories of the time `until`.
fn spread(store: &dyn Store, read_scope: &ReadScope, seeds: &[(Node, f32)], until: Timestamp) -> Result<Spread, Error> {
    let mut found = Spread::default();
    let mut done: HashSet<Node> = HashSet::new();
    let seed = |(node, weight): &(Node, f32)| Waiting { weight: *weight, steps: 0, node: node.clone() };
    let mut waiting: BinaryHeap<Waiting> = seeds.iter().map(seed).collect();
    while let Some(Waiting { weight, steps, node }) = waiting.pop() {
        if done.len() >= MAX_NODES || found.read >= MAX_READ {
            break;
        }
        if !done.insert(node.clone()) {
            continue;
        }
        let rows = rows_of_node(store, read_scope, &node)?;
        found.read += rows.len();
        let share = weight / (1.0 + rows.len() as f32 / BUSY).sqrt();
        for row in rows.into_iter().filter(|row| row.at <= until) {
            if steps > 0 {
                let reached = found.memories.entry(row.memory).or_default();
                *reached = reached.max(weight);
            }
            for (other, tie) in row.neighbours {
                let (weight, steps) = match tie {
                    Tie::Same => (weight, steps),
                    Tie::Typed => (share * TYPED, steps + 1),
                    Tie::Together => (share * TOGETHER, steps + 1),
                    Tie::Different => continue,
                };
                if weight >= LEAST && !done.contains(&other) {
                    waiting.push(Waiting { weight, steps, node: other });
                }
            }
        }
    }
    Ok(found)
}
