//! Spreading from the nodes that a text names: a best-first search with limits. A row counts only in a scope that may
//! be read, and only if it is not older than the readers may see.

use std::collections::{BinaryHeap, HashMap, HashSet};

use azera_types::{MemoryId, Timestamp};

use super::extract::Node;
use super::rows::{Row, Tie};
use super::sentences::{Token, sentences};
use super::shown::Shown;
use crate::domains::Graph;
use crate::recall::question::is_filler;
use crate::words::is_function_word;
use crate::{Error, ReadScope, Store};

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
            for shown in Shown::all(store, read_scope) {
                lookups += 1;
                if lookups > MAX_LOOKUPS || seeds.len() >= MAX_NODES {
                    return Ok(seeds);
                }
                for (node, weight) in named(&shown, &name)? {
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
fn named(shown: &Shown<'_>, name: &str) -> Result<Seeds, Error> {
    let mut found: Seeds = shown.named(name, MAX_NODES)?.into_iter().map(|node| (node, 1.0)).collect();
    let longer = shown.longer(name, MAX_LONGER + 1)?;
    if longer.len() <= MAX_LONGER {
        found.extend(longer.into_iter().map(|node| (node, 0.8)));
    }
    Ok(found)
}

/// Returns the newest rows of a node in all scopes that may be read, at most `limit` in each.
pub(super) fn rows_of_node(
    store: &dyn Store,
    read_scope: &ReadScope,
    node: &Node,
    limit: usize,
) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for shown in Shown::all(store, read_scope) {
        rows.extend(shown.newest(node, limit)?);
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
        let rows = rows_of_node(store, read_scope, &node, MAX_ROWS)?;
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
