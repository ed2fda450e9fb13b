//! The words of recordings and the descriptions of pictures: they become part of the text of their message.

use azera_types::{MessageId, Part, PartKind, Text, Timestamp};

use crate::domains::Turns;
use crate::rows::{Kind, MessageRow};
use crate::{Batch, Durability, Error, Table, codec, keys};

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
        self.perceive(id, version, index, text, |part| match &mut part.recording {
            Some(recording) => !std::mem::replace(&mut recording.is_heard, true),
            None => false,
        })
    }

    /// Stores that a picture of a message was seen, and the text that the message has with its description, as
    /// [`Self::hear`] does for recordings. With `is_seen` false only the text is stored: a note that there is a picture.
    pub fn see(
        self,
        id: &MessageId,
        version: Option<Timestamp>,
        index: usize,
        text: Text,
        is_seen: bool,
    ) -> Result<Option<MessageRow>, Error> {
        self.perceive(id, version, index, text, |part| {
            part.kind == PartKind::Image && !std::mem::replace(&mut part.is_seen, is_seen)
        })
    }

    /// Gives a message another text, if `mark` accepts the part.
    fn perceive(
        self,
        id: &MessageId,
        version: Option<Timestamp>,
        index: usize,
        text: Text,
        mark: impl FnOnce(&mut Part) -> bool,
    ) -> Result<Option<MessageRow>, Error> {
        let Some(chat) = self.0.messages().raw_message(id)?.map(|message| message.chat) else { return Ok(None) };
        let _writing = self.0.writing(&chat)?;
        let found = self.0.messages().raw_message(id)?;
        let Some(mut message) = found.filter(|row| row.author.person().is_some() && row.edited_at == version) else {
            return Ok(None);
        };
        if !message.parts.get_mut(index).is_some_and(mark) {
            return Ok(None);
        }
        message.text = text;
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Messages, keys::message(id), &message)?;
        // A message that is answered anew may have a memory already.
        for memory in self.memories_of(id)? {
            if matches!(memory.kind, Kind::Message) && memory.sources == [id.clone()] {
                self.reword_memory(&mut batch, memory, &message.text)?;
            }
        }
        self.0.store.commit(batch, Durability::Flushed)?;
        Ok(Some(message))
    }
}
