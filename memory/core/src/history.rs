//! Reads conversations. Every read takes a [`ReadScope`] and leaves out messages that it does not allow.

use azera_types::{Author, ChatId, MemoryId, MessageId, PersonId};

use crate::domains::{Memories, Messages};
use crate::rows::{MemoryRow, MessageRow, WhyRow};
use crate::{Again, Error, Order, ReadScope, Table, codec, keys};

/// Most messages that one call of [`Messages::history`] may ask for.
pub const MAX_HISTORY: usize = 2_000;

/// Newest messages that [`Messages::recent_speakers`] looks at.
const SPEAKERS_LOOKED_FOR: usize = 100;

impl Messages<'_> {
    /// Returns a message, if `read_scope` allows it and it was not forgotten.
    pub fn get(self, read_scope: &ReadScope, id: &MessageId) -> Result<Option<MessageRow>, Error> {
        Ok(self.raw_message(id)?.filter(|message| {
            message.author != Author::Forgotten
                && read_scope.allows(&message.persona, &message.scope, &message.source_scopes, message.at)
        }))
    }

    /// Returns the memory of a message, if `read_scope` allows it.
    pub fn memory_of(self, read_scope: &ReadScope, id: &MessageId) -> Result<Option<MemoryId>, Error> {
        let memories = self.0.turns().memories_of(id)?.into_iter();
        let mut shown = memories.filter(|memory| {
            memory.kind.is_said() && read_scope.allows(&memory.persona, &memory.scope, &memory.source_scopes, memory.at)
        });
        Ok(shown.next().map(|memory| memory.id))
    }

    /// Returns the newest `limit` messages of the chat's current branch, oldest first.
    pub fn history(self, read_scope: &ReadScope, chat: &ChatId, limit: usize) -> Result<Vec<MessageRow>, Error> {
        let head = self.0.chats().get(chat)?.and_then(|chat| chat.head);
        self.history_to(read_scope, head.as_ref(), limit)
    }

    /// Returns the newest `limit` messages up to and including `tip`, oldest first.
    pub fn history_to(
        self,
        read_scope: &ReadScope,
        tip: Option<&MessageId>,
        limit: usize,
    ) -> Result<Vec<MessageRow>, Error> {
        let mut path = Vec::new();
        let mut next = tip.cloned();
        let mut steps = 0;
        while let Some(id) = next
            && path.len() < limit.min(MAX_HISTORY)
            && steps < MAX_HISTORY
        {
            steps += 1;
            let Some(message) = self.raw_message(&id)? else { break };
            next = message.parent.clone();
            if message.author != Author::Forgotten
                && read_scope.allows(&message.persona, &message.scope, &message.source_scopes, message.at)
            {
                path.push(message);
            }
        }
        path.reverse();
        Ok(path)
    }

    /// Returns all replies to a message, oldest first, also those on other branches.
    pub fn alternatives(self, read_scope: &ReadScope, to: &MessageId) -> Result<Vec<MessageRow>, Error> {
        let ids: Vec<MessageId> = codec::rows(self.0.store.as_ref(), Table::Answers, &keys::prefix(&[to.as_str()]))?;
        let mut replies = Vec::new();
        for id in ids {
            replies.extend(self.get(read_scope, &id)?);
        }
        Ok(replies)
    }

    /// Returns the reply to a message that is on the chat's current branch.
    pub fn present_answer(self, read_scope: &ReadScope, to: &MessageId) -> Result<Option<MessageRow>, Error> {
        let Some(message) = self.get(read_scope, to)? else { return Ok(None) };
        let path = self.history(read_scope, &message.chat, MAX_HISTORY)?;
        Ok(path.into_iter().rev().find(|row| row.answers.as_ref() == Some(to)))
    }

    /// Returns the memories that a reply recalled, for what is done with them and not shown.
    pub(crate) fn recalled_by(self, reply: &MessageId) -> Result<Vec<MemoryId>, Error> {
        let why: Option<WhyRow> = codec::get(self.0.store.as_ref(), Table::Why, &keys::message(reply))?;
        Ok(why.into_iter().flat_map(|why| why.recalled).map(|hit| hit.memory).collect())
    }

    /// Returns the sources of a reply that `read_scope` allows. Memories that may no longer be shown are left out; the
    /// last value is their number.
    pub fn why(
        self,
        read_scope: &ReadScope,
        reply: &MessageId,
    ) -> Result<Option<(WhyRow, Vec<MemoryRow>, usize)>, Error> {
        if self.get(read_scope, reply)?.is_none() {
            return Ok(None);
        }
        let Some(mut why) = codec::get::<WhyRow>(self.0.store.as_ref(), Table::Why, &keys::message(reply))? else {
            return Ok(None);
        };
        let before = why.recalled.len();
        let mut shown = Vec::new();
        let mut retained = Vec::new();
        for hit in why.recalled {
            if let Some(memory) = self.0.memories().get(read_scope, hit.memory)? {
                shown.push(memory);
                retained.push(hit);
            }
        }
        why.recalled = retained;
        let hidden = before - why.recalled.len();
        Ok(Some((why, shown, hidden)))
    }
}

impl Memories<'_> {
    /// Returns those statements that `read_scope` allows now, of some that said the same.
    pub fn said_again(self, read_scope: &ReadScope, same: &[MemoryId]) -> Result<Vec<Again>, Error> {
        let mut again = Vec::new();
        for id in same {
            let memory = self.get(read_scope, *id)?.filter(MemoryRow::is_statement);
            again.extend(memory.map(Again::of));
        }
        Ok(again)
    }

    /// Returns a memory, if `read_scope` allows it.
    pub fn get(self, read_scope: &ReadScope, id: MemoryId) -> Result<Option<MemoryRow>, Error> {
        Ok(self
            .raw_memory(id)?
            .filter(|memory| read_scope.allows(&memory.persona, &memory.scope, &memory.source_scopes, memory.at)))
    }
}

impl Messages<'_> {
    /// Returns the people who spoke last in a chat, latest first. They are the ones to ask about the chat.
    pub fn recent_speakers(self, chat: &ChatId) -> Result<Vec<PersonId>, Error> {
        let log = keys::prefix(&[chat.as_str()]);
        let mut people: Vec<PersonId> = Vec::new();
        for (_, value) in self.0.store.scan(Table::ChatLog, &log, None, Order::Descending, SPEAKERS_LOOKED_FOR)? {
            let message = self.raw_message(&codec::decode(Table::ChatLog, &value)?)?;
            let person = message.as_ref().and_then(|message| message.author.person());
            people.extend(person.filter(|person| !people.contains(person)).cloned());
        }
        Ok(people)
    }

    /// Returns the ids of a person's newest messages, newest first.
    pub(crate) fn messages_of(self, person: &PersonId, limit: usize) -> Result<Vec<MessageId>, Error> {
        let prefix = keys::prefix(&[person.as_str()]);
        let entries = self.0.store.scan(Table::PersonLog, &prefix, None, Order::Descending, limit)?;
        entries.iter().map(|(_, value)| codec::decode(Table::PersonLog, value)).collect()
    }

    /// Returns true if a message stands in the record, and false if it was forgotten; `None` if it is unknown.
    pub fn stands(self, id: &MessageId) -> Result<Option<bool>, Error> {
        Ok(self.raw_message(id)?.map(|message| message.author != Author::Forgotten))
    }

    /// Returns true if a person may have a message forgotten: it is their own, or a reply to one of theirs.
    pub fn is_theirs(self, id: &MessageId, person: &PersonId) -> Result<bool, Error> {
        let Some(message) = self.raw_message(id)? else { return Ok(false) };
        if message.author.person() == Some(person) {
            return Ok(true);
        }
        let question = message.answers.map(|question| self.raw_message(&question)).transpose()?.flatten();
        Ok(question.is_some_and(|question| question.author.person() == Some(person)))
    }

    pub(crate) fn raw_message(self, id: &MessageId) -> Result<Option<MessageRow>, Error> {
        codec::get(self.0.store.as_ref(), Table::Messages, &keys::message(id))
    }
}

impl Memories<'_> {
    pub(crate) fn raw_memory(self, id: MemoryId) -> Result<Option<MemoryRow>, Error> {
        codec::get(self.0.store.as_ref(), Table::Memories, &keys::memory(id))
    }
}
