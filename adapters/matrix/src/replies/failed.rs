//! The end of replies that failed or were withdrawn while they were generated.

use std::sync::Arc;
use std::time::Duration;

use azera_types::{ChatId, MessageId};
use matrix_sdk::Room;
use matrix_sdk::ruma::OwnedEventId;
use tokio::time::sleep;

use super::{Inner, Replies};
use crate::Error;
use crate::content::transaction;
use crate::reply_slot::{Showing, Slot, lock};
use crate::sending::{edits_of, redact};

/// Attempts to redact an event, and the wait before the second one, which doubles.
const ATTEMPTS: u32 = 6;
const FIRST_WAIT: Duration = Duration::from_secs(1);

impl Replies {
    /// Removes the beginning of a reply, and sends `notice` in reply to the message that it answers.
    pub(super) fn end_failed(&self, chat: &ChatId, reply: &MessageId, to: MessageId, notice: Option<&'static str>) {
        // At once: what comes next belongs to another attempt. The slot stays until then, so that the next one waits.
        let (slot, _) = self.0.slot(&to, chat);
        slot.closed.cancel();
        let (inner, chat, reply) = (self.0.clone(), chat.clone(), reply.clone());
        tokio::spawn(async move {
            let mut showing = slot.showing.lock().await;
            inner.typing(&chat, false).await;
            let beginning = inner.take_back(&slot, &mut showing).await;
            drop(showing);
            inner.take_only(&slot);
            let remove = async {
                let removed = match beginning {
                    Ok(Some((room, events))) => redact_all(&room, &events).await,
                    Ok(None) => Ok(()),
                    Err(error) => Err(error),
                };
                if let Err(error) = removed {
                    tracing::warn!(%chat, %error, "cannot remove the beginning of a failed reply");
                }
            };
            let tell = async {
                let Some(text) = notice else { return };
                let sent = inner.notice(&chat, Some(&to), text, &transaction("trouble", &reply, 0)).await;
                if let Err(error) = sent {
                    tracing::warn!(%chat, %error, "cannot send an error message");
                }
            };
            tokio::join!(remove, tell);
        });
    }
}

impl Inner {
    /// Notes that the beginning of a first reply that failed is gone. Returns its events, which must be redacted.
    async fn take_back(&self, slot: &Slot, showing: &mut Showing) -> Result<Option<(Room, Vec<OwnedEventId>)>, Error> {
        let Some(shown) = self.sync_state.shown(&slot.to).await?.filter(|shown| shown.reply.is_none()) else {
            return Ok(None);
        };
        let room = self.room_of(&slot.chat, &shown)?;
        // First, so that the next attempt never edits a redacted event. If storing fails, that attempt completes the beginning.
        self.sync_state.replace_shown(&slot.to, &shown, &shown.taken_back()).await?;
        showing.clear();
        Ok(Some((room, shown.parts)))
    }

    /// Removes a slot, unless another one took its place.
    fn take_only(&self, slot: &Arc<Slot>) {
        let mut slots = lock(&self.slots);
        if slots.get(&slot.to).is_some_and(|present| Arc::ptr_eq(present, slot)) {
            slots.remove(&slot.to);
        }
    }
}

/// Redacts events with their edits. Nothing else knows them any more, so each is tried again with growing waits.
async fn redact_all(room: &Room, events: &[OwnedEventId]) -> Result<(), Error> {
    for event in events {
        let (mut wait, mut left) = (FIRST_WAIT, ATTEMPTS);
        while let Err(error) = redact_with_edits(room, event).await {
            left -= 1;
            if left == 0 {
                return Err(error);
            }
            sleep(wait).await;
            wait *= 2;
        }
    }
    Ok(())
}

async fn redact_with_edits(room: &Room, event: &OwnedEventId) -> Result<(), Error> {
    redact(room, event, &edits_of(room, event).await?).await
}
