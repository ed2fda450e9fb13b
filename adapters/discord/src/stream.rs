//! Replies that are being generated: a message that grows at most once per second.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use azera_adapter::{AnswerFile, FileContent, Making, PictureProgress, StreamEvent};
use azera_types::{MessageId, Part};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::task::TaskTracker;

use crate::failed::Removal;
use crate::id::{ReplyKey, Spot, Target};
use crate::replies::{Replies, ReplyPart};
use crate::typing::Typing;
use crate::webhooks::Speaker;

/// Shortest time between two edits of a message.
const BETWEEN_EDITS: Duration = Duration::from_secs(1);

/// The name of a preview's file.
const PREVIEW: &str = "preview.jpg";

/// Most replies streamed at the same time; others appear when they are complete.
const MAX_STREAMS: usize = 256;

/// How long the end of the process waits for the removal of beginnings.
const LAST_REMOVALS: Duration = Duration::from_secs(5);

/// The replies that are being generated.
pub(crate) struct Streams {
    shown: Arc<Replies>,
    typing: Arc<Typing>,
    streams: Mutex<HashMap<MessageId, ReplyStream>>,
    /// The beginnings that are being removed. Until then nothing is shown in their places: it would go with them.
    removals: Mutex<HashMap<Spot, Removal>>,
    /// The tasks of all removals.
    removing: TaskTracker,
}

struct ReplyStream {
    shown: watch::Sender<Growing>,
    task: JoinHandle<()>,
}

/// What a message shows so far.
#[derive(Clone, Default)]
struct Growing {
    text: String,
    /// How a picture looks so far: one file at most.
    preview: Arc<[AnswerFile]>,
}

impl Growing {
    /// Returns how far a picture is.
    fn of_picture(progress: PictureProgress<'_>) -> Self {
        let file = |bytes: &[u8]| AnswerFile {
            part: Part::new(PREVIEW, Some("image/jpeg"), bytes.len() as u64).described(Some("How it looks so far")),
            content: FileContent(bytes.to_vec()),
        };
        Self { text: progress.text.to_owned(), preview: progress.preview.into_iter().map(file).collect() }
    }
}

impl Streams {
    pub(crate) fn new(shown: Arc<Replies>, typing: Arc<Typing>) -> Self {
        Self { shown, typing, streams: Mutex::default(), removals: Mutex::default(), removing: TaskTracker::new() }
    }

    /// Handles an event of a reply.
    pub(crate) fn event(&self, making: Making<'_>, event: &StreamEvent) {
        let Some(target) = Target::of(making.chat, making.reply, None) else { return };
        match event {
            StreamEvent::Content { text } => self.content(target, making, text),
            StreamEvent::Retracted => {
                if let Some(stream) = self.lock().get(making.reply) {
                    stream.shown.send_modify(|growing| growing.text.clear());
                }
            }
            StreamEvent::Error { .. } => self.break_off(target, making.reply, true),
            StreamEvent::Withdrawn => self.break_off(target, making.reply, false),
            StreamEvent::ThinkingStart
            | StreamEvent::Thinking { .. }
            | StreamEvent::ThinkingEnd
            | StreamEvent::Done { .. } => {}
        }
    }

    /// Shows how far a picture is, in the message that will show it.
    pub(crate) fn progress(&self, making: Making<'_>, progress: PictureProgress<'_>) {
        let Some(target) = Target::of(making.chat, making.reply, Some(progress.since)) else { return };
        let mut streams = self.lock();
        match streams.get(making.reply) {
            Some(stream) => drop(stream.shown.send_replace(Growing::of_picture(progress))),
            None => self.begin(&mut streams, target, making, Growing::of_picture(progress)),
        }
    }

    fn content(&self, target: Target, making: Making<'_>, piece: &str) {
        let mut streams = self.lock();
        match streams.get(making.reply) {
            Some(stream) => stream.shown.send_modify(|growing| growing.text.push_str(piece)),
            None => {
                let growing = Growing { text: piece.to_owned(), ..Growing::default() };
                self.begin(&mut streams, target, making, growing);
            }
        }
    }

    fn begin(
        &self,
        streams: &mut HashMap<MessageId, ReplyStream>,
        target: Target,
        making: Making<'_>,
        beginning: Growing,
    ) {
        if streams.len() >= MAX_STREAMS {
            return;
        }
        let (shown, growing) = watch::channel(beginning);
        let speaker = Speaker { persona: making.persona.clone(), name: making.persona_name.to_owned() };
        let removal = self.removals().remove(&target.reply.spot);
        let grows = grow(self.shown.clone(), self.typing.clone(), target, speaker, growing);
        let task = tokio::spawn(async move {
            ended(removal).await;
            grows.await;
        });
        streams.insert(making.reply.clone(), ReplyStream { shown, task });
    }

    /// Ends the streaming of a reply, and waits for its last edit.
    pub(crate) async fn finish(&self, reply: &MessageId) {
        let streams = self.lock().remove(reply);
        if let Some(ReplyStream { shown, task }) = streams {
            drop(shown);
            task.await.ok();
        }
        let removal = ReplyKey::of(reply).and_then(|key| self.removals().remove(&key.spot));
        ended(removal).await;
    }

    /// Removes the shown beginning of a reply, and tells people if it failed.
    fn break_off(&self, target: Target, reply: &MessageId, has_failed: bool) {
        let stream = self.lock().remove(reply);
        let grows = stream.map(|ReplyStream { shown, task }| {
            drop(shown);
            task
        });
        // The answer to the command that asks for another reply tells that it failed. An edit has no such answer.
        let notice = match target.reply {
            ReplyKey { spot: Spot::Answers(question), number } => {
                (has_failed && (number == 0 || self.shown.edits().contains(&question))).then_some(question)
            }
            ReplyKey { spot: Spot::Post(_), .. } => None,
        };
        if grows.is_none() && notice.is_none() {
            return;
        }
        let shown = self.shown.clone();
        let mut removals = self.removals();
        removals.retain(|_, removal| !removal.task.is_finished());
        let earlier = removals.remove(&target.reply.spot);
        // This goes on with an earlier removal.
        let removes = grows.is_some() || earlier.is_some();
        let (going_on, attempts) = oneshot::channel();
        let task = self.removing.spawn(async move {
            ended(earlier).await;
            let remove = async {
                if let Some(grows) = grows {
                    grows.await.ok();
                }
                if removes {
                    shown.remove_beginning(target, attempts).await;
                }
            };
            let tell = async {
                if let Some(question) = notice {
                    shown.tell_failed(target.channel, question).await;
                }
            };
            tokio::join!(remove, tell);
        });
        removals.insert(target.reply.spot, Removal { task, going_on: Some(going_on) });
    }

    /// Lets the present attempts to remove beginnings end, and waits a while for them. None begins later: it could remove what
    /// is delivered in that place before the end.
    pub(crate) async fn finish_removals(&self) {
        for removal in self.removals().values_mut() {
            removal.going_on = None;
        }
        self.removing.close();
        if timeout(LAST_REMOVALS, self.removing.wait()).await.is_err() {
            tracing::warn!("the beginnings of failed replies may stay in their chats");
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<MessageId, ReplyStream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn removals(&self) -> MutexGuard<'_, HashMap<Spot, Removal>> {
        self.removals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a removal, if there is one.
async fn ended(removal: Option<Removal>) {
    if let Some(removal) = removal {
        removal.end().await;
    }
}

/// Shows the growing beginning of a reply until its sender is dropped.
async fn grow(
    shown: Arc<Replies>,
    typing: Arc<Typing>,
    target: Target,
    speaker: Speaker,
    mut growing: watch::Receiver<Growing>,
) {
    let mut seen = String::new();
    loop {
        let Growing { text, preview } = growing.borrow_and_update().clone();
        if text != seen && !text.trim().is_empty() && shown.pace.spare() {
            let saying = ReplyPart { target, speaker: &speaker, files: &preview, can_upscale: false };
            if shown.show_beginning(saying, &text).await {
                typing.stop(target.channel);
            }
            seen = text;
        }
        let next = Instant::now() + BETWEEN_EDITS;
        tokio::select! {
            () = sleep_until(next) => {}
            () = over(&mut growing) => return,
        }
        if growing.borrow().text == seen && growing.changed().await.is_err() {
            return;
        }
    }
}

/// Waits until the sender is dropped.
async fn over(growing: &mut watch::Receiver<Growing>) {
    while growing.changed().await.is_ok() {}
}
