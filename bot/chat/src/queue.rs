//! One turn at a time in a chat, many chats at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use azera_types::ChatId;
use tokio::sync::{Mutex as TurnMutex, Notify, OwnedMutexGuard};

/// The chats in which something is waiting or under way.
#[derive(Debug)]
pub(crate) struct Queues {
    limit: usize,
    chats: Arc<Mutex<HashMap<ChatId, Arc<Queue>>>>,
    left: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Queue {
    turn: Arc<TurnMutex<()>>,
    waiting: AtomicUsize,
}

/// A place in a chat's queue. Dropping it leaves the queue.
#[derive(Debug)]
pub(crate) struct Ticket {
    chat: ChatId,
    queue: Arc<Queue>,
    chats: Arc<Mutex<HashMap<ChatId, Arc<Queue>>>>,
    left: Arc<Notify>,
}

impl Queues {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, chats: Arc::default(), left: Arc::default() }
    }

    /// A place in the chat's queue, unless `limit` others have one. Places are served in the order they were taken.
    pub(crate) fn enter(&self, chat: &ChatId) -> Option<Ticket> {
        let mut chats = self.chats.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = chats.entry(chat.clone()).or_default();
        if queue.waiting.load(Ordering::Relaxed) >= self.limit {
            return None;
        }
        Some(self.join(chat, queue))
    }

    /// A place for a message that is in the record already, however many wait.
    pub(crate) fn enter_anyway(&self, chat: &ChatId) -> Ticket {
        let mut chats = self.chats.lock().unwrap_or_else(PoisonError::into_inner);
        self.join(chat, chats.entry(chat.clone()).or_default())
    }

    fn join(&self, chat: &ChatId, queue: &Arc<Queue>) -> Ticket {
        queue.waiting.fetch_add(1, Ordering::Relaxed);
        Ticket { chat: chat.clone(), queue: queue.clone(), chats: self.chats.clone(), left: self.left.clone() }
    }

    /// Waits until nothing waits or is under way in any chat.
    pub(crate) async fn idle(&self) {
        loop {
            let left = self.left.notified();
            if self.chats.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
                return;
            }
            left.await;
        }
    }
}

impl Ticket {
    /// Waits until it is this one's turn; the turn lasts as long as the guard.
    pub(crate) async fn turn(&self) -> OwnedMutexGuard<()> {
        self.queue.turn.clone().lock_owned().await
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut chats = self.chats.lock().unwrap_or_else(PoisonError::into_inner);
        if self.queue.waiting.fetch_sub(1, Ordering::Relaxed) == 1 {
            chats.remove(&self.chat);
        }
        self.left.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_queue_refuses_and_a_left_one_is_forgotten() {
        let queues = Queues::new(2);
        let chat = ChatId::new("room").unwrap();
        let first = queues.enter(&chat).unwrap();
        let second = queues.enter(&chat).unwrap();
        assert!(queues.enter(&chat).is_none());
        drop(first);
        drop(queues.enter(&chat).unwrap());
        drop(second);
        assert!(queues.chats.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn turns_do_not_overlap() {
        let queues = Queues::new(8);
        let chat = ChatId::new("room").unwrap();
        let first = queues.enter(&chat).unwrap();
        let second = queues.enter(&chat).unwrap();
        let turn = first.turn().await;
        assert!(second.queue.turn.try_lock().is_err());
        drop(turn);
        assert!(second.queue.turn.try_lock().is_ok());
    }
}
