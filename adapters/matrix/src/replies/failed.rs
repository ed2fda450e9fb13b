//! The end of replies that failed or were withdrawn while they were generated.

use std::sync::Arc;

use azera_types::{ChatId, MessageId};

use super::{Inner, Replies};
use crate::Error;
use crate::content::transaction;
use crate::reply_slot::{Showing, Slot, lock};
use crate::sending::{edits_of, redact};

impl Replies {
    /// Removes the beginning of a reply, and sends `notice` in reply to the message that it answers.
    pub(super) fn end_failed(&self, chat: &ChatId, reply: &MessageId, to: MessageId, notice: Option<String>) {
        // At once: what comes next belongs to another attempt. The slot stays until then, so that the next one waits.
        let (slot, _) = self.0.slot(&to, chat);
        slot.closed.cancel();
        let (inner, chat, reply) = (self.0.clone(), chat.clone(), reply.clone());
        tokio::spawn(async move {
            let mut showing = slot.showing.lock().await;
            inner.typing(&chat, false).await;
            if let Err(error) = inner.break_off(&slot, &mut showing).await {
                tracing::warn!(%chat, %error, "cannot remove the beginning of a failed reply");
            }
            drop(showing);
            inner.take_only(&slot);
            let Some(text) = notice else { return };
            let sent = inner.notice(&chat, Some(&to), &text, &transaction("trouble", &reply, 0)).await;
            if let Err(error) = sent {
                tracing::warn!(%chat, %error, "cannot send an error message");
            }
        });
    }
}

impl Inner {
    /// Retracts the beginning of a first reply that failed.
    async fn break_off(&self, slot: &Slot, showing: &mut Showing) -> Result<(), Error> {
        let Some(shown) = self.sync_state.shown(&slot.to).await?.filter(|shown| shown.reply.is_none()) else {
            return Ok(());
        };
        let room = self.room_of(&slot.chat, &shown)?;
        // First, so that the next attempt never edits a redacted event. If storing fails, that attempt completes the beginning.
        self.sync_state.replace_shown(&slot.to, &shown, &shown.taken_back()).await?;
        showing.clear();
        for event in &shown.parts {
            redact(&room, event, &edits_of(&room, event).await?).await?;
        }
        Ok(())
    }

    /// Removes a slot, unless another one took its place.
    fn take_only(&self, slot: &Arc<Slot>) {
        let mut slots = lock(&self.slots);
        if slots.get(&slot.to).is_some_and(|present| Arc::ptr_eq(present, slot)) {
            slots.remove(&slot.to);
        }
    }
}
