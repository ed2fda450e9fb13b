//! What happens in each channel, in its order: live as the gateway tells it, and from the history what was missed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use azera_adapter::{Host, HostError, Outcome};
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
use crate::typing::Typing;
use crate::{Settings, id};

/// Events of one channel that may wait. What comes beyond that is read from the history.
const MAX_WAITING: usize = 1_000;

/// Time after which a channel in which nothing happens is put away.
const QUIET: Duration = Duration::from_secs(600);

/// Channels whose history is read at a time.
const READERS: usize = 4;

/// Pages of history read in one channel after a pause; what is older than that is left unanswered.
const CATCH_UP_PAGES: usize = 5;

/// How often a message is offered that the core has no room for, and the wait before the second time, which doubles.
const ATTEMPTS: u32 = 8;
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// Something that happened in a channel.
pub(crate) enum ChannelEvent {
    Said(Box<Message>),
    Edited(Box<MessageUpdateEvent>),
    Deleted(Vec<MessageId>),
    /// Something may have been missed: the history is read.
    Missed,
}

/// The rest of long texts that a message brought, and with which edit of it.
struct Brought {
    version: Option<Timestamp>,
    pieces: Vec<Text>,
}

fn version(message: &Message) -> Option<Timestamp> {
    message.edited_timestamp.map(at)
}

/// What every channel's work needs.
pub(crate) struct ChannelContext {
    pub(crate) platform: PlatformId,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) http: Arc<Http>,
    /// For what people attach.
    pub(crate) files: reqwest::Client,
    pub(crate) directory: Arc<Directory>,
    pub(crate) shown: Arc<Replies>,
    pub(crate) typing: Arc<Typing>,
    pub(crate) sync_cursor: Arc<SyncCursor>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Settings,
}

/// The channels in which something happens.
pub(crate) struct ChannelRegistry {
    pub(crate) context: ChannelContext,
    pub(crate) rate_limiter: RateLimiter,
    readers: Semaphore,
    /// Something did not fit into a queue.
    behind: AtomicBool,
    channels: Mutex<HashMap<ChannelId, mpsc::Sender<ChannelEvent>>>,
}

impl ChannelRegistry {
    pub(crate) fn new(context: ChannelContext) -> Self {
        let rate_limiter = RateLimiter::new(context.settings.limits);
        Self {
            context,
            rate_limiter,
            readers: Semaphore::new(READERS),
            behind: AtomicBool::new(false),
            channels: Mutex::default(),
        }
    }

    /// Whether something was left out since this was last asked.
    pub(crate) fn is_behind(&self) -> bool {
        self.behind.swap(false, Ordering::AcqRel)
    }

    /// Puts something in its channel's queue.
    pub(crate) fn dispatch(self: &Arc<Self>, channel: ChannelId, what: ChannelEvent) {
        let mut channels = self.lock();
        let what = match channels.get(&channel) {
            None => what,
            Some(queue) => match queue.try_send(what) {
                Ok(()) => return,
                Err(mpsc::error::TrySendError::Closed(what)) => what,
                Err(mpsc::error::TrySendError::Full(what)) => {
                    tracing::warn!(%channel, "too much happens at once; the rest is read from the history");
                    if let ChannelEvent::Said(message) = what {
                        // The mark stays before it until it was read.
                        self.context.sync_cursor.taken_up(channel, message.id);
                    }
                    self.behind.store(true, Ordering::Release);
                    return;
                }
            },
        };
        let (queue, waiting) = mpsc::channel(MAX_WAITING);
        // A new queue has room.
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
                    // Nothing can come in while the list is held.
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

    /// Notes a channel in which something is said for the first time. A DM must be on disk before it is answered: after a
    /// start nobody tells that it is there.
    async fn meet(&self, message: &Message) {
        let (channel, dm) = (message.channel_id, message.guild_id.is_none());
        if dm && is_said(message) {
            self.context.directory.directs.note(channel, message.author.id);
        }
        if self.context.sync_cursor.begin(channel, message.id.get().saturating_sub(1), message.guild_id) && dm {
            self.context.sync_cursor.clone().keep_soon().await;
        }
    }

    /// Hands a message in. It takes its place in the chat's queue at once, so that messages stay in order; the rest goes on
    /// by itself.
    async fn said(self: &Arc<Self>, message: Message) {
        let Some(mut pending) = self.take_up(message).await else { return };
        if pending.as_mut().now_or_never().is_none() {
            tokio::spawn(pending);
        }
    }

    /// What is to be done about a message; nothing if it is none to be taken in.
    async fn take_up(self: &Arc<Self>, message: Message) -> Option<BoxFuture<'static, ()>> {
        let (channel, said) = (message.channel_id, message.id);
        self.context.sync_cursor.taken_up(channel, said);
        if !is_said(&message) || !self.within_limits(&message) {
            self.context.sync_cursor.handled(channel, said);
            return None;
        }
        let Attached { notes, pieces } = read(&self.context.files, &message.attachments).await;
        let inbound = match inbound(&message, &notes, &self.context.directory, &self.context.shown) {
            Ok(inbound) => inbound,
            Err(error) => {
                tracing::error!(message = %said, %error, "a message cannot be taken in");
                self.context.sync_cursor.handled(channel, said);
                return None;
            }
        };
        let (registry, brought) = (self.clone(), Brought { version: version(&message), pieces });
        Some(Box::pin(async move {
            let for_bot = is_for_bot(&message, &registry.context.directory);
            let sign = for_bot.then(|| registry.context.typing.start(channel, registry.context.shown.clone()));
            registry.submit_inbound(channel, said, inbound, brought).await;
            drop(sign);
        }))
    }

    /// Whether a message is within what one person and one server may say in a minute. Who says more is told so once.
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
                        tracing::debug!(error = in_words(&error), "nobody was told of the limit");
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
        brought: Brought,
    ) {
        let mut wait = FIRST_WAIT;
        for attempt in 1..=ATTEMPTS {
            match self.context.host.message(&self.context.platform, inbound.clone()).await {
                Ok(outcome) => {
                    if let Outcome::Skipped(reason) = outcome {
                        tracing::debug!(message = %said, why = reason.why(), "left unanswered");
                    }
                    self.hand_in(&inbound.id, brought).await;
                    break;
                }
                Err(error @ (HostError::Busy | HostError::Full)) if attempt < ATTEMPTS => {
                    tracing::warn!(message = %said, %error, "offered again later");
                    tokio::time::sleep(wait).await;
                    wait *= 2;
                }
                // Not taken in: it is read from the history after the next start.
                Err(HostError::Busy | HostError::Full | HostError::Stopping) => return,
                Err(error) => {
                    tracing::warn!(message = %said, %error, "a message was not answered");
                    // It may be in the record all the same.
                    self.hand_in(&inbound.id, brought).await;
                    break;
                }
            }
        }
        self.context.sync_cursor.handled(channel, said);
    }

    /// Has the rest of long texts remembered with the message that they came with.
    async fn hand_in(&self, message: &azera_types::MessageId, Brought { version, pieces }: Brought) {
        if pieces.is_empty() {
            return;
        }
        if let Err(error) = self.context.host.attached(&self.context.platform, message, version, pieces).await {
            tracing::warn!(%message, %error, "the rest of a long file is not remembered");
        }
    }

    /// A message was changed. Discord also tells when a preview was added, which changes nothing that was said.
    async fn edited(self: &Arc<Self>, event: MessageUpdateEvent) {
        let Some((content, edited)) = event.content.zip(event.edited_timestamp) else { return };
        let by_person = event.author.as_ref().is_some_and(|author| !author.bot) && event.webhook_id.flatten().is_none();
        let Ok(id) = id::message(event.id) else { return };
        if !by_person || !self.rate_limiter.is_new_edit(event.id, at(edited).as_millisecond()) {
            return;
        }
        let mentioned = event.mentions.unwrap_or_default();
        let Attached { notes, pieces } = read(&self.context.files, &event.attachments.unwrap_or_default()).await;
        let text = with_attached(readable(&content, &mentioned, event.guild_id, &self.context.directory), &notes);
        if text.is_empty() {
            // Discord does not show what is said to others.
            return;
        }
        let (registry, channel) = (self.clone(), event.channel_id);
        let mut pending = Box::pin(async move {
            let sign = registry.context.typing.start(channel, registry.context.shown.clone());
            if let Err(error) =
                registry.context.host.edited(&registry.context.platform, &id, Text::new(text), at(edited)).await
            {
                tracing::warn!(message = %id, %error, "an edited message was not answered anew");
            }
            registry.hand_in(&id, Brought { version: Some(at(edited)), pieces }).await;
            drop(sign);
        });
        if pending.as_mut().now_or_never().is_none() {
            tokio::spawn(pending);
        }
    }

    /// Messages were deleted: what people said is forgotten, and so is what the bot said there.
    fn deleted(self: &Arc<Self>, channel: ChannelId, messages: Vec<MessageId>) {
        let registry = self.clone();
        tokio::spawn(async move {
            for message in messages {
                let own = registry.context.shown.forget_message(message).map(|reply| reply.id());
                let Ok(id) = own.unwrap_or_else(|| id::message(message)) else { continue };
                if let Err(error) = registry.context.host.deleted(&registry.context.platform, &id).await {
                    tracing::error!(message = %id, %channel, %error, "a deleted message was not forgotten");
                }
            }
        });
    }

    /// Reads what was said in a channel since it was last looked at.
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
            tracing::info!(%channel, messages = messages.len(), "reading what was missed");
            for mut message in messages {
                message.guild_id = guild;
                // One after the other: what is said meanwhile waits behind it.
                if !self.take_in(message).await {
                    return;
                }
            }
            after = last.get();
            if !whole {
                return;
            }
            if page == CATCH_UP_PAGES {
                tracing::warn!(%channel, "more was missed here than is read; the rest stays unanswered");
            }
        }
    }

    /// Hands in a message of the history, and waits until it is in the record; it is answered by itself. False if that
    /// cannot be done now.
    async fn take_in(&self, message: Message) -> bool {
        let (channel, said) = (message.channel_id, message.id);
        self.context.sync_cursor.taken_up(channel, said);
        let (inbound, pieces) = if is_said(&message) {
            let Attached { notes, pieces } = read(&self.context.files, &message.attachments).await;
            (Some(inbound(&message, &notes, &self.context.directory, &self.context.shown)), pieces)
        } else {
            (None, Vec::new())
        };
        let mut wait = FIRST_WAIT;
        for attempt in 1..=ATTEMPTS {
            let Some(Ok(inbound)) = &inbound else { break };
            match self.context.host.take_in(&self.context.platform, inbound.clone()).await {
                Ok(_) => {
                    self.hand_in(&inbound.id, Brought { version: version(&message), pieces }).await;
                    break;
                }
                Err(error @ (HostError::Busy | HostError::Full)) if attempt < ATTEMPTS => {
                    tracing::warn!(message = %said, %error, "offered again later");
                    tokio::time::sleep(wait).await;
                    wait *= 2;
                }
                Err(HostError::Busy | HostError::Full | HostError::Stopping) => return false,
                Err(error) => {
                    tracing::warn!(message = %said, %error, "a message was not taken in");
                    break;
                }
            }
        }
        self.context.sync_cursor.handled(channel, said);
        true
    }

    /// A page of history, the oldest first.
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
                    tracing::warn!(%channel, error = in_words(&error), "history could not be read, trying again");
                    tokio::time::sleep(wait).await;
                    wait *= 2;
                }
                Err(error) => {
                    tracing::warn!(%channel, error = in_words(&error), "history could not be read");
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
