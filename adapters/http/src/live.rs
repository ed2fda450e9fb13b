//! Replies while they are generated. Pieces that a client has not read yet are merged, so a slow client costs one reply's
//! length at most, and delays nobody.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use azera_adapter::StreamEvent;
use azera_types::MessageId;
use tokio::sync::Notify;

/// The replies that clients wait for, by the message that they answer.
#[derive(Default)]
pub(crate) struct LiveReplies {
    replies: Mutex<HashMap<MessageId, Arc<LiveReply>>>,
}

/// One reply while it is generated.
#[derive(Default)]
pub(crate) struct LiveReply {
    unread: Mutex<Vec<StreamEvent>>,
    more: Notify,
}

/// A client's place at a reply. Dropping it ends the reply's stream.
pub(crate) struct Listener {
    message: MessageId,
    reply: Arc<LiveReply>,
    all: Arc<LiveReplies>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LiveReplies {
    /// Starts to listen for the reply to a message.
    pub(crate) fn listen(self: &Arc<Self>, message: &MessageId) -> Listener {
        let reply = Arc::<LiveReply>::default();
        lock(&self.replies).insert(message.clone(), reply.clone());
        Listener { message: message.clone(), reply, all: self.clone() }
    }

    /// Adds an event. Nobody listening is no error.
    pub(crate) fn push(&self, message: &MessageId, event: &StreamEvent) {
        let Some(reply) = lock(&self.replies).get(message).cloned() else { return };
        let mut unread = lock(&reply.unread);
        match (unread.last_mut(), event) {
            (Some(StreamEvent::Content { text }), StreamEvent::Content { text: more })
            | (Some(StreamEvent::Thinking { text }), StreamEvent::Thinking { text: more }) => text.push_str(more),
            _ => unread.push(event.clone()),
        }
        drop(unread);
        reply.more.notify_one();
    }
}

impl Listener {
    /// Waits for the next events.
    pub(crate) async fn next(&self) -> Vec<StreamEvent> {
        loop {
            let events = self.take();
            if !events.is_empty() {
                return events;
            }
            self.reply.more.notified().await;
        }
    }

    /// Returns the events that were not read yet.
    pub(crate) fn take(&self) -> Vec<StreamEvent> {
        std::mem::take(&mut *lock(&self.reply.unread))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut replies = lock(&self.all.replies);
        if replies.get(&self.message).is_some_and(|reply| Arc::ptr_eq(reply, &self.reply)) {
            replies.remove(&self.message);
        }
    }
}

/// Returns what of the final text was not streamed yet. Texts may be added below a reply, and blanks at its end go.
pub(crate) fn remainder(streamed: &str, last: &str) -> String {
    let shown = streamed.trim_end();
    match last.strip_prefix(shown) {
        Some(rest) => rest.to_owned(),
        None => format!("\n\n{last}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(text: &str) -> StreamEvent {
        StreamEvent::Content { text: text.to_owned() }
    }

    #[tokio::test]
    async fn pieces_that_nobody_read_are_merged() {
        let live = Arc::<LiveReplies>::default();
        let message = MessageId::new("m").unwrap();
        live.push(&message, &content("lost"));
        let listener = live.listen(&message);
        for event in [StreamEvent::ThinkingStart, content("a"), content("b"), StreamEvent::Retracted, content("c")] {
            live.push(&message, &event);
        }
        let events = listener.next().await;
        assert_eq!(events, [StreamEvent::ThinkingStart, content("ab"), StreamEvent::Retracted, content("c")]);
        drop(listener);
        assert!(live.replies.lock().unwrap().is_empty());
    }

    #[test]
    fn the_remainder_completes_what_was_streamed() {
        for (streamed, last, rest) in [
            ("", "Hello", "Hello"),
            ("Hello ", "Hello", ""),
            ("Hello", "Hello\n\nHelp", "\n\nHelp"),
            ("Draft", "Final", "\n\nFinal"),
        ] {
            assert_eq!(remainder(streamed, last), rest);
        }
    }
}
