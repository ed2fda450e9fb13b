//! The way into a voice channel: what is checked before, what Discord is asked, and how long its answer may take.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use azera_adapter::{CallPersona, VoiceError};
use azera_types::PersonId;
use azera_voice_discord::join;
use azera_voice_room::Settings;
use serde_json::json;
use serenity::all::{ChannelId, ChannelType, GuildId, Permissions, UserId};
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::Message as Frame;

use super::consent::Questions;
use super::gaps::connection_in;
use super::link::{AskedMoves, Link};
use super::personas::{Speakers, manner};
use super::{CallKey, Ongoing, VoiceCalls, VoiceEvent};
use crate::id;

/// Permissions that the bot needs in a voice channel, and on a stage.
const NEEDED: Permissions = Permissions::VIEW_CHANNEL.union(Permissions::CONNECT).union(Permissions::SPEAK);
const NEEDED_ON_STAGE: Permissions = Permissions::VIEW_CHANNEL.union(Permissions::CONNECT);

/// How often it is looked whether the gateway is connected again.
const LOOK: Duration = Duration::from_millis(250);

/// Written when a connection cannot be renewed.
const NOT_LET_IN: &str = "I left this voice channel: Discord did not connect me to it again in time. `/voice join` tries \
                          again.";
const NO_ROOM: &str = "I left this voice channel: my connection broke, and the channel was full when I came again. Make room \
                       for me, or give me the permission Move Members here, and then `/voice join` tries again.";
const NOT_ALLOWED: &str = "I left this voice channel: my connection broke, and I may not join the channel again. Give me the \
                           permissions View Channel and Connect here, and Speak if it is no stage, and then `/voice join` \
                           tries again.";

/// How long Discord, people and the record may take in voice channels.
#[derive(Debug, Clone, Copy)]
pub struct CallWaits {
    /// To let the bot in.
    pub arrival: Duration,
    /// To say why it cut a connection: the bot was moved or thrown out, or the server changed.
    pub reason: Duration,
    /// How long somebody who comes waits for others who come, to be asked together whether they may be heard.
    pub others: Duration,
    /// How long until it is read again whether somebody may be heard, after that failed.
    pub reread: Duration,
}

impl Default for CallWaits {
    fn default() -> Self {
        Self {
            arrival: Duration::from_secs(10),
            reason: Duration::from_secs(2),
            others: Duration::from_secs(2),
            reread: Duration::from_secs(5),
        }
    }
}

/// Whether the bot reached a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arrival {
    There,
    /// The call ended meanwhile, because somebody moved the bot, threw it out or let it leave.
    Ended,
    TooLate,
}

/// How the bot gets into a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    /// Somebody moved it there.
    Moved,
    /// It comes.
    Come,
    /// It leaves, and comes again.
    Again,
}

/// Waits until Discord let the bot in.
async fn reached(arrived: &mut watch::Receiver<bool>) -> Arrival {
    if arrived.wait_for(|is_there| *is_there).await.is_ok() { Arrival::There } else { Arrival::Ended }
}

/// Waits until a shard has another connection to the gateway.
async fn wait_for_connection(returns: &mut watch::Receiver<HashMap<u32, u64>>, shard: u32, connection: u64) {
    // The sender lives as long as the calls.
    returns.wait_for(|returns| connection_in(returns, shard) != connection).await.ok();
}

impl VoiceCalls {
    /// Changes how long Discord may take, for tests.
    pub(super) fn set_waits(&self, waits: CallWaits) {
        *self.waits.lock().unwrap_or_else(PoisonError::into_inner) = waits;
    }

    pub(super) fn waits(&self) -> CallWaits {
        *self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings the bot into a voice channel, and waits until it is there.
    ///
    /// # Errors
    /// It may not join, the channel is full, speech does not work, or Discord does not let it in.
    pub(super) async fn join(self: &Arc<Self>, guild: GuildId, channel: ChannelId) -> Result<(), VoiceError> {
        let there = self.calls().get(&guild).map(|ongoing| (ongoing.channel, *ongoing.link.arrived.borrow()));
        match there {
            Some((there, true)) if there == channel => {
                // They may not have been asked, as long as it could not write.
                for user in self.people(guild, channel) {
                    self.joined(guild, channel, user).await;
                }
                return Ok(());
            }
            Some((there, _)) if there != channel && !self.people(guild, there).is_empty() => {
                return Err(VoiceError::Elsewhere);
            }
            _ => self.check_way_in(guild, channel)?,
        }
        if there.is_none_or(|(there, _)| there != channel) {
            self.open(guild, channel, false).await?;
        }
        let Some(key) = self.call_of(guild, channel) else { return Err(VoiceError::Interrupted) };
        match self.arrive(key, Entry::Come).await {
            Arrival::There => Ok(()),
            Arrival::Ended => Err(VoiceError::Interrupted),
            // Somebody may have changed it meanwhile.
            Arrival::TooLate => self.check_way_in(guild, channel).and(Err(VoiceError::Refused)),
        }
    }

    /// Returns the call of a server, if it is in this channel.
    pub(super) fn call_of(&self, guild: GuildId, channel: ChannelId) -> Option<CallKey> {
        let calls = self.calls();
        let ongoing = calls.get(&guild).filter(|ongoing| ongoing.channel == channel)?;
        Some(ongoing.key(guild))
    }

    /// Checks what can be known before Discord is asked.
    fn check_way_in(&self, guild: GuildId, channel: ChannelId) -> Result<(), VoiceError> {
        let line = self.line()?;
        let found = line.directory.channel(channel);
        let is_stage = found.as_ref().is_some_and(|found| found.kind == ChannelType::Stage);
        let own = line.directory.own_permissions(channel);
        if !own.contains(if is_stage { NEEDED_ON_STAGE } else { NEEDED }) {
            return Err(VoiceError::NoPermission);
        }
        let limit = found.and_then(|found| found.user_limit).filter(|limit| *limit > 0);
        let there = line.directory.cache.guild(guild).map_or(0, |guild| {
            let others = guild.voice_states.values().filter(|state| state.user_id != line.directory.me);
            others.filter(|state| state.channel_id == Some(channel)).count()
        });
        let is_full = limit.is_some_and(|limit| there >= usize::try_from(limit).unwrap_or(usize::MAX));
        if is_full && !own.contains(Permissions::MOVE_MEMBERS) { Err(VoiceError::Full) } else { Ok(()) }
    }

    /// Asks Discord to let the bot into the channel of a call, and waits until it is there. If that takes too long, the call
    /// ends. Time counts only while the gateway is connected. What was asked before the gateway broke may be lost, so the
    /// bot leaves and comes once it is back.
    async fn arrive(&self, key: CallKey, mut entry: Entry) -> Arrival {
        let mut returns = self.returns.subscribe();
        let link = self.with_call(key, |ongoing| (ongoing.link.number, ongoing.link.arrived.subscribe()));
        let (Some((link, mut arrived)), Ok(line)) = (link, self.line()) else { return Arrival::Ended };
        let shard = line.shard_of(key.guild);
        loop {
            tokio::select! {
                biased;
                arrival = reached(&mut arrived) => return arrival,
                () = self.gateway_is_back(key) => {}
            }
            let connection = connection_in(&returns.borrow(), shard);
            if !self.ask_for(key, link, entry).await {
                return Arrival::Ended;
            }
            entry = Entry::Again;
            let patience = self.waits().arrival;
            tokio::select! {
                biased;
                arrival = reached(&mut arrived) => return arrival,
                () = wait_for_connection(&mut returns, shard, connection) => {}
                () = tokio::time::sleep(patience) => {
                    if self.is_connected(key.guild).await {
                        return self.give_up(key, link).await;
                    }
                }
            }
        }
    }

    /// Waits until the gateway is connected, and Discord described the server of a call.
    async fn gateway_is_back(&self, key: CallKey) {
        let mut lost = None;
        loop {
            let connection = self.connection_of(key.guild);
            if !self.is_connected(key.guild).await {
                lost = Some(connection);
            // What is asked before the next connection is told would be asked again.
            } else if lost != Some(connection)
                && self.is_told_connected(key.guild)
                && self.known_people(key.guild, key.channel).is_some()
            {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Asks Discord to move the bot, unless the connection was made anew meanwhile. Returns false if there is nothing to wait
    /// for.
    async fn ask_for(&self, key: CallKey, link: u64, entry: Entry) -> bool {
        let CallKey { guild, channel, .. } = key;
        if entry == Entry::Again && self.people(guild, channel).is_empty() {
            // Nobody waits for it.
            self.end_call(key);
            return false;
        }
        let moves: &[Option<ChannelId>] = match entry {
            Entry::Moved => &[],
            // Discord says nothing to a bot that leaves and is in no channel.
            Entry::Again if self.is_in_voice(guild) => &[None, Some(channel)],
            Entry::Again | Entry::Come => &[Some(channel)],
        };
        for to in moves.iter().copied() {
            let is_wanted = self.with_call(key, |ongoing| ongoing.link.number == link);
            if is_wanted != Some(true) {
                return false;
            }
            if let Err(error) = self.ask_to_move(guild, to).await {
                // The gateway broke just now. The moves are asked for again.
                tracing::warn!(%error, "cannot ask Discord to move the bot");
                return true;
            }
        }
        true
    }

    /// Ends a call whose channel the bot did not reach.
    async fn give_up(&self, key: CallKey, link: u64) -> Arrival {
        {
            let mut calls = self.calls();
            let is_lost = |ongoing: &Ongoing| ongoing.number == key.number && ongoing.link.number == link;
            match calls.get(&key.guild).filter(|ongoing| is_lost(ongoing)) {
                None => return Arrival::Ended,
                Some(ongoing) if *ongoing.link.arrived.borrow() => return Arrival::There,
                Some(_) => {}
            }
            let ongoing = calls.remove(&key.guild);
            self.close(calls, key.guild, ongoing);
        }
        if let Err(error) = self.ask_to_move(key.guild, None).await {
            tracing::debug!(%error, "cannot leave a voice channel");
        }
        Arrival::TooLate
    }

    /// Brings the bot into the channel of a call again. If Discord does not let it in, the call ends, and the bot says so.
    pub(super) fn expect_arrival(self: &Arc<Self>, key: CallKey, entry: Entry) {
        let calls = self.clone();
        tokio::spawn(async move {
            match calls.arrive(key, entry).await {
                // Who came and who left meanwhile is known only from the description of the server.
                Arrival::There => calls.take(VoiceEvent::Look),
                Arrival::Ended => {}
                Arrival::TooLate => {
                    tracing::warn!(channel = %key.channel, "Discord does not let the bot into a voice channel again");
                    let why = match calls.check_way_in(key.guild, key.channel) {
                        Err(VoiceError::Full) => NO_ROOM,
                        Err(VoiceError::NoPermission) => NOT_ALLOWED,
                        _ => NOT_LET_IN,
                    };
                    calls.tell(key.channel, why).await;
                }
            }
        });
    }

    /// Asks Discord to move the bot into a channel, or out of the one it is in.
    pub(super) async fn ask_to_move(&self, guild: GuildId, channel: Option<ChannelId>) -> Result<(), VoiceError> {
        self.ask_to_move_if(guild, channel, || true).await
    }

    /// Asks the same if that is still wanted once the shard can be asked.
    pub(super) async fn ask_to_move_if(
        &self,
        guild: GuildId,
        channel: Option<ChannelId>,
        is_wanted: impl Fn() -> bool,
    ) -> Result<(), VoiceError> {
        let line = self.line()?;
        let is_muted = self.calls().get(&guild).is_some_and(|ongoing| ongoing.is_muted);
        let request = json!({"op": 4, "d": {"guild_id": guild, "channel_id": channel, "self_mute": is_muted, "self_deaf": false}});
        let runners = line.shards.runners.lock().await;
        let shard = line.shard_of(guild);
        let Some((_, runner)) = runners.iter().find(|(id, _)| id.0 == shard) else {
            return Err(VoiceError::Unavailable("My connection to Discord is down. Try again in a minute.".to_owned()));
        };
        if !is_wanted() {
            return Ok(());
        }
        let was_in = self.is_in_voice(guild);
        self.asked_moves().ask(guild, self.connection_of(guild), channel.is_some(), was_in);
        runner.runner_tx.websocket_message(Frame::Text(request.to_string()));
        Ok(())
    }

    pub(super) fn asked_moves(&self) -> MutexGuard<'_, AskedMoves> {
        self.asked_moves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a call for a channel, before Discord names its server.
    pub(super) async fn open(
        self: &Arc<Self>,
        guild: GuildId,
        channel: ChannelId,
        is_muted: bool,
    ) -> Result<(), VoiceError> {
        let unavailable = |why: String| VoiceError::Unavailable(why);
        let (speech, host) =
            self.speech.get().ok_or_else(|| unavailable("Speech is off in this process.".to_owned()))?;
        let engines = speech.engines().await.map_err(unavailable)?;
        let chat = id::voice_chat(channel).map_err(|error| unavailable(error.to_string()))?;
        let persona = host.call_persona(&self.platform, &chat).await.map_err(|error| unavailable(error.in_words()))?;
        let CallPersona { names, manner: own } = persona;
        let engines = engines.with_manner(&manner(own)).sending_code();
        let persona = names.first().cloned().unwrap_or_default();
        let settings = Settings { names, ..Settings::default() };
        let (call, reports) = join(engines, settings, person_of).map_err(|error| unavailable(error.to_string()))?;
        let number = self.opened.fetch_add(1, Ordering::AcqRel) + 1;
        let key = CallKey { guild, channel, number };
        let ongoing = Ongoing {
            channel,
            number,
            call: call.clone(),
            link: Link::new(),
            told: BTreeSet::new(),
            is_muted,
            is_silenced: false,
            is_unheard: false,
            is_deafened: false,
            told_failures: BTreeSet::new(),
            persona,
            speakers: Speakers::default(),
            questions: Questions::opening(),
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
        self.followed().spawn(self.clone().follow(key, reports, followed));
        self.look_who_hears(guild, channel, None);
        for user in self.people(guild, channel) {
            self.joined(guild, channel, user).await;
        }
        let calls = self.clone();
        // Discord may take long to show the question.
        tokio::spawn(async move { calls.ask_those_who_wait(key).await });
        Ok(())
    }
}

/// Returns the person of a user id.
fn person_of(user: u64) -> Option<PersonId> {
    if user == 0 { None } else { id::person(UserId::new(user)).ok() }
}
