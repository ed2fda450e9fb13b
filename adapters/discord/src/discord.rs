use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use azera_adapter::{
    Access, Avatars, Command, ConnectionLog, Host, MessageAction, Outbound, Platform, PlatformError, Post, Streaming,
    Trouble, VoiceMessages,
};
use azera_types::{ChatId, Clock, MessageId, PersonId, Place, PlatformId, ReadableScopes, Timestamp};
use serenity::all::{
    ActivityData, ApplicationId, ChannelId, ChannelType, CommandType, Guild, GuildChannel, Http, UserId,
};
use serenity::gateway::ShardManager;
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::application::{fetch, intents};
use crate::autocomplete;
use crate::channels::{ChannelContext, ChannelEvent, ChannelRegistry};
use crate::commands;
use crate::directory::Directory;
use crate::dm_channels::DmChannels;
use crate::error::Error;
use crate::gateway::{Event, Gateway, GatewayWatch};
use crate::greeting;
use crate::id::{self, PLATFORM, Target};
use crate::menus;
use crate::presence::Presence;
use crate::reactions;
use crate::replies::{Replies, ReplyPart};
use crate::settings::Settings;
use crate::stream::Streams;
use crate::sync_cursor::SyncCursor;
use crate::typing::Typing;
use crate::voice::{VoiceCalls, VoiceEvent};
use crate::webhooks::{Speaker, Webhooks};

/// Wait before the second attempt to connect at a start; it doubles up to the longest.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Time between two writes of the sync cursor.
const KEEP: Duration = Duration::from_secs(5);

/// Discord as a platform.
///
/// **Exactly once.** A message's id is Discord's, so the engine recognises a message it had before. The sync cursor on
/// disk stores how far each channel was handled; after a start or a new session, later messages are read from the
/// channel's history. The messages of a reply say what they answer. Posting one uses an enforced nonce derived from the
/// reply and its part, and from the message before, if that was deleted. If an earlier process may have posted it, the
/// channel's history is searched first.
pub struct Discord {
    id: PlatformId,
    pub(crate) settings: Settings,
    pub(crate) clock: Arc<dyn Clock>,
    commands: &'static [Command],
    actions: &'static [MessageAction],
    pub(crate) sync_cursor: Arc<SyncCursor>,
    /// The newest snowflake handled before this start; newer channels were created while the bot was offline.
    handled_before: Option<u64>,
    /// Set once Discord said who the bot is.
    connected: OnceLock<Connected>,
    connection: AsyncMutex<Option<Connection>>,
    /// The source of persona pictures.
    avatars: Arc<OnceLock<Arc<dyn Avatars>>>,
    /// Since when the gateway is connected, and what was wrong last.
    pub(crate) connection_log: Arc<ConnectionLog>,
    /// Used to end [`Discord::listen`].
    pub(crate) shards: Mutex<Option<Arc<ShardManager>>>,
    pub(crate) voice: Arc<VoiceCalls>,
    #[cfg(feature = "voice")]
    channels: crate::voice::Channels,
}

/// The state of a connected bot.
pub(crate) struct Connected {
    pub(crate) http: Arc<Http>,
    /// Downloads the files of messages.
    pub(crate) files: reqwest::Client,
    pub(crate) directory: Arc<Directory>,
    pub(crate) shown: Arc<Replies>,
    typing: Arc<Typing>,
    pub(crate) streams: Streams,
    presence: Presence,
}

impl Connected {
    /// Shows a reply, or a post that was written at `at`.
    async fn show(&self, outbound: &Outbound, at: Option<Timestamp>) -> Result<Target, PlatformError> {
        let target = target(&outbound.chat, &outbound.id, at)?;
        let speaker = Speaker { persona: outbound.persona.clone(), name: outbound.persona_name.clone() };
        let (files, can_upscale) = (outbound.files.as_slice(), outbound.can_upscale);
        let part = ReplyPart { target, speaker: &speaker, files, can_upscale };
        self.shown.show(part, &outbound.text).await?;
        Ok(target)
    }
}

struct Connection {
    gateway: Gateway,
    /// Events from before the engine was attached.
    early: Vec<Event>,
}

impl Discord {
    /// Creates the platform without connecting. `folder` stores the sync cursor; `commands` become slash commands, and
    /// `actions` appear in the menus of messages.
    ///
    /// # Errors
    ///
    /// Fails if the settings or the files in the folder cannot be used.
    pub fn new(
        settings: Settings,
        folder: &Path,
        clock: Arc<dyn Clock>,
        commands: &'static [Command],
        actions: &'static [MessageAction],
    ) -> Result<Self, Error> {
        settings.http()?;
        let sync_cursor = Arc::new(SyncCursor::open(folder)?);
        let id = PlatformId::new(PLATFORM)?;
        let voice = Arc::new(VoiceCalls::new(id.clone(), folder, clock.clone()));
        Ok(Self {
            id,
            #[cfg(feature = "voice")]
            channels: crate::voice::Channels(voice.clone()),
            voice,
            settings,
            clock,
            commands,
            actions,
            handled_before: sync_cursor.newest(),
            sync_cursor,
            connected: OnceLock::new(),
            connection: AsyncMutex::new(None),
            avatars: Arc::default(),
            connection_log: Arc::default(),
            shards: Mutex::new(None),
        })
    }

    /// Sets the source of persona pictures; only the first call counts.
    pub fn set_avatars(&self, avatars: Arc<dyn Avatars>) {
        self.avatars.get_or_init(|| avatars);
    }

    pub(crate) async fn begin_now(&self) -> Result<(), Error> {
        let mut wait = FIRST_WAIT;
        loop {
            match self.connect().await {
                Err(error) if error.is_transient() => {
                    self.connection_log.down(Trouble::Unreachable, self.clock.now());
                    tracing::warn!(%error, seconds = wait.as_secs(), "cannot connect; trying again");
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
                Err(error) => {
                    self.connection_log.down(Trouble::Refused, self.clock.now());
                    return Err(error);
                }
                Ok(()) => return Ok(()),
            }
        }
    }

    async fn connect(&self) -> Result<(), Error> {
        let http = Arc::new(self.settings.http()?);
        let application = fetch(&http).await?;
        let mut gateway = Gateway::open(self.settings.http()?, intents(&application), self.watch()).await?;
        let early = match gateway.described().await {
            Ok(early) => early,
            Err(error) => {
                gateway.shards().shutdown_all().await;
                return Err(error);
            }
        };
        let id = ApplicationId::new(application.id);
        http.set_application_id(id);
        let me = UserId::new(application.user);
        let directory = Arc::new(Directory {
            cache: gateway.cache.clone(),
            http: http.clone(),
            members_known: application.members,
            operators: self.settings.operators(),
            me,
            began: self.clock.now(),
            directs: DmChannels::default(),
        });
        let webhooks = Webhooks::new(http.clone(), id, directory.clone(), self.avatars.clone());
        let shown = Arc::new(Replies::new(http.clone(), me, id, webhooks));
        let typing = Arc::new(Typing::default());
        let streams = Streams::new(shown.clone(), typing.clone());
        self.voice.connected(http.clone(), directory.clone(), gateway.shards());
        *self.shards.lock().unwrap_or_else(PoisonError::into_inner) = Some(gateway.shards());
        *self.connection.lock().await = Some(Connection { gateway, early });
        let files = self.settings.client()?;
        self.connected.get_or_init(|| Connected {
            http,
            files,
            directory,
            shown,
            typing,
            streams,
            presence: Presence::default(),
        });
        tracing::info!(bot = application.name, "connected to Discord");
        Ok(())
    }

    /// Returns where the gateway notes whether it is connected.
    fn watch(&self) -> GatewayWatch {
        GatewayWatch { log: self.connection_log.clone(), clock: self.clock.clone() }
    }

    pub(crate) fn connected(&self) -> Result<&Connected, PlatformError> {
        self.connected.get().ok_or_else(|| PlatformError::Transient("Discord is not connected yet".to_owned()))
    }

    pub(crate) async fn listen_until_closed(&self, host: Arc<dyn Host>) -> Result<(), Error> {
        let Some(Connection { mut gateway, early }) = self.connection.lock().await.take() else { return Ok(()) };
        let Some(connected) = self.connected.get() else { return Ok(()) };
        let registry = Arc::new(ChannelRegistry::new(ChannelContext {
            platform: self.id.clone(),
            host,
            http: connected.http.clone(),
            files: self.settings.client()?,
            directory: connected.directory.clone(),
            shown: connected.shown.clone(),
            typing: connected.typing.clone(),
            sync_cursor: self.sync_cursor.clone(),
            clock: self.clock.clone(),
            settings: self.settings.clone(),
            voice: self.voice.clone(),
        }));
        tokio::spawn(menus::declare(connected.http.clone(), self.commands, self.actions));
        // The tasks end with this function.
        let mut background = JoinSet::new();
        background.spawn(self.farewell(&registry).go_on());
        background.spawn(self.voice.clone().work(registry.context.host.clone()));
        for event in early {
            self.take(&registry, event);
        }
        let mut keep = tokio::time::interval(KEEP);
        keep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let ended = loop {
            tokio::select! {
                event = gateway.events.recv() => match event {
                    Some(event) => self.take(&registry, event),
                    None => break Ok(()),
                },
                why = &mut gateway.ended => break Err(why.unwrap_or_else(|_| Error::Refused("it was closed".to_owned()))),
                _ = keep.tick() => {
                    self.sync_cursor.clone().keep_soon().await;
                    let are_events_lost = gateway.missed.swap(false, Ordering::AcqRel);
                    if are_events_lost {
                        self.voice.take(VoiceEvent::Missed);
                    }
                    if are_events_lost || registry.is_behind() {
                        self.look_everywhere(&registry);
                    }
                }
            }
        };
        let left = self.shards.lock().unwrap_or_else(PoisonError::into_inner).is_none();
        gateway.closed().await;
        if left { Ok(()) } else { ended }
    }

    /// Ends the calls and the connection. Replies in progress are still shown, and broken beginnings removed.
    pub async fn leave(&self) {
        self.voice.end_all().await;
        let shards = self.shards.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(shards) = shards {
            shards.shutdown_all().await;
        }
        if let Some(connected) = self.connected.get() {
            connected.streams.finish_removals().await;
        }
        self.sync_cursor.clone().keep_soon().await;
    }

    fn take(&self, registry: &Arc<ChannelRegistry>, event: Event) {
        match event {
            Event::Ready(session) => {
                self.voice.take(VoiceEvent::Back { shard: session.shard, is_new: true });
                self.came_back(&session);
                for channel in self.sync_cursor.directs() {
                    registry.dispatch(channel, ChannelEvent::Missed);
                }
            }
            Event::Lost(shard) => self.voice.take(VoiceEvent::Lost(shard)),
            Event::Resumed(shard) => {
                tracing::info!("Discord repeated the missed events");
                self.voice.take(VoiceEvent::Back { shard, is_new: false });
            }
            Event::Guild(guild) => {
                self.voice.take(VoiceEvent::Look);
                self.guild(registry, &guild);
            }
            Event::GuildAway(guild) => self.voice.take(VoiceEvent::Away(guild)),
            Event::GuildGone(guild) => {
                self.voice.take(VoiceEvent::Gone(guild));
                self.left(guild);
            }
            Event::Channel(channel) => self.channel(registry, &channel),
            Event::Said(message) => {
                registry.context.shown.fresh(&message);
                registry.dispatch(message.channel_id, ChannelEvent::Said(message));
            }
            Event::Edited(event) => registry.dispatch(event.channel_id, ChannelEvent::Edited(event)),
            Event::Command(given) if given.data.kind == CommandType::Message => {
                tokio::spawn(menus::chosen(registry.clone(), self.actions, *given));
            }
            Event::Command(given) => drop(tokio::spawn(commands::run(registry.clone(), self.commands, *given))),
            Event::Typing(given) => {
                tokio::spawn(autocomplete::typed(registry.clone(), self.commands, *given));
            }
            Event::Pressed(button) => drop(tokio::spawn(commands::pressed(registry.clone(), *button))),
            Event::Filled(form) => {
                tokio::spawn(menus::filled(registry.clone(), self.actions, *form));
            }
            Event::Reacted(reaction) => reactions::given(registry, *reaction),
            Event::TookBack(reaction) => reactions::taken_back(registry, *reaction),
            Event::Cleared(channel, message) => reactions::cleared(registry, channel, message),
            Event::Voice(state) => self.voice.take(VoiceEvent::State(state)),
            Event::VoiceServer(server) => self.voice.take(VoiceEvent::Server(server)),
            Event::Deleted(channel, messages) => registry.dispatch(channel, ChannelEvent::Deleted(messages)),
        }
    }

    /// Handles a guild at the beginning of a session: looks for missed messages. In a guild that is new, the bot
    /// introduces itself.
    fn guild(&self, registry: &Arc<ChannelRegistry>, guild: &Guild) {
        let mut channels = guild.channels.values().chain(&guild.threads);
        let known = channels.any(|channel| self.sync_cursor.mark(channel.id).is_some());
        if let Some(place) = greeting::place(guild, &registry.context.directory).filter(|_| !known) {
            tokio::spawn(greeting::greet(registry.clone(), guild.id, place));
        }
        self.sync_cursor.in_server(guild.id);
        for channel in guild.channels.values().chain(&guild.threads) {
            self.channel(registry, channel);
        }
        tracing::info!(guild = %guild.id, channels = guild.channels.len(), "received the description of a server");
    }

    fn channel(&self, registry: &Arc<ChannelRegistry>, channel: &GuildChannel) {
        if !is_talked_in(channel.kind) {
            return;
        }
        let newest = channel.last_message_id.map_or(channel.id.get(), |message| message.get().max(channel.id.get()));
        // A channel created while the bot was offline is read from its beginning. An older channel that is new to the
        // bot is not read back.
        let made_meanwhile = self.handled_before.is_some_and(|handled| channel.id.get() > handled);
        let begin = if made_meanwhile { channel.id.get().saturating_sub(1) } else { newest };
        self.sync_cursor.begin(channel.id, begin, Some(channel.guild_id));
        if self.sync_cursor.mark(channel.id).is_some_and(|mark| mark < newest) {
            registry.dispatch(channel.id, ChannelEvent::Missed);
        }
    }

    /// Updates the presence with the mood of a reply, if everyone may know it.
    async fn show_mood(&self, connected: &Connected, channel: ChannelId, outbound: &Outbound) {
        let (Some(mood), Some(guild)) = (&outbound.state.mood, connected.directory.open_in(channel)) else { return };
        let words = connected.presence.said(guild, &outbound.persona, &outbound.persona_name, mood);
        let shards = self.shards.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let (Some(words), Some(shards)) = (words, shards) {
            for shard in shards.runners.lock().await.values() {
                shard.runner_tx.set_activity(Some(ActivityData::custom(words.clone())));
            }
        }
    }

    /// Looks for missed messages in every channel.
    fn look_everywhere(&self, registry: &Arc<ChannelRegistry>) {
        let cache = &registry.context.directory.cache;
        for guild in cache.guilds() {
            let channels: Vec<_> = match cache.guild(guild) {
                Some(guild) => guild.channels.values().chain(&guild.threads).map(|channel| channel.id).collect(),
                None => Vec::new(),
            };
            for channel in channels {
                registry.dispatch(channel, ChannelEvent::Missed);
            }
        }
        for channel in self.sync_cursor.directs() {
            registry.dispatch(channel, ChannelEvent::Missed);
        }
    }
}

fn is_talked_in(kind: ChannelType) -> bool {
    !matches!(kind, ChannelType::Category | ChannelType::Forum | ChannelType::Directory)
}

#[async_trait]
impl Platform for Discord {
    fn id(&self) -> &PlatformId {
        &self.id
    }

    async fn place(&self, chat: &ChatId, asker: &PersonId) -> Result<Option<Place>, PlatformError> {
        let directory = &self.connected()?.directory;
        if id::voice_channel_of(chat).is_some() {
            return Ok(self.voice.place(chat, Some(asker)));
        }
        directory.place(chat, asker).await
    }

    async fn place_for_all(&self, chat: &ChatId) -> Result<Option<Place>, PlatformError> {
        let directory = &self.connected()?.directory;
        if id::voice_channel_of(chat).is_some() {
            return Ok(self.voice.place(chat, None));
        }
        directory.place_for_all(chat).await
    }

    async fn readable_scopes(&self, person: &PersonId) -> Result<ReadableScopes, PlatformError> {
        let mut scopes = self.connected()?.directory.readable_scopes(person).await?;
        self.voice.readable(person, &mut scopes).await;
        Ok(scopes)
    }

    async fn access(&self, chat: &ChatId, person: &PersonId) -> Result<Access, PlatformError> {
        self.connected()?.directory.access(chat, person).await
    }

    async fn deliver(&self, outbound: &Outbound) -> Result<(), PlatformError> {
        let connected = self.connected()?;
        if id::voice_channel_of(&outbound.chat).is_some() {
            return self.voice.deliver(outbound).await;
        }
        connected.streams.finish(&outbound.id).await;
        let target = connected.show(outbound, None).await?;
        self.show_mood(connected, target.channel, outbound).await;
        Ok(())
    }

    async fn show_again(&self, outbound: &Outbound) -> Result<(), PlatformError> {
        self.connected()?.show(outbound, None).await.map(drop)
    }

    fn is_heard(&self, chat: &ChatId) -> bool {
        id::voice_channel_of(chat).is_some()
    }

    async fn is_for_adults(&self, chat: &ChatId) -> Result<bool, PlatformError> {
        Ok(self.connected()?.directory.is_for_adults(chat))
    }

    async fn post(&self, post: &Post) -> Result<(), PlatformError> {
        let connected = self.connected()?;
        connected.streams.finish(&post.outbound.id).await;
        connected.show(&post.outbound, Some(post.at)).await.map(drop)
    }

    async fn retract(&self, chat: &ChatId, reply: &MessageId, at: Timestamp) -> Result<(), PlatformError> {
        let connected = self.connected()?;
        if id::voice_channel_of(chat).is_some() {
            // What was said cannot be taken back.
            return Ok(());
        }
        connected.streams.finish(reply).await;
        let target = target(chat, reply, Some(at))?;
        if self.sync_cursor.is_left(target.channel) {
            // The bot can no longer reach it.
            return Ok(());
        }
        connected.shown.retract(target).await
    }

    fn streaming(&self) -> Option<&dyn Streaming> {
        Some(self)
    }

    fn voice_messages(&self) -> Option<&dyn VoiceMessages> {
        Some(self)
    }

    fn questions(&self) -> Option<&dyn azera_adapter::Questions> {
        Some(self)
    }

    fn place_names(&self) -> Option<&dyn azera_adapter::PlaceNames> {
        Some(self)
    }

    #[cfg(feature = "voice")]
    fn voice(&self) -> Option<&dyn azera_adapter::VoiceChannels> {
        Some(&self.channels)
    }
}

pub(crate) fn target(chat: &ChatId, reply: &MessageId, at: Option<Timestamp>) -> Result<Target, PlatformError> {
    Target::of(chat, reply, at)
        .ok_or_else(|| PlatformError::Refused(format!("{reply} in {chat} is no reply on Discord")))
}
