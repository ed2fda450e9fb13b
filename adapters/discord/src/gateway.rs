//! The gateway: Discord's events in order.
//!
//! serenity runs each event in a task of its own, and a thread pool runs tasks in any order. So the gateway has a
//! thread with its own runtime, in which they run in the order they were created. Each task only puts its event into a
//! queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use azera_adapter::{ConnectionLog, Trouble};
use azera_types::Clock;
use serenity::all::{
    Cache, ChannelId, ClientBuilder, CommandInteraction, ComponentInteraction, Context, EventHandler, GatewayIntents,
    Guild, GuildChannel, GuildId, Http, Interaction, Message, MessageId, MessageUpdateEvent, ModalInteraction,
    Reaction, Ready, ResumedEvent, UnavailableGuild, VoiceServerUpdateEvent, VoiceState,
};
use serenity::gateway::{ChunkGuildFilter, ConnectionStage, GatewayError, ShardManager, ShardStageUpdateEvent};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout_at;

use crate::error::{Error, Failure, failure, in_words};

/// Time limit for Discord to describe the bot's servers at a start.
const DESCRIBED: Duration = Duration::from_secs(20);

/// Most queued events. Later ones are read from the history of the channels.
const MAX_EVENTS: usize = 10_000;

/// A new session.
pub(crate) struct Session {
    /// All servers of the session, including those with an outage.
    pub(crate) servers: Vec<GuildId>,
    /// Number of the shard, from 0.
    pub(crate) shard: u32,
    shards: u32,
}

impl Session {
    /// Returns true if this session's shard covers the server.
    pub(crate) fn covers(&self, server: GuildId) -> bool {
        serenity::utils::shard_id(server, self.shards) == self.shard
    }
}

/// An event on Discord.
pub(crate) enum Event {
    /// A new session: earlier events are not repeated.
    Ready(Session),
    /// A shard lost its connection.
    Lost(u32),
    /// All events of a shard since the connection broke were repeated.
    Resumed(u32),
    /// A guild's current state: at the beginning of a session, after an outage, or because the bot joined.
    Guild(Box<Guild>),
    /// A guild has an outage.
    GuildAway(GuildId),
    /// The bot was removed from a guild.
    GuildGone(GuildId),
    /// A channel or thread was created or changed.
    Channel(Box<GuildChannel>),
    Said(Box<Message>),
    Edited(Box<MessageUpdateEvent>),
    Deleted(ChannelId, Vec<MessageId>),
    /// Somebody ran a command.
    Command(Box<CommandInteraction>),
    /// Somebody is typing a command.
    Typing(Box<CommandInteraction>),
    /// Somebody pressed a button.
    Pressed(Box<ComponentInteraction>),
    /// Somebody submitted a form.
    Filled(Box<ModalInteraction>),
    /// Somebody reacted to a message.
    Reacted(Box<Reaction>),
    /// Somebody took a reaction back.
    TookBack(Box<Reaction>),
    /// A moderator removed all reactions from a message.
    Cleared(ChannelId, MessageId),
    /// Somebody joined, left or changed voice channels.
    Voice(Box<VoiceState>),
    /// The voice server of a guild changed.
    VoiceServer(Box<VoiceServerUpdateEvent>),
}

/// The connection to the gateway; dropping it ends it.
pub(crate) struct Gateway {
    pub(crate) cache: Arc<Cache>,
    shards: Arc<ShardManager>,
    pub(crate) events: mpsc::Receiver<Event>,
    pub(crate) missed: Arc<AtomicBool>,
    /// Receives the reason when the connection ends for good.
    pub(crate) ended: oneshot::Receiver<Error>,
    runtime: Option<std::thread::JoinHandle<()>>,
}

/// Where the gateway notes whether it is connected.
pub(crate) struct GatewayWatch {
    pub(crate) log: Arc<ConnectionLog>,
    pub(crate) clock: Arc<dyn Clock>,
}

struct Handler {
    watch: GatewayWatch,
    events: mpsc::Sender<Event>,
    missed: Arc<AtomicBool>,
    members: bool,
}

impl Handler {
    fn pass(&self, event: Event) {
        match self.events.try_send(event) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(_)) => {
                if !self.missed.swap(true, Ordering::AcqRel) {
                    tracing::warn!("too many events at once; reading missed messages from the history later");
                }
            }
            // Azera is stopping.
            Err(mpsc::error::TrySendError::Closed(_)) => {}
        }
    }
}

#[serenity::async_trait]
impl EventHandler for Handler {
    async fn ready(&self, _: Context, ready: Ready) {
        let servers = ready.guilds.iter().map(|guild| guild.id).collect();
        let (shard, shards) = ready.shard.map_or((0, 1), |shard| (shard.id.0, shard.total.max(1)));
        self.pass(Event::Ready(Session { servers, shard, shards }));
    }

    async fn shard_stage_update(&self, _: Context, event: ShardStageUpdateEvent) {
        let now = self.watch.clock.now();
        match (event.old, event.new) {
            (_, ConnectionStage::Connected) => self.watch.log.up(now),
            (ConnectionStage::Connected, _) => {
                self.watch.log.down(Trouble::Closed, now);
                self.pass(Event::Lost(event.shard_id.0));
            }
            _ => {}
        }
    }

    async fn resume(&self, context: Context, _: ResumedEvent) {
        self.pass(Event::Resumed(context.shard_id.0));
    }

    async fn guild_create(&self, context: Context, guild: Guild, _: Option<bool>) {
        // Permissions need the members. Large guilds send them only on request.
        if self.members && (guild.members.len() as u64) < guild.member_count {
            context.shard.chunk_guild(guild.id, None, false, ChunkGuildFilter::None, None);
        }
        self.pass(Event::Guild(Box::new(guild)));
    }

    async fn guild_delete(&self, _: Context, guild: UnavailableGuild, _: Option<Guild>) {
        // An outage makes a guild unavailable for a while; only a guild that is gone for good comes without that flag.
        let is_away = guild.unavailable;
        self.pass(if is_away { Event::GuildAway(guild.id) } else { Event::GuildGone(guild.id) });
    }

    async fn channel_create(&self, _: Context, channel: GuildChannel) {
        self.pass(Event::Channel(Box::new(channel)));
    }

    async fn thread_create(&self, _: Context, thread: GuildChannel) {
        self.pass(Event::Channel(Box::new(thread)));
    }

    async fn message(&self, _: Context, message: Message) {
        self.pass(Event::Said(Box::new(message)));
    }

    async fn message_update(&self, _: Context, _: Option<Message>, _: Option<Message>, event: MessageUpdateEvent) {
        self.pass(Event::Edited(Box::new(event)));
    }

    async fn message_delete(&self, _: Context, channel: ChannelId, message: MessageId, _: Option<GuildId>) {
        self.pass(Event::Deleted(channel, vec![message]));
    }

    async fn message_delete_bulk(&self, _: Context, channel: ChannelId, messages: Vec<MessageId>, _: Option<GuildId>) {
        self.pass(Event::Deleted(channel, messages));
    }

    async fn reaction_add(&self, _: Context, reaction: Reaction) {
        self.pass(Event::Reacted(Box::new(reaction)));
    }

    async fn reaction_remove(&self, _: Context, reaction: Reaction) {
        self.pass(Event::TookBack(Box::new(reaction)));
    }

    async fn reaction_remove_all(&self, _: Context, channel: ChannelId, message: MessageId) {
        self.pass(Event::Cleared(channel, message));
    }

    async fn voice_state_update(&self, _: Context, _: Option<VoiceState>, state: VoiceState) {
        self.pass(Event::Voice(Box::new(state)));
    }

    async fn voice_server_update(&self, _: Context, server: VoiceServerUpdateEvent) {
        self.pass(Event::VoiceServer(Box::new(server)));
    }

    async fn interaction_create(&self, _: Context, interaction: Interaction) {
        match interaction {
            Interaction::Command(command) => self.pass(Event::Command(Box::new(command))),
            Interaction::Autocomplete(typing) => self.pass(Event::Typing(Box::new(typing))),
            Interaction::Component(button) => self.pass(Event::Pressed(Box::new(button))),
            Interaction::Modal(form) => self.pass(Event::Filled(Box::new(form))),
            _ => {}
        }
    }
}

impl Gateway {
    /// Opens the connection. It reconnects and resumes on its own until it is stopped or refused.
    pub(crate) async fn open(http: Http, intents: GatewayIntents, watch: GatewayWatch) -> Result<Self, Error> {
        let (events, waiting) = mpsc::channel(MAX_EVENTS);
        let missed = Arc::new(AtomicBool::new(false));
        let members = intents.contains(GatewayIntents::GUILD_MEMBERS);
        let handler = Handler { watch, events, missed: missed.clone(), members };
        let (opened, parts) = oneshot::channel();
        let (ending, ended) = oneshot::channel();
        let runtime = std::thread::Builder::new()
            .name("discord".to_owned())
            .spawn(move || {
                let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                    Ok(runtime) => runtime,
                    Err(error) => {
                        ending.send(Error::Refused(format!("no runtime: {error}"))).ok();
                        return;
                    }
                };
                let end = runtime.block_on(async move {
                    let mut client = ClientBuilder::new_with_http(http, intents)
                        .event_handler(handler)
                        .await
                        .map_err(|error| why(&error))?;
                    opened.send((client.cache.clone(), client.shard_manager.clone())).ok();
                    client.start_autosharded().await.map_err(|error| why(&error))
                });
                ending.send(end.err().unwrap_or_else(|| Error::Refused("it was closed".to_owned()))).ok();
            })
            .map_err(|error| Error::Settings(format!("no thread: {error}")))?;
        match parts.await {
            Ok((cache, shards)) => Ok(Self { cache, shards, events: waiting, missed, ended, runtime: Some(runtime) }),
            Err(_) => Err(ended.await.unwrap_or_else(|_| Error::Refused("its thread ended".to_owned()))),
        }
    }

    /// Waits until the first session is described; returns the events until then.
    pub(crate) async fn described(&mut self) -> Result<Vec<Event>, Error> {
        let until = tokio::time::Instant::now() + DESCRIBED;
        let mut early = Vec::new();
        let mut open: Option<Vec<GuildId>> = None;
        while open.as_ref().is_none_or(|open| !open.is_empty()) {
            let event = tokio::select! {
                event = timeout_at(until, self.events.recv()) => event,
                why = &mut self.ended => {
                    return Err(why.unwrap_or_else(|_| Error::Refused("its thread ended".to_owned())));
                }
            };
            let event = match event {
                Ok(Some(event)) => event,
                Ok(None) => return Err(Error::Refused("its thread ended".to_owned())),
                Err(_) if open.is_some() => {
                    tracing::warn!("some servers have an outage; continuing with the others");
                    break;
                }
                Err(_) => return Err(Error::Unreachable("no session was opened".to_owned())),
            };
            match &event {
                Event::Ready(session) => open = Some(session.servers.clone()),
                Event::Guild(guild) => {
                    if let Some(open) = &mut open {
                        open.retain(|id| *id != guild.id);
                    }
                }
                _ => {}
            }
            early.push(event);
        }
        Ok(early)
    }

    /// Returns the handle that ends the connection.
    pub(crate) fn shards(&self) -> Arc<ShardManager> {
        self.shards.clone()
    }

    /// Waits until the connection's thread has ended.
    pub(crate) async fn closed(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            tokio::task::spawn_blocking(move || runtime.join().ok()).await.ok();
        }
    }
}

/// Converts the reason why a client ended.
fn why(error: &serenity::Error) -> Error {
    match error {
        serenity::Error::Gateway(GatewayError::InvalidAuthentication) => Error::Token,
        serenity::Error::Gateway(GatewayError::DisallowedGatewayIntents | GatewayError::InvalidGatewayIntents) => {
            Error::Refused(
                "an intent is not granted: switch on Message Content and Server Members on the Bot page of the developer \
                 portal, and start again"
                    .to_owned(),
            )
        }
        other => match failure(other) {
            Failure::Token => Error::Token,
            Failure::Unknown => Error::Unreachable(in_words(other)),
            Failure::Gone | Failure::Refused => Error::Refused(in_words(other)),
        },
    }
}
