use azera_model_api::{Error, Event, Usage};
use tokio::sync::mpsc;

/// The room in a reply's channel that is reserved for its last events. A slow reader gets longer pieces and never loses
/// one: pieces of the same kind are joined, so at most one start, one thought, one end, one content and the final event
/// are pending.
const RESERVED: usize = 8;

/// The engine's end of a reply's channel. It never blocks.
#[derive(Debug)]
pub(crate) struct EventSink {
    sender: mpsc::Sender<Result<Event, Error>>,
    pending: Vec<Event>,
}

impl EventSink {
    pub(crate) fn new(sender: mpsc::Sender<Result<Event, Error>>) -> Self {
        Self { sender, pending: Vec::new() }
    }

    /// Sends `events`, or keeps them for later while the reader is slow.
    pub(crate) fn send(&mut self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            match (self.pending.last_mut(), event) {
                (Some(Event::Content(last)), Event::Content(piece))
                | (Some(Event::Thinking(last)), Event::Thinking(piece)) => last.push_str(&piece),
                (_, event) => self.pending.push(event),
            }
        }
        let room = self.sender.capacity().saturating_sub(RESERVED).min(self.pending.len());
        for event in self.pending.drain(..room) {
            push(&self.sender, Ok(event));
        }
    }

    /// Ends the reply.
    pub(crate) fn finish(mut self, usage: Usage) {
        self.flush();
        push(&self.sender, Ok(Event::Done(usage)));
    }

    /// Ends the reply with an error.
    pub(crate) fn fail(mut self, error: Error) {
        self.flush();
        push(&self.sender, Err(error));
    }

    fn flush(&mut self) {
        for event in self.pending.drain(..) {
            push(&self.sender, Ok(event));
        }
    }
}

fn push(sender: &mpsc::Sender<Result<Event, Error>>, event: Result<Event, Error>) {
    // Room is reserved, so this fails only if the reader left, who wants no more events.
    sender.try_send(event).ok();
}

#[cfg(test)]
mod tests {
    use azera_model_api::{FinishReason, REPLY_QUEUE, Reply};

    use super::*;

    #[tokio::test]
    async fn a_slow_reader_loses_nothing() {
        let (sender, _token, mut reply) = Reply::channel();
        let mut sink = EventSink::new(sender);
        let mut sent = String::new();
        for i in 0..3 * REPLY_QUEUE {
            let piece = format!("{i} ");
            sent.push_str(&piece);
            sink.send([Event::Content(piece)]);
        }
        sink.finish(Usage {
            prompt_tokens: 1,
            cached_tokens: 0,
            evaluated_tokens: 1,
            completion_tokens: 1,
            ttft_ms: 0.0,
            tokens_per_s: 0.0,
            finish: FinishReason::Stop,
            estimated: false,
        });
        let (mut text, mut done) = (String::new(), false);
        while let Some(event) = reply.next().await {
            match event.unwrap() {
                Event::Content(piece) => text.push_str(&piece),
                Event::Done(_) => done = true,
                other => panic!("unexpected {other:?}"),
            }
        }
        assert!(done);
        assert_eq!(text, sent);
    }
}
