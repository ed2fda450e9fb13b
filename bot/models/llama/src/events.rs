use azera_model_api::{Error, Event, Usage};
use tokio::sync::mpsc;

/// The room in a reply's channel that is reserved for its last events. A slow reader gets longer pieces and never loses
/// content: pieces of the same kind are joined, and thinking is left out if it alternates with content too often.
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
            if self.pending.len() >= RESERVED {
                self.leave_out_thinking();
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

    /// Keeps what a reader needs of the pending events: the end of thinking that it has seen begin, whether content was
    /// retracted, and the content.
    fn leave_out_thinking(&mut self) {
        let mut kept = Vec::new();
        let mut content = String::new();
        for event in self.pending.drain(..) {
            match event {
                Event::ThinkingEnd if kept.is_empty() && content.is_empty() => kept.push(Event::ThinkingEnd),
                Event::Content(piece) => content.push_str(&piece),
                Event::Retracted => {
                    content.clear();
                    kept.retain(|event| !matches!(event, Event::Retracted));
                    kept.push(Event::Retracted);
                }
                _ => {}
            }
        }
        if !content.is_empty() {
            kept.push(Event::Content(content));
        }
        self.pending = kept;
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

    fn usage() -> Usage {
        Usage {
            prompt_tokens: 1,
            cached_tokens: 0,
            evaluated_tokens: 1,
            completion_tokens: 1,
            ttft_ms: 0.0,
            tokens_per_s: 0.0,
            finish: FinishReason::Stop,
            estimated: false,
        }
    }

    #[tokio::test]
    async fn a_slow_reader_loses_no_content_among_thinking() {
        let (sender, _token, reply) = Reply::channel();
        let mut sink = EventSink::new(sender);
        let mut sent = String::new();
        sink.send([Event::Content("not this".into()), Event::Retracted]);
        for i in 0..3 * REPLY_QUEUE {
            let piece = format!("{i} ");
            sent.push_str(&piece);
            let thought = Event::Thinking("hm".into());
            sink.send([Event::ThinkingStart, thought, Event::ThinkingEnd, Event::Content(piece)]);
        }
        sink.finish(usage());
        assert_eq!(reply.collect().await.unwrap().0, sent);
    }

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
        sink.finish(usage());
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
