//! Replies that people interrupted while they were spoken. A reply is spoken while the model writes it, so its end may come
//! before the reply is stored: the turn asks here how much of it was heard.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use azera_types::{MessageId, Text};
use tokio::sync::Notify;

/// Most replies that are remembered. A reply is asked for until its turn ends, and few turns run at once.
const MAX_REMEMBERED: usize = 256;

/// How much was heard of replies that were interrupted; `None` once the record says it.
#[derive(Default)]
pub(crate) struct Interruptions {
    replies: Mutex<VecDeque<(MessageId, Option<Text>)>>,
    noted: Notify,
}

impl Interruptions {
    /// Notes how much of a reply was heard. Returns false if nothing was heard this time, and something before.
    pub(crate) fn note(&self, reply: &MessageId, heard: Text, is_nothing: bool) -> bool {
        {
            let mut replies = self.lock();
            if let Some(at) = replies.iter().position(|(known, _)| known == reply) {
                if is_nothing {
                    return false;
                }
                replies.remove(at);
            }
            if replies.len() >= MAX_REMEMBERED {
                replies.pop_front();
            }
            replies.push_back((reply.clone(), Some(heard)));
        }
        self.noted.notify_waiters();
        true
    }

    /// Returns how much of a reply was heard; `None` if it was not interrupted, or if the record says it already.
    pub(crate) fn heard(&self, reply: &MessageId) -> Option<Text> {
        self.lock().iter().find(|(known, _)| known == reply)?.1.clone()
    }

    /// Returns true if a reply was interrupted.
    pub(crate) fn has(&self, reply: &MessageId) -> bool {
        self.lock().iter().any(|(known, _)| known == reply)
    }

    /// Drops the words of a reply, which the record holds now.
    pub(crate) fn recorded(&self, reply: &MessageId) {
        if let Some((_, heard)) = self.lock().iter_mut().find(|(known, _)| known == reply) {
            *heard = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(MessageId, Option<Text>)>> {
        self.replies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a reply is interrupted.
    pub(crate) async fn interrupted(&self, reply: &MessageId) {
        loop {
            let mut noted = std::pin::pin!(self.noted.notified());
            // From here on nothing is missed.
            noted.as_mut().enable();
            if self.has(reply) {
                return;
            }
            noted.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> MessageId {
        MessageId::new(name).unwrap()
    }

    #[tokio::test]
    async fn what_was_heard_is_kept_until_more_is_heard() {
        let interruptions = Interruptions::default();
        assert_eq!(interruptions.heard(&id("a")), None);
        assert!(interruptions.note(&id("a"), "First".into(), false));
        interruptions.interrupted(&id("a")).await;
        // A call that ends knows nothing of what was heard before.
        assert!(!interruptions.note(&id("a"), "".into(), true));
        assert_eq!(interruptions.heard(&id("a")), Some("First".into()));
        assert!(interruptions.note(&id("a"), "First you walk".into(), false));
        assert_eq!(interruptions.heard(&id("a")), Some("First you walk".into()));
        interruptions.recorded(&id("a"));
        assert_eq!((interruptions.heard(&id("a")), interruptions.has(&id("a"))), (None, true));
        for number in 0..MAX_REMEMBERED {
            interruptions.note(&id(&format!("b{number}")), "".into(), true);
        }
        assert!(!interruptions.has(&id("a")), "it is long over");
    }
}
