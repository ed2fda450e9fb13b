//! How far imported conversations were searched for what is worth keeping: by the classifiers, by a chat model, and for
//! what contradicts earlier statements. The places stand in the chat's row, so a search goes on after a crash, and goes with
//! the chat. Messages have rising numbers in the order in which they were imported, so what a file adds later is always
//! behind it.

use azera_types::{ChatId, MemoryId, PersonId, PersonaId, PlatformId, Scope, Timestamp};

use crate::domains::Imports;
use crate::imports::{ImportState, ImportedChat};
use crate::rows::{ChatRow, Kind, MessageRow};
use crate::{Batch, Durability, Entry, Error, Order, ReadScope, Table, codec, keys};

/// The version of the search. Chats that an older one searched are searched once more.
pub(crate) const IMPORT_SEARCH: u32 = 1;

/// The name of the format in which people play somebody else. Chats of older versions tell nothing else of that.
const PLAYED: &str = "sillytavern";

/// Entries of a chat's log that are read at a time.
const PAGE: usize = 256;

/// Messages of an imported chat that are searched next.
#[derive(Debug)]
pub struct UnsearchedPart {
    /// The messages, in the order in which they were imported.
    pub rows: Vec<MessageRow>,
    /// Where this part begins.
    pub from: u64,
    /// Where the next part begins, for [`Imports::note_searched`] and [`Imports::note_read`].
    pub next: u64,
}

/// An imported chat of which something is still to be learnt.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingImport {
    /// The chat.
    pub chat: ChatId,
    /// Its platform, on which nobody talks.
    pub platform: PlatformId,
    /// The persona that remembers.
    pub persona: PersonaId,
    /// The person who imported it.
    pub person: PersonId,
    /// The scope of its messages.
    pub scope: Scope,
    /// True if the classifiers searched it to its end.
    pub is_searched: bool,
    /// True if a chat model read it to its end.
    pub is_read: bool,
    /// True if its statements wait to be compared with what the person said elsewhere.
    pub waits: bool,
}

/// Who goes through an imported chat.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    Classifiers,
    Model,
}

impl Imports<'_> {
    /// Returns the imported chats of which something is still to be learnt.
    pub fn pending(self) -> Result<Vec<PendingImport>, Error> {
        let pending = |chat: ChatRow| match chat.imported {
            Some(ImportedChat::Kept { by, scope, unsearched, unread, waits, .. }) => Some(PendingImport {
                chat: chat.id,
                platform: chat.platform,
                persona: chat.persona,
                person: by,
                scope,
                is_searched: unsearched.is_none(),
                is_read: unread.is_none(),
                waits,
            })
            .filter(|one| !one.is_searched || !one.is_read || one.waits),
            _ => None,
        };
        Ok(self.kept(|_, _, _| true)?.into_iter().filter_map(pending).collect())
    }

    /// Lets chats that an older version searched be searched once more, from their first message. Returns how many. It can
    /// be repeated after a crash.
    pub fn search_older(self) -> Result<usize, Error> {
        let is_older = |chat: &ChatRow| matches!(&chat.imported, Some(ImportedChat::Kept { search, .. }) if *search < IMPORT_SEARCH);
        let mut begun = 0;
        for older in self.kept(|_, _, _| true)?.into_iter().filter(is_older) {
            let _writing = self.0.writing(&older.id)?;
            // It may have been forgotten meanwhile.
            let Some(mut row) = self.0.chats().get(&older.id)? else { continue };
            let Some(ImportedChat::Kept { imports, unsearched, unread, search, .. }) = &mut row.imported else {
                continue;
            };
            if imports.values().any(|file| file.format != PLAYED) {
                (*unsearched, *unread) = (Some(0), Some(0));
                begun += 1;
            }
            *search = IMPORT_SEARCH;
            self.put(&row)?;
        }
        Ok(begun)
    }

    /// Returns the next messages of a chat to search, of at most `limit`; `None` if all of it was searched. Messages that
    /// `read_scope` does not allow, and forgotten ones, are left out.
    pub fn to_search(
        self,
        read_scope: &ReadScope,
        chat: &ChatId,
        limit: usize,
    ) -> Result<Option<UnsearchedPart>, Error> {
        let Some(from) = self.begins(chat, |unsearched, _| unsearched)? else { return Ok(None) };
        self.part(read_scope, chat, from, limit).map(Some)
    }

    /// Returns the next messages of a chat for a chat model, of at most `limit`, behind up to `before` earlier ones; `None`
    /// if all of it was read. Leaves out what [`Imports::to_search`] does.
    pub fn to_read(
        self,
        read_scope: &ReadScope,
        chat: &ChatId,
        limit: usize,
        before: usize,
    ) -> Result<Option<UnsearchedPart>, Error> {
        let Some(from) = self.begins(chat, |_, unread| unread)? else { return Ok(None) };
        let log = keys::prefix(&[chat.as_str()]);
        let end = keys::numbered(&[chat.as_str()], from);
        let mut earlier = self.0.store.scan(Table::ChatLog, &log, Some(&end), Order::Descending, before)?;
        earlier.reverse();
        let mut rows = self.rows(read_scope, &earlier)?;
        let part = self.part(read_scope, chat, from, limit)?;
        rows.extend(part.rows);
        Ok(Some(UnsearchedPart { rows, ..part }))
    }

    fn part(self, read_scope: &ReadScope, chat: &ChatId, from: u64, limit: usize) -> Result<UnsearchedPart, Error> {
        let entries = self.log_from(chat, from, limit)?;
        let last = entries.last().map(|(key, _)| keys::number("chat_log", key)).transpose()?;
        let next = last.map_or(from, |last| last.saturating_add(1));
        Ok(UnsearchedPart { rows: self.rows(read_scope, &entries)?, from, next })
    }

    fn rows(self, read_scope: &ReadScope, entries: &[Entry]) -> Result<Vec<MessageRow>, Error> {
        let mut rows = Vec::new();
        for (_, value) in entries {
            rows.extend(self.0.messages().get(read_scope, &codec::decode(Table::ChatLog, value)?)?);
        }
        Ok(rows)
    }

    /// Notes that a chat was searched up to the message before the number `next`. Returns false if nothing is left.
    pub fn note_searched(self, chat: &ChatId, next: u64) -> Result<bool, Error> {
        self.note(chat, next, Reader::Classifiers)
    }

    /// Notes that a chat model read a chat up to the message before the number `next`. Returns false if nothing is left;
    /// then the statements of the chat wait to be compared.
    pub fn note_read(self, chat: &ChatId, next: u64) -> Result<bool, Error> {
        self.note(chat, next, Reader::Model)
    }

    fn note(self, chat: &ChatId, next: u64, reader: Reader) -> Result<bool, Error> {
        let _writing = self.0.writing(chat)?;
        // It may have been forgotten meanwhile.
        let Some(mut row) = self.0.chats().get(chat)? else { return Ok(false) };
        let is_left = !self.log_from(chat, next, 1)?.is_empty();
        let Some(ImportedChat::Kept { unsearched, unread, waits, .. }) = &mut row.imported else { return Ok(false) };
        let from = match reader {
            Reader::Classifiers => unsearched,
            Reader::Model => unread,
        };
        match *from {
            Some(before) if before <= next => *from = is_left.then_some(next),
            stays => return Ok(stays.is_some()),
        }
        *waits |= reader == Reader::Model && !is_left;
        self.put(&row)?;
        Ok(is_left)
    }

    fn put(self, row: &ChatRow) -> Result<(), Error> {
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Chats, keys::chat(&row.id), row)?;
        self.0.store.commit(batch, Durability::Soon)
    }

    fn begins(
        self,
        chat: &ChatId,
        which: impl FnOnce(Option<u64>, Option<u64>) -> Option<u64>,
    ) -> Result<Option<u64>, Error> {
        Ok(self.0.chats().get(chat)?.and_then(|chat| match chat.imported {
            Some(ImportedChat::Kept { unsearched, unread, .. }) => which(unsearched, unread),
            _ => None,
        }))
    }

    /// Returns the marked memories of a person in an imported chat that are to be shown, in the order in which they were
    /// said.
    pub fn marked(
        self,
        read_scope: &ReadScope,
        chat: &ChatId,
        person: &PersonId,
    ) -> Result<Vec<(Timestamp, MemoryId)>, Error> {
        let (mut marked, mut from) = (Vec::new(), 0);
        loop {
            let entries = self.log_from(chat, from, PAGE)?;
            let Some((last, _)) = entries.last() else { break };
            from = keys::number("chat_log", last)?.saturating_add(1);
            for (_, value) in &entries {
                for memory in self.0.turns().memories_of(&codec::decode(Table::ChatLog, value)?)? {
                    if memory.kind != Kind::Message || memory.author.person() != Some(person) {
                        continue;
                    }
                    let Some(mut memory) = self.0.memories().get(read_scope, memory.id)? else { continue };
                    if self.0.memories().stands(read_scope, &mut memory)? {
                        marked.push((memory.at, memory.id));
                    }
                }
            }
        }
        marked.sort_unstable();
        Ok(marked)
    }

    /// Returns the number of messages of a chat from the message with this number on, without forgotten ones.
    pub(crate) fn count_from(self, chat: &ChatId, from: u64) -> Result<usize, Error> {
        let (mut count, mut from) = (0, from);
        loop {
            let entries = self.log_from(chat, from, PAGE)?;
            let Some((last, _)) = entries.last() else { return Ok(count) };
            from = keys::number("chat_log", last)?.saturating_add(1);
            for (_, value) in &entries {
                let id = codec::decode(Table::ChatLog, value)?;
                count += usize::from(self.message_state(&id)? == ImportState::Kept);
            }
        }
    }

    /// Returns entries of a chat's log, from the message with this number on.
    fn log_from(self, chat: &ChatId, from: u64, limit: usize) -> Result<Vec<Entry>, Error> {
        let of_chat = [chat.as_str()];
        let before = from.checked_sub(1).map(|before| keys::numbered(&of_chat, before));
        let log = keys::prefix(&of_chat);
        self.0.store.scan(Table::ChatLog, &log, before.as_deref(), Order::Ascending, limit)
    }
}
