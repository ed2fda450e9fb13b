//! Messages in the place of pictures that are not drawn: they say why, and are built on nothing.

use std::sync::PoisonError;

use azera_types::{Author, MessageId, Text};

use crate::domains::Pictures;
use crate::files::blob_key;
use crate::pictures::{PictureRow, message_of};
use crate::rows::MessageRow;
use crate::{Batch, Durability, Error, Table, keys};

impl Pictures<'_> {
    /// Takes a waiting picture out of the queue and puts a message of its persona in its place, with its place in the
    /// outbox, in one flushed transaction. With the number 0 the picture was never queued, and the message gets a number.
    /// The message is built on nothing, because those who read it may not be allowed to read what the picture is built on.
    /// Returns the message; `None` if the picture waits no more.
    pub fn tell(self, mut row: PictureRow, text: Text) -> Result<Option<MessageRow>, Error> {
        let is_new = row.number == 0;
        let _writing = self.0.writing(&row.chat)?;
        if is_new {
            row.number = self.0.next_number()?;
            row.message = message_of(row.number)?;
        } else if !self.is_waiting(&row.message)? {
            return Ok(None);
        }
        (row.sources, row.source_scopes) = (Vec::new(), Vec::new());
        let mut batch = Batch::new();
        let post = self.post_of(&row, text)?;
        let _asking = self.0.asking_for_pictures.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiting) = self.raw(&row.message)? {
            self.give_back(&mut batch, &waiting)?;
        }
        batch.remove(Table::Pictures, keys::message(&row.message));
        self.put_post(&mut batch, &row, &post)?;
        self.0.store.commit(batch, Durability::Flushed)?;
        self.order()?.is_over(row.number);
        Ok(Some(post))
    }

    /// Removes the files of drawn pictures beyond the newest `most`, pinned ones last. Their messages stay.
    pub fn keep_at_most(self, most: usize) -> Result<(), Error> {
        if self.order()?.count() <= most {
            return Ok(());
        }
        let mut kept = Vec::new();
        for number in self.order()?.all() {
            let Some(row) = self.numbered(number)? else { continue };
            let parts = self.0.messages().raw_message(&row.message)?.map(|message| message.parts).unwrap_or_default();
            for blob in parts.into_iter().filter_map(|part| part.blob) {
                let key = blob_key(&blob, &row.message);
                if self.0.store.get(Table::Blobs, &key)?.is_some() {
                    kept.push((row.is_pinned, number, key));
                }
            }
        }
        kept.sort_unstable();
        let mut batch = Batch::new();
        for (_, _, key) in kept.iter().take(kept.len().saturating_sub(most)) {
            batch.remove(Table::Blobs, key.clone());
        }
        self.0.files().commit_letting_go(batch, Durability::Flushed)
    }

    /// Returns true if a message stands in the place of a picture: it was drawn, or somebody was told why not.
    pub fn is_told(self, message: &MessageId) -> Result<bool, Error> {
        let told = self.0.messages().raw_message(message)?;
        Ok(told.is_some_and(|told| told.author != Author::Forgotten))
    }
}
