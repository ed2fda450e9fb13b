//! Voice channels: joins and leaves them, and connects calls to the engine.
//!
//! What is said in a voice channel is a chat of its own, apart from the messages in the channel's text chat. Its readers
//! are the people in the room. Everybody there may be shown what was said since the last of them came: see
//! [`attendance`].
//!
//! `channels` implements what commands ask for, `reports` handles what happens in a room, `utterances` hands what people
//! say to the engine, `personas` knows who talks, `captions` shows what is said in a thread, `recording` keeps the sound
//! if everybody agreed, `joining` brings the bot into channels, `link` is the connection of a call, `following` follows the
//! gateway, `gaps` knows what was said while it was lost, `lost_shards` knows which shards lost it, `silence` knows when
//! nobody can hear the bot, `code` sends the code of replies, `consent` asks people whether they may be heard, `ending` ends
//! calls, `people` tells who is in a channel, and `help` takes care of people in danger.

mod attendance;
mod captions;
mod channels;
mod code;
mod consent;
mod ending;
mod following;
mod gaps;
mod help;
mod joining;
mod link;
mod lost_shards;
mod people;
mod personas;
mod recording;
mod reports;
mod setup;
mod silence;
mod utterances;

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use async_trait::async_trait;
use azera_adapter::{Host, Making, Outbound, PlatformError, StreamEvent, VoiceError, VoiceHost};
use azera_types::{ChatId, Clock, MessageId, PersonId, Place, PlaceKind, PlatformId, ReadableScopes, Text};
use azera_voice_discord::Call;
use serenity::all::{ChannelId, GuildId, Http, UserId, VoiceServerUpdateEvent, VoiceState};
use serenity::gateway::ShardManager;
use tokio::sync::{Mutex as AsyncMutex, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

pub use azera_voice_call_recordings::RecordingFolder;
pub use azera_voice_discord::Engines;

use crate::directory::Directory;
use crate::id;
use attendance::Attendance;
use captions::{CaptionLog, Captions, Intents, Withdrawn};
use code::code_of;
use consent::Questions;
use ending::Ending;
use gaps::Gaps;
use link::{AskedMoves, Link};
use personas::Speakers;
use recording::{Recorder, Recording};

pub(crate) use channels::Channels;
pub use joining::CallWaits;

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

/// A call among all of this process. What one of them reports is not about a later one in the same channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CallKey {
    guild: GuildId,
    channel: ChannelId,
    number: u64,
}

/// A voice channel with the bot in it.
struct Ongoing {
    channel: ChannelId,
    /// See [`CallKey`].
    number: u64,
    call: Call,
    link: Link,
    /// The people whom the call knows to be there.
    told: BTreeSet<UserId>,
    /// True if somebody asked the bot to be quiet from now on.
    is_muted: bool,
    /// True while nobody can hear the bot, because a moderator muted it or it may not speak.
    is_silenced: bool,
    /// True while nobody is there who hears, because everybody left or is deafened.
    is_unheard: bool,
    /// True while a moderator deafened the bot.
    is_deafened: bool,
    /// What people were told about questions without an answer. It ends with the next answer.
    told_failures: BTreeSet<&'static str>,
    /// The name of the persona that usually talks.
    persona: String,
    speakers: Speakers,
    questions: Questions,
    captions: Option<Captions>,
    /// Held while captions begin or end.
    captions_turn: Arc<AsyncMutex<()>>,
    /// The threads with captions of this call, by their text channels.
    caption_threads: HashMap<ChannelId, ChannelId>,
    recording: Option<Recording>,
}

impl Ongoing {
    fn key(&self, guild: GuildId) -> CallKey {
        CallKey { guild, channel: self.channel, number: self.number }
    }

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
    /// A shard lost the gateway. Not every loss is told.
    Lost(u32),
    /// A shard is connected again. What the gateway was asked before may be lost. A new session repeats no events.
    Back {
        shard: u32,
        is_new: bool,
    },
    /// A server has an outage: it is not told who is there.
    Away(GuildId),
    /// Events were lost.
    Missed,
    /// The bot was removed from a server.
    Gone(GuildId),
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
    /// How many calls were opened.
    opened: AtomicU64,
    asked_moves: Mutex<AskedMoves>,
    waits: Mutex<CallWaits>,
    gaps: Mutex<Gaps>,
    /// How often each shard was connected to the gateway.
    returns: watch::Sender<HashMap<u32, u64>>,
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
            opened: AtomicU64::new(0),
            asked_moves: Mutex::default(),
            waits: Mutex::default(),
            gaps: Mutex::default(),
            returns: watch::Sender::new(HashMap::new()),
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
        self.take_gap(&event);
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
                    VoiceEvent::Look => self.look().await,
                    VoiceEvent::Lost(_) => self.look_at_recordings().await,
                    VoiceEvent::Away(_) => self.keep_gap().await,
                    VoiceEvent::Missed => {
                        self.events_are_missing().await;
                        if let Ok(line) = self.line() {
                            for shard in line.shards() {
                                self.asked_moves().begin_connection(shard, |guild| self.is_on(shard, guild));
                            }
                        }
                        self.look().await;
                    }
                    VoiceEvent::Back { shard, is_new } => {
                        self.gap_is_over(shard, is_new).await;
                        self.asked_moves().begin_connection(shard, |guild| self.is_on(shard, guild));
                        self.look().await;
                    }
                    VoiceEvent::Gone(guild) => self.end(guild),
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

    /// Reads or changes a call; returns `None` if it is over.
    fn with_call<T>(&self, key: CallKey, act: impl FnOnce(&mut Ongoing) -> T) -> Option<T> {
        let mut calls = self.calls();
        calls.get_mut(&key.guild).filter(|ongoing| ongoing.number == key.number).map(act)
    }

    /// Returns the call in a voice channel.
    fn call_in(&self, channel: ChannelId) -> Option<Call> {
        self.calls().values().find(|ongoing| ongoing.channel == channel).map(|ongoing| ongoing.call.clone())
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
                self.begin_reply(making).await;
                call.piece(making.reply, text);
            }
            StreamEvent::Retracted => call.retracted(making.reply),
            StreamEvent::Error { .. } | StreamEvent::Withdrawn => {
                if let Some(asker) = making.asker {
                    call.asked_by(making.reply, asker);
                }
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
        let there = id::voice_channel_of(&outbound.chat);
        let there = there.and_then(|channel| Some((channel, self.call_in(channel)?)));
        let Some((channel, call)) = there else {
            let (calls, reply) = (self.clone(), outbound.id.clone());
            // The engine delivers in the middle of a turn, and takes this in after it.
            tokio::spawn(async move { calls.heard(&reply, "", false).await });
            return Ok(());
        };
        let making = Making {
            chat: &outbound.chat,
            reply: &outbound.id,
            persona: &outbound.persona,
            persona_name: &outbound.persona_name,
            asker: outbound.asker.as_ref(),
            is_help: false,
        };
        self.begin_reply(making).await;
        call.whole(&outbound.id, &outbound.text);
        // Nobody waits for the outcome of a reply that was tried again.
        self.note_answer(channel);
        if let Some(code) = code_of(&outbound.text) {
            tokio::spawn(self.clone().send_code(channel, outbound.asker.clone(), code));
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
