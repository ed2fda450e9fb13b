//! Posts captions.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use azera_adapter::{VoiceError, VoiceHost};
use azera_types::MessageId;
use serenity::all::{ChannelId, CreateMessage, EditMessage, GuildId, Http, Message, MessageId as ShownId, Nonce};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::board::{Board, Line, content};
use super::intents::Intent;
use super::log::{GAP, Posted};
use super::{MORE_READERS, VoiceCalls};
use crate::error::{Failure, failure, in_words};
use crate::id;
use crate::replies::nobody;

/// How long lines are collected for one message. Discord takes about five messages in five seconds.
const BATCH: Duration = Duration::from_secs(2);

/// How long to wait for the record to know what was said, and how often to look.
const UNKNOWN: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(500);

/// How long Discord or the record may fail until captions end.
const PATIENCE: Duration = Duration::from_secs(300);

/// How long before now a message is looked for after a crash, in milliseconds: an attempt is repeated for [`PATIENCE`], and
/// the clock here may be ahead of Discord's.
const EARLIER_MS: i64 = 600_000;

/// Written when captions cannot go on.
const CANNOT_GO_ON: &str = "*I cannot write captions here any more.*";

/// Written when the log of captions is full.
const FULL: &str = "*The captions end: there are as many of this voice channel as I can take back. Once older ones are \
                    forgotten, or their threads deleted, I can write new ones.*";

/// What became of the next message.
enum Next {
    Posted,
    /// There is nothing to post yet.
    Waits,
    /// Discord or the record cannot be reached.
    Failed,
    /// The captions must end, with this farewell.
    End(&'static str),
}

impl VoiceCalls {
    /// Posts the captions of a call until they are over.
    pub(super) async fn post_captions(self: Arc<Self>, guild: GuildId, board: Arc<Board>) {
        let mut failing: Option<Instant> = None;
        loop {
            if board.farewell().is_none() {
                if board.next().is_empty() {
                    board.woken().await;
                }
                tokio::time::sleep(if board.farewell().is_none() { BATCH } else { LOOK }).await;
            }
            let next = self.post_next(&board).await;
            match next {
                Next::Failed => {
                    if failing.get_or_insert_with(Instant::now).elapsed() < PATIENCE {
                        tokio::time::sleep(LOOK).await;
                    } else {
                        self.end_captions(guild, &board, CANNOT_GO_ON).await;
                    }
                }
                Next::Posted | Next::Waits => {
                    failing = None;
                    if matches!(next, Next::Waits) {
                        tokio::time::sleep(LOOK).await;
                    }
                }
                Next::End(farewell) => self.end_captions(guild, &board, farewell).await,
            }
            if let Some(last) = board.last_words() {
                return self.tell(board.thread, &last).await;
            }
        }
    }

    async fn end_captions(self: &Arc<Self>, guild: GuildId, board: &Board, farewell: &'static str) {
        board.clear();
        board.end(farewell);
        self.end_in_turn(guild, board, farewell).await;
    }

    /// Posts the lines that come next, as far as they still stand in the record.
    async fn post_next(&self, board: &Board) -> Next {
        let (Ok(line), Some((_, host))) = (self.line(), self.speech.get()) else { return Next::Failed };
        if !line.directory.reads_within(board.parent, board.voice) {
            return Next::End(MORE_READERS);
        }
        let Some(lines) = standing(board, host.as_ref()).await else { return Next::Failed };
        if lines.is_empty() {
            return Next::Waits;
        }
        if self.caption_log.lock().await.is_full(board.voice) {
            return Next::End(FULL);
        }
        let is_gap = board.is_gap();
        let text = content(&lines.iter().collect::<Vec<_>>(), is_gap);
        let gap = is_gap.then(|| MessageId::new(GAP).ok()).flatten();
        let shown: Vec<MessageId> = gap.into_iter().chain(lines.iter().map(|line| line.said.clone())).collect();
        let nonce = nonce(&lines);
        let intent = Intent {
            voice: board.voice,
            thread: board.thread,
            nonce: nonce.clone(),
            after: self.before_next(board).await,
            lines: shown.clone(),
        };
        if let Err(error) = self.caption_intents.lock().await.begin(intent) {
            tracing::error!(%error, "cannot note what is about to be shown; captions end");
            return Next::End(CANNOT_GO_ON);
        }
        let message = match post(&line.http, board.thread, &text, &nonce).await {
            Ok(message) => message,
            Err(NotShown { error, is_posted }) => {
                tracing::warn!(error = in_words(&error), "cannot post captions");
                if failure(&error) == Failure::Unknown {
                    return Next::Failed;
                }
                // What an earlier attempt posted stands there, and the next start looks for it.
                if !is_posted {
                    self.intent_is_done(board.thread, &nonce).await;
                }
                return Next::End(CANNOT_GO_ON);
            }
        };
        let shown = shown.into_iter().map(Some).collect();
        let posted = Posted { thread: board.thread, message: message.id, lines: shown };
        let noted = self.caption_log.lock().await.add(board.voice, &posted);
        if let Err(error) = noted {
            tracing::error!(%error, "cannot note where captions stand; they end");
            if let Err(error) = line.http.delete_message(board.thread, message.id, None).await {
                tracing::error!(error = in_words(&error), "cannot remove captions");
            }
            return Next::End(CANNOT_GO_ON);
        }
        self.intent_is_done(board.thread, &nonce).await;
        board.posted(message.id);
        if is_gap {
            board.gap_is_said();
        }
        board.done(&lines);
        self.take_back_gone(board, &lines, host.as_ref()).await;
        Next::Posted
    }

    /// Fails if no more captions of a voice channel can be taken back. Threads that people deleted no longer count.
    pub(super) async fn has_room_for_captions(&self, channel: ChannelId) -> Result<(), VoiceError> {
        let full = || VoiceError::Unavailable(FULL.trim_matches('*').to_owned());
        if !self.caption_log.lock().await.is_full(channel) {
            return Ok(());
        }
        let threads = self.caption_log.lock().await.threads(channel).map_err(|error| {
            tracing::error!(%channel, %error, "cannot read where captions stand");
            full()
        })?;
        let mut gone = BTreeSet::new();
        for thread in threads {
            let found = self.line()?.http.get_channel(thread).await;
            if found.is_err_and(|error| failure(&error) == Failure::Gone) {
                gone.insert(thread);
            }
        }
        let mut log = self.caption_log.lock().await;
        if let Err(error) = log.forget_threads(channel, &gone) {
            tracing::error!(%channel, %error, "cannot note that threads of captions are gone");
        }
        if log.is_full(channel) { Err(full()) } else { Ok(()) }
    }

    /// Returns an id between the next message and those that were posted long before it. The chat of a voice channel may
    /// have more messages than can be searched.
    async fn before_next(&self, board: &Board) -> ShownId {
        let last = match board.last_posted() {
            Some(last) => Some(last),
            None => {
                let newest = self.caption_log.lock().await.newest_in(board.voice, board.thread);
                newest.inspect_err(|error| tracing::error!(%error, "cannot read where captions stand")).ok().flatten()
            }
        };
        let earlier = self.clock.now().as_millisecond().saturating_sub(EARLIER_MS);
        // A thread is older than all of its messages.
        let newest = id::first_of(earlier).max(board.thread.get());
        ShownId::new(last.map_or(newest, |last| newest.max(last.get())))
    }

    async fn intent_is_done(&self, thread: ChannelId, nonce: &str) {
        if let Err(error) = self.caption_intents.lock().await.done(thread, nonce) {
            tracing::warn!(%error, "cannot note that captions are posted; the next start looks for them");
        }
    }

    /// Takes back lines that were forgotten before the log knew where they stand.
    async fn take_back_gone(&self, board: &Board, lines: &[Line], host: &dyn VoiceHost) {
        let mut gone = BTreeSet::new();
        for line in lines {
            if !matches!(host.stands(&line.said).await, Ok(Some(true))) {
                gone.insert(line.said.clone());
            }
        }
        self.withdrawn.note(board.voice, gone);
    }
}

/// Returns the lines that come next and stand in the record, and drops those that were forgotten or are unknown for
/// long. `None` if the record cannot be read.
async fn standing(board: &Board, host: &dyn VoiceHost) -> Option<Vec<Line>> {
    let (mut standing, mut gone) = (Vec::new(), Vec::new());
    for line in board.next() {
        match host.stands(&line.said).await {
            Ok(Some(true)) => standing.push(line),
            // A reply is stored a moment after it was said.
            Ok(None) if line.since.elapsed() < UNKNOWN => break,
            Ok(_) => gone.push(line),
            Err(error) => {
                tracing::warn!(%error, "cannot read whether something was forgotten; it waits");
                return None;
            }
        }
    }
    board.done(&gone);
    Some(standing)
}

/// Why a message does not stand in the thread as it should.
struct NotShown {
    error: serenity::Error,
    /// True if it stands there with the text of an earlier attempt.
    is_posted: bool,
}

/// Posts a message once, even if an earlier attempt did so without an answer.
async fn post(http: &Http, thread: ChannelId, text: &str, nonce: &str) -> Result<Message, NotShown> {
    let message = CreateMessage::new()
        .content(text)
        .allowed_mentions(nobody())
        .nonce(Nonce::String(nonce.to_owned()))
        .enforce_nonce(true);
    let posted = http.send_message(thread, Vec::new(), &message).await;
    let posted = posted.map_err(|error| NotShown { error, is_posted: false })?;
    if posted.content == text {
        return Ok(posted);
    }
    // It is the message of an earlier attempt, and something of it was forgotten since.
    let edit = EditMessage::new().content(text).allowed_mentions(nobody());
    let edited = http.edit_message(thread, posted.id, &edit, Vec::new()).await;
    edited.map_err(|error| NotShown { error, is_posted: true })
}

/// Returns the mark by which Discord posts a message only once.
fn nonce(lines: &[Line]) -> String {
    /// Bytes of a nonce of 24 letters; Discord allows 25.
    const BYTES: usize = 12;
    let first = lines.first().map(|line| format!("caption {} {}", line.said, line.text)).unwrap_or_default();
    let digest = Sha256::digest(first);
    data_encoding::HEXLOWER.encode(digest.get(..BYTES).unwrap_or(&digest))
}
