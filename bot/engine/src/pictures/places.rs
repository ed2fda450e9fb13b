//! Places in the queue, told anew when they change. The message that will show the picture says which it is.

use azera_adapter::{Making, PictureProgress};
use azera_memory::PictureRow;

use super::{Pictures, caption};
use crate::error::Error;

/// How many of those that wait are told their places. The others wait long, and a message for each step would only disturb.
const TOLD: usize = 5;

impl Pictures {
    /// Notes the place that a person was told.
    pub(super) fn note_place(&self, row: &PictureRow, place: usize) {
        self.progress().places.insert(row.message.clone(), place);
    }

    /// Tells one person their place in the queue, if it is another than they were told. Returns false if there is nobody to
    /// tell.
    pub(super) async fn tell_a_place(&self) -> bool {
        match self.tell_next_place().await {
            Ok(told) => told,
            Err(error) => {
                tracing::warn!(%error, "cannot tell anybody their place in the queue");
                false
            }
        }
    }

    async fn tell_next_place(&self) -> Result<bool, Error> {
        let queue = self.queue().await?;
        self.progress().places.retain(|message, _| queue.iter().any(|row| row.message == *message));
        // The first one is being drawn, and its message says how far it is.
        for (place, row) in (1..).zip(&queue).skip(1).take(TOLD) {
            if self.progress().places.get(&row.message) == Some(&place) {
                continue;
            }
            self.note_place(row, place);
            let Ok(platform) = self.services.platform(&row.platform) else { continue };
            let Some(streaming) = platform.streaming() else { continue };
            let (chat, reply, persona, persona_name) = (&row.chat, &row.message, &row.persona, &*row.persona_name);
            let making = Making { chat, reply, persona, persona_name, asker: Some(&row.person), is_help: false };
            let text = &caption::waiting(row, place);
            // Whoever takes it back or delivers its message waits for this text, and so comes behind it.
            let _placing = self.placing.lock().await;
            if !self.is_wanted(row).await? {
                continue;
            }
            streaming.progress(making, PictureProgress { since: row.asked_at, text, preview: None }).await;
            // It was forgotten meanwhile, and the text may have come after its message was removed. A message that says why
            // it is not drawn stays.
            let message = row.message.clone();
            let is_told = self.services.blocking(move |memory| memory.pictures().is_told(&message)).await?;
            if !is_told
                && !self.is_wanted(row).await?
                && let Err(error) = platform.retract(&row.chat, &row.message, row.asked_at).await
            {
                tracing::warn!(message = %row.message, %error, "cannot remove the message about a picture");
            }
            return Ok(true);
        }
        Ok(false)
    }
}
