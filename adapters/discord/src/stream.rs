//! Replies that are being generated: a message that grows at most once per second.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use azera_adapter::{Making, StreamEvent};
use azera_types::{MessageId, Timestamp};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::id::Target;
use crate::replies::{Replies, ReplyPart};
use crate::typing::Typing;
use crate::webhooks::Speaker;

/// Shortest time between two edits of a message.
const BETWEEN_EDITS: Duration = Duration::from_secs(1);

/// Most replies streamed at the same time; others appear when they are complete.
const MAX_STREAMS: usize = 256;

/// The replies that are being generated.
pub(crate) struct Streams {
    shown: Arc<Replies>,
    typing: Arc<Typing>,
    streams: Mutex<HashMap<MessageId, ReplyStream>>,
}

struct ReplyStream {
    text: watch::Sender<String>,
    task: JoinHandle<()>,
}

impl Streams {
    pub(crate) fn new(shown: Arc<Replies>, typing: Arc<Typing>) -> Self {
        Self { shown, typing, streams: Mutex::default() }
    }

    /// Handles an event of a reply.
    pub(crate) fn event(&self, making: Making<'_>, event: &StreamEvent) {
        let Some(target) = Target::of(making.chat, making.reply, None) else { return };
        match event {
            StreamEvent::Content { text } => self.content(target, making, text),
            StreamEvent::Retracted => {
                if let Some(stream) = self.lock().get(making.reply) {
                    stream.text.send_modify(String::clear);
                }
            }
            StreamEvent::Error { .. } => self.break_off(target, making.reply),
            StreamEvent::ThinkingStart
            | StreamEvent::Thinking { .. }
            | StreamEvent::ThinkingEnd
            | StreamEvent::Done { .. } => {}
        }
    }

    /// Shows how far a picture is, in the message that will show it.
    pub(crate) fn progress(&self, making: Making<'_>, since: Timestamp, text: &str) {
        let Some(target) = Target::of(making.chat, making.reply, Some(since)) else { return };
        if let Some(stream) = self.lock().get(making.reply) {
            stream.text.send_replace(text.to_owned());
            return;
        }
        self.content(target, making, text);
    }

    fn content(&self, target: Target, making: Making<'_>, piece: &str) {
        let mut streams = self.lock();
        if let Some(streams) = streams.get(making.reply) {
            streams.text.send_modify(|text| text.push_str(piece));
            return;
        }
        if streams.len() >= MAX_STREAMS {
            return;
        }
        let (text, growing) = watch::channel(piece.to_owned());
        let speaker = Speaker { persona: making.persona.clone(), name: making.persona_name.to_owned() };
        let task = tokio::spawn(grow(self.shown.clone(), self.typing.clone(), target, speaker, growing));
        streams.insert(making.reply.clone(), ReplyStream { text, task });
    }

    /// Ends the streaming of a reply, and waits for its last edit.
    pub(crate) async fn finish(&self, reply: &MessageId) {
        let streams = self.lock().remove(reply);
        if let Some(ReplyStream { text, task }) = streams {
            drop(text);
            task.await.ok();
        }
    }

    /// Removes the shown beginning of a reply that failed.
    fn break_off(&self, target: Target, reply: &MessageId) {
        let Some(ReplyStream { text, task }) = self.lock().remove(reply) else { return };
        drop(text);
        let shown = self.shown.clone();
        tokio::spawn(async move {
            task.await.ok();
            if let Err(error) = shown.retract(target).await {
                tracing::warn!(%error, "cannot remove the beginning of a failed reply");
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<MessageId, ReplyStream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shows the growing beginning of a reply until its sender is dropped.
async fn grow(
    shown: Arc<Replies>,
    typing: Arc<Typing>,
    target: Target,
    speaker: Speaker,
    mut growing: watch::Receiver<String>,
) {
    let mut seen = String::new();
    loop {
        let text = growing.borrow_and_update().clone();
        if text != seen && !text.trim().is_empty() && shown.pace.spare() {
            if shown
                .show_beginning(ReplyPart { target, speaker: &speaker, files: &[], can_upscale: false }, &text)
                .await
            {
                typing.stop(target.channel);
            }
            seen = text;
        }
        let next = Instant::now() + BETWEEN_EDITS;
        tokio::select! {
            () = sleep_until(next) => {}
            () = over(&mut growing) => return,
        }
        if *growing.borrow() == seen && growing.changed().await.is_err() {
            return;
        }
    }
}

/// Waits until the sender is dropped.
async fn over(growing: &mut watch::Receiver<String>) {
    while growing.changed().await.is_ok() {}
}
