//! Ratings of memories: whether somebody found one helpful. A rating counts in answers to its person, in the place where it
//! was given, and nowhere else. Otherwise an opinion told in private would show in what a public place recalls, and one
//! member of a server could bury what others said there.
//!
//! Each rating has two rows with the same content. The key of one begins with the memory, so that the ratings of a memory
//! go with it. The key of the other begins with place and person, so that one range holds what counts in an answer.

use std::collections::HashMap;

use azera_types::{ChatId, MemoryId, PersonId, Scope, Timestamp};
use serde::{Deserialize, Serialize};

use crate::domains::Memories;
use crate::minds::ForgottenScope;
use crate::rows::MemoryRow;
use crate::{Batch, Durability, Error, Order, ReadScope, Store, Table, codec, keys};

/// How much a rating changes a score in recall.
const WEIGHT: f32 = 0.2;

/// Ratings of one person in one place that count, at most: those of the newest memories.
const COUNTED: usize = 1_024;

/// A rating of one person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RatingRow {
    pub(crate) memory: MemoryId,
    pub(crate) person: PersonId,
    /// The scope of the place where it was given.
    pub(crate) scope: Scope,
    /// The chat where it was given. A place of direct messages may have several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) chat: Option<ChatId>,
    pub(crate) is_helpful: bool,
    pub(crate) at: Timestamp,
    /// Its number in the order of everything stored.
    pub(crate) seq: u64,
}

impl Memories<'_> {
    /// Stores what a person thinks of a memory in `chat`, which belongs to the place of `read_scope`; `None` takes it back.
    /// Returns the memory; `None` if `read_scope` does not allow it.
    pub fn rate(
        self,
        read_scope: &ReadScope,
        chat: &ChatId,
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
        let mut batch = Batch::new();
        match is_helpful {
            Some(is_helpful) => {
                self.0.store.room()?;
                let (person, chat, seq) = (person.clone(), Some(chat.clone()), self.0.next_number()?);
                let row = RatingRow { memory: id, person, scope, chat, is_helpful, at, seq };
                for key in keys_of(id, &row.scope, &row.person) {
                    codec::put(&mut batch, Table::Ratings, key, &row)?;
                }
            }
            None => keys_of(id, &scope, person).into_iter().for_each(|key| {
                batch.remove(Table::Ratings, key);
            }),
        }
        self.0.store.commit(batch, Durability::Flushed)?;
        Ok(Some(memory))
    }

    /// Returns what a person thinks of memories, wherever they said so.
    pub(crate) fn ratings_of(self, person: &PersonId) -> Result<Vec<RatingRow>, Error> {
        let mut rows = Vec::new();
        codec::walk(self.0.store.as_ref(), Table::Ratings, b"", |key, value| {
            let row: RatingRow = codec::decode(Table::Ratings, value)?;
            // Each rating has another row besides this one.
            if row.person == *person && key == by_memory(row.memory, &row.scope, &row.person) {
                rows.push(row);
            }
            Ok(true)
        })?;
        Ok(rows)
    }

    /// Returns by how much the ratings of a person change the scores of memories in answers to them in a place.
    pub(crate) fn raises(self, place: &Scope, person: &PersonId) -> Result<HashMap<MemoryId, f32>, Error> {
        let rows = self.0.store.scan(Table::Ratings, &of_person(place, person), None, Order::Descending, COUNTED)?;
        let raise = |(_, value): (Vec<u8>, Vec<u8>)| {
            let row: RatingRow = codec::decode(Table::Ratings, &value)?;
            Ok((row.memory, if row.is_helpful { WEIGHT } else { -WEIGHT }))
        };
        rows.into_iter().map(raise).collect()
    }
}

fn of_person(place: &Scope, person: &PersonId) -> Vec<u8> {
    keys::prefix(&[&place.to_string(), person.as_str()])
}

fn by_memory(id: MemoryId, place: &Scope, person: &PersonId) -> Vec<u8> {
    let mut key = keys::memory(id);
    key.extend_from_slice(&keys::prefix(&[&place.to_string()]));
    key.extend_from_slice(person.as_str().as_bytes());
    key
}

/// Returns the keys of the two rows of a rating. A number of a memory never grows so large that its first byte is that of
/// a place.
fn keys_of(id: MemoryId, place: &Scope, person: &PersonId) -> [Vec<u8>; 2] {
    [by_memory(id, place, person), keys::numbered(&[&place.to_string(), person.as_str()], id.0)]
}

fn remove_rating(batch: &mut Batch, row: &RatingRow) {
    for key in keys_of(row.memory, &row.scope, &row.person) {
        batch.remove(Table::Ratings, key);
    }
}

/// Removes the ratings of a memory.
pub(crate) fn remove(store: &dyn Store, batch: &mut Batch, id: MemoryId) -> Result<(), Error> {
    codec::walk(store, Table::Ratings, &keys::memory(id), |_, value| {
        remove_rating(batch, &codec::decode(Table::Ratings, value)?);
        Ok(true)
    })
}

/// Removes the ratings of a forgotten person or place, and those given in a forgotten chat.
pub(crate) fn forget(store: &dyn Store, batch: &mut Batch, gone: &ForgottenScope<'_>) -> Result<(), Error> {
    codec::walk(store, Table::Ratings, b"", |key, value| {
        let row: RatingRow = codec::decode(Table::Ratings, value)?;
        let given_there = matches!(gone, ForgottenScope::Chat(chat) if row.chat.as_ref() == Some(*chat));
        if given_there || gone.has(&row.scope, Some(&row.person)) {
            batch.remove(Table::Ratings, key);
        }
        Ok(true)
    })
}
