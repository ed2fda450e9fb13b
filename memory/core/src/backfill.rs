//! Walks over the memories that were stored before an index over them existed, or by a version that made its rows in
//! another way, and adds their rows. Everything can be repeated after a crash, with the same result.

use std::collections::BTreeSet;

use azera_types::MemoryId;
use serde::{Deserialize, Serialize};

use crate::rows::MemoryRow;
use crate::{Batch, Durability, Error, Memory, Order, Store, Table, codec, keys};

/// Rows that one transaction removes.
const PAGE: usize = 4_096;

/// An index over all memories whose rows are written with each memory, and added later where they are missing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backfill {
    /// The index.
    pub(crate) table: Table,
    /// Key in [`Table::Meta`]: how far the rows are.
    pub(crate) progress: &'static [u8],
    /// The version of the rows.
    pub(crate) version: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Progress {
    version: u32,
    /// The last memory that was read; `None` once all were.
    after: Option<MemoryId>,
}

impl Backfill {
    fn progress(self, store: &dyn Store) -> Result<Option<Progress>, Error> {
        let progress: Option<Progress> = codec::get(store, Table::Meta, self.progress)?;
        Ok(progress.filter(|progress| progress.version == self.version))
    }

    /// Removes the rows of another version and notes that all memories must be read. Does nothing if the rows are of
    /// this version.
    pub(crate) fn begin_anew(self, store: &dyn Store) -> Result<(), Error> {
        if self.progress(store)?.is_some() {
            return Ok(());
        }
        let mut batch = Batch::new();
        codec::walk(store, self.table, b"", |key, _| {
            batch.remove(self.table, key);
            if batch.changes().len() >= PAGE {
                store.commit(std::mem::take(&mut batch), Durability::Soon)?;
            }
            Ok(true)
        })?;
        self.note(&mut batch, Some(MemoryId(0)))?;
        store.commit(batch, Durability::Flushed)
    }

    /// Returns true once every memory has its rows.
    pub(crate) fn is_whole(self, store: &dyn Store) -> Result<bool, Error> {
        Ok(self.progress(store)?.is_some_and(|progress| progress.after.is_none()))
    }

    fn note(self, batch: &mut Batch, after: Option<MemoryId>) -> Result<(), Error> {
        codec::put(batch, Table::Meta, self.progress.to_vec(), &Progress { version: self.version, after })
    }

    /// Reads up to `limit` memories that may lack their rows, and lets `add` put the rows of those that `wants` them into
    /// one transaction. Returns false once none is left.
    pub(crate) fn next(
        self,
        memory: &Memory,
        limit: usize,
        wants: impl Fn(&MemoryRow) -> bool,
        mut add: impl FnMut(&mut Batch, &MemoryRow) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let store = memory.store.as_ref();
        let Some(Progress { after: Some(after), .. }) = self.progress(store)? else { return Ok(false) };
        store.ready()?;
        let page = store.scan(Table::Memories, b"", Some(&keys::memory(after)), Order::Ascending, limit)?;
        let last = page.last().map(|(key, _)| keys::number(Table::Memories.name(), key).map(MemoryId)).transpose()?;
        // A damaged row is a matter of the record's check.
        let readable = page.iter().filter_map(|(_, value)| codec::decode::<MemoryRow>(Table::Memories, value).ok());
        let wanted: Vec<MemoryRow> = readable.filter(wants).collect();
        let chats: BTreeSet<_> = wanted.iter().filter_map(|memory| memory.chat.clone()).collect();
        // Whoever removes or changes a memory holds the lock of its chat.
        let _writing = memory.writing_in(&chats)?;
        let mut batch = Batch::new();
        for old in wanted {
            if let Some(now) = memory.memories().raw_memory(old.id)? {
                add(&mut batch, &now)?;
            }
        }
        let after = last.filter(|_| page.len() >= limit);
        self.note(&mut batch, after)?;
        store.commit(batch, Durability::Soon)?;
        Ok(after.is_some())
    }
}
