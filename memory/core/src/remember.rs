//! The memories of messages: made with a message, changed with it and removed with it.

use azera_types::{MemoryId, MessageId, Text};

use crate::domains::Turns;
use crate::rows::{Kind, MemoryRow, MessageRow};
use crate::salience::mark_key;
use crate::{Batch, Error, Order, Table, codec, graph, kept, keys, names, ratings, themes};

impl Turns<'_> {
    /// Gives a memory another text. What was judged of the old text is removed.
    pub(crate) fn reword_memory(self, batch: &mut Batch, old: MemoryRow, text: &Text) -> Result<(), Error> {
        if let Some(key) = mark_key(&old) {
            batch.remove(Table::Marks, key);
        }
        let memory = MemoryRow {
            text: text.clone(),
            salience: None,
            surprise: None,
            replaced: None,
            apart: false,
            ..old.clone()
        };
        graph::change(batch, &old, &memory);
        themes::change(self.0.store.as_ref(), batch, &memory)?;
        codec::put(batch, Table::Memories, keys::memory(memory.id), &memory)?;
        self.0.indexing().queue_with_neighbours(batch, &memory)
    }

    /// Gives the memory of a message its new text. Writings about it and chunks of its files are removed.
    pub(crate) fn reword_memories(self, batch: &mut Batch, message: &MessageRow) -> Result<(), Error> {
        for memory in self.memories_of(&message.id)? {
            if memory.kind.is_written() || memory.kind == Kind::Fact {
                // A writing may quote the old text, and chunks are sent again after an edit. So both are removed.
                self.remove_memory(batch, &memory)?;
            } else if memory.sources == [message.id.clone()] {
                self.reword_memory(batch, memory, &message.text)?;
            }
        }
        Ok(())
    }

    /// Adds the memory of a message to the batch, unless it has one or the text is empty.
    pub(crate) fn remember(self, batch: &mut Batch, message: &MessageRow, kind: Kind) -> Result<(), Error> {
        // Writings about the message and its chunks do not count as its memory.
        let remembered = self.memories_of(&message.id)?.iter().any(|memory| memory.kind.is_said());
        if message.text.trim().is_empty() || remembered {
            return Ok(());
        }
        let memory = MemoryRow {
            id: MemoryId(self.0.next_number()?),
            persona: message.persona.clone(),
            kind,
            scope: message.scope.clone(),
            source_scopes: message.source_scopes.clone(),
            chat: Some(message.chat.clone()),
            session: self.session_at(message)?,
            author: message.author.clone(),
            sources: vec![message.id.clone()],
            text: message.text.clone(),
            at: message.at,
            salience: None,
            surprise: None,
            apart: false,
            replaced: None,
        };
        self.put_memory(batch, &memory)
    }

    pub(crate) fn put_memory(self, batch: &mut Batch, memory: &MemoryRow) -> Result<(), Error> {
        codec::put(batch, Table::Memories, keys::memory(memory.id), memory)?;
        for source in &memory.sources {
            batch.put(Table::MemoryByMessage, keys::numbered(&[source.as_str()], memory.id.0), []);
        }
        if let Some(chat) = memory.conversation() {
            batch.put(Table::MemoryByChat, keys::memory_by_chat(&memory.persona, chat, memory.id), []);
        }
        for key in names::keys(memory) {
            batch.put(Table::Names, key, []);
        }
        graph::put(batch, memory);
        themes::put(batch, memory);
        kept::put(batch, memory);
        self.0.indexing().queue_with_neighbours(batch, memory)
    }

    /// Returns the session number of a message: that of the memory before it in its chat, or the next one after a pause
    /// longer than [`crate::MemoryConfig::session_gap`].
    fn session_at(self, message: &MessageRow) -> Result<u32, Error> {
        let prefix = keys::prefix(&[message.persona.as_str(), message.chat.as_str()]);
        let last = self.0.store.scan(Table::MemoryByChat, &prefix, None, Order::Descending, 1)?;
        let Some((key, _)) = last.first() else { return Ok(0) };
        let Some(before) = self.0.memories().raw_memory(MemoryId(keys::number("memory_by_chat", key)?))? else {
            return Ok(0);
        };
        let gap = message.at.duration_since(before.at).unsigned_abs();
        Ok(if gap > self.0.config.session_gap { before.session + 1 } else { before.session })
    }

    /// Returns the memories whose source is the message.
    pub(crate) fn memories_of(self, id: &MessageId) -> Result<Vec<MemoryRow>, Error> {
        let mut ids = Vec::new();
        codec::walk(self.0.store.as_ref(), Table::MemoryByMessage, &keys::prefix(&[id.as_str()]), |key, _| {
            ids.push(MemoryId(keys::number("memory_by_message", key)?));
            Ok(true)
        })?;
        ids.into_iter().filter_map(|id| self.0.memories().raw_memory(id).transpose()).collect()
    }

    /// Removes the memories of a message; returns how many.
    pub(crate) fn unremember(self, batch: &mut Batch, id: &MessageId) -> Result<usize, Error> {
        let memories = self.memories_of(id)?;
        for memory in &memories {
            self.remove_memory(batch, memory)?;
        }
        Ok(memories.len())
    }

    pub(crate) fn remove_memory(self, batch: &mut Batch, memory: &MemoryRow) -> Result<(), Error> {
        self.0.indexing().queue_with_neighbours(batch, memory)?;
        batch.remove(Table::Memories, keys::memory(memory.id));
        for source in &memory.sources {
            batch.remove(Table::MemoryByMessage, keys::numbered(&[source.as_str()], memory.id.0));
        }
        if let Some(chat) = &memory.chat {
            batch.remove(Table::MemoryByChat, keys::memory_by_chat(&memory.persona, chat, memory.id));
        }
        self.0.writings().remove_writing(batch, memory)?;
        if let Some(key) = mark_key(memory) {
            batch.remove(Table::Marks, key);
        }
        for key in names::keys(memory) {
            batch.remove(Table::Names, key);
        }
        graph::remove(batch, memory);
        kept::remove(batch, memory);
        themes::remove(self.0.store.as_ref(), batch, memory)?;
        ratings::remove(self.0.store.as_ref(), batch, memory.id)
    }
}
