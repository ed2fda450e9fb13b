//! What a turn left over: replies in the outbox that were not delivered, and messages whose turns failed.

use std::sync::Arc;
use std::time::Duration;

use azera_adapter::Platform;
use azera_memory::{MessageRow, OutboxRow};
use azera_types::Timestamp;

use super::Turns;
use crate::error::Error;
use crate::outbox::DeliverableReply;

/// Wait before a turn that failed for a passing reason is retried. It doubles with each failure.
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// Time limit for the last delivery attempts when the engine stops.
const LAST_ATTEMPT: Duration = Duration::from_secs(5);

/// Time between two attempts to deliver the rest of the outbox.
const RETRY_EVERY: Duration = Duration::from_secs(60);

impl Turns {
    /// Retries the outbox and unanswered messages from time to time, until the engine stops.
    pub(crate) async fn keep_delivering(self: Arc<Self>) {
        let mut next_retry = FIRST_RETRY;
        loop {
            let wait = tokio::select! {
                () = self.services.stopping.cancelled() => return,
                () = tokio::time::sleep(RETRY_EVERY) => {
                    next_retry = FIRST_RETRY;
                    Duration::ZERO
                }
                () = self.progress.retry_wanted.notified() => next_retry,
            };
            next_retry = (next_retry * 2).min(RETRY_EVERY);
            tokio::select! {
                () = self.services.stopping.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
            }
            self.retry_leftovers().await;
        }
    }

    /// Retries the outbox and unanswered messages, unless another task is doing so.
    pub(crate) async fn retry_leftovers(self: &Arc<Self>) {
        // A slow platform must not hold up the outbox.
        let forgetting = Arc::clone(&self.forgetting);
        self.services.tasks.spawn(async move { forgetting.retract_due().await });
        let Ok(_alone) = self.progress.delivering.try_lock() else { return };
        if let Err(error) = self.deliver_left_over().await {
            tracing::warn!(%error, "cannot read the outbox");
        }
        if let Err(error) = self.take_up(|_| true).await {
            tracing::warn!(%error, "cannot take up unanswered messages");
        }
    }

    /// Tries a last time to deliver the outbox.
    pub(crate) async fn deliver_leftovers(self: &Arc<Self>) {
        match tokio::time::timeout(LAST_ATTEMPT, self.deliver_outbox()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "cannot read the outbox; the next start tries again"),
            Err(_) => tracing::warn!("the rest of the outbox waits for the next start"),
        }
    }

    /// Delivers the outbox of attached platforms, oldest first.
    pub(crate) async fn deliver_outbox(self: &Arc<Self>) -> Result<(), Error> {
        let _alone = self.progress.delivering.lock().await;
        self.deliver_left_over().await
    }

    /// Delivers the outbox. The caller holds the lock, so that no reply is delivered twice.
    async fn deliver_left_over(self: &Arc<Self>) -> Result<(), Error> {
        for (reply, row) in self.services.blocking(|memory| memory.outbox().pending()).await? {
            let Ok(platform) = self.services.platform(&row.platform) else { continue };
            // The reply's own turn delivers it, or has done so since the outbox was read.
            let answering = reply.answers.as_ref().is_some_and(|message| self.is_under_way(message));
            let listed = reply.clone();
            let answering = answering || self.pictures.is_delivering(&reply.id);
            if answering || !self.services.blocking(move |memory| memory.outbox().is_undelivered(&listed)).await? {
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
        self: &Arc<Self>,
        platform: &dyn Platform,
        reply: &MessageRow,
        row: OutboxRow,
    ) -> Result<(), Error> {
        let MessageRow { chat, persona, scope, source_scopes, at, .. } = reply;
        let from = row.from.unwrap_or(Timestamp::MIN).min(*at);
        let written = |asker| DeliverableReply { chat, asker, persona, scope, from, source_scopes };
        let post = reply.clone();
        let may = match &row.asker {
            Some(asker) => self.outbox.may_be_shown(platform, &written(Some(asker))).await?,
            // A post that nobody asked for, unless the writing it shows was removed.
            None if reply.answers.is_none()
                && self.services.blocking(move |memory| memory.writings().posted_as(&post)).await?.is_some() =>
            {
                self.outbox.may_be_shown(platform, &written(None)).await?
            }
            None => false,
        };
        if may {
            return self.outbox.deliver(platform, reply, &row, 1).await;
        }
        self.outbox.withdraw(platform, reply, &row).await?;
        self.take_up(|message| Some(&message.id) == reply.answers.as_ref()).await
    }
}
