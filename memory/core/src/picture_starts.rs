//! Pictures that came with a request, to start the drawing from. Their bytes lie in the blob store as long as the request
//! waits, under the message that will show what is drawn. No message has them, so no read of files finds them.

use std::sync::MutexGuard;

use azera_types::{BlobId, MessageId};

use crate::domains::Pictures;
use crate::files::{BlobRow, blob_key};
use crate::pictures::PictureRow;
use crate::{Batch, Durability, Error, Table, codec, keys};

/// The lock of the blob store with the size of everything in it, and the bytes that a commit adds to it.
pub(crate) struct Held<'a> {
    total: MutexGuard<'a, u64>,
    added: u64,
}

impl Held<'_> {
    /// Counts the bytes, once they belong to a row.
    pub(crate) fn committed(mut self) {
        *self.total += self.added;
    }
}

impl<'a> Pictures<'a> {
    /// Returns the picture that a waiting request came with: for the drawing, and for nobody to look at. `None` if it
    /// waits no more, came with none, or if other files needed the room.
    pub fn start_of(self, message: &MessageId) -> Result<Option<Vec<u8>>, Error> {
        let Some(row) = self.raw(message)?.filter(|row| row.drawn_at.is_none()) else { return Ok(None) };
        let Some(blob) = row.start else { return Ok(None) };
        match self.0.store.get(Table::Blobs, &blob_key(&blob, message))? {
            Some(_) => self.0.blobs.get(&blob),
            None => Ok(None),
        }
    }

    /// Removes the picture that a waiting request came with. The request waits on; its turn will say that the picture is gone.
    pub fn let_start_go(self, message: &MessageId) -> Result<(), Error> {
        let Some(row) = self.raw(message)? else { return Ok(()) };
        let _writing = self.0.writing(&row.chat)?;
        let Some(mut row) = self.raw(message)?.filter(|row| row.drawn_at.is_none() && row.start.is_some()) else {
            return Ok(());
        };
        let mut batch = Batch::new();
        let_go_of_start(&mut batch, &row);
        row.start = None;
        codec::put(&mut batch, Table::Pictures, keys::message(message), &row)?;
        self.0.files().commit_letting_go(batch, Durability::Flushed)
    }

    /// Stores the bytes that a row starts from, and adds to a transaction that they belong to it. The caller commits while it
    /// holds the lock that this returns.
    pub(crate) fn put_start(self, batch: &mut Batch, row: &PictureRow, png: &[u8]) -> Result<Option<Held<'a>>, Error> {
        let Some(blob) = row.start.clone() else { return Ok(None) };
        let bytes = png.len() as u64;
        // Nobody removes the bytes between the writing of the file and of its row.
        let mut total = self.0.files().blob_bytes();
        let is_new = !self.0.files().belongs_to_any(&blob)?;
        if is_new {
            self.0.files().make_room(&mut total, bytes, &row.scope)?;
        }
        self.0.blobs.put(&blob, png)?;
        let key = blob_key(&blob, &row.message);
        let (message, persona, scope) = (row.message.clone(), row.persona.clone(), row.scope.clone());
        // Other files of its place go first: the request is still to be drawn.
        let file = BlobRow { blob, bytes, message, persona, scope, seq: row.number, is_pinned: true };
        codec::put(batch, Table::Blobs, key, &file)?;
        Ok(Some(Held { total, added: if is_new { bytes } else { 0 } }))
    }

    /// Removes the bytes that a request came with, now that its row names them no more. The next sweep tries again if that
    /// fails.
    pub(crate) fn remove_start(self, total: &mut u64, blob: Option<BlobId>) {
        let Some(blob) = blob else { return };
        if let Err(error) = self.0.files().remove_if_nobodys(total, &blob) {
            tracing::warn!(%error, "cannot remove the picture that another started from yet");
        }
    }
}

/// Adds to a transaction that the bytes which a request came with are needed no more.
pub(crate) fn let_go_of_start(batch: &mut Batch, row: &PictureRow) {
    if let Some(blob) = &row.start {
        batch.remove(Table::Blobs, blob_key(blob, &row.message));
    }
}
