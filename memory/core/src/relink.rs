//! Repairs a damaged record with the rows that are left.
//!
//! Messages and memories hold the content; nearly everything else is derived from them and written again. Unreadable
//! rows, and rows that refer to missing ones, are removed.

use std::collections::{BTreeMap, HashMap, HashSet};

use azera_types::{ChatId, MemoryId, MessageId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::files::BlobRow;
use crate::forget_log::Forgotten;
use crate::minds::{BondRow, MindRow};
use crate::pictures::PictureRow;
use crate::ratings::RatingRow;
use crate::record::unused_numbers;
use crate::rows::{
    BranchRow, ChatRow, InboxRow, Kind, MemoryRow, MessageRow, OutboxRow, PersonaRow, Posted, WhyRow, WritingRow,
};
use crate::salience::mark_key;
use crate::vaults::VaultRow;
use crate::writings::writing_key;
use crate::{Batch, Durability, Error, Store, Table, codec, graph, kept, keys, names, themes};

/// Changes that one transaction commits.
const PAGE: usize = 4_096;

/// Tables that are rebuilt from messages and memories.
const FOLLOWING: [Table; 10] = [
    Table::ChatLog,
    Table::PersonLog,
    Table::Answers,
    Table::MemoryByMessage,
    Table::MemoryByChat,
    Table::Names,
    Table::Marks,
    Table::Graph,
    Table::Themes,
    Table::Kept,
];

/// The result of repairing a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RelinkReport {
    /// Rows that stayed, by table, without rebuilt ones.
    #[serde(rename = "kept")]
    pub rows_kept: BTreeMap<&'static str, usize>,
    /// Rows that were removed because they were unreadable or referred to missing rows, by table.
    pub removed: BTreeMap<&'static str, usize>,
    /// Messages, chats and memories that referred to missing rows and were corrected.
    pub mended: usize,
}

/// Chat and number of a message.
struct Place {
    chat: ChatId,
    seq: u64,
}

/// The memories that replies were built on, from the `/why` rows.
#[derive(Default)]
struct Behind {
    by_memory: HashMap<MemoryId, Vec<MessageId>>,
    noted: HashSet<MessageId>,
}

/// Repairs a store that lost rows. The indexes must be rebuilt afterwards.
pub fn relink(store: &dyn Store) -> Result<RelinkReport, Error> {
    let mut work =
        Work { store, batch: Batch::new(), done: RelinkReport::default(), highest: 0, written: HashMap::new() };
    for table in FOLLOWING {
        work.empty(table)?;
    }
    work.empty(Table::IndexQueue)?;
    work.empty(Table::Passages)?;
    let places = work.messages()?;
    let known = |id: &MessageId| places.contains_key(id);
    work.keep::<MessageId>(Table::Derived, known)?;
    work.keep::<WhyRow>(Table::Why, |row| known(&row.reply))?;
    let behind = work.behind_replies()?;
    work.memories(&places, &behind)?;
    work.chats(&places)?;
    work.keep::<InboxRow>(Table::Inbox, |row| known(&row.message))?;
    work.keep::<OutboxRow>(Table::Outbox, |row| known(&row.message))?;
    work.keep::<PersonaRow>(Table::Personas, |_| true)?;
    work.keep::<serde_json::Value>(Table::Settings, |_| true)?;
    work.keep::<Forgotten>(Table::Forgotten, |_| true)?;
    work.keep::<MindRow>(Table::Minds, |_| true)?;
    work.keep::<BondRow>(Table::Bonds, |_| true)?;
    work.commit()?;
    let has_memory = |row: &RatingRow| matches!(store.get(Table::Memories, &keys::memory(row.memory)), Ok(Some(_)));
    work.keep::<RatingRow>(Table::Ratings, has_memory)?;
    work.keep::<VaultRow>(Table::Vaults, |_| true)?;
    let waiting = work.pictures(&places)?;
    work.keep::<BlobRow>(Table::Blobs, |row| known(&row.message) || waiting.contains(&row.message))?;
    work.numbers()?;
    work.commit()?;
    Ok(work.done)
}

struct Work<'a> {
    store: &'a dyn Store,
    batch: Batch,
    done: RelinkReport,
    /// The highest number given out that any row shows.
    highest: u64,
    /// The existing writings: the key of each one's row, and its source messages.
    written: HashMap<Vec<u8>, Vec<MessageId>>,
}

impl Work<'_> {
    fn commit(&mut self) -> Result<(), Error> {
        self.store.commit(std::mem::take(&mut self.batch), Durability::Flushed)
    }

    fn commit_page(&mut self) -> Result<(), Error> {
        if self.batch.changes().len() < PAGE { Ok(()) } else { self.commit() }
    }

    fn remove(&mut self, table: Table, key: Vec<u8>) -> Result<(), Error> {
        *self.done.removed.entry(table.name()).or_default() += 1;
        self.batch.remove(table, key);
        self.commit_page()
    }

    /// Removes a table's rows without counting them, because they are rebuilt.
    fn empty(&mut self, table: Table) -> Result<(), Error> {
        let mut found = Vec::new();
        codec::walk(self.store, table, b"", |key, _| {
            found.push(key.to_vec());
            Ok(true)
        })?;
        for key in found {
            self.batch.remove(table, key);
            self.commit_page()?;
        }
        self.commit()
    }

    /// Keeps the pictures that wait, and those whose message is there. Returns those that wait.
    fn pictures(&mut self, places: &HashMap<MessageId, Place>) -> Result<HashSet<MessageId>, Error> {
        let mut waiting = HashSet::new();
        for (key, row) in self.readable::<PictureRow>(Table::Pictures)? {
            // Its number is part of the message's id, so it must not be given out again.
            self.highest = self.highest.max(row.number);
            if row.drawn_at.is_none() || places.contains_key(&row.message) {
                *self.done.rows_kept.entry(Table::Pictures.name()).or_default() += 1;
                waiting.extend(row.drawn_at.is_none().then_some(row.message));
            } else {
                self.remove(Table::Pictures, key)?;
            }
        }
        Ok(waiting)
    }

    /// Returns the readable rows of a table and removes the others.
    fn readable<T: DeserializeOwned>(&mut self, table: Table) -> Result<Vec<(Vec<u8>, T)>, Error> {
        let (mut rows, mut bad) = (Vec::new(), Vec::new());
        codec::walk(self.store, table, b"", |key, value| {
            match codec::decode(table, value) {
                Ok(row) => rows.push((key.to_vec(), row)),
                Err(_) => bad.push(key.to_vec()),
            }
            Ok(true)
        })?;
        for key in bad {
            self.remove(table, key)?;
        }
        Ok(rows)
    }

    /// Keeps the readable rows of a table that `wanted` accepts, and removes the others.
    fn keep<T: DeserializeOwned>(&mut self, table: Table, wanted: impl Fn(&T) -> bool) -> Result<(), Error> {
        for (key, row) in self.readable::<T>(table)? {
            if wanted(&row) {
                *self.done.rows_kept.entry(table.name()).or_default() += 1;
            } else {
                self.remove(table, key)?;
            }
        }
        Ok(())
    }

    /// Files every message in its chat, after the one before it; returns chat and number of each.
    fn messages(&mut self) -> Result<HashMap<MessageId, Place>, Error> {
        let mut messages: Vec<(Vec<u8>, MessageRow)> = self.readable(Table::Messages)?;
        messages.sort_by_key(|(_, message)| message.seq);
        let known: HashSet<MessageId> = messages.iter().map(|(_, message)| message.id.clone()).collect();
        let mut newest: HashMap<ChatId, MessageId> = HashMap::new();
        let mut places = HashMap::new();
        for (key, mut message) in messages {
            self.highest = self.highest.max(message.seq);
            let seq = message.seq;
            self.put(Table::ChatLog, keys::numbered(&[message.chat.as_str()], seq), &message.id)?;
            if let Some(person) = message.author.person() {
                self.put(Table::PersonLog, keys::numbered(&[person.as_str()], seq), &message.id)?;
            }
            let before = newest.insert(message.chat.clone(), message.id.clone());
            let lost_parent = message.parent.as_ref().is_some_and(|parent| !known.contains(parent));
            let lost_question = message.answers.as_ref().is_some_and(|question| !known.contains(question));
            if lost_parent {
                message.parent = before;
            }
            if lost_question {
                message.answers = None;
            }
            if let Some(question) = &message.answers {
                self.put(Table::Answers, keys::numbered(&[question.as_str()], seq), &message.id)?;
                self.put(Table::Derived, keys::derived(question, &message.id), &message.id)?;
            }
            if lost_parent || lost_question {
                self.done.mended += 1;
                self.put(Table::Messages, key, &message)?;
            }
            *self.done.rows_kept.entry(Table::Messages.name()).or_default() += 1;
            places.insert(message.id, Place { chat: message.chat, seq });
        }
        Ok(places)
    }

    /// Returns the replies that have a `/why` row, by the memories they were built on.
    fn behind_replies(&mut self) -> Result<Behind, Error> {
        self.commit()?;
        let mut behind = Behind::default();
        codec::walk(self.store, Table::Why, b"", |_, value| {
            let why: WhyRow = codec::decode(Table::Why, value)?;
            for hit in why.recalled {
                behind.by_memory.entry(hit.memory).or_default().push(why.reply.clone());
            }
            behind.noted.insert(why.reply);
            Ok(true)
        })?;
        Ok(behind)
    }

    /// Links every memory with its messages, its chat, its speaker and the replies built on it. Removes a memory whose
    /// messages are gone, because forgetting them would not find it. Removes the memory of a reply without a `/why`
    /// row, because its sources are unknown.
    fn memories(&mut self, places: &HashMap<MessageId, Place>, behind: &Behind) -> Result<(), Error> {
        for (key, mut memory) in self.readable::<MemoryRow>(Table::Memories)? {
            self.highest = self.highest.max(memory.id.0);
            let before = memory.sources.len();
            memory.sources.retain(|source| places.contains_key(source));
            let of_nothing = memory.kind.is_said() && memory.sources.is_empty();
            // A writing may quote any of its messages, and a chunk belongs to its message. So both are removed if one
            // message is missing.
            let lost_some = (memory.kind.is_written() || memory.kind == Kind::Fact) && memory.sources.len() < before;
            let unexplained = memory.kind == Kind::Reply && !memory.sources.iter().any(|id| behind.noted.contains(id));
            if of_nothing || unexplained || lost_some {
                self.remove(Table::Memories, key)?;
                continue;
            }
            if memory.sources.len() < before {
                self.done.mended += 1;
                self.put(Table::Memories, key, &memory)?;
            }
            for reply in behind.by_memory.get(&memory.id).into_iter().flatten() {
                for source in &memory.sources {
                    self.put(Table::Derived, keys::derived(source, reply), reply)?;
                }
                if memory.sources.is_empty() {
                    self.put(Table::Derived, keys::derived_from_fact(memory.id, reply), reply)?;
                }
            }
            for source in &memory.sources {
                self.batch.put(Table::MemoryByMessage, keys::numbered(&[source.as_str()], memory.id.0), []);
            }
            if let Some(chat) = memory.conversation() {
                self.batch.put(Table::MemoryByChat, keys::memory_by_chat(&memory.persona, chat, memory.id), []);
            }
            if let Some(key) = mark_key(&memory).filter(|_| memory.salience.is_some()) {
                self.batch.put(Table::Marks, key, []);
            }
            if memory.kind.is_written() {
                self.written.insert(writing_key(&memory), memory.sources.clone());
            }
            for key in names::keys(&memory) {
                self.batch.put(Table::Names, key, []);
            }
            graph::put(&mut self.batch, &memory);
            themes::put(&mut self.batch, &memory);
            kept::put(&mut self.batch, &memory);
            *self.done.rows_kept.entry(Table::Memories.name()).or_default() += 1;
            self.commit_page()?;
        }
        self.writings()
    }

    /// Keeps the rows of existing writings and the writings that have a row, and links posts with their sources.
    fn writings(&mut self) -> Result<(), Error> {
        self.commit()?;
        let mut written = std::mem::take(&mut self.written);
        let mut notes = HashSet::new();
        for (key, row) in self.readable::<WritingRow>(Table::Writings)? {
            let Some(sources) = written.remove(&key) else {
                self.remove(Table::Writings, key)?;
                continue;
            };
            *self.done.rows_kept.entry(Table::Writings.name()).or_default() += 1;
            if let Some(Posted { message: post, .. }) = &row.posted {
                for source in sources.iter().filter(|source| *source != post) {
                    self.put(Table::Derived, keys::derived(source, post), post)?;
                }
            }
            if row.kind == Kind::Note {
                notes.insert(row.memory);
            }
        }
        for key in written.into_keys() {
            let id = MemoryId(keys::number(Table::Writings.name(), &key)?);
            self.remove(Table::Memories, keys::memory(id))?;
            for (table, parts) in self.linking(id)? {
                self.batch.remove(table, parts);
            }
        }
        self.keep::<MemoryId>(Table::Notes, |id| notes.contains(id))
    }

    /// Returns the derived rows that link to a memory.
    fn linking(&mut self, id: MemoryId) -> Result<Vec<(Table, Vec<u8>)>, Error> {
        self.commit()?;
        let mut found = Vec::new();
        for table in [Table::MemoryByMessage, Table::Names, Table::Graph, Table::Themes] {
            codec::walk(self.store, table, b"", |key, _| {
                if keys::number(table.name(), key)? == id.0 {
                    found.push((table, key.to_vec()));
                }
                Ok(true)
            })?;
        }
        Ok(found)
    }

    /// Makes chats and branches end at existing messages.
    fn chats(&mut self, places: &HashMap<MessageId, Place>) -> Result<(), Error> {
        let mut newest: HashMap<&ChatId, (u64, &MessageId)> = HashMap::new();
        for (id, place) in places {
            let entry = newest.entry(&place.chat).or_insert((place.seq, id));
            *entry = (*entry).max((place.seq, id));
        }
        for (key, mut chat) in self.readable::<ChatRow>(Table::Chats)? {
            if chat.head.as_ref().is_some_and(|head| !places.contains_key(head)) {
                chat.head = newest.get(&chat.id).map(|(_, id)| (*id).clone());
                self.done.mended += 1;
                self.put(Table::Chats, key, &chat)?;
            }
            *self.done.rows_kept.entry(Table::Chats.name()).or_default() += 1;
        }
        self.keep::<BranchRow>(Table::Branches, |branch| {
            branch.head.as_ref().is_none_or(|head| places.contains_key(head))
        })
    }

    /// Makes numbers continue after the highest one found, and removes unreadable rows of [`Table::Meta`].
    fn numbers(&mut self) -> Result<(), Error> {
        let mut bad = Vec::new();
        codec::walk(self.store, Table::Meta, b"", |key, value| {
            if codec::decode::<serde_json::Value>(Table::Meta, value).is_err() {
                bad.push(key.to_vec());
            }
            Ok(true)
        })?;
        for key in bad {
            self.remove(Table::Meta, key)?;
        }
        self.commit()?;
        let reserved: u64 = codec::get(self.store, Table::Meta, b"reserved").unwrap_or(None).unwrap_or(0);
        let unused = unused_numbers(self.store)?.max(self.highest + 1);
        self.put(Table::Meta, b"reserved".to_vec(), &reserved.max(unused))
    }

    fn put<T: Serialize>(&mut self, table: Table, key: Vec<u8>, row: &T) -> Result<(), Error> {
        codec::put(&mut self.batch, table, key, row)?;
        self.commit_page()
    }
}
