//! The order of hits.

use std::cmp::Ordering;
use std::collections::HashMap;

use azera_types::MemoryId;

use super::{Hit, changes};

/// A hit and its passage in the order of recall: by score, and the older memory first among equal scores, so that the
/// order is stable.
pub(super) struct Ranked {
    pub(super) hit: Hit,
    pub(super) passage: Option<u16>,
    /// The score by which it is ordered among the best hits.
    pub(super) order: f32,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        self.hit.score.total_cmp(&other.hit.score).then(other.hit.memory.id.cmp(&self.hit.memory.id))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}

/// Orders the best hits by what the question asks for beside its words: a time, an event, now or then. Which hits they are
/// stays as it is.
pub(super) fn order_best(hits: &mut [Hit], orders: &HashMap<MemoryId, f32>) {
    let (best, _) = hits.split_at_mut(changes::COMPARED.min(hits.len()));
    for hit in &mut *best {
        hit.score = orders.get(&hit.memory.id).copied().unwrap_or(hit.score);
    }
    best.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.memory.id.cmp(&b.memory.id)));
}
