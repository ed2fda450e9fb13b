//! What is read of pictures: pages of those that may be shown, their files, and pins.

use std::sync::{MutexGuard, PoisonError};

use azera_types::{Author, ChatId, MessageId, Part, PartKind, PersonId, Scope};

use crate::domains::Pictures;
use crate::files::{BlobRow, blob_key};
use crate::picture_order::PictureOrder;
use crate::pictures::{PictureRow, message_of};
use crate::{Batch, Durability, Error, Order, ReadScope, Table, codec, keys};

/// Messages of a chat among which the newest picture is looked for.
const LOOKED_BACK: usize = 200;

/// Most pictures that one page looks at.
const MAX_LOOKED_AT: usize = 5_000;

/// Pictures that are looked at in one go.
const CHUNK: usize = 128;

/// A part of the pictures that may be shown.
#[derive(Debug, Clone, PartialEq)]
pub struct PicturePage {
    /// The pictures, newest first.
    pub rows: Vec<PictureRow>,
    /// Whether older ones follow.
    pub has_more: bool,
    /// Whether older ones were not looked at, because there are too many.
    pub is_cut: bool,
}

/// The answer to a request to pin a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pinned {
    /// It is done, or was so before.
    Done,
    /// There is no such picture.
    NoSuch,
    /// Its file is not kept any more.
    Gone,
    /// The place has pinned as many as it may.
    Full,
}

impl<'a> Pictures<'a> {
    /// Returns a drawn picture that `read_scope` allows.
    pub fn get(self, read_scope: &ReadScope, message: &MessageId) -> Result<Option<PictureRow>, Error> {
        if self.0.messages().get(read_scope, message)?.is_none() {
            return Ok(None);
        }
        Ok(self.raw(message)?.filter(|row| row.drawn_at.is_some()))
    }

    /// Returns drawn pictures that `read_scope` allows and `wanted` wants, newest first: at most `limit` behind the first
    /// `skip`.
    pub fn page(
        self,
        read_scope: &ReadScope,
        (skip, limit): (usize, usize),
        wanted: impl Fn(&PictureRow) -> bool,
    ) -> Result<PicturePage, Error> {
        let mut page = PicturePage { rows: Vec::new(), has_more: false, is_cut: false };
        let (mut before, mut looked_at, mut skipped) = (u64::MAX, 0, 0);
        while looked_at < MAX_LOOKED_AT {
            let numbers = self.order()?.newest(read_scope, before, CHUNK);
            let Some(last) = numbers.last() else { return Ok(page) };
            (before, looked_at) = (*last, looked_at + numbers.len());
            for number in numbers {
                let Some(row) = self.shown(read_scope, number)?.filter(&wanted) else { continue };
                if skipped < skip {
                    skipped += 1;
                } else if page.rows.len() < limit {
                    page.rows.push(row);
                } else {
                    page.has_more = true;
                    return Ok(page);
                }
            }
        }
        page.is_cut = !self.order()?.newest(read_scope, before, 1).is_empty();
        Ok(page)
    }

    /// Returns the places and people of the last drawn pictures, at most `most`, in the order in which they were drawn.
    pub fn served(self, most: usize) -> Result<Vec<(Scope, PersonId)>, Error> {
        let numbers = self.order()?.kept();
        let mut drawn = Vec::new();
        for number in numbers.into_iter().rev().take(most) {
            let row = self.numbered(number)?;
            drawn.extend(row.and_then(|row| Some((row.drawn_at?, row.number, row.scope, row.person))));
        }
        drawn.sort_by_key(|(at, number, ..)| (*at, *number));
        Ok(drawn.into_iter().map(|(_, _, scope, person)| (scope, person)).collect())
    }

    /// Returns the drawn picture of a number, if `read_scope` allows it. Notes one that is gone.
    fn shown(self, read_scope: &ReadScope, number: u64) -> Result<Option<PictureRow>, Error> {
        match self.numbered(number)? {
            Some(row) => self.get(read_scope, &row.message),
            None => {
                self.order()?.is_gone(read_scope.persona(), number);
                Ok(None)
            }
        }
    }

    /// Pins a drawn picture, or lets it go. A place pins at most `most`.
    pub fn pin(self, message: &MessageId, pins: bool, most: usize) -> Result<Pinned, Error> {
        let drawn = |row: &PictureRow| row.drawn_at.is_some();
        let Some(row) = self.raw(message)?.filter(drawn) else { return Ok(Pinned::NoSuch) };
        let _writing = self.0.writing(&row.chat)?;
        // One lock for all chats, because a place may have several.
        let _asking = self.0.asking_for_pictures.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut row) = self.raw(message)?.filter(drawn) else { return Ok(Pinned::NoSuch) };
        if pins && !self.has_file(message)? {
            return Ok(Pinned::Gone);
        }
        if pins && !row.is_pinned && self.pinned_in(&row.scope)? >= most {
            return Ok(Pinned::Full);
        }
        row.is_pinned = pins;
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Pictures, keys::message(message), &row)?;
        let parts = self.0.messages().raw_message(message)?.map(|message| message.parts).unwrap_or_default();
        let held = self.0.files().blob_bytes();
        for blob in parts.iter().filter_map(|part| part.blob.as_ref()) {
            let key = blob_key(blob, message);
            if let Some(file) = codec::get::<BlobRow>(self.0.store.as_ref(), Table::Blobs, &key)? {
                codec::put(&mut batch, Table::Blobs, key, &BlobRow { is_pinned: pins, ..file })?;
            }
        }
        self.0.store.commit(batch, Durability::Flushed)?;
        drop(held);
        self.order()?.note(&row);
        Ok(Pinned::Done)
    }

    /// Returns true if a file of a message is kept.
    pub(crate) fn has_file(self, message: &MessageId) -> Result<bool, Error> {
        let parts = self.0.messages().raw_message(message)?.map(|message| message.parts).unwrap_or_default();
        for blob in parts.iter().filter_map(|part| part.blob.as_ref()) {
            if self.0.store.get(Table::Blobs, &blob_key(blob, message))?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns how many pictures of a place are pinned, of all personas. One whose file is gone does not count.
    fn pinned_in(self, scope: &Scope) -> Result<usize, Error> {
        let mut count = 0;
        let numbers = self.order()?.pinned(scope);
        for number in numbers {
            let Some(row) = self.numbered(number)?.filter(|row| row.is_pinned) else { continue };
            count += usize::from(self.has_file(&row.message)?);
        }
        Ok(count)
    }

    /// Returns the first picture of a message that `read_scope` allows, of those that are still kept, whoever sent it.
    pub fn file(self, read_scope: &ReadScope, message: &MessageId) -> Result<Option<(Part, Vec<u8>)>, Error> {
        let Some(message) = self.0.messages().get(read_scope, message)? else { return Ok(None) };
        for part in message.parts.into_iter().filter(|part| part.kind == PartKind::Image) {
            if let Some(bytes) = self.0.files().bytes_of(&message.id, &part)? {
                return Ok(Some((part, bytes)));
            }
        }
        Ok(None)
    }

    /// Returns the picture that is the part of this index of a message that `read_scope` allows, if it is still kept.
    pub fn file_at(self, read_scope: &ReadScope, message: &MessageId, index: usize) -> Result<Option<Vec<u8>>, Error> {
        let Some(message) = self.0.messages().get(read_scope, message)? else { return Ok(None) };
        match message.parts.get(index).filter(|part| part.kind == PartKind::Image) {
            Some(part) => self.0.files().bytes_of(&message.id, part),
            None => Ok(None),
        }
    }

    /// Returns the newest message of a chat with a kept picture that `person` sent or that was drawn, if `read_scope`
    /// allows it. Only the last messages are looked at.
    pub fn newest_shown(
        self,
        read_scope: &ReadScope,
        chat: &ChatId,
        person: &PersonId,
    ) -> Result<Option<MessageId>, Error> {
        let log = keys::prefix(&[chat.as_str()]);
        for (_, value) in self.0.store.scan(Table::ChatLog, &log, None, Order::Descending, LOOKED_BACK)? {
            let id: MessageId = codec::decode(Table::ChatLog, &value)?;
            let Some(message) = self.0.messages().get(read_scope, &id)? else { continue };
            let is_meant = match &message.author {
                Author::Person { id, .. } => id == person,
                Author::Persona { .. } => true,
                _ => false,
            };
            let has_picture = |part: &Part| part.kind == PartKind::Image && part.blob.is_some();
            if is_meant && message.parts.iter().any(has_picture) {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    /// Returns the index of the pictures; reads their rows the first time.
    pub(crate) fn order(self) -> Result<MutexGuard<'a, PictureOrder>, Error> {
        let mut order = self.0.picture_order.lock().unwrap_or_else(PoisonError::into_inner);
        if !order.is_read {
            codec::walk(self.0.store.as_ref(), Table::Pictures, b"", |_, value| {
                order.note(&codec::decode(Table::Pictures, value)?);
                Ok(true)
            })?;
            order.is_read = true;
        }
        Ok(order)
    }

    pub(crate) fn numbered(self, number: u64) -> Result<Option<PictureRow>, Error> {
        self.raw(&message_of(number)?)
    }
}
