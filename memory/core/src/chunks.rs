//! What a message brought with it besides its text, such as a long file: remembered in pieces, each resting on the message, so
//! that it is shown where that may be shown and goes when that goes.

use azera_types::{Author, MemoryId, MessageId, Text, Timestamp};

use crate::rows::{Kind, MemoryRow};
use crate::{Batch, Durability, Error, Memory};

impl Memory {
    /// Remembers the pieces of a message in one flushed transaction; gives how many were new. None are where the message is
    /// unknown or forgotten by now, or was changed after `version`, the edit they came with. When the message is changed, they go.
    pub fn store_chunks(
        &self,
        message: &MessageId,
        version: Option<Timestamp>,
        pieces: Vec<Text>,
    ) -> Result<usize, Error> {
        let Some(chat) = self.raw_message(message)?.map(|message| message.chat) else { return Ok(0) };
        // Nobody forgets or changes it meanwhile.
        let _writing = self.writing(&chat)?;
        let row = self.raw_message(message)?.filter(|message| message.author != Author::Forgotten);
        // A message that was read late came with the edits it had by then, of which its row does not tell.
        let row = row.filter(|message| message.edited_at <= version);
        let Some(row) = row else { return Ok(0) };
        let known = self.memories_of(message)?;
        let mut batch = Batch::new();
        let mut new = 0;
        for text in pieces {
            if known.iter().any(|memory| memory.text == text) {
                continue;
            }
            let memory = MemoryRow {
                id: MemoryId(self.next_number()?),
                persona: row.persona.clone(),
                kind: Kind::Fact,
                scope: row.scope.clone(),
                source_scopes: row.source_scopes.clone(),
                chat: Some(row.chat.clone()),
                session: 0,
                author: row.author.clone(),
                sources: vec![row.id.clone()],
                text,
                at: row.at,
                salience: None,
                surprise: None,
            };
            self.put_memory(&mut batch, &memory)?;
            new += 1;
        }
        self.store.commit(batch, Durability::Flushed)?;
        Ok(new)
    }

    /// The pieces of what came with the message that a memory is of.
    pub(crate) fn sibling_chunks(&self, memory: &MemoryRow) -> Result<Vec<MemoryRow>, Error> {
        let mut pieces = Vec::new();
        if memory.kind == Kind::Message {
            for message in &memory.sources {
                pieces.extend(self.memories_of(message)?);
            }
        }
        pieces.retain(MemoryRow::came_with_a_message);
        Ok(pieces)
    }
}
