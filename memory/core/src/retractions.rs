//! Forgotten replies that their platforms still show. The transaction that forgets a reply notes here that it must be
//! retracted, so that neither a crash nor a platform that is away leaves it visible.
//!
//! A row holds ids alone. It stays in the record and is in no backup.

use azera_types::{ChatId, MessageId, PlatformId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::domains::Forgetting;
use crate::rows::MessageRow;
use crate::{Batch, Durability, Error, Table, codec};

/// What the keys in [`Table::Meta`] begin with.
const PREFIX: &[u8] = b"retract/";

/// A forgotten reply that its platform must retract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retraction {
    number: u64,
    /// The platform that shows it.
    pub platform: PlatformId,
    /// The chat.
    pub chat: ChatId,
    /// The reply.
    pub reply: MessageId,
    /// When it was written.
    pub at: Timestamp,
    /// How often that failed.
    pub tries: u32,
    /// When to try again; at once if it was not tried yet.
    pub next: Option<Timestamp>,
}

impl Retraction {
    fn key(&self) -> Vec<u8> {
        [PREFIX, self.number.to_be_bytes().as_slice()].concat()
    }
}

/// Returns true for the key of a retraction.
pub(crate) fn is_retraction(key: &[u8]) -> bool {
    key.starts_with(PREFIX)
}

impl Forgetting<'_> {
    /// Notes in the transaction which forgets a reply that its platform must retract it. No platform shows imported chats.
    pub(crate) fn note_retraction(self, batch: &mut Batch, reply: &MessageRow) -> Result<(), Error> {
        let chat = self.0.chats().get(&reply.chat)?.filter(|chat| chat.imported.is_none());
        let Some(chat) = chat else { return Ok(()) };
        let row = Retraction {
            number: self.0.next_number()?,
            platform: chat.platform,
            chat: chat.id,
            reply: reply.id.clone(),
            at: reply.at,
            tries: 0,
            next: None,
        };
        codec::put(batch, Table::Meta, row.key(), &row)
    }

    /// Returns the replies that are to be retracted now, oldest first. A damaged row keeps no other one from being
    /// retracted.
    pub fn retractions_due(self, now: Timestamp) -> Result<Vec<Retraction>, Error> {
        let mut due = Vec::new();
        codec::walk(self.0.store.as_ref(), Table::Meta, PREFIX, |_, value| {
            match codec::decode::<Retraction>(Table::Meta, value) {
                Ok(row) if row.next.is_none_or(|next| next <= now) => due.push(row),
                Ok(_) => {}
                Err(error) => tracing::error!(%error, "a forgotten reply may stay visible: its note is damaged"),
            }
            Ok(true)
        })?;
        Ok(due)
    }

    /// Records that a retraction was done, or is given up.
    pub fn retracted(self, row: &Retraction) -> Result<(), Error> {
        let mut batch = Batch::new();
        batch.remove(Table::Meta, row.key());
        self.0.store.commit(batch, Durability::Soon)
    }

    /// Records that a retraction failed, and when to try again.
    pub fn retraction_failed(self, row: Retraction, next: Timestamp) -> Result<(), Error> {
        let row = Retraction { tries: row.tries.saturating_add(1), next: Some(next), ..row };
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Meta, row.key(), &row)?;
        self.0.store.commit(batch, Durability::Soon)
    }
}
