//! Builds the rows of the graph for memories that were stored before there was a graph, or by a version that read texts
//! in another way. New memories get their rows when they are stored.

use std::sync::LazyLock;

use azera_types::MemoryId;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::rows;
use crate::domains::Graph;
use crate::rows::MemoryRow;
use crate::{Batch, Durability, Error, Order, Store, Table, codec, keys, words};

/// Key in [`Table::Meta`]: how far the rows of the graph are.
pub(crate) const PROGRESS: &[u8] = b"graph";

/// The version of what is read from a text. Raise it after every change in this module: rows are removed by computing
/// them again, so rows of another version must never stay.
const GRAPH_VERSION: u32 = 1;

/// The version that is stored. It also changes with the word lists and the folding of other modules, which decide what
/// a name is.
static STORED_VERSION: LazyLock<u32> = LazyLock::new(|| {
    let digest = Sha256::new().chain_update(GRAPH_VERSION.to_be_bytes()).chain_update(words::digest()).finalize();
    let [one, two, three, four, ..] = <[u8; 32]>::from(digest);
    u32::from_be_bytes([one, two, three, four])
});

/// Rows that one transaction removes.
const PAGE: usize = 4_096;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Progress {
    version: u32,
    /// The last memory that was read; `None` once all were.
    after: Option<MemoryId>,
}

/// Removes the rows of another version and notes that all memories must be read. Does nothing if the rows are of this
/// version.
pub(crate) fn begin_anew(store: &dyn Store) -> Result<(), Error> {
    let progress: Option<Progress> = codec::get(store, Table::Meta, PROGRESS)?;
    if progress.is_some_and(|progress| progress.version == *STORED_VERSION) {
        return Ok(());
    }
    let mut batch = Batch::new();
    codec::walk(store, Table::Graph, b"", |key, _| {
        batch.remove(Table::Graph, key);
        if batch.changes().len() >= PAGE {
            store.commit(std::mem::take(&mut batch), Durability::Soon)?;
        }
        Ok(true)
    })?;
    let after = Some(MemoryId(0));
    codec::put(&mut batch, Table::Meta, PROGRESS.to_vec(), &Progress { version: *STORED_VERSION, after })?;
    store.commit(batch, Durability::Flushed)
}

/// Returns true once every memory has its rows.
pub(crate) fn is_whole(store: &dyn Store) -> Result<bool, Error> {
    let progress: Option<Progress> = codec::get(store, Table::Meta, PROGRESS)?;
    Ok(progress.is_some_and(|progress| progress.version == *STORED_VERSION && progress.after.is_none()))
}

impl Graph<'_> {
    /// Adds the rows of up to `limit` memories that may lack them. Returns false once none is left. After a crash, some
    /// are added again, with the same result.
    pub fn build(self, limit: usize) -> Result<bool, Error> {
        let store = self.0.store.as_ref();
        let progress: Option<Progress> = codec::get(store, Table::Meta, PROGRESS)?;
        let Some(Progress { version, after: Some(after) }) = progress else { return Ok(false) };
        self.0.store.ready()?;
        let page = store.scan(Table::Memories, b"", Some(&keys::memory(after)), Order::Ascending, limit)?;
        let mut last = None;
        for (key, value) in &page {
            last = Some(MemoryId(keys::number(Table::Memories.name(), key)?));
            // A damaged row is a matter of the record's check.
            if let Ok(memory) = codec::decode::<MemoryRow>(Table::Memories, value) {
                self.add(&memory)?;
            }
        }
        let after = last.filter(|_| page.len() >= limit);
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Meta, PROGRESS.to_vec(), &Progress { version, after })?;
        self.0.store.commit(batch, Durability::Soon)?;
        Ok(after.is_some())
    }

    /// Adds the rows of one memory, unless it was removed meanwhile.
    fn add(self, memory: &MemoryRow) -> Result<(), Error> {
        if rows::rows_of(memory).is_empty() {
            return Ok(());
        }
        // Whoever removes or changes the memory holds the same lock.
        let _writing = memory.chat.as_ref().map(|chat| self.0.writing(chat)).transpose()?;
        let Some(memory) = self.0.memories().raw_memory(memory.id)? else { return Ok(()) };
        let mut batch = Batch::new();
        rows::put(&mut batch, &memory);
        self.0.store.commit(batch, Durability::Soon)
    }
}
