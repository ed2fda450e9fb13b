//! Compares the indexes with the record, and queues the differences.

use std::collections::{BTreeMap, BTreeSet};

use azera_types::MemoryId;

use crate::domains::Indexing;
use crate::indexing::queued_id;
use crate::passages::{entries, entry, memory_and_passage};
use crate::{Batch, Durability, Error, IndexWork, Order, Stored, Table, codec, keys};

/// Key in [`Table::Meta`]: the indexes may differ from the record.
pub(crate) const SUSPECT: &[u8] = b"doubt";

/// Differences between the indexes and the record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Audit {
    /// Number of memories in the record.
    pub memories: usize,
    /// Number of memories that wait in the queue.
    pub queued: usize,
    /// In the record, not in the vector index.
    pub missing_vectors: Vec<MemoryId>,
    /// In the vector index, not in the record.
    pub stray_vectors: Vec<MemoryId>,
    /// In the record, not in the text index.
    pub missing_text: Vec<MemoryId>,
    /// In the text index, not in the record.
    pub stray_text: Vec<MemoryId>,
    /// Those of the four lists above that are not queued, so that only [`Indexing::mend`] repairs them.
    pub unaccounted: Vec<MemoryId>,
    /// The index entries behind the strays.
    stray: Vec<MemoryId>,
}

impl Indexing<'_> {
    /// Compares the indexes with the record.
    pub fn audit(self) -> Result<Audit, Error> {
        let (mut held, mut memories) = (Vec::new(), 0);
        codec::walk(self.0.store.as_ref(), Table::Memories, b"", |key, value| {
            match codec::decode(Table::Memories, value) {
                Ok(memory) => held.extend(entries(&memory)),
                // A damaged row is a matter of the record's check.
                Err(_) => held.push(MemoryId(keys::number("memories", key)?)),
            }
            memories += 1;
            Ok(true)
        })?;
        held.sort_unstable();
        let (missing_vectors, stray_vectors) = difference(&held, &self.0.vectors.ids()?);
        let (missing_text, stray_text) = difference(&held, &self.0.text.ids()?);
        let stray = [&stray_vectors, &stray_text].into_iter().flatten().copied().collect();
        let [missing_vectors, stray_vectors, missing_text, stray_text] =
            [missing_vectors, stray_vectors, missing_text, stray_text].map(memories_of);
        let mut unaccounted: BTreeSet<MemoryId> =
            [&missing_vectors, &stray_vectors, &missing_text, &stray_text].into_iter().flatten().copied().collect();
        codec::walk(self.0.store.as_ref(), Table::IndexQueue, b"", |ticket, _| {
            unaccounted.remove(&queued_id(ticket)?);
            Ok(true)
        })?;
        Ok(Audit {
            memories,
            queued: self.queued()?,
            missing_vectors,
            stray_vectors,
            missing_text,
            stray_text,
            unaccounted: unaccounted.into_iter().collect(),
            stray,
        })
    }

    /// Records that the indexes may differ from the record, until [`Indexing::mend`] has compared them.
    pub fn mark_indexes_suspect(self) -> Result<(), Error> {
        let mut batch = Batch::new();
        batch.put(Table::Meta, SUSPECT, b"1");
        self.0.store.commit(batch, Durability::Flushed)
    }

    /// Returns true if the indexes may differ from the record.
    pub fn indexes_are_suspect(self) -> Result<bool, Error> {
        Ok(self.0.store.get(Table::Meta, SUSPECT)?.is_some())
    }

    /// Queues the differences that an audit found and that are not queued yet; returns how many memories. Indexing then
    /// repairs the indexes without a full rebuild.
    pub fn mend(self) -> Result<usize, Error> {
        let Audit { unaccounted, stray, .. } = self.audit()?;
        if !stray.is_empty() {
            self.note_strays(&stray)?;
        }
        self.index_again(&unaccounted)?;
        if self.indexes_are_suspect()? {
            let mut batch = Batch::new();
            batch.remove(Table::Meta, SUSPECT);
            self.0.store.commit(batch, Durability::Flushed)?;
        }
        Ok(unaccounted.len())
    }

    /// Records passages that an index holds and the record does not know, so that indexing removes them.
    fn note_strays(self, stray: &[MemoryId]) -> Result<(), Error> {
        let mut most: BTreeMap<MemoryId, u16> = BTreeMap::new();
        for (id, number) in stray.iter().copied().map(memory_and_passage).filter(|(_, number)| *number > 0) {
            let most = most.entry(id).or_insert(self.passages_held(id)?);
            *most = number.max(*most);
        }
        let mut batch = Batch::new();
        for (id, number) in most {
            codec::put(&mut batch, Table::Passages, keys::memory(id), &number)?;
        }
        self.0.store.commit(batch, Durability::Flushed)
    }

    /// Returns the texts and the stored vectors of at most `limit` memories after `after`, in order of their ids: those
    /// of the whole text, then those of its passages. Use it to compare the two; queued memories may differ.
    pub fn indexed(self, after: Option<MemoryId>, limit: usize) -> Result<Vec<(IndexWork, Vec<Stored>)>, Error> {
        let after = after.map(keys::memory);
        let page = self.0.store.scan(Table::Memories, b"", after.as_deref(), Order::Ascending, limit)?;
        let mut work = Vec::with_capacity(page.len());
        for (_, value) in page {
            work.push(self.texts(&codec::decode(Table::Memories, &value)?)?);
        }
        let numbers = |work: &IndexWork| 0..=u16::try_from(work.passages.len()).unwrap_or(u16::MAX);
        let ids: Vec<MemoryId> =
            work.iter().flat_map(|work| numbers(work).map(|number| entry(work.id, number))).collect();
        let mut stored: BTreeMap<MemoryId, Vec<Stored>> = BTreeMap::new();
        let mut vectors = self.0.vectors.vectors(&ids)?;
        vectors.sort_unstable_by_key(|stored| stored.id);
        for vector in vectors {
            stored.entry(memory_and_passage(vector.id).0).or_default().push(vector);
        }
        let with_stored = |work: IndexWork| {
            let stored = stored.remove(&work.id).unwrap_or_default();
            (work, stored)
        };
        Ok(work.into_iter().map(with_stored).collect())
    }
}

/// Returns the memories of ascending index entries, each once and in order.
fn memories_of(entries: Vec<MemoryId>) -> Vec<MemoryId> {
    let memories: BTreeSet<MemoryId> = entries.into_iter().map(|entry| memory_and_passage(entry).0).collect();
    memories.into_iter().collect()
}

/// Returns the ids only in `left` and those only in `right`. Both must be ascending.
fn difference(left: &[MemoryId], right: &[MemoryId]) -> (Vec<MemoryId>, Vec<MemoryId>) {
    let only = |a: &[MemoryId], b: &[MemoryId]| {
        a.iter().filter(|id| b.binary_search(id).is_err()).copied().collect::<Vec<_>>()
    };
    (only(left, right), only(right, left))
}
