//! Ratings of memories: whether somebody found one helpful. A rating counts in answers to its person, in the place where it
//! was given, and nowhere else. Otherwise an opinion told in private would show in what a public place recalls, and one
//! member of a server could bury what others said there.
//!
//! Each rating has two rows with the same content. The key of one begins with the memory, so that the ratings of a memory
//! go with it. The key of the other begins with place and person, so that one range holds what counts in an answer.
//!
//! A thumb below a reply is an opinion on every memory that the reply recalled. The row of each of them holds it with the
//! message that was answered and with the reaction, so that it can be taken back. Of several thumbs of a person for one
//! message the newest counts, and when it goes, the one before. Many thumbs move a memory no further than one rating, and
//! what a person says of the memory itself counts more than their thumbs.

mod gone;

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::sync::MutexGuard;

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
    /// The message that was answered. The newest thumb of a person for it counts.
    pub(crate) about: MessageId,
    pub(crate) is_up: bool,
    /// The answer below which it stands. `None` in a row of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reply: Option<MessageId>,
    /// The reaction that it is. `None` if the person typed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reaction: Option<String>,
    /// The chat where it was given, since the channels of a server may be one place. `None` in a row of an older version:
    /// there it is that of the rating.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) chat: Option<ChatId>,
}

/// What a person thinks of a reply.
#[derive(Debug, Clone, Copy)]
pub struct ReplyRating<'a> {
    /// The reply.
    pub reply: &'a MessageId,
    /// The chat where the person said so.
    pub chat: &'a ChatId,
    /// The person.
    pub person: &'a PersonId,
    /// Whether it helped them.
    pub is_helpful: bool,
    /// The reaction that says so; `None` if they typed it. What is typed takes the place of all reactions before.
    pub reaction: Option<&'a str>,
    /// When they said so.
    pub at: Timestamp,
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
        let newest: HashMap<&MessageId, bool> = self.thumbs.iter().map(|thumb| (&thumb.about, thumb.is_up)).collect();
        let up = newest.values().filter(|is_up| **is_up).count();
        match up.cmp(&(newest.len() - up)) {
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

    /// Removes the thumbs below forgotten replies. Returns false if nothing is left.
    pub(crate) fn forget_replies(&mut self, is_gone: impl Fn(&MessageId) -> bool) -> bool {
        // An older version did not note the reply.
        self.thumbs.retain(|thumb| !is_gone(thumb.reply.as_ref().unwrap_or(&thumb.about)));
        !self.is_empty()
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
    /// the place of `read_scope`, all or none of them. Returns how many memories it is about; `None` if there is no such
    /// reply, or if `read_scope` does not allow it.
    pub fn rate_reply(self, read_scope: &ReadScope, rating: ReplyRating<'_>) -> Result<Option<usize>, Error> {
        let ReplyRating { reply, chat, person, is_helpful, reaction, at } = rating;
        let Some((about, recalled)) = self.recalled_for(read_scope, reply)? else { return Ok(None) };
        self.0.store.room()?;
        let place = read_scope.place();
        // Another answer to the same message may have recalled others.
        let before = self.thumbed(place, person, |thumb| thumb.about == about)?;
        let _writing = self.writing_about(before.iter().chain(&recalled), Some(chat))?;
        // It may have been forgotten meanwhile, and memories, too.
        let Some((_, recalled)) = self.recalled_for(read_scope, reply)? else { return Ok(None) };
        let recalled: BTreeSet<MemoryId> = recalled.into_iter().collect();
        let thumb = ThumbRow {
            about: about.clone(),
            is_up: is_helpful,
            reply: Some(reply.clone()),
            reaction: reaction.map(str::to_owned),
            chat: Some(chat.clone()),
        };
        // A platform may tell of a reaction twice.
        let is_replaced =
            |known: &ThumbRow| known.about == about && (reaction.is_none() || known.reaction.as_deref() == reaction);
        let mut batch = Batch::new();
        for id in before.into_iter().filter(|id| !recalled.contains(id)) {
            self.retain_thumbs(&mut batch, (id, place, person), |known| !is_replaced(known))?;
        }
        for id in &recalled {
            let seq = self.0.next_number()?;
            let mut row = match self.rating(*id, place, person)? {
                Some(row) => RatingRow { at, seq, ..row },
                None => RatingRow {
                    memory: *id,
                    person: person.clone(),
                    scope: place.clone(),
                    chat: None,
                    is_helpful,
                    at,
                    seq,
                    thumbs: Vec::new(),
                    only_thumbs: true,
                },
            };
            row.thumbs.retain(|known| !is_replaced(known));
            row.thumbs.push(thumb.clone());
            row.thumbs.drain(..row.thumbs.len().saturating_sub(MAX_THUMBS));
            put_rating(&mut batch, &row)?;
        }
        self.0.store.commit(batch, Durability::Flushed)?;
        Ok(Some(recalled.len()))
    }

    /// Takes back what a person thinks of the answers to the message that a reply answers; with `only`, what of it is of that
    /// kind. Returns how many memories it was about; `None` if there is no such reply, or if `read_scope` does not allow it.
    pub fn unrate_reply(
        self,
        read_scope: &ReadScope,
        reply: &MessageId,
        person: &PersonId,
        only: Option<bool>,
    ) -> Result<Option<usize>, Error> {
        let Some((about, _)) = self.recalled_for(read_scope, reply)? else { return Ok(None) };
        let goes = |thumb: &ThumbRow| thumb.about == about && only.is_none_or(|only| only == thumb.is_up);
        let place = read_scope.place();
        let ids = self.thumbed(place, person, goes)?;
        let _writing = self.writing_about(&ids, None)?;
        let mut batch = Batch::new();
        for id in &ids {
            self.retain_thumbs(&mut batch, (*id, place, person), |thumb| !goes(thumb))?;
        }
        self.0.store.commit(batch, Durability::Flushed)?;
        Ok(Some(ids.len()))
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

    /// Returns the memories on which a person has such thumbs in a place.
    fn thumbed(
        self,
        place: &Scope,
        person: &PersonId,
        is_wanted: impl Fn(&ThumbRow) -> bool,
    ) -> Result<Vec<MemoryId>, Error> {
        let mut ids = Vec::new();
        codec::walk(self.0.store.as_ref(), Table::Ratings, &of_person(place, person), |_, value| {
            let row: RatingRow = codec::decode(Table::Ratings, value)?;
            if row.thumbs.iter().any(&is_wanted) {
                ids.push(row.memory);
            }
            Ok(true)
        })?;
        Ok(ids)
    }

    /// Locks out everybody who may forget one of these memories, or writes in a chat.
    fn writing_about<'m>(
        &self,
        memories: impl IntoIterator<Item = &'m MemoryId>,
        chat: Option<&ChatId>,
    ) -> Result<Vec<MutexGuard<'_, ()>>, Error> {
        let mut chats: BTreeSet<ChatId> = chat.cloned().into_iter().collect();
        for id in memories {
            chats.extend(self.raw_memory(*id)?.and_then(|memory| memory.chat));
        }
        self.0.writing_in(&chats)
    }

    /// Keeps some thumbs of a rating. The rating goes with its last thumb, if the person said nothing of the memory itself.
    /// It may be gone already, with its memory.
    fn retain_thumbs(
        self,
        batch: &mut Batch,
        (id, place, person): (MemoryId, &Scope, &PersonId),
        stays: impl Fn(&ThumbRow) -> bool,
    ) -> Result<(), Error> {
        let Some(mut row) = self.rating(id, place, person)? else { return Ok(()) };
        row.thumbs.retain(stays);
        if row.is_empty() {
            remove_rating(batch, &row);
            return Ok(());
        }
        row.seq = self.0.next_number()?;
        put_rating(batch, &row)
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

    fn thumb(about: &str, is_up: bool) -> ThumbRow {
        ThumbRow { about: MessageId::new(about).unwrap(), is_up, reply: None, reaction: None, chat: None }
    }

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
            thumbs: thumbs.iter().enumerate().map(|(number, is_up)| thumb(&format!("q{number}"), *is_up)).collect(),
            only_thumbs: said.is_none(),
        };
        let check = |thumbs: &[bool], said, want| assert_eq!(rating(thumbs, said).opinion(), want, "{thumbs:?}");
        check(&[true; 9], None, Some(true));
        check(&[true, false, false], None, Some(false));
        check(&[true, false], None, None);
        check(&[false; 9], Some(true), Some(true));
        check(&[], Some(false), Some(false));
        let mut changed = rating(&[], None);
        changed.thumbs = vec![thumb("q1", true), thumb("q2", false), thumb("q2", true), thumb("q2", true)];
        assert_eq!(changed.opinion(), Some(true));
        changed.thumbs.push(thumb("q2", false));
        assert_eq!(changed.opinion(), None, "of the thumbs for one message the newest counts");
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
