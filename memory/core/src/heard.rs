//! The words of recordings: they become part of the text of their message.

use azera_types::{MessageId, Text, Timestamp};

use crate::domains::Turns;
use crate::rows::{Kind, MemoryRow, MessageRow};
use crate::salience::mark_key;
use crate::{Batch, Durability, Error, Table, codec, graph, keys};

impl Turns<'_> {
    /// Stores that a recording of a message was heard, and the text that the message has with its words, in one flushed
    /// transaction. Returns the new row. `None` if the message is unknown or forgotten, was edited after `version`, or
    /// has no such recording that was not heard before.
    pub fn hear(
        self,
        id: &MessageId,
        version: Option<Timestamp>,
        index: usize,
        text: Text,
    ) -> Result<Option<MessageRow>, Error> {
        let Some(chat) = self.0.messages().raw_message(id)?.map(|message| message.chat) else { return Ok(None) };
        let _writing = self.0.writing(&chat)?;
        let found = self.0.messages().raw_message(id)?;
        let Some(mut message) = found.filter(|row| row.author.person().is_some() && row.edited_at == version) else {
            return Ok(None);
        };
        let recording = message.parts.get_mut(index).and_then(|part| part.recording.as_mut());
        let Some(recording) = recording.filter(|recording| !recording.is_heard) else { return Ok(None) };
        recording.is_heard = true;
        message.text = text;
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Messages, keys::message(id), &message)?;
        // A message that is answered anew may have a memory already.
        for memory in self.memories_of(id)? {
            if matches!(memory.kind, Kind::Message) && memory.sources == [id.clone()] {
                if let Some(key) = mark_key(&memory) {
                    batch.remove(Table::Marks, key);
                }
                let old = memory.clone();
                let memory = MemoryRow { text: message.text.clone(), salience: None, surprise: None, ..memory };
                graph::change(&mut batch, &old, &memory);
                codec::put(&mut batch, Table::Memories, keys::memory(memory.id), &memory)?;
                self.0.indexing().queue_with_neighbours(&mut batch, &memory)?;
            }
        }
        self.0.store.commit(batch, Durability::Flushed)?;
        Ok(Some(message))
    }
}
