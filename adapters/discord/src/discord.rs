use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use azera_adapter::{
    Access, Command, Host, Making, MessageAction, Outbound, Platform, PlatformError, Portraits, Post, StreamEvent,
    Streaming,
};
use azera_types::{ChatId, Clock, MessageId, PersonId, Place, PlatformId, Reach, Timestamp};
use serenity::all::{
    ActivityData, ApplicationId, ChannelId, ChannelType, CommandType, Guild, GuildChannel, GuildId, Http, UserId,
};
use serenity::gateway::ShardManager;
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, timeout_at};

use crate::application::{asked, intents};
use crate::arrival;
use crate::channels::{Around, Hall, Happened};
use crate::commands;
use crate::direct::Directs;
use crate::directory::Directory;
use crate::error::{Error, in_words};
use crate::gateway::{Event, Gateway};
use crate::id::{PLATFORM, Target};
use crate::ledger::Ledger;
use crate::menus;
use crate::offers;
use crate::presence::Presence;
use crate::reactions;
use crate::settings::Settings;
use crate::shown::{Saying, Shown};
use crate::stream::Streams;
use crate::typing::Typing;
use crate::webhooks::{Speaker, Webhooks};

/// Time for Discord to describe the servers the bot is in, at a start.
const DESCRIBED: Duration = Duration::from_secs(20);

/// Wait before Discord is tried a second time at a start; it doubles, up to the longest.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Time between two writings of how far each channel was handled.
const KEEP: Duration = Duration::from_secs(5);

/// Discord as the core sees it: a platform.
///
/// **Once and only once.** A message's id is Discord's, so that the core knows one it had before, however often Discord
/// tells of it. How far each channel was handled is kept on disk, and what came later is read from the channel's history
/// after a start or a new session. A reply's messages bear what they answer; posting one carries an enforced nonce that
/// follows from the reply and its part, and where an earlier process may have posted it, the channel is looked through
/// first.
pub struct Discord {
    id: PlatformId,
    pub(crate) settings: Settings,
    pub(crate) clock: Arc<dyn Clock>,
    commands: &'static [Command],
    actions: &'static [MessageAction],
    pub(crate) ledger: Arc<Ledger>,
    /// The newest snowflake handled before this start: what is newer was made while nobody looked.
    handled_before: Option<u64>,
    /// What there is once Discord said who the bot is.
    live: OnceLock<Live>,
    connection: AsyncMutex<Option<Connection>>,
    /// Where pictures of personas come from.
    portraits: Arc<OnceLock<Arc<dyn Portraits>>>,
    /// Ends [`Discord::listen`].
    shards: Mutex<Option<Arc<ShardManager>>>,
}

/// The bot on Discord.
struct Live {
    http: Arc<Http>,
    directory: Arc<Directory>,
    shown: Arc<Shown>,
    typing: Arc<Typing>,
    streams: Streams,
    presence: Presence,
}

impl Live {
    /// Shows a reply, or what was written unasked at a time.
    async fn show(&self, outbound: &Outbound, at: Option<Timestamp>) -> Result<Target, PlatformError> {
        let target = target(&outbound.chat, &outbound.id, at)?;
        let speaker = Speaker { persona: outbound.persona.clone(), name: outbound.persona_name.clone() };
        self.shown.show(Saying { target, speaker: &speaker }, &outbound.text).await?;
        Ok(target)
    }
}

struct Connection {
    gateway: Gateway,
    /// What happened before the core was there to be told.
    early: Vec<Event>,
}

impl Discord {
    /// Discord, not connected yet. `folder` keeps how far each channel was handled; `commands` are offered as slash commands,
    /// `actions` in the menus of messages.
    ///
    /// # Errors
    /// When the settings or what is kept in the folder cannot be used.
    pub fn new(
        settings: Settings,
        folder: &Path,
        clock: Arc<dyn Clock>,
        commands: &'static [Command],
        actions: &'static [MessageAction],
    ) -> Result<Self, Error> {
        settings.http()?;
        let ledger = Arc::new(Ledger::open(folder)?);
        Ok(Self {
            id: PlatformId::new(PLATFORM)?,
            settings,
            clock,
            commands,
            actions,
            handled_before: ledger.newest(),
            ledger,
            live: OnceLock::new(),
            connection: AsyncMutex::new(None),
            portraits: Arc::default(),
            shards: Mutex::new(None),
        })
    }

    /// Says where pictures of personas come from; the first word counts.
    pub fn show_portraits(&self, portraits: Arc<dyn Portraits>) {
        self.portraits.get_or_init(|| portraits);
    }

    pub(crate) async fn begin_now(&self) -> Result<(), Error> {
        let mut wait = FIRST_WAIT;
        loop {
            match self.connect().await {
                Err(error) if error.is_transient() => {
                    tracing::warn!(%error, seconds = wait.as_secs(), "trying again");
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
                done => return done,
            }
        }
    }

    async fn connect(&self) -> Result<(), Error> {
        let http = Arc::new(self.settings.http()?);
        let application = asked(&http).await?;
        let mut gateway = Gateway::open(self.settings.http()?, intents(&application)).await?;
        let early = match described(&mut gateway).await {
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
            members_told: application.members,
            operators: self.settings.operators(),
            me,
            began: self.clock.now(),
            directs: Directs::default(),
        });
        let webhooks = Webhooks::new(http.clone(), id, directory.clone(), self.portraits.clone());
        let shown = Arc::new(Shown::new(http.clone(), me, id, webhooks));
        let typing = Arc::new(Typing::default());
        let streams = Streams::new(shown.clone(), typing.clone());
        *self.shards.lock().unwrap_or_else(PoisonError::into_inner) = Some(gateway.shards());
        *self.connection.lock().await = Some(Connection { gateway, early });
        self.live.get_or_init(|| Live { http, directory, shown, typing, streams, presence: Presence::default() });
        tracing::info!(bot = application.name, "on Discord");
        Ok(())
    }

    fn live(&self) -> Result<&Live, PlatformError> {
        self.live.get().ok_or_else(|| PlatformError::Transient("Discord is not connected yet".to_owned()))
    }

    pub(crate) async fn listen_until_closed(&self, host: Arc<dyn Host>) -> Result<(), Error> {
        let Some(Connection { mut gateway, early }) = self.connection.lock().await.take() else { return Ok(()) };
        let Some(live) = self.live.get() else { return Ok(()) };
        let hall = Arc::new(Hall::new(Around {
            platform: self.id.clone(),
            host,
            http: live.http.clone(),
            files: self.settings.client()?,
            directory: live.directory.clone(),
            shown: live.shown.clone(),
            typing: live.typing.clone(),
            ledger: self.ledger.clone(),
            clock: self.clock.clone(),
            settings: self.settings.clone(),
        }));
        tokio::spawn(offer(live.http.clone(), self.commands, self.actions));
        // Ends with this.
        let mut beside = JoinSet::new();
        beside.spawn(self.farewell(&hall).go_on());
        for event in early {
            self.take(&hall, event);
        }
        let mut keep = tokio::time::interval(KEEP);
        keep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let ended = loop {
            tokio::select! {
                event = gateway.events.recv() => match event {
                    Some(event) => self.take(&hall, event),
                    None => break Ok(()),
                },
                why = &mut gateway.ended => break Err(why.unwrap_or_else(|_| Error::Refused("it was closed".to_owned()))),
                _ = keep.tick() => {
                    self.ledger.clone().keep_soon().await;
                    if gateway.missed.swap(false, Ordering::AcqRel) || hall.is_behind() {
                        self.look_everywhere(&hall);
                    }
                }
            }
        };
        let left = self.shards.lock().unwrap_or_else(PoisonError::into_inner).is_none();
        gateway.closed().await;
        if left { Ok(()) } else { ended }
    }

    /// Ends the connection. What is under way is shown all the same.
    pub async fn leave(&self) {
        let shards = self.shards.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(shards) = shards {
            shards.shutdown_all().await;
        }
        self.ledger.clone().keep_soon().await;
    }

    fn take(&self, hall: &Arc<Hall>, event: Event) {
        match event {
            Event::Ready(session) => {
                self.came_back(&session);
                for channel in self.ledger.directs() {
                    hall.happened(channel, Happened::Missed);
                }
            }
            Event::Resumed => tracing::info!("Discord told what happened meanwhile"),
            Event::Guild(guild) => self.guild(hall, &guild),
            Event::GuildGone(guild) => self.left(guild),
            Event::Channel(channel) => self.channel(hall, &channel),
            Event::Said(message) => {
                hall.around.shown.fresh(message.id);
                hall.happened(message.channel_id, Happened::Said(message));
            }
            Event::Edited(event) => hall.happened(event.channel_id, Happened::Edited(event)),
            Event::Command(given) if given.data.kind == CommandType::Message => {
                tokio::spawn(menus::chosen(hall.clone(), self.actions, *given));
            }
            Event::Command(given) => {
                tokio::spawn(commands::run(hall.clone(), self.commands, *given));
            }
            Event::Typing(given) => {
                tokio::spawn(offers::typed(hall.clone(), self.commands, *given));
            }
            Event::Pressed(button) => {
                tokio::spawn(commands::pressed(hall.clone(), *button));
            }
            Event::Filled(form) => {
                tokio::spawn(menus::filled(hall.clone(), self.actions, *form));
            }
            Event::Reacted(reaction) => {
                tokio::spawn(reactions::given(hall.clone(), *reaction));
            }
            Event::Deleted(channel, messages) => hall.happened(channel, Happened::Deleted(messages)),
        }
    }

    /// A guild as it is at the beginning of a session: what was said since the last one is looked up. In one that was never
    /// seen the bot says what it is.
    fn guild(&self, hall: &Arc<Hall>, guild: &Guild) {
        let mut channels = guild.channels.values().chain(&guild.threads);
        let known = channels.any(|channel| self.ledger.mark(channel.id).is_some());
        if let Some(place) = arrival::place(guild, &hall.around.directory).filter(|_| !known) {
            tokio::spawn(arrival::greet(hall.clone(), guild.id, place));
        }
        self.ledger.in_server(guild.id);
        for channel in guild.channels.values().chain(&guild.threads) {
            self.channel(hall, channel);
        }
        tracing::info!(guild = %guild.id, channels = guild.channels.len(), "in a server");
    }

    fn channel(&self, hall: &Arc<Hall>, channel: &GuildChannel) {
        if !is_talked_in(channel.kind) {
            return;
        }
        let newest = channel.last_message_id.map_or(channel.id.get(), |message| message.get().max(channel.id.get()));
        // A channel made while nobody looked is read from its beginning; of one that was there before, nothing.
        let made_meanwhile = self.handled_before.is_some_and(|handled| channel.id.get() > handled);
        let begin = if made_meanwhile { channel.id.get().saturating_sub(1) } else { newest };
        self.ledger.begin(channel.id, begin, Some(channel.guild_id));
        if self.ledger.mark(channel.id).is_some_and(|mark| mark < newest) {
            hall.happened(channel.id, Happened::Missed);
        }
    }

    /// Lets the presence follow the mood of a reply, where everybody may know it.
    async fn show_mood(&self, live: &Live, channel: ChannelId, outbound: &Outbound) {
        let (Some(mood), Some(guild)) = (&outbound.state.mood, live.directory.open_in(channel)) else { return };
        let words = live.presence.said(guild, &outbound.persona, &outbound.persona_name, mood);
        let shards = self.shards.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let (Some(words), Some(shards)) = (words, shards) {
            for shard in shards.runners.lock().await.values() {
                shard.runner_tx.set_activity(Some(ActivityData::custom(words.clone())));
            }
        }
    }

    /// Looks for what was missed in every channel there is.
    fn look_everywhere(&self, hall: &Arc<Hall>) {
        let cache = &hall.around.directory.cache;
        for guild in cache.guilds() {
            let channels: Vec<_> = match cache.guild(guild) {
                Some(guild) => guild.channels.values().chain(&guild.threads).map(|channel| channel.id).collect(),
                None => Vec::new(),
            };
            for channel in channels {
                hall.happened(channel, Happened::Missed);
            }
        }
        for channel in self.ledger.directs() {
            hall.happened(channel, Happened::Missed);
        }
    }
}

/// Tells Discord which commands there are.
async fn offer(http: Arc<Http>, declared: &'static [Command], actions: &'static [MessageAction]) {
    let mut offered = commands::declared(declared);
    offered.extend(menus::declared(actions));
    match http.create_global_commands(&offered).await {
        Ok(commands) => tracing::debug!(commands = commands.len(), "commands are offered"),
        Err(error) => tracing::error!(error = in_words(&error), "commands are not offered"),
    }
}

fn is_talked_in(kind: ChannelType) -> bool {
    !matches!(kind, ChannelType::Category | ChannelType::Forum | ChannelType::Directory)
}

/// Waits until the first session is described; gives what happened until then.
async fn described(gateway: &mut Gateway) -> Result<Vec<Event>, Error> {
    let until = tokio::time::Instant::now() + DESCRIBED;
    let mut early = Vec::new();
    let mut open: Option<Vec<GuildId>> = None;
    while open.as_ref().is_none_or(|open| !open.is_empty()) {
        let event = tokio::select! {
            event = timeout_at(until, gateway.events.recv()) => event,
            why = &mut gateway.ended => {
                return Err(why.unwrap_or_else(|_| Error::Refused("its thread ended".to_owned())));
            }
        };
        let event = match event {
            Ok(Some(event)) => event,
            Ok(None) => return Err(Error::Refused("its thread ended".to_owned())),
            Err(_) if open.is_some() => {
                tracing::warn!("some servers have an outage; they are taken up when they are back");
                break;
            }
            Err(_) => return Err(Error::Away("no session was opened".to_owned())),
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

#[async_trait]
impl Platform for Discord {
    fn id(&self) -> &PlatformId {
        &self.id
    }

    async fn place(&self, chat: &ChatId, asker: &PersonId) -> Result<Option<Place>, PlatformError> {
        self.live()?.directory.place(chat, asker).await
    }

    async fn place_for_all(&self, chat: &ChatId) -> Result<Option<Place>, PlatformError> {
        self.live()?.directory.place_for_all(chat).await
    }

    async fn reach(&self, person: &PersonId) -> Result<Reach, PlatformError> {
        self.live()?.directory.reach(person).await
    }

    async fn access(&self, chat: &ChatId, person: &PersonId) -> Result<Access, PlatformError> {
        self.live()?.directory.access(chat, person).await
    }

    async fn deliver(&self, outbound: &Outbound) -> Result<(), PlatformError> {
        let live = self.live()?;
        live.streams.finish(&outbound.id).await;
        let target = live.show(outbound, None).await?;
        self.show_mood(live, target.channel, outbound).await;
        Ok(())
    }

    async fn show_again(&self, outbound: &Outbound) -> Result<(), PlatformError> {
        self.live()?.show(outbound, None).await.map(drop)
    }

    async fn post(&self, post: &Post) -> Result<(), PlatformError> {
        self.live()?.show(&post.outbound, Some(post.at)).await.map(drop)
    }

    async fn retract(&self, chat: &ChatId, reply: &MessageId, at: Timestamp) -> Result<(), PlatformError> {
        let live = self.live()?;
        live.streams.finish(reply).await;
        let target = target(chat, reply, Some(at))?;
        if self.ledger.is_left(target.channel) {
            // It stands where the bot cannot reach it any more.
            return Ok(());
        }
        live.shown.retract(target).await
    }

    fn streaming(&self) -> Option<&dyn Streaming> {
        Some(self)
    }
}

#[async_trait]
impl Streaming for Discord {
    async fn event(&self, making: Making<'_>, event: &StreamEvent) {
        if let Ok(live) = self.live() {
            live.streams.event(making, event);
        }
    }
}

fn target(chat: &ChatId, reply: &MessageId, at: Option<Timestamp>) -> Result<Target, PlatformError> {
    Target::of(chat, reply, at)
        .ok_or_else(|| PlatformError::Refused(format!("{reply} in {chat} is no reply on Discord")))
}
