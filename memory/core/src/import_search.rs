//! How far imported conversations were searched for what is worth keeping. The place stands in the chat's row, so a search
//! goes on after a crash, and goes with the chat. Messages have rising numbers in the order in which they were imported, so
//! what a file adds later is always behind it.

use azera_types::{ChatId, PersonId, PersonaId, Scope};

use crate::domains::Imports;
use crate::imports::ImportedChat;
use crate::rows::{ChatRow, MessageRow};
use crate::{Batch, Durability, Entry, Error, Order, ReadScope, Table, codec, keys};

/// Messages of an imported chat that are searched next.
#[derive(Debug)]
pub struct UnsearchedPart {
    /// The messages, in the order in which they were imported.
    pub rows: Vec<MessageRow>,
    /// Where this part begins.
    pub from: u64,
    /// Where the next part begins, for [`Imports::note_searched`].
    pub next: u64,
}

impl Imports<'_> {
    /// Returns the imported chats that were not searched to their end: each with the person and the scope.
    pub fn unsearched(self) -> Result<Vec<(ChatId, PersonaId, PersonId, Scope)>, Error> {
        let chats = self.kept(|_, _, _| true)?.into_iter();
        let unsearched = |chat: ChatRow| match chat.imported {
            Some(ImportedChat::Kept { by, scope, unsearched: Some(_), .. }) => Some((chat.id, chat.persona, by, scope)),
            _ => None,
        };
        Ok(chats.filter_map(unsearched).collect())
    }

    /// Returns the next messages of a chat to search, of at most `limit`; `None` if all of it was searched. Messages that
    /// `read_scope` does not allow, and forgotten ones, are left out.
    pub fn to_search(
        self,
        read_scope: &ReadScope,
        chat: &ChatId,
        limit: usize,
    ) -> Result<Option<UnsearchedPart>, Error> {
        let Some(from) = self.first_unsearched(chat)? else { return Ok(None) };
        let entries = self.log_from(chat, from, limit)?;
        let mut part = UnsearchedPart { rows: Vec::new(), from, next: from };
        for (key, value) in entries {
            part.next = keys::number("chat_log", &key)?.saturating_add(1);
            part.rows.extend(self.0.messages().get(read_scope, &codec::decode(Table::ChatLog, &value)?)?);
        }
        Ok(Some(part))
    }

    /// Notes that a chat was searched up to the message before the number `next`. Returns false if nothing is left.
    pub fn note_searched(self, chat: &ChatId, next: u64) -> Result<bool, Error> {
        let _writing = self.0.writing(chat)?;
        // It may have been forgotten meanwhile.
        let Some(mut row) = self.0.chats().get(chat)? else { return Ok(false) };
        let is_left = !self.log_from(chat, next, 1)?.is_empty();
        match &mut row.imported {
            Some(ImportedChat::Kept { unsearched, .. }) if unsearched.is_some_and(|from| from <= next) => {
                *unsearched = is_left.then_some(next);
            }
            Some(ImportedChat::Kept { unsearched, .. }) => return Ok(unsearched.is_some()),
            _ => return Ok(false),
        }
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Chats, keys::chat(&row.id), &row)?;
        self.0.store.commit(batch, Durability::Soon)?;
        Ok(is_left)
    }

    fn first_unsearched(self, chat: &ChatId) -> Result<Option<u64>, Error> {
        Ok(self.0.chats().get(chat)?.and_then(|chat| match chat.imported {
            Some(ImportedChat::Kept { unsearched, .. }) => unsearched,
            _ => None,
        }))
    }

    /// Returns entries of a chat's log, from the message with this number on.
    fn log_from(self, chat: &ChatId, from: u64, limit: usize) -> Result<Vec<Entry>, Error> {
        let of_chat = [chat.as_str()];
        let before = from.checked_sub(1).map(|before| keys::numbered(&of_chat, before));
        let log = keys::prefix(&of_chat);
        self.0.store.scan(Table::ChatLog, &log, before.as_deref(), Order::Ascending, limit)
    }
}
