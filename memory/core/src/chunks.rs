//! Chunks of long files that came with a message. Each chunk is a memory whose source is the message: it has the
//! message's scope, and it is forgotten with the message.

use azera_types::{Author, MemoryId, MessageId, Text, Timestamp};

use crate::domains::Memories;
use crate::rows::{Kind, MemoryRow};
use crate::{Batch, Durability, Error};

impl Memories<'_> {
    /// Stores the chunks of a message in one flushed transaction and returns how many were new. Stores none if the
    /// message is unknown or forgotten, or if it was edited after `version`, the time of the edit that the chunks came
    /// with. When somebody edits the message, its chunks are removed.
    pub fn store_chunks(
        self,
        message: &MessageId,
        version: Option<Timestamp>,
        pieces: Vec<Text>,
    ) -> Result<usize, Error> {
        let Some(chat) = self.0.messages().raw_message(message)?.map(|message| message.chat) else { return Ok(0) };
        self.0.store.room()?;
        // The lock keeps the message from being forgotten or edited meanwhile.
        let _writing = self.0.writing(&chat)?;
        let row = self.0.messages().raw_message(message)?.filter(|message| message.author != Author::Forgotten);
        // The platform may have handed in a message late, with edits that its row does not show; so an older row is
        // accepted.
        let row = row.filter(|message| message.edited_at <= version);
        let Some(row) = row else { return Ok(0) };
        let known = self.0.turns().memories_of(message)?;
        let mut batch = Batch::new();
        let mut new = 0;
        for text in pieces {
            if known.iter().any(|memory| memory.text == text) {
                continue;
            }
            let memory = MemoryRow {
                id: MemoryId(self.0.next_number()?),
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
                apart: false,
                replaced: None,
            };
            self.0.turns().put_memory(&mut batch, &memory)?;
            new += 1;
        }
        self.0.store.commit(batch, Durability::Flushed)?;
        Ok(new)
    }

    /// Returns the chunks that came with the message of a memory.
    pub(crate) fn sibling_chunks(self, memory: &MemoryRow) -> Result<Vec<MemoryRow>, Error> {
        let mut pieces = Vec::new();
        if memory.kind == Kind::Message {
            for message in &memory.sources {
                pieces.extend(self.0.turns().memories_of(message)?);
            }
        }
        pieces.retain(MemoryRow::came_with_a_message);
        Ok(pieces)
    }
}
