//! Adds rows for memories that were stored before there were themes, and groups the memories of places where something was
//! said since. Everything can be repeated after a crash, with the same result.

use std::collections::{BTreeSet, HashMap};

use azera_types::{MemoryId, Timestamp};

use super::cluster::cluster;
use super::marks;
use super::rows::{self, Placed, Row};
use crate::backfill::Backfill;
use crate::domains::Themes;
use crate::{Batch, Durability, Entry, Error, Order, ReadScope, Store, Stored, Table, keys};

/// Key in [`Table::Meta`]: how far the rows are.
pub(crate) const PROGRESS: &[u8] = b"themes";

/// The rows and what has one. Raise the version after every change of that.
const BACKFILL: Backfill = Backfill { table: Table::Themes, progress: PROGRESS, version: 2 };

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

/// A persona in a scope, whose memories are to be grouped. `Debug` shows neither.
#[derive(Clone, PartialEq, Eq)]
pub struct ThemedPlace(Vec<u8>);

/// What is to be grouped next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextPlace {
    /// This place.
    Due(ThemedPlace),
    /// No place now: memories wait to be indexed, and have no vectors yet.
    Later,
    /// No place: none is left.
    None,
}

impl std::fmt::Debug for ThemedPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ThemedPlace")
    }
}

/// Removes the rows of another version and notes that all memories must be read.
pub(crate) fn begin_anew(store: &dyn Store) -> Result<(), Error> {
    BACKFILL.begin_anew(store)
}

/// Returns true once every memory has its row.
pub(crate) fn is_whole(store: &dyn Store) -> Result<bool, Error> {
    BACKFILL.is_whole(store)
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

/// Returns the key behind all rows of a place.
fn behind(place: &[u8]) -> Vec<u8> {
    [place, &u64::MAX.to_be_bytes()].concat()
}

/// Returns the first place with a row behind a key.
fn next_place(store: &dyn Store, after: Option<&[u8]>) -> Result<Option<Vec<u8>>, Error> {
    let next = store.scan(Table::Themes, b"", after, Order::Ascending, 1)?;
    Ok(next.first().map(|(key, _)| key.get(..key.len().saturating_sub(8)).unwrap_or_default().to_vec()))
}

impl Themes<'_> {
    /// Adds the rows of up to `limit` memories that may lack them. Returns false once none is left.
    pub fn fill(self, limit: usize) -> Result<bool, Error> {
        BACKFILL.next(self.0, limit, rows::is_eligible, |batch, memory| {
            if self.0.store.get(Table::Themes, &rows::key(memory))?.is_none() {
                rows::put(batch, memory);
            }
            Ok(())
        })
    }

    /// Returns the next place after another one in which enough is new to group its memories: several memories, or one
    /// that is a day old, or something was forgotten or edited.
    pub fn next_due(self, after: Option<&ThemedPlace>, now: Timestamp) -> Result<NextPlace, Error> {
        let store = self.0.store.as_ref();
        if self.waits()? {
            return Ok(NextPlace::Later);
        }
        let mut after = after.map(|place| behind(&place.0));
        while let Some(place) = next_place(store, after.as_deref())? {
            if self.is_due(&place, now)? {
                return Ok(NextPlace::Due(ThemedPlace(place)));
            }
            after = Some(behind(&place));
        }
        Ok(NextPlace::None)
    }

    /// Returns true while memories wait to be indexed. A place that is grouped without their vectors takes them for compared.
    fn waits(self) -> Result<bool, Error> {
        Ok(!self.0.store.scan(Table::IndexQueue, b"", None, Order::Ascending, 1)?.is_empty())
    }

    /// Returns the places of a read scope in which anything is new, edited or forgotten since they were grouped; `None` while
    /// memories wait to be indexed. Where a reader may not see back to the beginning, no stored theme is shown, so such a
    /// place is left out.
    pub fn changed(self, read_scope: &ReadScope) -> Result<Option<Vec<ThemedPlace>>, Error> {
        if self.waits()? {
            return Ok(None);
        }
        let store = self.0.store.as_ref();
        let mut changed = Vec::new();
        for grant in read_scope.grants().iter().filter(|grant| grant.since.is_none()) {
            let place = keys::prefix(&[read_scope.persona().as_str(), &grant.scope.to_string()]);
            let rows = rows::readable(newest(store, &place, LOOKED_AT)?);
            if marks::get(store, &place)?.is_some() || rows.iter().any(|(row, _)| row.place.is_none()) {
                changed.push(ThemedPlace(place));
            }
        }
        Ok(Some(changed))
    }

    fn is_due(self, place: &[u8], now: Timestamp) -> Result<bool, Error> {
        if marks::get(self.0.store.as_ref(), place)?.is_some() {
            return Ok(true);
        }
        let is_old = |row: &Row| now.duration_since(row.at).as_hours() >= WAIT_HOURS;
        let rows = rows::readable(newest(self.0.store.as_ref(), place, LOOKED_AT)?);
        let new = || rows.iter().map(|(row, _)| row).filter(|row| row.place.is_none());
        Ok(new().count() >= MANY_NEW || new().any(is_old))
    }

    /// Groups the newest memories of a place. Returns how many rows changed; `None` if nothing was done because memories wait
    /// to be indexed. A memory that is changed or forgotten meanwhile is left as it is.
    pub fn group(self, place: &ThemedPlace) -> Result<Option<usize>, Error> {
        let mark = marks::get(self.0.store.as_ref(), &place.0)?;
        let entries = newest(self.0.store.as_ref(), &place.0, MAX_MEMORIES)?;
        // A row is queued for the indexes by the transaction that writes it. So none of these lacks its vector if nothing
        // waits now, whatever was said since they were last asked for.
        if self.waits()? {
            return Ok(None);
        }
        let changed = self.group_newest(entries)? + self.leave_out_older(place)?;
        if let Some(mark) = mark {
            marks::clear(self.0.store.as_ref(), &place.0, &mark)?;
        }
        Ok(Some(changed))
    }

    /// Groups rows of one place, of which the newest is the first.
    fn group_newest(self, mut entries: Vec<Entry>) -> Result<usize, Error> {
        entries.reverse();
        let (rows, entries): (Vec<Row>, Vec<Entry>) = rows::readable(entries).into_iter().unzip();
        // What was said before helps to tell the matter of a short message.
        let placed = self.places(&rows, |stored| stored.window.unwrap_or(stored.own))?;
        let mut changed: Vec<(Row, Entry, Vec<u8>)> = Vec::new();
        for ((row, entry), placed) in rows.into_iter().zip(entries).zip(placed) {
            if !row.is_still(placed) {
                changed.push((row, entry, rows::value(&row, Some(placed))));
            }
        }
        for page in changed.chunks(PAGE) {
            self.write(page)?;
        }
        Ok(changed.len())
    }

    /// Takes the numbers of themes from rows that were among the newest when these were grouped last, and are not now.
    /// Otherwise they would count again, in themes of another grouping, once newer ones are forgotten.
    fn leave_out_older(self, place: &ThemedPlace) -> Result<usize, Error> {
        let store = self.0.store.as_ref();
        let mut after = newest(store, &place.0, MAX_MEMORIES)?.pop().map(|(key, _)| key);
        let mut changed = 0;
        while let Some(oldest) = after {
            let page = store.scan(Table::Themes, &place.0, Some(&oldest), Order::Descending, PAGE)?;
            after = page.last().map(|(key, _)| key.clone());
            let numbered: Vec<(Row, Entry, Vec<u8>)> = rows::readable(page)
                .into_iter()
                .filter(|(row, _)| row.member().is_some())
                .map(|(row, entry)| (row, entry, rows::value(&row, Some(Placed::Nowhere))))
                .collect();
            if numbered.is_empty() {
                break;
            }
            self.write(&numbered)?;
            changed += numbered.len();
        }
        Ok(changed)
    }

    /// Forgets which places are due where nothing is left to group. Does nothing while there is no such place.
    pub fn sweep(self) -> Result<(), Error> {
        let store = self.0.store.as_ref();
        let mut marked = marks::all(store)?;
        if marked.is_empty() {
            return Ok(());
        }
        let mut after = None;
        while let Some(place) = next_place(store, after.as_deref())? {
            marked.remove(&marks::key(&place));
            after = Some(behind(&place));
        }
        let mut batch = Batch::new();
        for key in marked {
            batch.remove(Table::Meta, key);
        }
        store.commit(batch, Durability::Soon)
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
