//! Stage *deliver*: sends the replies in the outbox to their platforms, each once.
//!
//! People may join or leave between writing a reply and sending it, most of all over a restart. So the engine checks
//! the read scope again right before sending. A reply that may no longer be shown is withdrawn, and its message is
//! answered again with what may be shown now.

use std::time::Duration;

use azera_adapter::{Outbound, Platform, Post, State};
use azera_memory::{MessageRow, OutboxRow, SourceScope};
use azera_types::{Author, ChatId, PersonId, PersonaId, Scope, Timestamp};

use crate::engine::Engine;
use crate::error::Error;

/// Attempts to deliver a reply before it stays in the outbox for later.
pub(crate) const DELIVERY_ATTEMPTS: u32 = 5;

/// Wait before the second attempt; it doubles each time.
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// Wait before a turn that failed for a passing reason is retried. It doubles with each failure.
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// Time limit for the last delivery attempts when the engine stops.
const LAST_ATTEMPT: Duration = Duration::from_secs(5);

/// Time between two attempts to deliver the rest of the outbox.
const RETRY_EVERY: Duration = Duration::from_secs(60);

/// A reply, finished or in progress, and what it is built on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeliverableReply<'a> {
    pub(crate) chat: &'a ChatId,
    /// The person whom the reply answers; `None` for a post that nobody asked for.
    pub(crate) asker: Option<&'a PersonId>,
    pub(crate) persona: &'a PersonaId,
    /// The place that the reply is said in.
    pub(crate) scope: &'a Scope,
    /// When the oldest source from that place was said: somebody may have joined since.
    pub(crate) from: Timestamp,
    /// The scopes of other places that it is built on.
    pub(crate) source_scopes: &'a [SourceScope],
}

impl Engine {
    /// Returns true if everybody who would read the reply now may read what it is built on, as the platform reports it
    /// at this moment.
    pub(crate) async fn may_be_shown(
        &self,
        platform: &dyn Platform,
        reply: &DeliverableReply<'_>,
    ) -> Result<bool, Error> {
        let place = match reply.asker {
            Some(asker) => self.place(platform, reply.chat, asker).await?,
            None => self.place_unasked(platform, reply.chat).await?,
        };
        let Some(place) = place else { return Ok(false) };
        // A persona that is no longer allowed here does not speak here.
        match self.persona(place.shared_realm(), reply.persona).await {
            Ok(_) => {}
            Err(Error::NoPersona(_)) => return Ok(false),
            Err(error) => return Err(error),
        }
        let read_scope = self.read_scope(platform, &place, reply.persona).await?;
        Ok(read_scope.allows(reply.persona, reply.scope, reply.source_scopes, reply.from))
    }

    /// Withdraws a reply in the outbox that may no longer be shown. The message it answers becomes unanswered again, if
    /// it is still to be answered.
    pub(crate) async fn withdraw(&self, reply: &MessageRow, row: &OutboxRow) -> Result<(), Error> {
        tracing::warn!(reply = %reply.id, chat = %reply.chat, "withdrawing a reply that may no longer be shown");
        let (reply, row) = (reply.clone(), row.clone());
        let receipt = self.blocking(move |memory| memory.withdraw(&reply, &row)).await?;
        self.carry_out(&receipt).await
    }

    /// Sends a reply and removes it from the outbox, in at most `attempts` attempts. A reply that the platform refuses
    /// for good is removed, too, and logged as an error. A reply that fails for a passing reason stays.
    pub(crate) async fn deliver(
        &self,
        platform: &dyn Platform,
        reply: &MessageRow,
        state: &State,
        attempts: u32,
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
        let post = self.as_post(reply, &outbound).await?;
        let mut wait = FIRST_WAIT;
        for attempt in 1..=attempts {
            let shown = match &post {
                None => platform.deliver(&outbound).await,
                Some(post) => platform.post(post).await,
            };
            match shown {
                Ok(()) => break,
                Err(error) if error.is_transient() && attempt < attempts => {
                    tracing::warn!(reply = %reply.id, attempt, %error, "delivery failed; retrying");
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

    /// Returns the post that an outbox message stands for, if it answers nobody.
    async fn as_post(&self, message: &MessageRow, outbound: &Outbound) -> Result<Option<Post>, Error> {
        if message.answers.is_some() {
            return Ok(None);
        }
        let (row, posted) = (message.clone(), message.id.clone());
        let written = self.blocking(move |memory| memory.posted_as(&row)).await?;
        Ok(written.map(|(memory, writing)| Post {
            outbound: outbound.clone(),
            kind: writing.kind.as_str().to_owned(),
            sources: memory.sources.into_iter().filter(|source| *source != posted).collect(),
            at: message.at,
        }))
    }

    /// Retries the outbox and unanswered messages from time to time, until the engine stops.
    pub(crate) async fn keep_delivering(self) {
        let mut next_retry = FIRST_RETRY;
        loop {
            let wait = tokio::select! {
                () = self.0.stopping.cancelled() => return,
                () = tokio::time::sleep(RETRY_EVERY) => {
                    next_retry = FIRST_RETRY;
                    Duration::ZERO
                }
                () = self.0.retry_wanted.notified() => next_retry,
            };
            next_retry = (next_retry * 2).min(RETRY_EVERY);
            tokio::select! {
                () = self.0.stopping.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
            }
            self.retry_leftovers().await;
        }
    }

    /// Retries the outbox and unanswered messages, unless another task is doing so.
    pub(crate) async fn retry_leftovers(&self) {
        let Ok(_alone) = self.0.leftovers.try_lock() else { return };
        if let Err(error) = self.deliver_left_over().await {
            tracing::warn!(%error, "cannot read the outbox");
        }
        if let Err(error) = self.take_up(|_| true).await {
            tracing::warn!(%error, "cannot take up unanswered messages");
        }
    }

    /// Tries a last time to deliver the outbox.
    pub(crate) async fn deliver_leftovers(&self) {
        match tokio::time::timeout(LAST_ATTEMPT, self.deliver_outbox()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "cannot read the outbox; the next start tries again"),
            Err(_) => tracing::warn!("the rest of the outbox waits for the next start"),
        }
    }

    /// Delivers the outbox of attached platforms, oldest first.
    pub(crate) async fn deliver_outbox(&self) -> Result<(), Error> {
        let _alone = self.0.leftovers.lock().await;
        self.deliver_left_over().await
    }

    /// Delivers the outbox. The caller holds the lock, so that no reply is delivered twice.
    async fn deliver_left_over(&self) -> Result<(), Error> {
        for (reply, row) in self.blocking(azera_memory::Memory::outbox).await? {
            let Ok(platform) = self.platform(&row.platform) else { continue };
            // The reply's own turn delivers it, or has done so since the outbox was read.
            let answering = reply.answers.as_ref().is_some_and(|message| self.is_under_way(message));
            let listed = reply.clone();
            if answering || !self.blocking(move |memory| memory.is_undelivered(&listed)).await? {
                continue;
            }
            if let Err(error) = self.deliver_or_withdraw(platform.as_ref(), &reply, row).await {
                // It stays in the outbox, and the others are not held up.
                tracing::warn!(reply = %reply.id, %error, "cannot deliver a reply; it stays in the outbox");
            }
        }
        Ok(())
    }

    async fn deliver_or_withdraw(
        &self,
        platform: &dyn Platform,
        reply: &MessageRow,
        row: OutboxRow,
    ) -> Result<(), Error> {
        let MessageRow { chat, persona, scope, source_scopes, at, .. } = reply;
        let from = row.from.unwrap_or(Timestamp::MIN).min(*at);
        let written = |asker| DeliverableReply { chat, asker, persona, scope, from, source_scopes };
        let post = reply.clone();
        let may = match &row.asker {
            Some(asker) => self.may_be_shown(platform, &written(Some(asker))).await?,
            // A post that nobody asked for, unless the writing it shows was removed.
            None if reply.answers.is_none()
                && self.blocking(move |memory| memory.posted_as(&post)).await?.is_some() =>
            {
                self.may_be_shown(platform, &written(None)).await?
            }
            None => false,
        };
        if may {
            let state = serde_json::from_value(row.state).unwrap_or_default();
            return self.deliver(platform, reply, &state, 1).await;
        }
        self.withdraw(reply, &row).await?;
        self.take_up(|message| Some(&message.id) == reply.answers.as_ref()).await
    }
}
