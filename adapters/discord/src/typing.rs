//! The sign that the bot is writing, from when a message is taken up until something of the answer is seen.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serenity::all::ChannelId;
use tokio::task::AbortHandle;

use crate::replies::Replies;

/// Discord shows the sign for ten seconds.
const AGAIN: Duration = Duration::from_secs(8);

/// How often it is shown for one message: nobody waits longer.
const TIMES: usize = 40;

/// Channels in which the bot is seen writing.
#[derive(Default)]
pub(crate) struct Typing(Mutex<HashMap<ChannelId, AbortHandle>>);

/// The sign in one channel, until this is dropped.
pub(crate) struct TypingGuard {
    typing: Arc<Typing>,
    channel: ChannelId,
}

impl Typing {
    /// Shows the sign in a channel.
    pub(crate) fn start(self: &Arc<Self>, channel: ChannelId, shown: Arc<Replies>) -> TypingGuard {
        let task = tokio::spawn(async move {
            for _ in 0..TIMES {
                shown.typing(channel).await;
                tokio::time::sleep(AGAIN).await;
            }
        });
        if let Some(before) = self.lock().insert(channel, task.abort_handle()) {
            before.abort();
        }
        TypingGuard { typing: self.clone(), channel }
    }

    /// Shows it no more.
    pub(crate) fn stop(&self, channel: ChannelId) {
        if let Some(task) = self.lock().remove(&channel) {
            task.abort();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ChannelId, AbortHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TypingGuard {
    fn drop(&mut self) {
        self.typing.stop(self.channel);
    }
}
