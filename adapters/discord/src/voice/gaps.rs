//! What is said while the gateway is lost. Then it is not known who comes and who leaves.
//!
//! A session that is resumed repeats who came and who left meanwhile, and that decides who heard what. A new session, and a
//! server after an outage, repeat nothing: nobody counts as having heard what was said before, because anybody may have
//! been away for a part of it. The loss itself may be noticed late or never, so this does not depend on when it was noticed,
//! and it also holds for calls that ended lately.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use serenity::all::{ChannelId, GuildId, UserId, VoiceState};
use serenity::gateway::ConnectionStage;
use tokio::time::Instant;

use super::lost_shards::LostShards;
use super::{VoiceCalls, VoiceEvent};

/// The longest time from an event that a resumed session repeats to its end.
const REPEATED: Duration = Duration::from_secs(10);

/// How long after the end of a call it may be told who was away before.
const TOLD_LATE: Duration = Duration::from_secs(10 * 60);

/// Somebody left, or was deafened, while nobody else heard or after the call.
struct Last {
    at: Instant,
    room: (GuildId, ChannelId),
    user: UserId,
}

/// What is known of the connections to the gateway.
#[derive(Default)]
pub(super) struct Gaps {
    lost: LostShards,
    /// Those who left lately as the last. They missed nothing, unless the event came late.
    last: Vec<Last>,
    /// The rooms of calls, with when they ended: those that ended lately, or whose hearers are in doubt.
    ended: Vec<(Instant, (GuildId, ChannelId))>,
}

/// Returns how often a shard was connected to the gateway.
pub(super) fn connection_in(returns: &HashMap<u32, u64>, shard: u32) -> u64 {
    returns.get(&shard).copied().unwrap_or_default()
}

impl VoiceCalls {
    fn gaps(&self) -> MutexGuard<'_, Gaps> {
        self.gaps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if a shard tells what happens in a server.
    pub(super) fn is_on(&self, shard: u32, guild: GuildId) -> bool {
        self.line.get().is_some_and(|line| line.shard_of(guild) == shard)
    }

    /// Takes in at once what an event tells about the gateway. Other events may still wait.
    pub(super) fn take_gap(&self, event: &VoiceEvent) {
        match event {
            VoiceEvent::Lost(shard) => {
                self.gaps().lost.note_lost(*shard);
            }
            VoiceEvent::Back { shard, is_new } => {
                self.gaps().lost.note_back(*shard);
                if *is_new {
                    self.nobody_heard(|guild| self.is_on(*shard, guild));
                }
                self.returns.send_modify(|returns| *returns.entry(*shard).or_default() += 1);
            }
            VoiceEvent::Away(gone) => self.nobody_heard(|guild| guild == *gone),
            VoiceEvent::Missed => {
                self.gaps().lost.note_missing_events();
                self.nobody_heard(|_| true);
                // That a shard is connected again may be among what was missed.
                self.returns.send_modify(|returns| {
                    if let Some(line) = self.line.get() {
                        line.shards().for_each(|shard| *returns.entry(shard).or_default() += 1);
                    }
                });
            }
            VoiceEvent::State(_) | VoiceEvent::Server(_) | VoiceEvent::Look | VoiceEvent::Gone(_) => {}
        }
    }

    /// Returns how often the shard of a server was connected to the gateway, as far as that was told.
    pub(super) fn connection_of(&self, guild: GuildId) -> u64 {
        self.line.get().map_or(0, |line| connection_in(&self.returns.borrow(), line.shard_of(guild)))
    }

    /// Returns true if the shard of a server is not told to have lost the gateway, and was told to be connected.
    pub(super) fn is_told_connected(&self, guild: GuildId) -> bool {
        let Some(line) = self.line.get() else { return false };
        self.connection_of(guild) > 0 && !self.gaps().lost.is_told(line.shard_of(guild))
    }

    /// Returns true if the shard of a server may have lost the gateway. `is_connected` is what it counts as now.
    pub(super) fn may_be_lost(&self, guild: GuildId, is_connected: bool) -> bool {
        let Some(line) = self.line.get() else { return true };
        let is_told = self.gaps().lost.may_be_lost(line.shard_of(guild), is_connected);
        is_told || !is_connected
    }

    /// Returns true if everything was handled that the gateway told before the newest connection of a server's shard.
    pub(super) fn is_caught_up(&self, guild: GuildId) -> bool {
        let Some(line) = self.line.get() else { return false };
        let handled = self.asked_moves().handled(line.shard_of(guild));
        self.is_told_connected(guild) && handled == self.connection_of(guild)
    }

    /// Records that anybody may have missed something that was said in the rooms of some servers.
    fn nobody_heard(&self, is_meant: impl Fn(GuildId) -> bool) {
        let mut rooms: Vec<(GuildId, ChannelId)> =
            self.calls().iter().map(|(guild, ongoing)| (*guild, ongoing.channel)).collect();
        rooms.extend(self.ending.rooms());
        rooms.extend(self.ended_rooms());
        for (_, channel) in rooms.into_iter().filter(|(guild, _)| is_meant(*guild)) {
            self.attendance.said_before(channel, &BTreeSet::new());
        }
    }

    /// Notes that a call in a room ended.
    pub(super) fn has_ended(&self, room: (GuildId, ChannelId)) {
        self.gaps().ended.push((Instant::now(), room));
    }

    fn ended_rooms(&self) -> Vec<(GuildId, ChannelId)> {
        let mut gaps = self.gaps();
        gaps.ended.retain(|(at, (_, room))| at.elapsed() < TOLD_LATE || self.attendance.is_in_doubt(*room));
        gaps.ended.iter().map(|(_, room)| *room).collect()
    }

    /// Takes in where somebody is, for calls that are over: if a session that is resumed repeats it, they may have been
    /// away before the end.
    pub(super) fn is_told_late(&self, guild: GuildId, state: &VoiceState) {
        for room in self.ended_rooms().into_iter().filter(|room| room.0 == guild) {
            let hears = state.channel_id == Some(room.1) && !state.deaf && !state.self_deaf;
            if !hears && self.attendance.is_there(room.1, state.user_id) {
                self.was_last(room, state.user_id);
            }
        }
    }

    /// Takes in that the gateway is connected again, after the events that it repeated.
    pub(super) async fn gap_is_over(self: &Arc<Self>, shard: u32, is_new: bool) {
        let last = {
            let mut gaps = self.gaps();
            let all = std::mem::take(&mut gaps.last);
            let (last, others): (Vec<Last>, Vec<Last>) =
                all.into_iter().partition(|last| self.is_on(shard, last.room.0));
            gaps.last = others;
            last
        };
        // Others may have gone on without them, and left, too.
        for last in last.into_iter().filter(|last| last.at.elapsed() < REPEATED) {
            self.attendance.missed(last.room.1, last.user);
        }
        self.attendance.settle(|guild| self.is_on(shard, guild), !is_new);
        self.keep_gap().await;
    }

    /// Ends all doubt, because events were lost.
    pub(super) async fn events_are_missing(self: &Arc<Self>) {
        self.attendance.settle(|_| true, false);
        self.keep_gap().await;
    }

    pub(super) async fn keep_gap(self: &Arc<Self>) {
        // What is said next is recorded only once this is on disk.
        if let Err(error) = self.keep_attendance().await {
            tracing::error!(%error, "cannot write who heard what in voice channels");
        }
    }

    /// Notes that somebody left, or was deafened, while nobody else heard or after the call.
    pub(super) fn was_last(&self, room: (GuildId, ChannelId), user: UserId) {
        let mut gaps = self.gaps();
        gaps.last.retain(|last| last.at.elapsed() < REPEATED);
        gaps.last.push(Last { at: Instant::now(), room, user });
    }

    /// Records who hears what somebody just said. While the gateway is lost, nobody is known to.
    ///
    /// # Errors
    /// That cannot be written. Then nothing may be recorded.
    pub(super) async fn is_said(self: &Arc<Self>, guild: GuildId, channel: ChannelId) -> std::io::Result<()> {
        if let Some(written) = self.doubt(guild, channel).await {
            return written;
        }
        let hearers = if self.is_connected(guild).await { self.hearers(guild, channel) } else { BTreeSet::new() };
        self.said_before(channel, &hearers).await
    }

    /// Records who heard what the bot said. Nobody did if it is not known who was there.
    ///
    /// # Errors
    /// That cannot be written. Then nothing may be recorded.
    pub(super) async fn is_uttered(self: &Arc<Self>, guild: GuildId, channel: ChannelId) -> std::io::Result<()> {
        if let Some(written) = self.doubt(guild, channel).await {
            return written;
        }
        if self.is_connected(guild).await && self.known_people(guild, channel).is_some() {
            return Ok(());
        }
        self.said_before(channel, &BTreeSet::new()).await
    }

    /// Puts it in doubt who hears what is said while the gateway is lost. Returns `None` if it is not, or if its shard does
    /// not run: then a new session follows, which repeats nothing.
    async fn doubt(self: &Arc<Self>, guild: GuildId, channel: ChannelId) -> Option<std::io::Result<()>> {
        let shard = self.line.get()?.shard_of(guild);
        let noticed = {
            let gaps = self.gaps();
            // The gateway cannot be back before this is known.
            gaps.lost.is_told(shard).then(|| self.put_in_doubt(guild, channel))
        };
        if noticed == Some(false) {
            return Some(Ok(()));
        }
        if noticed.is_none() {
            // No event tells of the loss if Discord asks for another connection, or closes this one.
            if self.stage_of(guild).await.is_none_or(|stage| stage == ConnectionStage::Connected) {
                return None;
            }
            self.put_in_doubt(guild, channel);
            // If the gateway came back just now, nothing else ends the doubt.
            if self.is_connected(guild).await && !self.gaps().lost.is_told(shard) {
                self.attendance.settle(|other| other == guild, false);
            }
        }
        Some(self.keep_attendance().await)
    }

    /// Puts it in doubt who hears what is said in a channel. Returns true if that must be written first.
    fn put_in_doubt(&self, guild: GuildId, channel: ChannelId) -> bool {
        // Whoever left before the gateway was lost misses it in any case.
        let before = self.known_hearers(guild, channel).unwrap_or_default();
        self.attendance.said_before(channel, &before);
        self.attendance.doubt(guild, channel)
    }
}
