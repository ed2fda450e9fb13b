//! How deep a search goes for what was known at a time. An import may bring thousands of old messages at once: all of them were
//! said before that time, none was known then, and they may be closest to the question.

use std::collections::{HashMap, HashSet};

use azera_types::{MemoryId, Span, Timestamp};

use super::Reading;
use crate::domains::Recall;
use crate::passages::memory_and_passage;
use crate::rows::MemoryRow;
use crate::{DEEPEST_SEARCH, Error, Found, MAX_SEARCH_LIMIT};

/// Factor by which a search goes deeper where passages of few memories fill it, or what is no answer.
pub(super) const DEEPER: usize = 4;

/// What an answer lacks if a search stopped before it reached enough that was known then.
pub(super) const NOT_REACHED: &str = "older memories";

/// What a search found.
#[derive(Clone)]
pub(super) struct Reached<T> {
    pub(super) found: T,
    /// True if it stopped before it reached enough that counts.
    pub(super) is_cut: bool,
}

/// Returns the last moment before a time.
pub(super) fn just_before(time: Timestamp) -> Timestamp {
    time.checked_sub(Span::new().nanoseconds(1)).unwrap_or(Timestamp::MIN)
}

/// Searches deeper if the best entries are passages of few memories, so that a long message does not hide others.
fn enough_memories<T>(
    limit: usize,
    search: impl Fn(usize) -> Result<T, Error>,
    entries: impl Fn(&mut T) -> &mut Vec<Found>,
) -> Result<T, Error> {
    let mut found = search(limit)?;
    let memories: HashSet<MemoryId> = entries(&mut found).iter().map(|found| memory_and_passage(found.id).0).collect();
    let deeper = limit.saturating_mul(DEEPER).min(MAX_SEARCH_LIMIT);
    if entries(&mut found).len() < limit || 2 * memories.len() >= limit || deeper <= limit {
        return Ok(found);
    }
    search(deeper)
}

/// Entries about what was known then that are enough.
const ENOUGH: usize = 200;

impl Recall<'_> {
    /// Runs a search, and again deeper while few of its entries were known at the time that the question asks about. Such
    /// entries alone are left in the result.
    pub(super) fn reach<T>(
        self,
        reading: Reading<'_>,
        search: impl Fn(usize) -> Result<T, Error>,
        entries: impl Fn(&mut T) -> &mut Vec<Found>,
    ) -> Result<Reached<T>, Error> {
        let Some(by) = reading.known_by else {
            return Ok(Reached { found: enough_memories(reading.limit, search, entries)?, is_cut: false });
        };
        let (mut limit, mut known) = (reading.limit, HashMap::new());
        loop {
            let mut found = search(limit)?;
            let is_all = entries(&mut found).len() < limit;
            self.keep_known(reading, by, &mut known, entries(&mut found))?;
            let is_enough = is_all || entries(&mut found).len() >= ENOUGH;
            if is_enough || limit >= DEEPEST_SEARCH {
                return Ok(Reached { found, is_cut: !is_enough });
            }
            limit = limit.saturating_mul(DEEPER).min(DEEPEST_SEARCH);
        }
    }

    /// Returns false for a memory that was not known before a time, if there is one.
    pub(super) fn was_known_by(self, by: Option<Timestamp>, memory: &MemoryRow) -> Result<bool, Error> {
        let Some(by) = by else { return Ok(true) };
        Ok(memory.at < by && self.0.memories().known_since(memory)? < by)
    }

    /// Leaves only entries of memories that were known before a time. `known` holds what was read before.
    fn keep_known(
        self,
        reading: Reading<'_>,
        by: Timestamp,
        known: &mut HashMap<MemoryId, bool>,
        entries: &mut Vec<Found>,
    ) -> Result<(), Error> {
        for entry in entries.iter() {
            let (id, _) = memory_and_passage(entry.id);
            if known.contains_key(&id) {
                continue;
            }
            let memory = self.0.memories().get(reading.read_scope, id)?;
            let was_known = memory.map(|memory| self.was_known_by(Some(by), &memory)).transpose()?;
            known.insert(id, was_known.unwrap_or(false));
        }
        entries.retain(|entry| known.get(&memory_and_passage(entry.id).0).copied().unwrap_or(false));
        Ok(())
    }
}
