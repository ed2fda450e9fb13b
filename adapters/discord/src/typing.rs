//! The typing indicator, from when a message is handled until part of the reply is visible.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serenity::all::ChannelId;
use tokio::task::AbortHandle;

use crate::replies::Replies;

/// Interval between two signals; Discord shows each for ten seconds.
const AGAIN: Duration = Duration::from_secs(8);

/// Most signals for one message.
const TIMES: usize = 40;

/// Channels with a typing indicator.
#[derive(Default)]
pub(crate) struct Typing(Mutex<HashMap<ChannelId, AbortHandle>>);

/// Shows the indicator in a channel until this is dropped.
pub(crate) struct TypingGuard {
    typing: Arc<Typing>,
    channel: ChannelId,
}

impl Typing {
    /// Starts the indicator in a channel.
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

    /// Stops the indicator in a channel.
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
