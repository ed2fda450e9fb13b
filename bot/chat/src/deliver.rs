//! Stage *deliver*: the outbox is emptied through the platform, each reply shown once.

use std::time::Duration;

use azera_adapter::{Outbound, Platform, State};
use azera_memory::MessageRow;
use azera_types::Author;

use crate::azera::Azera;
use crate::error::Error;

/// How often a delivery is tried before it waits in the outbox for a better time.
const ATTEMPTS: u32 = 5;

/// Wait before the second attempt; it doubles each time.
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// Time between two looks at what could not be delivered.
const OUTBOX_WAIT: Duration = Duration::from_secs(60);

impl Azera {
    /// Shows a reply and takes it off the outbox. What the platform refuses for good goes off the outbox too, with a
    /// warning; what it cannot do now stays there.
    pub(crate) async fn deliver(
        &self,
        platform: &dyn Platform,
        reply: &MessageRow,
        state: &State,
    ) -> Result<(), Error> {
        let Author::Persona { id, name } = &reply.author else { return Ok(()) };
        let outbound = Outbound {
            id: reply.id.clone(),
            chat: reply.chat.clone(),
            persona: id.clone(),
            persona_name: name.clone(),
            text: reply.text.clone(),
            reply_to: reply.reply_to.clone(),
            state: state.clone(),
        };
        let mut wait = FIRST_WAIT;
        for attempt in 1..=ATTEMPTS {
            match platform.deliver(&outbound).await {
                Ok(()) => break,
                Err(error) if error.is_transient() && attempt < ATTEMPTS => {
                    tracing::warn!(reply = %reply.id, attempt, %error, "delivery failed, trying again");
                    tokio::time::sleep(wait).await;
                    wait *= 2;
                }
                Err(error) if error.is_transient() => return Err(Error::Platform(error)),
                Err(error) => {
                    tracing::error!(reply = %reply.id, %error, "the platform refused a reply");
                    break;
                }
            }
        }
        let reply = reply.clone();
        self.blocking(move |memory| memory.delivered(&reply)).await
    }

    /// Tries the outbox again from time to time until the core stops.
    pub(crate) async fn keep_delivering(self) {
        loop {
            tokio::select! {
                () = self.0.stopping.cancelled() => return,
                () = tokio::time::sleep(OUTBOX_WAIT) => {}
            }
            if let Err(error) = self.deliver_outbox().await {
                tracing::warn!(%error, "the outbox could not be read");
            }
        }
    }

    /// Delivers what the outbox holds for platforms that are attached, oldest first.
    pub(crate) async fn deliver_outbox(&self) -> Result<usize, Error> {
        let mut delivered = 0;
        for (reply, row) in self.blocking(azera_memory::Memory::outbox).await? {
            let Ok(platform) = self.platform(&row.platform) else { continue };
            let state = serde_json::from_value(row.state).unwrap_or_default();
            match self.deliver(platform.as_ref(), &reply, &state).await {
                Ok(()) => delivered += 1,
                // It stays in the outbox; the others must not wait for it.
                Err(error) => tracing::warn!(reply = %reply.id, %error, "a reply waits in the outbox"),
            }
        }
        Ok(delivered)
    }
}
