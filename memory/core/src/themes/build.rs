//! Adds rows for memories that were stored before there were themes, and groups the memories of places where something was
//! said since. Everything can be repeated after a crash, with the same result.

use std::collections::{BTreeSet, HashMap};

use azera_types::{MemoryId, Timestamp};
use serde::{Deserialize, Serialize};

use super::cluster::cluster;
use super::rows::{self, Placed, Row};
use crate::domains::Themes;
use crate::rows::MemoryRow;
use crate::{Batch, Durability, Entry, Error, Order, Store, Stored, Table, codec, keys};

/// Key in [`Table::Meta`]: how far the rows are.
pub(crate) const PROGRESS: &[u8] = b"themes";

/// The version of the rows and of what has one. Raise it after every change of that.
const VERSION: u32 = 1;

/// Most memories of one place that themes are made of: the newest ones.
pub(super) const MAX_MEMORIES: usize = 16_384;

/// New memories from which a place is grouped anew.
const MANY_NEW: usize = 16;

/// Newest rows of a place among which new and edited memories are looked for.
const LOOKED_AT: usize = 512;

/// Hours after which fewer are enough.
const WAIT_HOURS: i64 = 24;

/// Rows that one scan reads, vectors that are read at once, and rows that one transaction writes.
const PAGE: usize = 512;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Progress {
    version: u32,
    /// The last memory that was read; `None` once all were.
    after: Option<MemoryId>,
}

/// A persona in a scope, whose memories are to be grouped. `Debug` shows neither.
#[derive(Clone, PartialEq, Eq)]
pub struct ThemedPlace(Vec<u8>);

impl std::fmt::Debug for ThemedPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ThemedPlace")
    }
}

/// Removes the rows of another version and notes that all memories must be read. Does nothing if the rows are of this
/// version.
pub(crate) fn begin_anew(store: &dyn Store) -> Result<(), Error> {
    let progress: Option<Progress> = codec::get(store, Table::Meta, PROGRESS)?;
    if progress.is_some_and(|progress| progress.version == VERSION) {
        return Ok(());
    }
    let mut batch = Batch::new();
    codec::walk(store, Table::Themes, b"", |key, _| {
        batch.remove(Table::Themes, key);
        Ok(true)
    })?;
    let after = Some(MemoryId(0));
    codec::put(&mut batch, Table::Meta, PROGRESS.to_vec(), &Progress { version: VERSION, after })?;
    store.commit(batch, Durability::Flushed)
}

/// Returns true once every memory has its row.
pub(crate) fn is_whole(store: &dyn Store) -> Result<bool, Error> {
    let progress: Option<Progress> = codec::get(store, Table::Meta, PROGRESS)?;
    Ok(progress.is_some_and(|progress| progress.version == VERSION && progress.after.is_none()))
}

/// Returns the newest rows under a prefix of persona and scope, newest first.
pub(super) fn newest(store: &dyn Store, place: &[u8], limit: usize) -> Result<Vec<Entry>, Error> {
    let mut entries: Vec<Entry> = Vec::new();
    while entries.len() < limit {
        let after = entries.last().map(|(key, _)| key.clone());
        let size = PAGE.min(limit);
        let page = store.scan(Table::Themes, place, after.as_deref(), Order::Descending, size)?;
        let is_last = page.len() < size;
        entries.extend(page);
        if is_last {
            break;
        }
    }
    entries.truncate(limit);
    Ok(entries)
}

impl Themes<'_> {
    /// Adds the rows of up to `limit` memories that may lack them. Returns false once none is left.
    pub fn fill(self, limit: usize) -> Result<bool, Error> {
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

    /// Adds the row of one memory, unless it has one or was removed meanwhile.
    fn add(self, memory: &MemoryRow) -> Result<(), Error> {
        if !rows::is_eligible(memory) {
            return Ok(());
        }
        // Whoever removes or changes the memory holds the same lock.
        let _writing = memory.chat.as_ref().map(|chat| self.0.writing(chat)).transpose()?;
        let Some(memory) = self.0.memories().raw_memory(memory.id)? else { return Ok(()) };
        if self.0.store.get(Table::Themes, &rows::key(&memory))?.is_some() {
            return Ok(());
        }
        let mut batch = Batch::new();
        rows::put(&mut batch, &memory);
        self.0.store.commit(batch, Durability::Soon)
    }

    /// Returns the next place after another one in which enough is new to group its memories: several memories, or one
    /// that is a day old. Returns `None` if there is none, or if memories wait to be indexed: they have no vectors yet.
    pub fn next_due(self, after: Option<&ThemedPlace>, now: Timestamp) -> Result<Option<ThemedPlace>, Error> {
        let store = self.0.store.as_ref();
        if !store.scan(Table::IndexQueue, b"", None, Order::Ascending, 1)?.is_empty() {
            return Ok(None);
        }
        let behind = |place: &[u8]| [place, &u64::MAX.to_be_bytes()].concat();
        let mut after = after.map(|place| behind(&place.0));
        loop {
            let next = store.scan(Table::Themes, b"", after.as_deref(), Order::Ascending, 1)?;
            let Some((key, _)) = next.first() else { return Ok(None) };
            let place = key.get(..key.len().saturating_sub(8)).unwrap_or_default();
            if self.is_due(place, now)? {
                return Ok(Some(ThemedPlace(place.to_vec())));
            }
            after = Some(behind(place));
        }
    }

    fn is_due(self, place: &[u8], now: Timestamp) -> Result<bool, Error> {
        let is_old = |row: &Row| now.duration_since(row.at).as_hours() >= WAIT_HOURS;
        let rows = rows::readable(newest(self.0.store.as_ref(), place, LOOKED_AT)?);
        // An edited memory stands behind others that were grouped.
        let new = || rows.iter().map(|(row, _)| row).filter(|row| row.place.is_none());
        Ok(new().count() >= MANY_NEW || new().any(is_old))
    }

    /// Groups the newest memories of a place. Returns how many rows changed. A memory that is changed or forgotten meanwhile
    /// is left as it is.
    pub fn group(self, place: &ThemedPlace) -> Result<usize, Error> {
        let mut entries = newest(self.0.store.as_ref(), &place.0, MAX_MEMORIES)?;
        entries.reverse();
        let (rows, entries): (Vec<Row>, Vec<Entry>) = rows::readable(entries).into_iter().unzip();
        // What was said before helps to tell the matter of a short message.
        let placed = self.places(&rows, |stored| stored.window.unwrap_or(stored.own))?;
        let mut changed: Vec<(Row, Entry, Vec<u8>)> = Vec::new();
        for ((row, entry), placed) in rows.into_iter().zip(entries).zip(placed) {
            if !row.is_still(placed) {
                changed.push((row, entry, rows::value(row.at, placed)));
            }
        }
        for page in changed.chunks(PAGE) {
            self.write(page)?;
        }
        Ok(changed.len())
    }

    /// Returns the place of each memory among the themes, by one of its vectors.
    pub(super) fn places(self, rows: &[Row], vector: fn(Stored) -> Vec<f32>) -> Result<Vec<Placed>, Error> {
        let mut stored = HashMap::new();
        let ids: Vec<MemoryId> = rows.iter().map(|row| row.memory).collect();
        for page in ids.chunks(PAGE) {
            let vectors = self.0.vectors.vectors(page)?;
            stored.extend(vectors.into_iter().map(|stored| (stored.id, vector(stored))));
        }
        let (mut vectors, mut before, mut with) = (Vec::new(), Vec::new(), Vec::new());
        for (number, row) in rows.iter().enumerate() {
            if let Some(vector) = stored.remove(&row.memory) {
                vectors.push(vector);
                before.push(row.member().map(|member| member.theme));
                with.push(number);
            }
        }
        let mut placed = vec![Placed::Nowhere; rows.len()];
        for (number, member) in with.into_iter().zip(cluster(&vectors, &before)) {
            if let (Some(placed), Some(member)) = (placed.get_mut(number), member) {
                *placed = Placed::In(member);
            }
        }
        Ok(placed)
    }

    fn write(self, changed: &[(Row, Entry, Vec<u8>)]) -> Result<(), Error> {
        let mut chats = BTreeSet::new();
        for (row, ..) in changed {
            chats.extend(self.0.memories().raw_memory(row.memory)?.and_then(|memory| memory.chat));
        }
        // Whoever removes or changes a memory holds the lock of its chat, and changes or removes its row.
        let _writing = self.0.writing_in(&chats)?;
        let mut batch = Batch::new();
        for (_, (key, old), new) in changed {
            if self.0.store.get(Table::Themes, key)?.as_ref() == Some(old) {
                batch.put(Table::Themes, key.clone(), new.clone());
            }
        }
        self.0.store.commit(batch, Durability::Soon)
    }
}
