//! How much is remembered.

use std::collections::{BTreeMap, BTreeSet};

use azera_types::Scope;

use crate::indexing::queued_id;
use crate::rows::{Kind, MemoryRow};
use crate::{Error, Memory, Right, Table, codec};

/// How many memories there are that may be shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Kind, place and number.
    pub counts: Vec<(Kind, Scope, usize)>,
    /// Of these, how many wait to be indexed.
    pub queued: usize,
}

impl Stats {
    /// All of them.
    pub fn total(&self) -> usize {
        self.counts.iter().map(|(_, _, count)| count).sum()
    }
}

impl Memory {
    /// Counts what `right` may see.
    pub fn stats(&self, right: &Right) -> Result<Stats, Error> {
        let mut counts: BTreeMap<(Kind, Scope), usize> = BTreeMap::new();
        let mut waiting = BTreeSet::new();
        codec::walk(self.store.as_ref(), Table::IndexQueue, b"", |ticket, _| {
            waiting.insert(queued_id(ticket)?);
            Ok(true)
        })?;
        let mut queued = 0;
        codec::walk(self.store.as_ref(), Table::Memories, b"", |_, value| {
            let memory: MemoryRow = codec::decode(Table::Memories, value)?;
            if right.allows(&memory.persona, &memory.scope, &memory.needs, memory.at) {
                queued += usize::from(waiting.contains(&memory.id));
                *counts.entry((memory.kind, memory.scope)).or_default() += 1;
            }
            Ok(true)
        })?;
        let counts = counts.into_iter().map(|((kind, scope), count)| (kind, scope, count)).collect();
        Ok(Stats { counts, queued })
    }
}
