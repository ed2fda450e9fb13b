//! Ratings of memories: whether somebody found one helpful. A rating counts in the place where it was given and nowhere
//! else: otherwise an opinion told in private would show in what a public place recalls.
//!
//! A key is memory, scope of the place, person. So the ratings of a memory go with it, and those of one place are one range.

use azera_types::{MemoryId, PersonId, Scope, Timestamp};
use serde::{Deserialize, Serialize};

use crate::domains::Memories;
use crate::minds::ForgottenScope;
use crate::rows::MemoryRow;
use crate::{Batch, Durability, Error, Order, ReadScope, Store, Table, codec, keys};

/// How much a rating changes a score in recall.
const WEIGHT: f32 = 0.2;

/// Ratings that count for one memory in one place, at most; more change nothing.
const COUNTED: f32 = 2.0;

/// The most by which ratings raise a score.
pub(crate) const MAX_RAISE: f32 = WEIGHT * COUNTED;

/// Ratings that are read of one memory in one place.
const READ: usize = 64;

/// A rating of one person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RatingRow {
    pub(crate) memory: MemoryId,
    pub(crate) person: PersonId,
    /// The scope of the place where it was given.
    pub(crate) scope: Scope,
    pub(crate) is_helpful: bool,
    pub(crate) at: Timestamp,
    /// Its number in the order of everything stored.
    pub(crate) seq: u64,
}

impl Memories<'_> {
    /// Stores what a person thinks of a memory in the place of `read_scope`; `None` takes it back. Returns the memory;
    /// `None` if `read_scope` does not allow it.
    pub fn rate(
        self,
        read_scope: &ReadScope,
        id: MemoryId,
        person: &PersonId,
        is_helpful: Option<bool>,
        at: Timestamp,
    ) -> Result<Option<MemoryRow>, Error> {
        let Some(memory) = self.get(read_scope, id)? else { return Ok(None) };
        let _writing = memory.chat.as_ref().map(|chat| self.0.writing(chat)).transpose()?;
        // It may have been forgotten meanwhile.
        let Some(memory) = self.get(read_scope, id)? else { return Ok(None) };
        let scope = read_scope.place().clone();
        let key = key(id, &scope, person);
        let mut batch = Batch::new();
        match is_helpful {
            Some(is_helpful) => {
                self.0.store.room()?;
                let (person, seq) = (person.clone(), self.0.next_number()?);
                let row = RatingRow { memory: id, person, scope, is_helpful, at, seq };
                codec::put(&mut batch, Table::Ratings, key, &row)?;
            }
            None => {
                batch.remove(Table::Ratings, key);
            }
        }
        self.0.store.commit(batch, Durability::Flushed)?;
        Ok(Some(memory))
    }

    /// Returns what a person thinks of memories, wherever they said so.
    pub(crate) fn ratings_of(self, person: &PersonId) -> Result<Vec<RatingRow>, Error> {
        let mut rows: Vec<RatingRow> = codec::rows(self.0.store.as_ref(), Table::Ratings, b"")?;
        rows.retain(|row| row.person == *person);
        Ok(rows)
    }

    /// Returns true if anything was rated anywhere.
    pub(crate) fn are_any_rated(self) -> Result<bool, Error> {
        Ok(!self.0.store.scan(Table::Ratings, b"", None, Order::Ascending, 1)?.is_empty())
    }

    /// Returns by how much the ratings of a place change the score of a memory there.
    pub(crate) fn raise(self, place: &Scope, id: MemoryId) -> Result<f32, Error> {
        let rows = self.0.store.scan(Table::Ratings, &of_place(id, place), None, Order::Ascending, READ)?;
        let mut sum = 0.0_f32;
        for (_, value) in rows {
            let row: RatingRow = codec::decode(Table::Ratings, &value)?;
            sum += if row.is_helpful { 1.0 } else { -1.0 };
        }
        Ok(WEIGHT * sum.clamp(-COUNTED, COUNTED))
    }
}

fn of_place(id: MemoryId, place: &Scope) -> Vec<u8> {
    let mut key = keys::memory(id);
    key.extend_from_slice(&keys::prefix(&[&place.to_string()]));
    key
}

fn key(id: MemoryId, place: &Scope, person: &PersonId) -> Vec<u8> {
    let mut key = of_place(id, place);
    key.extend_from_slice(person.as_str().as_bytes());
    key
}

/// Removes the ratings of a memory.
pub(crate) fn remove(store: &dyn Store, batch: &mut Batch, id: MemoryId) -> Result<(), Error> {
    codec::walk(store, Table::Ratings, &keys::memory(id), |key, _| {
        batch.remove(Table::Ratings, key);
        Ok(true)
    })
}

/// Removes the ratings of a forgotten person or place.
pub(crate) fn forget(store: &dyn Store, batch: &mut Batch, gone: &ForgottenScope<'_>) -> Result<(), Error> {
    codec::walk(store, Table::Ratings, b"", |key, value| {
        let row: RatingRow = codec::decode(Table::Ratings, value)?;
        if gone.has(&row.scope, Some(&row.person)) {
            batch.remove(Table::Ratings, key);
        }
        Ok(true)
    })
}
