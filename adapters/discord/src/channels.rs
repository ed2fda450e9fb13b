//! Handles events per channel, in order: from the gateway, and missed messages from the channel's history.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use azera_adapter::{Edit, Host, HostError, InboundEvent, Outcome};
use azera_types::{Clock, PlatformId, Text, Timestamp};
use futures::FutureExt;
use futures::future::BoxFuture;
use serenity::all::{
    ChannelId, CreateMessage, Http, Message, MessageId, MessagePagination, MessageReference, MessageUpdateEvent,
    Permissions,
};
use tokio::sync::{Semaphore, mpsc};

use crate::attachments::{Attached, read};
use crate::directory::Directory;
use crate::error::{Failure, failure, in_words};
use crate::inbound::{at, inbound, is_for_bot, is_said, readable, with_attached};
use crate::rate_limit::{RateDecision, RateLimiter, SLOWER};
use crate::replies::{Replies, nobody};
use crate::search::PAGE;
use crate::sync_cursor::SyncCursor;
use crate::thumb_turns::ThumbTurns;
use crate::typing::Typing;
use crate::voice::VoiceCalls;
use crate::{Settings, id};

/// Most queued events of one channel. Later ones are read from the history.
const MAX_WAITING: usize = 1_000;

/// A channel's queue is closed after this time without events.
const QUIET: Duration = Duration::from_secs(600);

/// Channels whose history is read at the same time.
const READERS: usize = 4;

/// Pages of history read in one channel after a pause; messages beyond that stay unanswered.
const CATCH_UP_PAGES: usize = 5;

/// Attempts to submit a message while the engine is busy, and the wait before the second one, which doubles.
const ATTEMPTS: u32 = 8;
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// An event in a channel.
pub(crate) enum ChannelEvent {
    Said(Box<Message>),
    Edited(Box<MessageUpdateEvent>),
    Deleted(Vec<MessageId>),
    /// Events may be missing; read the history.
    Missed,
}

/// Chunks of long files of a message, and the edit they came with.
struct MessageChunks {
    version: Option<Timestamp>,
    pieces: Vec<Text>,
}

fn version(message: &Message) -> Option<Timestamp> {
    message.edited_timestamp.map(at)
}

/// What the work in every channel needs.
pub(crate) struct ChannelContext {
    pub(crate) platform: PlatformId,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) http: Arc<Http>,
    /// HTTP client for attached files.
    pub(crate) files: reqwest::Client,
    pub(crate) directory: Arc<Directory>,
    pub(crate) shown: Arc<Replies>,
    pub(crate) typing: Arc<Typing>,
    pub(crate) sync_cursor: Arc<SyncCursor>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Settings,
    pub(crate) voice: Arc<VoiceCalls>,
}

/// The channels with open queues.
pub(crate) struct ChannelRegistry {
    pub(crate) context: ChannelContext,
    pub(crate) rate_limiter: RateLimiter,
    pub(crate) thumbs: ThumbTurns,
    readers: Semaphore,
    /// True if an event did not fit into a queue.
    behind: AtomicBool,
    channels: Mutex<HashMap<ChannelId, mpsc::Sender<ChannelEvent>>>,
}

impl ChannelRegistry {
    pub(crate) fn new(context: ChannelContext) -> Self {
        let rate_limiter = RateLimiter::new(context.settings.limits);
        Self {
            context,
            rate_limiter,
            thumbs: ThumbTurns::default(),
            readers: Semaphore::new(READERS),
            behind: AtomicBool::new(false),
            channels: Mutex::default(),
        }
    }

    /// Returns true if an event was dropped since the last call.
    pub(crate) fn is_behind(&self) -> bool {
        self.behind.swap(false, Ordering::AcqRel)
    }

    /// Adds an event to its channel's queue.
    pub(crate) fn dispatch(self: &Arc<Self>, channel: ChannelId, what: ChannelEvent) {
        let mut channels = self.lock();
        let what = match channels.get(&channel) {
            None => what,
            Some(queue) => match queue.try_send(what) {
                Ok(()) => return,
                Err(mpsc::error::TrySendError::Closed(what)) => what,
                Err(mpsc::error::TrySendError::Full(what)) => {
                    tracing::warn!(%channel, "too many events at once; reading the rest from the history later");
                    if let ChannelEvent::Said(message) = what {
                        // The sync cursor stays before this message until it was read.
                        self.context.sync_cursor.taken_up(channel, message.id);
                    }
                    self.behind.store(true, Ordering::Release);
                    return;
                }
            },
        };
        let (queue, waiting) = mpsc::channel(MAX_WAITING);
        // A new queue has space.
        queue.try_send(what).ok();
        channels.insert(channel, queue);
        tokio::spawn(self.clone().follow(channel, waiting));
    }

    async fn follow(self: Arc<Self>, channel: ChannelId, mut waiting: mpsc::Receiver<ChannelEvent>) {
        loop {
            let what = match tokio::time::timeout(QUIET, waiting.recv()).await {
                Ok(Some(what)) => what,
                Ok(None) => return,
                Err(_) => {
                    // No event can arrive while the lock is held.
                    let mut channels = self.lock();
                    waiting.close();
                    if waiting.is_empty() {
                        channels.remove(&channel);
                        return;
                    }
                    continue;
                }
            };
            match what {
                ChannelEvent::Said(message) => {
                    self.meet(&message).await;
                    self.said(*message).await;
                }
                ChannelEvent::Edited(event) => self.edited(*event).await,
                ChannelEvent::Deleted(messages) => self.deleted(channel, messages),
                ChannelEvent::Missed => self.catch_up(channel).await,
            }
        }
    }

    /// Records a channel when the first message arrives. A DM must be on disk before it is answered, because after a
    /// start Discord does not list DMs.
    async fn meet(&self, message: &Message) {
        let (channel, dm) = (message.channel_id, message.guild_id.is_none());
        if dm && is_said(message) {
            self.context.directory.directs.note(channel, message.author.id);
        }
        if self.context.sync_cursor.begin(channel, message.id.get().saturating_sub(1), message.guild_id) && dm {
            self.context.sync_cursor.clone().keep_soon().await;
        }
    }

    /// Submits a message. It takes its place in the chat's queue at once, so that messages stay in order; the rest runs
    /// in the background.
    async fn said(self: &Arc<Self>, message: Message) {
        let Some(mut pending) = self.take_up(message).await else { return };
        if pending.as_mut().now_or_never().is_none() {
            tokio::spawn(pending);
        }
    }

    /// Returns the work for a message; `None` if it is not to be received.
    async fn take_up(self: &Arc<Self>, message: Message) -> Option<BoxFuture<'static, ()>> {
        let (channel, said) = (message.channel_id, message.id);
        self.context.sync_cursor.taken_up(channel, said);
        if !is_said(&message) || !self.within_limits(&message) {
            self.context.sync_cursor.handled(channel, said);
            return None;
        }
        let attached = read(&self.context.files, &message.attachments).await;
        let inbound = match inbound(&message, &attached, &self.context.directory, &self.context.shown) {
            Ok(inbound) => inbound,
            Err(error) => {
                tracing::error!(message = %said, %error, "cannot receive a message");
                self.context.sync_cursor.handled(channel, said);
                return None;
            }
        };
        let (registry, brought) = (self.clone(), MessageChunks { version: version(&message), pieces: attached.pieces });
        Some(Box::pin(async move {
            let for_bot = is_for_bot(&message, &registry.context.directory);
            let sign = for_bot.then(|| registry.context.typing.start(channel, registry.context.shown.clone()));
            registry.submit_inbound(channel, said, inbound, brought).await;
            drop(sign);
        }))
    }

    /// Returns true if a message is within the limits per minute of its person and its server. A person over the limit
    /// gets one notice.
    fn within_limits(self: &Arc<Self>, message: &Message) -> bool {
        match self.rate_limiter.judge(message.author.id, message.guild_id) {
            RateDecision::Fine => true,
            RateDecision::TooMuch => false,
            RateDecision::TellThem => {
                let (registry, channel) = (self.clone(), message.channel_id);
                let reference = MessageReference::from((channel, message.id)).fail_if_not_exists(false);
                tokio::spawn(async move {
                    let notice =
                        CreateMessage::new().content(SLOWER).reference_message(reference).allowed_mentions(nobody());
                    registry.context.shown.pace.turn().await;
                    if let Err(error) = registry.context.http.send_message(channel, Vec::new(), &notice).await {
                        tracing::debug!(error = in_words(&error), "cannot send the notice about the rate limit");
                    }
                });
                false
            }
        }
    }

    async fn submit_inbound(
        &self,
        channel: ChannelId,
        said: MessageId,
        inbound: azera_types::Inbound,
        brought: MessageChunks,
    ) {
        let mut wait = FIRST_WAIT;
        for attempt in 1..=ATTEMPTS {
            match self.answered(inbound.clone()).await {
                Ok(outcome) => {
                    if let Outcome::Skipped(reason) = outcome {
                        tracing::debug!(message = %said, why = reason.why(), "not answered");
                    }
                    self.hand_in(&inbound.id, brought).await;
                    break;
                }
                Err(error) if error.is_temporary() && attempt < ATTEMPTS => {
                    tracing::warn!(message = %said, %error, "the engine cannot take a message now; trying again later");
                    tokio::time::sleep(wait).await;
                    wait *= 2;
                }
                // It was not received, so the next start reads it from the history.
                Err(error) if is_for_next_start(&error) => return,
                Err(error) => {
                    tracing::warn!(message = %said, %error, "cannot answer a message");
                    // It may be stored nevertheless.
                    self.hand_in(&inbound.id, brought).await;
                    break;
                }
            }
        }
        self.context.sync_cursor.handled(channel, said);
    }

    /// Submits a message and waits for its reply.
    async fn answered(&self, inbound: azera_types::Inbound) -> Result<Outcome, HostError> {
        let event = InboundEvent::Message(inbound);
        self.context.host.submit(&self.context.platform, event).await?.outcome().await
    }

    /// Stores the chunks of long files with their message.
    async fn hand_in(&self, message: &azera_types::MessageId, MessageChunks { version, pieces }: MessageChunks) {
        if pieces.is_empty() {
            return;
        }
        let event = InboundEvent::Chunks { message: message.clone(), version, pieces };
        if let Err(error) = self.context.host.submit(&self.context.platform, event).await {
            tracing::warn!(%message, %error, "cannot store the rest of a long file");
        }
    }

    /// Handles an edit. Discord also reports added previews, which change no text.
    async fn edited(self: &Arc<Self>, event: MessageUpdateEvent) {
        let Some((content, edited)) = event.content.zip(event.edited_timestamp) else { return };
        let by_person = event.author.as_ref().is_some_and(|author| !author.bot) && event.webhook_id.flatten().is_none();
        let Ok(id) = id::message(event.id) else { return };
        if !by_person || !self.rate_limiter.is_new_edit(event.id, at(edited).as_millisecond()) {
            return;
        }
        let mentioned = event.mentions.unwrap_or_default();
        let Attached { notes, pieces, parts } = read(&self.context.files, &event.attachments.unwrap_or_default()).await;
        let text = with_attached(readable(&content, &mentioned, event.guild_id, &self.context.directory), &notes);
        if text.is_empty() {
            // Discord does not show messages that are not addressed to the bot.
            return;
        }
        let (registry, channel, edited_message) = (self.clone(), event.channel_id, event.id);
        let mut pending = Box::pin(async move {
            let sign = registry.context.typing.start(channel, registry.context.shown.clone());
            registry.context.shown.edits().insert(edited_message);
            let edit = Edit { text: Text::new(text), parts, at: at(edited) };
            let event = InboundEvent::Edit { message: id.clone(), edit };
            let answered = match registry.context.host.submit(&registry.context.platform, event).await {
                Ok(receipt) => receipt.outcome().await,
                Err(error) => Err(error),
            };
            registry.context.shown.edits().remove(&edited_message);
            if let Err(error) = answered {
                tracing::warn!(message = %id, %error, "cannot answer an edited message again");
            }
            registry.hand_in(&id, MessageChunks { version: Some(at(edited)), pieces }).await;
            drop(sign);
        });
        if pending.as_mut().now_or_never().is_none() {
            tokio::spawn(pending);
        }
    }

    /// Forgets deleted messages of people and of the bot.
    fn deleted(self: &Arc<Self>, channel: ChannelId, messages: Vec<MessageId>) {
        let registry = self.clone();
        tokio::spawn(async move {
            for message in messages {
                let own = registry.context.shown.forget_message(message).map(|reply| reply.id());
                let Ok(id) = own.unwrap_or_else(|| id::message(message)) else { continue };
                let event = InboundEvent::Deletion { message: id.clone() };
                if let Err(error) = registry.context.host.submit(&registry.context.platform, event).await {
                    tracing::error!(message = %id, %channel, %error, "cannot forget a deleted message");
                }
            }
        });
    }

    /// Reads the messages of a channel since the sync cursor.
    async fn catch_up(self: &Arc<Self>, channel: ChannelId) {
        let Some(mark) = self.context.sync_cursor.mark(channel) else { return };
        let needed = Permissions::VIEW_CHANNEL | Permissions::READ_MESSAGE_HISTORY;
        let guild = self.context.directory.locate(channel).map(|at| at.guild);
        if guild.is_some() && !self.context.directory.own_permissions(channel).contains(needed) {
            return;
        }
        let Ok(_reader) = self.readers.acquire().await else { return };
        let window = i64::from(self.context.settings.catch_up_hours) * 3_600_000;
        let oldest = id::first_of(self.context.clock.now().as_millisecond() - window);
        let mut after = mark.max(oldest);
        for page in 1..=CATCH_UP_PAGES {
            let Some(messages) = self.page(channel, after).await else { return };
            let whole = messages.len() == usize::from(PAGE);
            let Some(last) = messages.last().map(|message| message.id) else { return };
            tracing::info!(%channel, messages = messages.len(), "reading missed messages");
            for mut message in messages {
                message.guild_id = guild;
                // One after the other; new messages wait.
                if !self.take_in(message).await {
                    return;
                }
            }
            after = last.get();
            if !whole {
                return;
            }
            if page == CATCH_UP_PAGES {
                tracing::warn!(%channel, "too many missed messages; the rest stays unanswered");
            }
        }
    }

    /// Submits a message of the history and waits until it is stored; the reply follows in the background. Returns
    /// false if that is not possible now.
    async fn take_in(&self, message: Message) -> bool {
        let (channel, said) = (message.channel_id, message.id);
        self.context.sync_cursor.taken_up(channel, said);
        let (inbound, pieces) = if is_said(&message) {
            let attached = read(&self.context.files, &message.attachments).await;
            let inbound = inbound(&message, &attached, &self.context.directory, &self.context.shown);
            (Some(inbound), attached.pieces)
        } else {
            (None, Vec::new())
        };
        let mut wait = FIRST_WAIT;
        for attempt in 1..=ATTEMPTS {
            let Some(Ok(inbound)) = &inbound else { break };
            let event = InboundEvent::Message(inbound.clone());
            match self.context.host.submit(&self.context.platform, event).await {
                Ok(_) => {
                    self.hand_in(&inbound.id, MessageChunks { version: version(&message), pieces }).await;
                    break;
                }
                Err(error) if error.is_temporary() && attempt < ATTEMPTS => {
                    tracing::warn!(message = %said, %error, "the engine cannot take a message now; trying again later");
                    tokio::time::sleep(wait).await;
                    wait *= 2;
                }
                Err(error) if is_for_next_start(&error) => return false,
                Err(error) => {
                    tracing::warn!(message = %said, %error, "cannot receive a message");
                    break;
                }
            }
        }
        self.context.sync_cursor.handled(channel, said);
        true
    }

    /// Returns a page of history, oldest first.
    async fn page(&self, channel: ChannelId, after: u64) -> Option<Vec<Message>> {
        let mut wait = FIRST_WAIT;
        for attempt in 1..=ATTEMPTS {
            self.context.shown.pace.turn().await;
            let after = MessagePagination::After(MessageId::new(after.max(1)));
            match self.context.http.get_messages(channel, Some(after), Some(PAGE)).await {
                Ok(mut messages) => {
                    messages.sort_by_key(|message| message.id);
                    return Some(messages);
                }
                Err(error) if failure(&error) == Failure::Unknown && attempt < ATTEMPTS => {
                    tracing::warn!(%channel, error = in_words(&error), "cannot read the history; trying again");
                    tokio::time::sleep(wait).await;
                    wait *= 2;
                }
                Err(error) => {
                    tracing::warn!(%channel, error = in_words(&error), "cannot read the history");
                    return None;
                }
            }
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ChannelId, mpsc::Sender<ChannelEvent>>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if the engine did not receive a message and the next start is to read it from the history. A message
/// whose work is interrupted each time would be read at every start, so it is given up instead.
fn is_for_next_start(error: &HostError) -> bool {
    matches!(error, HostError::Busy | HostError::Full | HostError::Unavailable(_) | HostError::Stopping)
}
