//! Voice channels: joins and leaves them, and connects calls to the engine.
//!
//! What is said in a voice channel is a chat of its own, apart from the messages in the channel's text chat. Its readers
//! are the people in the room. Everybody there may be shown what was said since the last of them came: see
//! [`attendance`].
//!
//! `channels` implements what commands ask for, `reports` handles what happens in a room, `utterances` hands what people
//! say to the engine, `personas` knows who talks, `captions` shows what is said in a thread, `recording` keeps the sound
//! if everybody agreed, `ending` ends calls, `people` tells who is in a channel, `help` takes care of people in danger, and this file follows
//! the gateway.

mod attendance;
mod captions;
mod channels;
mod ending;
mod help;
mod people;
mod personas;
mod recording;
mod reports;
mod setup;
mod utterances;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use async_trait::async_trait;
use azera_adapter::{CallPersona, Host, Making, Outbound, PlatformError, StreamEvent, VoiceError, VoiceHost};
use azera_types::{ChatId, Clock, MessageId, PersonId, Place, PlaceKind, PlatformId, ReadableScopes, Text};
use azera_voice_discord::{Call, Server, join};
use azera_voice_room::Settings;
use serde_json::json;
use serenity::all::{ChannelId, GuildId, Http, UserId, VoiceServerUpdateEvent, VoiceState};
use serenity::gateway::ShardManager;
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message as Frame;

pub use azera_voice_call_recordings::RecordingFolder;
pub use azera_voice_discord::Engines;

use crate::directory::Directory;
use crate::id;
use attendance::Attendance;
use captions::{CaptionLog, Captions, Intents, Withdrawn};
use ending::Ending;
use personas::{Speakers, manner};
use recording::{Recorder, Recording};
use reports::{Renewals, code_of};

pub(crate) use channels::Channels;

/// Loads the engines of speech.
#[async_trait]
pub trait Speech: Send + Sync {
    /// Returns the engines. The error says for people why there are none, and what to do.
    async fn engines(&self) -> Result<Engines, String>;
}

/// The parts that are known once the bot is connected.
struct Line {
    http: Arc<Http>,
    directory: Arc<Directory>,
    shards: Arc<ShardManager>,
}

/// A voice channel with the bot in it.
struct Ongoing {
    channel: ChannelId,
    call: Call,
    /// Id of the voice session, and the server with its secret, once Discord named them.
    session: Option<String>,
    server: Option<(String, String)>,
    /// True while the bot leaves and comes again to renew the connection.
    is_rejoining: bool,
    renewals: Renewals,
    /// True if somebody asked the bot to be quiet from now on.
    is_muted: bool,
    /// The name of the persona that usually talks.
    persona: String,
    speakers: Speakers,
    captions: Option<Captions>,
    /// Held while captions begin or end.
    captions_turn: Arc<AsyncMutex<()>>,
    /// The threads with captions of this call, by their text channels.
    caption_threads: HashMap<ChannelId, ChannelId>,
    recording: Option<Recording>,
}

impl Ongoing {
    /// Ends the call and its captions.
    fn close(self) {
        self.call.close();
        if let Some(captions) = self.captions {
            captions.call_is_over();
        }
    }
}

/// What the gateway told.
pub(crate) enum VoiceEvent {
    State(Box<VoiceState>),
    Server(Box<VoiceServerUpdateEvent>),
    /// Servers were described anew, so other people may be in the channels than events told.
    Look,
}

/// The calls of the bot, at most one in each server.
pub(crate) struct VoiceCalls {
    platform: PlatformId,
    clock: Arc<dyn Clock>,
    attendance: Attendance,
    caption_log: AsyncMutex<CaptionLog>,
    caption_intents: AsyncMutex<Intents>,
    withdrawn: Withdrawn,
    /// When captions began lately, by voice channels.
    captions_begun: Mutex<HashMap<ChannelId, Instant>>,
    recorder: OnceLock<Recorder>,
    speech: OnceLock<(Arc<dyn Speech>, Arc<dyn VoiceHost>)>,
    line: OnceLock<Line>,
    host: OnceLock<Arc<dyn Host>>,
    calls: Mutex<HashMap<GuildId, Ongoing>>,
    /// The rooms of calls that end. They stay places until what was said there is recorded.
    ending: Ending,
    /// How many utterances wait to be recorded.
    unrecorded: AtomicUsize,
    /// The tasks that handle what calls report.
    followed: Mutex<JoinSet<()>>,
    events: mpsc::UnboundedSender<VoiceEvent>,
    waiting: Mutex<Option<mpsc::UnboundedReceiver<VoiceEvent>>>,
}

impl VoiceCalls {
    pub(crate) fn new(platform: PlatformId, folder: &Path, clock: Arc<dyn Clock>) -> Self {
        let (events, waiting) = mpsc::unbounded_channel();
        Self {
            platform,
            clock,
            attendance: Attendance::open(folder),
            caption_log: AsyncMutex::new(CaptionLog::open(folder)),
            caption_intents: AsyncMutex::new(Intents::open(folder)),
            withdrawn: Withdrawn::default(),
            captions_begun: Mutex::default(),
            recorder: OnceLock::new(),
            speech: OnceLock::new(),
            line: OnceLock::new(),
            host: OnceLock::new(),
            calls: Mutex::default(),
            ending: Ending::default(),
            unrecorded: AtomicUsize::new(0),
            followed: Mutex::default(),
            events,
            waiting: Mutex::new(Some(waiting)),
        }
    }

    /// Sets what speaks and who records; only the first call counts.
    pub(crate) fn set_speech(&self, speech: Arc<dyn Speech>, host: Arc<dyn VoiceHost>) {
        self.speech.get_or_init(|| (speech, host));
    }

    pub(crate) fn connected(&self, http: Arc<Http>, directory: Arc<Directory>, shards: Arc<ShardManager>) {
        self.line.get_or_init(|| Line { http, directory, shards });
    }

    /// Takes in an event. [`VoiceCalls::work`] handles it.
    pub(crate) fn take(&self, event: VoiceEvent) {
        // The receiver lives as long as the bot listens.
        self.events.send(event).ok();
    }

    /// Handles events in order.
    pub(crate) async fn work(self: Arc<Self>, host: Arc<dyn Host>) {
        self.host.get_or_init(|| host);
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut waiting) = waiting else { return };
        let events = async {
            while let Some(event) = waiting.recv().await {
                match event {
                    VoiceEvent::Server(server) => self.server(*server),
                    VoiceEvent::State(state) => self.state(*state).await,
                    VoiceEvent::Look => self.look_at_recordings().await,
                }
            }
        };
        tokio::select! {
            () = self.clone().keep_captions() => {}
            () = self.clone().keep_looking_at_recordings() => {}
            () = events => {}
        }
    }

    fn line(&self) -> Result<&Line, VoiceError> {
        self.line.get().ok_or_else(|| VoiceError::Unavailable("I am not connected to Discord yet.".to_owned()))
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<GuildId, Ongoing>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the call in a voice channel.
    fn call_in(&self, channel: ChannelId) -> Option<Call> {
        self.calls().values().find(|ongoing| ongoing.channel == channel).map(|ongoing| ongoing.call.clone())
    }

    /// Asks Discord to move the bot into a channel, or out of the one it is in.
    async fn ask_to_move(&self, guild: GuildId, channel: Option<ChannelId>) -> Result<(), VoiceError> {
        let line = self.line()?;
        let is_muted = self.calls().get(&guild).is_some_and(|ongoing| ongoing.is_muted);
        let request = json!({"op": 4, "d": {"guild_id": guild, "channel_id": channel, "self_mute": is_muted, "self_deaf": false}});
        let runners = line.shards.runners.lock().await;
        let shard = line.shard_of(guild);
        let Some((_, runner)) = runners.iter().find(|(id, _)| id.0 == shard) else {
            return Err(VoiceError::Unavailable("My connection to Discord is down. Try again in a minute.".to_owned()));
        };
        runner.runner_tx.websocket_message(Frame::Text(request.to_string()));
        Ok(())
    }

    /// Opens a call for a channel, before Discord names its server.
    async fn open(self: &Arc<Self>, guild: GuildId, channel: ChannelId, is_muted: bool) -> Result<(), VoiceError> {
        let unavailable = |why: String| VoiceError::Unavailable(why);
        let (speech, host) =
            self.speech.get().ok_or_else(|| unavailable("Speech is off in this process.".to_owned()))?;
        let engines = speech.engines().await.map_err(unavailable)?;
        let chat = id::voice_chat(channel).map_err(|error| unavailable(error.to_string()))?;
        let persona = host.call_persona(&self.platform, &chat).await.map_err(|error| unavailable(error.in_words()))?;
        let CallPersona { names, manner: own } = persona;
        let engines = engines.with_manner(&manner(own));
        let persona = names.first().cloned().unwrap_or_default();
        let settings = Settings { names, ..Settings::default() };
        let (call, reports) = join(engines, settings, person_of).map_err(|error| unavailable(error.to_string()))?;
        let ongoing = Ongoing {
            channel,
            call: call.clone(),
            session: None,
            server: None,
            is_rejoining: false,
            renewals: Renewals::default(),
            is_muted,
            persona,
            speakers: Speakers::default(),
            captions: None,
            captions_turn: Arc::default(),
            caption_threads: HashMap::new(),
            recording: None,
        };
        if is_muted {
            call.mute(true);
        }
        // Before anybody can end the call.
        let followed = self.ending.follow((guild, channel));
        {
            let mut calls = self.calls();
            let before = calls.insert(guild, ongoing);
            self.close(calls, guild, before);
        }
        self.followed().spawn(self.clone().follow(guild, channel, reports, followed));
        for user in self.people(guild, channel) {
            self.joined(guild, channel, user).await;
        }
        Ok(())
    }

    /// Shows in Discord whether the bot is quiet from now on.
    async fn show_mute(&self, guild: GuildId, is_muted: bool) -> Result<(), VoiceError> {
        let channel = {
            let mut calls = self.calls();
            let Some(ongoing) = calls.get_mut(&guild) else { return Ok(()) };
            ongoing.is_muted = is_muted;
            ongoing.channel
        };
        self.ask_to_move(guild, Some(channel)).await
    }

    /// Tells a call that a person is in its channel.
    async fn joined(self: &Arc<Self>, guild: GuildId, channel: ChannelId, user: UserId) {
        let Some(call) = self.call_in(channel) else { return };
        let (Ok(chat), Ok(person)) = (id::voice_chat(channel), id::person(user)) else { return };
        if self.hearers(guild, channel).contains(&user) {
            self.attendance.came(channel, user, self.clock.now());
        }
        let Some((_, host)) = self.speech.get() else { return };
        let decision = match host.may_be_heard(&chat, &person).await {
            Ok(decision) => self.heard_now(channel, &person, decision),
            Err(error) => {
                tracing::warn!(%error, "cannot read whether a person may be heard; they are not");
                Some(false)
            }
        };
        call.joined(person, self.name(guild, user), decision);
    }

    /// Handles that somebody joined, left or changed channels.
    async fn state(self: &Arc<Self>, state: VoiceState) {
        let (Some(guild), Ok(line)) = (state.guild_id, self.line()) else { return };
        if state.user_id == line.directory.me {
            return self.own_state(guild, state).await;
        }
        let Some(channel) = self.calls().get(&guild).map(|ongoing| ongoing.channel) else { return };
        let hearers = self.hearers(guild, channel);
        let is_bot = state.member.as_ref().is_some_and(|member| member.user.bot);
        if state.channel_id != Some(channel) {
            self.recording_is_left_by(channel, state.user_id);
        } else if !is_bot
            && hearers.contains(&state.user_id)
            && !self.attendance.is_there(channel, state.user_id)
            && let Some(call) = self.call_in(channel)
        {
            // What is being said may rest on what was said before they came. That a recording pauses is said after it.
            call.stop();
        }
        // Nothing is kept while somebody is there who did not agree.
        self.recording_has_other_people(guild, channel).await;
        // Talk goes on without those who left or hear nothing.
        if !hearers.contains(&state.user_id)
            && !hearers.is_empty()
            && let Err(error) = self.said_before(channel, &hearers).await
        {
            tracing::error!(%error, "cannot write who hears no more in a voice channel; ending the call");
            return self.end(guild);
        }
        if state.channel_id == Some(channel) && !is_bot {
            self.joined(guild, channel, state.user_id).await;
        } else if let (Some(call), Ok(person)) = (self.call_in(channel), id::person(state.user_id)) {
            call.left(person);
        }
    }

    /// Handles that the bot itself was moved, or has arrived or left.
    async fn own_state(self: &Arc<Self>, guild: GuildId, state: VoiceState) {
        let call = |ongoing: &Ongoing| (ongoing.channel, ongoing.is_rejoining, ongoing.is_muted);
        let known = self.calls().get(&guild).map(call);
        match (state.channel_id, known) {
            (None, Some((_, true, _))) | (None, None) => {}
            (None, Some(_)) => self.end(guild),
            (Some(channel), Some((before, ..))) if channel == before => {
                self.update(guild, |ongoing| {
                    ongoing.session = Some(state.session_id);
                    ongoing.is_rejoining = false;
                });
            }
            // Somebody moved the bot: the people there are others. It stays as quiet as it was asked to be.
            (Some(channel), Some((.., is_muted))) => match self.open(guild, channel, is_muted).await {
                Ok(()) => self.update(guild, |ongoing| ongoing.session = Some(state.session_id)),
                Err(error) => {
                    tracing::warn!(%error, "cannot follow to another voice channel");
                    self.end(guild);
                }
            },
            // A call of an earlier process.
            (Some(_), None) => {
                if let Err(error) = self.ask_to_move(guild, None).await {
                    tracing::debug!(%error, "cannot leave a voice channel");
                }
            }
        }
    }

    fn server(&self, server: VoiceServerUpdateEvent) {
        // Without an endpoint, another event follows.
        if let (Some(guild), Some(endpoint)) = (server.guild_id, server.endpoint) {
            self.update(guild, |ongoing| ongoing.server = Some((endpoint, server.token)));
        }
    }

    /// Changes a call, and connects it once everything is known.
    fn update(&self, guild: GuildId, change: impl FnOnce(&mut Ongoing)) {
        let mut calls = self.calls();
        let (Some(ongoing), Ok(line)) = (calls.get_mut(&guild), self.line()) else { return };
        change(ongoing);
        let (Some(session), Some((endpoint, token))) = (&ongoing.session, &ongoing.server) else { return };
        ongoing.call.connect(Server {
            guild: guild.get(),
            channel: ongoing.channel.get(),
            user: line.directory.me.get(),
            endpoint: endpoint.clone(),
            session: session.clone(),
            token: token.clone(),
        });
        ongoing.server = None;
    }

    /// Returns what the room of a voice channel is: a place that only the people who hear it read. `None` unless the bot is
    /// there, and the person, too.
    pub(crate) fn place(&self, chat: &ChatId, asker: Option<&PersonId>) -> Option<Place> {
        let channel = id::voice_channel_of(chat)?;
        let guild = self.guild_of_room(channel)?;
        // Somebody who is deafened reads what they heard themselves, and keeps nothing from the others.
        let mut readers = self.hearers(guild, channel);
        if let Some(asker) = asker {
            let asker = id::user_of(asker)?;
            if !self.people(guild, channel).contains(&asker) {
                return None;
            }
            readers.insert(asker);
        }
        let since = self.attendance.since(channel, &readers, self.clock.now());
        // Readers of captions were in the room for nothing of what was said before.
        let since = self.captioned_since(channel).map_or(since, |captioned| since.max(captioned));
        let realm = id::realm(guild).ok()?;
        let kind = PlaceKind::Private { realm: Some(realm), all_in_realm: true, realm_since: None };
        Some(Place { chat: chat.clone(), kind, since: Some(since) })
    }

    /// Adds what a person heard in voice channels that they can still see.
    pub(crate) async fn readable(&self, person: &PersonId, scopes: &mut ReadableScopes) {
        let (Some(user), Ok(line)) = (id::user_of(person), self.line()) else { return };
        for (channel, since) in self.attendance.of(user) {
            let can_see = line.directory.can_see(channel, user).await;
            if let (true, Ok(chat)) = (can_see, id::voice_chat(channel)) {
                scopes.private_chats.push((chat, Some(since)));
            }
        }
    }

    /// Forgets who was in these channels, and where their captions stand.
    pub(crate) async fn forget(self: &Arc<Self>, channels: &[ChannelId]) {
        if self.attendance.forget(channels)
            && let Err(error) = self.keep_attendance().await
        {
            tracing::warn!(%error, "cannot write who was in voice channels");
        }
        self.caption_log.lock().await.forget(channels);
        self.caption_intents.lock().await.forget(channels);
    }

    /// Says a reply while it is generated. Help for somebody in danger is not said: [`VoiceCalls::deliver`] writes it.
    pub(crate) async fn event(&self, making: Making<'_>, event: &StreamEvent) {
        if making.is_help {
            return;
        }
        let Some(channel) = id::voice_channel_of(making.chat) else { return };
        let Some(call) = self.call_in(channel) else { return };
        match event {
            StreamEvent::Content { text } => {
                self.begin_reply(making.chat, making.reply, making.persona, making.persona_name).await;
                call.piece(making.reply, text);
            }
            StreamEvent::Retracted => call.retracted(making.reply),
            StreamEvent::Error { .. } => {
                call.retracted(making.reply);
                call.whole(making.reply, "");
                self.failed_reply(channel, making.reply);
            }
            StreamEvent::ThinkingStart
            | StreamEvent::Thinking { .. }
            | StreamEvent::ThinkingEnd
            | StreamEvent::Done { .. } => {}
        }
    }

    /// Says the rest of a reply. Nobody hears a reply to a call that is over.
    ///
    /// # Errors
    /// Help for somebody in danger cannot be written, because Discord cannot be reached.
    pub(crate) async fn deliver(self: &Arc<Self>, outbound: &Outbound) -> Result<(), PlatformError> {
        if !outbound.help.is_empty() {
            return self.deliver_help(outbound).await;
        }
        let call = id::voice_channel_of(&outbound.chat).and_then(|channel| self.call_in(channel));
        let Some(call) = call else {
            let (calls, reply) = (self.clone(), outbound.id.clone());
            // The engine delivers in the middle of a turn, and takes this in after it.
            tokio::spawn(async move { calls.heard(&reply, "", false).await });
            return Ok(());
        };
        self.begin_reply(&outbound.chat, &outbound.id, &outbound.persona, &outbound.persona_name).await;
        call.whole(&outbound.id, &outbound.text);
        if let Some(code) = code_of(&outbound.text) {
            tokio::spawn(self.clone().send_code(outbound.asker.clone(), code));
        }
        Ok(())
    }

    async fn heard(&self, reply: &MessageId, heard: &str, is_whole: bool) {
        let Some((_, host)) = self.speech.get() else { return };
        if let Err(error) = host.heard(reply, Text::new(heard), is_whole).await {
            tracing::error!(%reply, %error, "cannot record how much of a reply was heard");
        }
    }
}

/// Returns the person of a user id.
fn person_of(user: u64) -> Option<PersonId> {
    if user == 0 { None } else { id::person(UserId::new(user)).ok() }
}
