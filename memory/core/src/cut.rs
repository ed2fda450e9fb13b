//! Replies of which people heard only a part.

use azera_types::{Author, MessageId, Text};

use crate::domains::Turns;
use crate::{Batch, Durability, Error, Table, codec, keys};

impl Turns<'_> {
    /// Replaces the text of a persona's reply with the part of it that people heard. Returns false if the reply is
    /// unknown. Writings about the reply and facts from it are removed, because they may quote the rest.
    pub fn cut_reply(self, id: &MessageId, heard: Text) -> Result<bool, Error> {
        let Some(chat) = self.0.messages().raw_message(id)?.map(|message| message.chat) else { return Ok(false) };
        let _writing = self.0.writing(&chat)?;
        let found = self.0.messages().raw_message(id)?;
        let Some(mut reply) = found.filter(|message| matches!(message.author, Author::Persona { .. })) else {
            return Ok(false);
        };
        let mut batch = Batch::new();
        reply.text = heard;
        codec::put(&mut batch, Table::Messages, keys::message(id), &reply)?;
        self.reword_memories(&mut batch, &reply)?;
        self.0.store.commit(batch, Durability::Flushed)?;
        Ok(true)
    }
}
