//! Messages in the place of pictures that are not drawn: they say why, and are built on nothing.

use std::sync::PoisonError;

use azera_types::{Author, MessageId, Text};

use crate::domains::Pictures;
use crate::files::blob_key;
use crate::picture_starts::let_go_of_start;
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
        // One that was begun counts for the limits of its day.
        if let Some(waiting) = self.raw(&row.message)? {
            let_go_of_start(&mut batch, &waiting);
            if waiting.tries == 0 {
                self.give_back(&mut batch, &waiting)?;
            }
        }
        batch.remove(Table::Pictures, keys::message(&row.message));
        self.put_post(&mut batch, &row, &post)?;
        self.0.files().commit_letting_go(batch, Durability::Flushed)?;
        self.order()?.is_over(row.number);
        Ok(Some(post))
    }

    /// Removes the files of drawn pictures beyond the newest `most`, pinned ones last, but never that of picture `newest`.
    /// Their messages stay.
    pub fn keep_at_most(self, most: usize, newest: u64) -> Result<(), Error> {
        // Bound to a name, so that the index is not locked while the rows are read.
        let numbers = self.order()?.kept();
        if numbers.len() <= most {
            return Ok(());
        }
        let mut kept = Vec::new();
        for number in numbers {
            let row = self.numbered(number)?;
            match row {
                Some(row) if self.has_file(&row.message)? => kept.push((number == newest, row.is_pinned, number)),
                _ => self.order()?.lost_file(number),
            }
        }
        kept.sort_unstable();
        let surplus = kept.len().saturating_sub(most);
        for (_, was_pinned, number) in kept.into_iter().filter(|(is_newest, ..)| !is_newest).take(surplus) {
            self.let_file_go(number, was_pinned)?;
        }
        Ok(())
    }

    /// Removes the file of a picture, unless it was pinned since it was looked at.
    fn let_file_go(self, number: u64, was_pinned: bool) -> Result<(), Error> {
        let Some(row) = self.numbered(number)? else { return Ok(()) };
        // The locks of pinning, in its order.
        let _writing = self.0.writing(&row.chat)?;
        let _asking = self.0.asking_for_pictures.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(row) = self.numbered(number)?.filter(|row| was_pinned || !row.is_pinned) else { return Ok(()) };
        let parts = self.0.messages().raw_message(&row.message)?.map(|message| message.parts).unwrap_or_default();
        let mut batch = Batch::new();
        for blob in parts.into_iter().filter_map(|part| part.blob) {
            batch.remove(Table::Blobs, blob_key(&blob, &row.message));
        }
        self.0.files().commit_letting_go(batch, Durability::Flushed)?;
        self.order()?.lost_file(number);
        Ok(())
    }

    /// Returns true if a message stands in the place of a picture: it was drawn, or somebody was told why not.
    pub fn is_told(self, message: &MessageId) -> Result<bool, Error> {
        let told = self.0.messages().raw_message(message)?;
        Ok(told.is_some_and(|told| told.author != Author::Forgotten))
    }
}
