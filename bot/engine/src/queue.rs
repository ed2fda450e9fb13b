//! Queues: one turn at a time in a chat, many chats at once.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use azera_types::ChatId;
use tokio::sync::Notify;

/// The chats in which messages are waiting or being answered.
#[derive(Debug, Clone)]
pub(crate) struct Queues {
    limit: usize,
    state: Arc<Mutex<State>>,
    left: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    /// Number of places taken so far, over all chats.
    taken: u64,
    chats: HashMap<ChatId, Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    /// The places taken, by number. The first one has its turn.
    places: BTreeSet<u64>,
    moved: Arc<Notify>,
}

/// A place in a chat's queue. Dropping it leaves the queue and ends its turn.
#[derive(Debug)]
pub(crate) struct Ticket {
    chat: ChatId,
    place: u64,
    queues: Queues,
    moved: Arc<Notify>,
}

impl Queues {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, state: Arc::default(), left: Arc::default() }
    }

    /// Takes a place in the chat's queue, unless `limit` places are taken. Places are served in order.
    pub(crate) fn enter(&self, chat: &ChatId) -> Option<Ticket> {
        let mut state = self.lock();
        let held = state.chats.get(chat).map_or(0, |queue| queue.places.len());
        (held < self.limit).then(|| self.join(chat, &mut state))
    }

    /// Takes a place for a message that is already in the record, however many wait.
    pub(crate) fn enter_anyway(&self, chat: &ChatId) -> Ticket {
        self.join(chat, &mut self.lock())
    }

    fn join(&self, chat: &ChatId, state: &mut State) -> Ticket {
        let place = state.taken;
        state.taken += 1;
        let queue = state.chats.entry(chat.clone()).or_default();
        queue.places.insert(place);
        Ticket { chat: chat.clone(), place, queues: self.clone(), moved: queue.moved.clone() }
    }

    /// Returns true if messages of a chat wait or are answered.
    pub(crate) fn is_busy(&self, chat: &ChatId) -> bool {
        self.lock().chats.contains_key(chat)
    }

    /// Returns in how many chats messages wait or are answered, and how many messages these are.
    pub(crate) fn lengths(&self) -> (usize, usize) {
        let state = self.lock();
        (state.chats.len(), state.chats.values().map(|queue| queue.places.len()).sum())
    }

    /// Waits until every queue is empty.
    pub(crate) async fn idle(&self) {
        loop {
            let left = self.left.notified();
            if self.lock().chats.is_empty() {
                return;
            }
            left.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    /// Waits for this ticket's turn, which lasts until the ticket is dropped.
    pub(crate) async fn turn(&self) {
        loop {
            let moved = self.moved.notified();
            if self.is_first() {
                return;
            }
            moved.await;
        }
    }

    fn is_first(&self) -> bool {
        let state = self.queues.lock();
        state.chats.get(&self.chat).and_then(|queue| queue.places.first()) == Some(&self.place)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.queues.lock();
        if let Some(queue) = state.chats.get_mut(&self.chat) {
            queue.places.remove(&self.place);
            if queue.places.is_empty() {
                state.chats.remove(&self.chat);
            }
        }
        drop(state);
        self.moved.notify_waiters();
        self.queues.left.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn room() -> ChatId {
        ChatId::new("room").unwrap()
    }

    #[test]
    fn a_full_queue_refuses_and_an_empty_one_is_removed() {
        let queues = Queues::new(2);
        let first = queues.enter(&room()).unwrap();
        let second = queues.enter(&room()).unwrap();
        assert!(queues.enter(&room()).is_none());
        let third = queues.enter_anyway(&room());
        drop((first, third));
        drop(queues.enter(&room()).unwrap());
        assert!(queues.idle().now_or_never().is_none());
        drop(second);
        assert!(queues.lock().chats.is_empty());
        assert!(queues.idle().now_or_never().is_some());
    }

    #[test]
    fn places_are_served_in_the_order_they_were_taken_not_asked() {
        let queues = Queues::new(8);
        let tickets: Vec<Ticket> = (0..4).map(|_| queues.enter(&room()).unwrap()).collect();
        let mut waiting: Vec<_> = tickets.iter().map(|ticket| Box::pin(ticket.turn())).collect();
        // The last ticket asks first.
        for turn in waiting.iter_mut().skip(1).rev() {
            assert!(turn.now_or_never().is_none());
        }
        assert!(waiting[0].as_mut().now_or_never().is_some());
        drop(waiting);
        let mut tickets = std::collections::VecDeque::from(tickets);
        // A ticket that leaves before its turn neither blocks the others nor changes their order.
        drop(tickets.remove(1));
        let served = |tickets: &std::collections::VecDeque<Ticket>| -> Vec<bool> {
            tickets.iter().map(|ticket| ticket.turn().now_or_never().is_some()).collect()
        };
        assert_eq!(served(&tickets), [true, false, false]);
        tickets.pop_front();
        assert_eq!(served(&tickets), [true, false]);
        tickets.pop_front();
        assert_eq!(served(&tickets), [true]);
    }

    #[tokio::test]
    async fn a_waiting_ticket_is_woken_when_the_one_before_is_dropped() {
        let queues = Queues::new(8);
        let first = queues.enter(&room()).unwrap();
        let second = queues.enter(&room()).unwrap();
        let waiting = tokio::spawn(async move { second.turn().await });
        tokio::task::yield_now().await;
        first.turn().await;
        drop(first);
        waiting.await.unwrap();
        queues.idle().await;
    }
}
