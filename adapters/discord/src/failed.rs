//! Replies that failed while they were generated: removes their beginnings, and tells people.

use std::time::Duration;

use azera_adapter::{NOT_ANSWERED, PlatformError};
use serenity::all::{ChannelId, CreateMessage, Message, MessageFlags, MessageId, MessageReference, Nonce};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::error::in_words;
use crate::id::Target;
use crate::replies::{Replies, nobody};

/// Attempts to remove a beginning, and the wait before the second one, which doubles.
const ATTEMPTS: u32 = 6;
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// Marks a notice. Replies have this flag only if a moderator removes their previews of links.
const NOTICE: MessageFlags = MessageFlags::SUPPRESS_EMBEDS;

/// The removal of a beginning.
pub(crate) struct Removal {
    pub(crate) task: JoinHandle<()>,
    /// Dropped to end the attempts after the present one.
    pub(crate) going_on: Option<oneshot::Sender<()>>,
}

impl Removal {
    /// Ends the attempts to remove the beginning, and waits for the present one.
    pub(crate) async fn end(self) {
        drop(self.going_on);
        self.task.await.ok();
    }
}

impl Replies {
    /// Removes the beginning of a reply, until `going_on` ends.
    pub(crate) async fn remove_beginning(&self, target: Target, going_on: oneshot::Receiver<()>) {
        if let Err(error) = repeat(|| self.retract(target), going_on).await {
            tracing::warn!(%error, "cannot remove the beginning of a failed reply");
        }
    }

    /// Tells people in reply to a message that it is not answered. A second notice within a few minutes is not shown.
    pub(crate) async fn tell_failed(&self, channel: ChannelId, question: MessageId) {
        let mut notice = CreateMessage::new()
            .content(NOT_ANSWERED)
            .allowed_mentions(nobody())
            .flags(NOTICE)
            .nonce(Nonce::String(format!("fail.{question}")))
            .enforce_nonce(true);
        // Discord refuses a reply to a message that the bot may not read.
        if self.webhooks.reads_history(channel) {
            let reference = MessageReference::from((channel, question)).fail_if_not_exists(false);
            notice = notice.reference_message(reference);
        }
        self.pace.turn().await;
        if let Err(error) = self.http.send_message(channel, Vec::new(), &notice).await {
            tracing::warn!(error = in_words(&error), "cannot tell people that a reply failed");
        }
    }
}

/// Returns true if a message of the bot tells that a reply failed. It is no part of the reply.
pub(crate) fn is_notice(message: &Message) -> bool {
    message.flags.is_some_and(|flags| flags.contains(NOTICE))
}

/// Repeats an attempt that failed for a passing reason, with growing waits, until `going_on` ends.
async fn repeat<F: Future<Output = Result<(), PlatformError>>>(
    attempt: impl Fn() -> F,
    mut going_on: oneshot::Receiver<()>,
) -> Result<(), PlatformError> {
    let mut wait = FIRST_WAIT;
    for _ in 1..ATTEMPTS {
        match attempt().await {
            Err(error) if error.is_transient() => tokio::select! {
                () = sleep(wait) => wait *= 2,
                _ = &mut going_on => return Err(error),
            },
            done => return done,
        }
    }
    attempt().await
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::time::Instant;

    use super::*;

    fn away() -> PlatformError {
        PlatformError::Transient("Discord is away".to_owned())
    }

    #[tokio::test]
    async fn a_removal_that_fails_for_a_passing_reason_is_repeated_with_growing_waits() {
        tokio::time::pause();
        let (begun, tried) = (Instant::now(), Cell::new(0));
        let (_sender, going_on) = oneshot::channel();
        let attempt = || {
            tried.set(tried.get() + 1);
            std::future::ready(if tried.get() < 4 { Err(away()) } else { Ok(()) })
        };
        repeat(attempt, going_on).await.unwrap();
        assert_eq!((tried.get(), begun.elapsed().as_secs()), (4, 1 + 2 + 4));
    }

    #[tokio::test]
    async fn a_removal_is_given_up_in_the_end_and_at_once_if_it_is_refused() {
        tokio::time::pause();
        let tried = Cell::new(0);
        let attempt = |error: fn() -> PlatformError| {
            tried.set(tried.get() + 1);
            std::future::ready(Err(error()))
        };
        let (_sender, going_on) = oneshot::channel();
        repeat(|| attempt(away), going_on).await.unwrap_err();
        assert_eq!(tried.take(), ATTEMPTS);
        let (_sender, going_on) = oneshot::channel();
        repeat(|| attempt(|| PlatformError::Refused("no".to_owned())), going_on).await.unwrap_err();
        assert_eq!(tried.take(), 1);
    }

    #[tokio::test]
    async fn a_removal_is_not_repeated_once_something_else_takes_its_place() {
        tokio::time::pause();
        let (begun, tried) = (Instant::now(), Cell::new(0));
        let (sender, going_on) = oneshot::channel();
        drop(sender);
        let attempt = || {
            tried.set(tried.get() + 1);
            std::future::ready(Err(away()))
        };
        repeat(attempt, going_on).await.unwrap_err();
        assert_eq!((tried.get(), begun.elapsed().as_secs()), (1, 0));
    }
}
