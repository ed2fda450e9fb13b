//! Ratings of memories: whether somebody found one helpful. A rating counts in answers to its person, in the place where it
//! was given, and nowhere else. Otherwise an opinion told in private would show in what a public place recalls, and one
//! member of a server could bury what others said there.
//!
//! Each rating has two rows with the same content. The key of one begins with the memory, so that the ratings of a memory
//! go with it. The key of the other begins with place and person, so that one range holds what counts in an answer.
//!
//! A thumb below a reply is an opinion on every memory that the reply recalled. The row of each of them holds it with the
//! message that was answered, so that it can be taken back. Many thumbs move a memory no further than one rating, and what a
//! person says of the memory itself counts more than their thumbs.

use std::cmp::Ordering;
use std::collections::HashMap;

use azera_types::{ChatId, MemoryId, MessageId, PersonId, Scope, Timestamp};
use serde::{Deserialize, Serialize};

use crate::domains::Memories;
use crate::minds::ForgottenScope;
use crate::rows::MemoryRow;
use crate::{Batch, Durability, Error, Order, ReadScope, Store, Table, codec, keys};

/// How much a rating changes a score in recall.
const WEIGHT: f32 = 0.2;

/// Ratings of one person in one place that count, at most: those of the newest memories.
const COUNTED: usize = 1_024;

/// Thumbs of one person on a memory in a place that are kept, at most: the newest ones.
const MAX_THUMBS: usize = 32;

/// A thumb below a reply that recalled a memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ThumbRow {
    /// The message that was answered. All answers to it have one thumb of a person.
    pub(crate) about: MessageId,
    pub(crate) is_up: bool,
    /// The chat where it was given, since the channels of a server may be one place. `None` in a row of an older version:
    /// there it is that of the rating.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) chat: Option<ChatId>,
}

/// A rating of one person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RatingRow {
    pub(crate) memory: MemoryId,
    pub(crate) person: PersonId,
    /// The scope of the place where it was given.
    pub(crate) scope: Scope,
    /// The chat where the person said it of the memory itself. A place may have several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) chat: Option<ChatId>,
    /// What the person said of the memory itself. It does not count if there are only thumbs.
    pub(crate) is_helpful: bool,
    pub(crate) at: Timestamp,
    /// Its number in the order of everything stored.
    pub(crate) seq: u64,
    /// Thumbs below replies that recalled the memory, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) thumbs: Vec<ThumbRow>,
    /// True if the person only gave thumbs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) only_thumbs: bool,
}

impl RatingRow {
    /// Returns what the person thinks of the memory; `None` if their thumbs are divided.
    pub(crate) fn opinion(&self) -> Option<bool> {
        if !self.only_thumbs {
            return Some(self.is_helpful);
        }
        let up = self.thumbs.iter().filter(|thumb| thumb.is_up).count();
        match up.cmp(&(self.thumbs.len() - up)) {
            Ordering::Less => Some(false),
            Ordering::Equal => None,
            Ordering::Greater => Some(true),
        }
    }

    fn is_empty(&self) -> bool {
        self.only_thumbs && self.thumbs.is_empty()
    }

    /// Returns the thumbs, each with its chat.
    fn thumbs_with_chats(self) -> impl Iterator<Item = ThumbRow> {
        let chat = self.chat;
        self.thumbs.into_iter().map(move |thumb| ThumbRow { chat: thumb.chat.or_else(|| chat.clone()), ..thumb })
    }

    /// Removes what was given in forgotten chats. Returns false if nothing is left.
    pub(crate) fn forget_chats(&mut self, is_gone: impl Fn(&ChatId) -> bool) -> bool {
        let said_there = self.chat.as_ref().is_some_and(&is_gone);
        self.thumbs.retain(|thumb| !thumb.chat.as_ref().map_or(said_there, &is_gone));
        if said_there {
            (self.chat, self.only_thumbs) = (None, true);
            self.is_helpful = self.thumbs.last().is_some_and(|thumb| thumb.is_up);
        }
        !self.is_empty()
    }
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
                let before = self.rating(id, &scope, person)?;
                let thumbs = before.map(|row| row.thumbs_with_chats().collect()).unwrap_or_default();
                let (person, chat, seq) = (person.clone(), Some(chat.clone()), self.0.next_number()?);
                let only_thumbs = false;
                put_rating(
                    &mut batch,
                    &RatingRow { memory: id, person, scope, chat, is_helpful, at, seq, thumbs, only_thumbs },
                )?;
            }
            None => keys_of(id, &scope, person).into_iter().for_each(|key| {
                batch.remove(Table::Ratings, key);
            }),
        }
        self.0.store.commit(batch, Durability::Flushed)?;
        Ok(Some(memory))
    }

    /// Stores what a person thinks of a reply: an opinion on each memory that it recalled and that `read_scope` allows, in
    /// the place of `read_scope`. It replaces their opinion on the answers to the same message. Returns how many memories
    /// it is about; `None` if there is no such reply, or if `read_scope` does not allow it.
    pub fn rate_reply(
        self,
        read_scope: &ReadScope,
        chat: &ChatId,
        reply: &MessageId,
        person: &PersonId,
        is_helpful: bool,
        at: Timestamp,
    ) -> Result<Option<usize>, Error> {
        let Some((about, recalled)) = self.recalled_for(read_scope, reply)? else { return Ok(None) };
        self.0.store.room()?;
        self.drop_thumbs(read_scope.place(), person, &about, None)?;
        let mut count = 0;
        for id in recalled {
            let thumb = ThumbRow { about: about.clone(), is_up: is_helpful, chat: Some(chat.clone()) };
            count += usize::from(self.add_thumb(read_scope, person, id, thumb, at)?);
        }
        Ok(Some(count))
    }

    /// Takes back what a person thinks of the answers to the message that a reply answers; with `only`, if that is what they
    /// think of them. Returns how many memories it was about; `None` if there is no such reply, or if `read_scope` does
    /// not allow it.
    pub fn unrate_reply(
        self,
        read_scope: &ReadScope,
        reply: &MessageId,
        person: &PersonId,
        only: Option<bool>,
    ) -> Result<Option<usize>, Error> {
        let Some((about, _)) = self.recalled_for(read_scope, reply)? else { return Ok(None) };
        self.drop_thumbs(read_scope.place(), person, &about, only).map(Some)
    }

    /// Returns the message that a reply answers, and the memories that the reply recalled.
    fn recalled_for(
        self,
        read_scope: &ReadScope,
        reply: &MessageId,
    ) -> Result<Option<(MessageId, Vec<MemoryId>)>, Error> {
        let messages = self.0.messages();
        let Some(about) = messages.get(read_scope, reply)?.and_then(|row| row.answers) else { return Ok(None) };
        let recalled = messages.why(read_scope, reply)?.map(|(_, memories, _)| memories).unwrap_or_default();
        Ok(Some((about, recalled.into_iter().map(|memory| memory.id).collect())))
    }

    /// Returns false if `read_scope` does not allow the memory.
    fn add_thumb(
        self,
        read_scope: &ReadScope,
        person: &PersonId,
        id: MemoryId,
        thumb: ThumbRow,
        at: Timestamp,
    ) -> Result<bool, Error> {
        let Some(memory) = self.get(read_scope, id)? else { return Ok(false) };
        let _writing = memory.chat.as_ref().map(|chat| self.0.writing(chat)).transpose()?;
        // It may have been forgotten meanwhile.
        if self.get(read_scope, id)?.is_none() {
            return Ok(false);
        }
        let (scope, seq) = (read_scope.place().clone(), self.0.next_number()?);
        let mut row = match self.rating(id, &scope, person)? {
            Some(row) => RatingRow { at, seq, ..row },
            None => RatingRow {
                memory: id,
                person: person.clone(),
                scope,
                chat: None,
                is_helpful: thumb.is_up,
                at,
                seq,
                thumbs: Vec::new(),
                only_thumbs: true,
            },
        };
        // Two thumbs may come at once.
        row.thumbs.retain(|known| known.about != thumb.about);
        row.thumbs.push(thumb);
        row.thumbs.drain(..row.thumbs.len().saturating_sub(MAX_THUMBS));
        let mut batch = Batch::new();
        put_rating(&mut batch, &row)?;
        self.0.store.commit(batch, Durability::Flushed)?;
        Ok(true)
    }

    /// Removes the thumbs of a person below the answers to a message; with `only`, those of that kind.
    fn drop_thumbs(
        self,
        place: &Scope,
        person: &PersonId,
        about: &MessageId,
        only: Option<bool>,
    ) -> Result<usize, Error> {
        let goes = |thumb: &ThumbRow| thumb.about == *about && only.is_none_or(|only| only == thumb.is_up);
        let mut ids = Vec::new();
        codec::walk(self.0.store.as_ref(), Table::Ratings, &of_person(place, person), |_, value| {
            let row: RatingRow = codec::decode(Table::Ratings, value)?;
            if row.thumbs.iter().any(goes) {
                ids.push(row.memory);
            }
            Ok(true)
        })?;
        for id in &ids {
            let chat = self.raw_memory(*id)?.and_then(|memory| memory.chat);
            let _writing = chat.as_ref().map(|chat| self.0.writing(chat)).transpose()?;
            // The memory may have been forgotten meanwhile, with its ratings.
            let Some(mut row) = self.rating(*id, place, person)? else { continue };
            row.thumbs.retain(|thumb| !goes(thumb));
            let mut batch = Batch::new();
            if row.is_empty() {
                remove_rating(&mut batch, &row);
            } else {
                row.seq = self.0.next_number()?;
                put_rating(&mut batch, &row)?;
            }
            self.0.store.commit(batch, Durability::Flushed)?;
        }
        Ok(ids.len())
    }

    fn rating(self, id: MemoryId, place: &Scope, person: &PersonId) -> Result<Option<RatingRow>, Error> {
        codec::get(self.0.store.as_ref(), Table::Ratings, &by_memory(id, place, person))
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
            Ok(row.opinion().map(|is_helpful| (row.memory, if is_helpful { WEIGHT } else { -WEIGHT })))
        };
        rows.into_iter().filter_map(|row| raise(row).transpose()).collect()
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

fn put_rating(batch: &mut Batch, row: &RatingRow) -> Result<(), Error> {
    for key in keys_of(row.memory, &row.scope, &row.person) {
        codec::put(batch, Table::Ratings, key, row)?;
    }
    Ok(())
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

/// Removes the ratings of a forgotten person or place, and what was given in a forgotten chat.
pub(crate) fn forget(store: &dyn Store, batch: &mut Batch, gone: &ForgottenScope<'_>) -> Result<(), Error> {
    codec::walk(store, Table::Ratings, b"", |key, value| {
        let row: RatingRow = codec::decode(Table::Ratings, value)?;
        let mut left = row.clone();
        let given_there = |chat: &ChatId| matches!(gone, ForgottenScope::Chat(of) if *of == chat);
        if gone.has(&row.scope, Some(&row.person)) || !left.forget_chats(given_there) {
            batch.remove(Table::Ratings, key);
        } else if left != row {
            codec::put(batch, Table::Ratings, key.to_vec(), &left)?;
        }
        Ok(true)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_thumbs_are_one_opinion_and_a_word_about_the_memory_counts_more() {
        let rating = |thumbs: &[bool], said: Option<bool>| RatingRow {
            memory: MemoryId(1),
            person: PersonId::new("ann").unwrap(),
            scope: Scope::Global,
            chat: None,
            is_helpful: said.unwrap_or(true),
            at: Timestamp::UNIX_EPOCH,
            seq: 1,
            thumbs: thumbs
                .iter()
                .map(|is_up| ThumbRow { about: MessageId::new("q").unwrap(), is_up: *is_up, chat: None })
                .collect(),
            only_thumbs: said.is_none(),
        };
        let check = |thumbs: &[bool], said, want| assert_eq!(rating(thumbs, said).opinion(), want, "{thumbs:?}");
        check(&[true; 9], None, Some(true));
        check(&[true, false, false], None, Some(false));
        check(&[true, false], None, None);
        check(&[false; 9], Some(true), Some(true));
        check(&[], Some(false), Some(false));
        let before =
            r#"{"memory":1,"person":"ann","scope":"global","is_helpful":false,"at":"1970-01-01T00:00:00Z","seq":1}"#;
        let before: RatingRow = serde_json::from_str(before).unwrap();
        assert_eq!(before, rating(&[], Some(false)), "a row of an older version");
        assert_eq!(serde_json::to_value(&before).unwrap().get("thumbs"), None);
    }

    #[test]
    fn a_thumb_of_an_older_version_was_given_in_the_chat_of_its_rating() {
        let before = r#"{"memory":1,"person":"ann","scope":"global","chat":"market","is_helpful":true,
            "at":"1970-01-01T00:00:00Z","seq":1,"thumbs":[{"about":"q","is_up":true}],"only_thumbs":true}"#;
        let before: RatingRow = serde_json::from_str(before).unwrap();
        let left_without = |chat: &str| {
            let mut row = before.clone();
            row.forget_chats(|gone| gone.as_str() == chat).then_some(row)
        };
        assert_eq!(left_without("market"), None);
        assert_eq!(left_without("square"), Some(before.clone()));
    }
}
