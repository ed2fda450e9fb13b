//! The outbox: replies that their platforms have not acknowledged.

use std::collections::HashSet;

use azera_types::{Author, MessageId, Part};

use crate::domains::Outbox;
use crate::forget_log::Forgotten;
use crate::rows::{InboxRow, MessageRow, OutboxRow};
use crate::{Batch, Durability, Error, ForgetReceipt, Table, codec, keys};

impl Outbox<'_> {
    /// Returns the replies that are not acknowledged yet, in the order they were written.
    pub fn pending(self) -> Result<Vec<(MessageRow, OutboxRow)>, Error> {
        let rows: Vec<OutboxRow> = codec::rows(self.0.store.as_ref(), Table::Outbox, b"")?;
        let mut pending = Vec::with_capacity(rows.len());
        for mut row in rows {
            let Some(reply) = self.0.messages().raw_message(&row.message)? else { continue };
            if let (None, Some(to)) = (&row.asker, &reply.answers) {
                row.asker = self.0.messages().raw_message(to)?.and_then(|question| question.author.person().cloned());
            }
            pending.push((reply, row));
        }
        Ok(pending)
    }

    /// Returns true if the reply still waits for its platform.
    pub fn is_undelivered(self, reply: &MessageRow) -> Result<bool, Error> {
        Ok(self.0.store.get(Table::Outbox, &keys::numbered(&[], reply.seq))?.is_some())
    }

    /// Returns the files of a reply that waits for its platform. The caller must have checked that it may be shown.
    pub fn files(self, reply: &MessageRow) -> Result<Vec<(Part, Vec<u8>)>, Error> {
        if reply.parts.is_empty() || !self.is_undelivered(reply)? {
            return Ok(Vec::new());
        }
        let mut files = Vec::with_capacity(reply.parts.len());
        for part in &reply.parts {
            files.extend(self.0.files().bytes_of(&reply.id, part)?.map(|bytes| (part.clone(), bytes)));
        }
        Ok(files)
    }

    /// Removes a reply from the outbox after the platform accepted it. Not flushed: delivering it again after a crash
    /// shows nothing twice.
    pub fn delivered(self, reply: &MessageRow) -> Result<(), Error> {
        self.0.store.ready()?;
        let mut batch = Batch::new();
        batch.remove(Table::Outbox, keys::numbered(&[], reply.seq));
        self.0.store.commit(batch, Durability::Soon)
    }

    /// Withdraws a reply of the outbox that may no longer be shown. The reply is forgotten. In the same transaction,
    /// the turn of the answered message opens again, unless that message is gone or has another reply. The pictures
    /// that the reply asked for and that still wait go with it, and count for no limit: the next answer may ask again.
    pub fn withdraw(self, reply: &MessageRow, row: &OutboxRow) -> Result<ForgetReceipt, Error> {
        self.0.forgetting().ask_for_scrub()?;
        let memories = self.0.memories();
        let _writing = memories.writing_below(&reply.chat, [&reply.id])?;
        let (mut batch, mut gone, mut receipt) = (Batch::new(), Forgotten::default(), ForgetReceipt::default());
        // The platform may have shown it before a crash.
        memories.forget_thumbs(&mut batch, &HashSet::from([reply.id.clone()]))?;
        self.0.forgetting().forget_message(&mut batch, &reply.id, &mut gone, &mut receipt, false, &|_| true)?;
        let _asking = self.0.pictures().asking();
        self.0.pictures().take_back_with(&mut batch, &mut gone, reply)?;
        if let (Some(to), Some(asker)) = (&reply.answers, &row.asker)
            && self.0.messages().raw_message(to)?.is_some_and(|question| question.author.person().is_some())
            && !self.has_another_answer(to, &reply.id)?
        {
            let inbox = InboxRow {
                message: to.clone(),
                platform: row.platform.clone(),
                person: asker.clone(),
                // The message was to be answered, and it still is.
                mentions_bot: true,
                mentions: Vec::new(),
                panics: 0,
            };
            codec::put(&mut batch, Table::Inbox, keys::message(to), &inbox)?;
        }
        self.0.forgetting().commit_forgetting(batch, gone)?;
        Ok(receipt)
    }

    fn has_another_answer(self, to: &MessageId, than: &MessageId) -> Result<bool, Error> {
        let answers: Vec<MessageId> =
            codec::rows(self.0.store.as_ref(), Table::Answers, &keys::prefix(&[to.as_str()]))?;
        for id in answers.iter().filter(|id| *id != than) {
            if self.0.messages().raw_message(id)?.is_some_and(|answer| answer.author != Author::Forgotten) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
