//! One turn at a time in a chat, many chats at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use azera_types::ChatId;
use tokio::sync::{Mutex as TurnMutex, OwnedMutexGuard};

/// The chats in which something is waiting or under way.
#[derive(Debug)]
pub(crate) struct Queues {
    limit: usize,
    chats: Arc<Mutex<HashMap<ChatId, Arc<Queue>>>>,
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
}

impl Queues {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, chats: Arc::default() }
    }

    /// A place in the chat's queue, unless `limit` others have one. Places are served in the order they were taken.
    pub(crate) fn enter(&self, chat: &ChatId) -> Option<Ticket> {
        let mut chats = self.chats.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = chats.entry(chat.clone()).or_default();
        if queue.waiting.load(Ordering::Relaxed) >= self.limit {
            return None;
        }
        queue.waiting.fetch_add(1, Ordering::Relaxed);
        Some(Ticket { chat: chat.clone(), queue: queue.clone(), chats: self.chats.clone() })
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
