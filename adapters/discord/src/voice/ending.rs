//! Calls that end, and what must be on disk by then.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use serenity::all::{ChannelId, GuildId, UserId};
use tokio::task::JoinSet;

use super::{CallKey, Ongoing, VoiceCalls};

/// How long calls may take to end when the process does.
const ENDING: Duration = Duration::from_secs(5);

impl VoiceCalls {
    pub(super) fn followed(&self) -> MutexGuard<'_, JoinSet<()>> {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        while followed.try_join_next().is_some() {}
        followed
    }

    /// Ends all calls, and waits until it is recorded what people said and how much of each reply was heard.
    pub(crate) async fn end_all(&self) {
        let calls: Vec<Ongoing> = {
            let mut calls = self.calls();
            self.ending().extend(calls.iter().map(|(guild, ongoing)| (*guild, ongoing.channel)));
            calls.drain().map(|(_, ongoing)| ongoing).collect()
        };
        for ongoing in calls {
            ongoing.close();
        }
        let mut followed = std::mem::take(&mut *self.followed());
        let recorded = async { while followed.join_next().await.is_some() {} };
        if tokio::time::timeout(ENDING, recorded).await.is_err() {
            followed.detach_all();
            let lost = self.unrecorded.load(Ordering::Acquire);
            tracing::error!(
                lost,
                "a call did not end in time: `lost` utterances may not be recorded, and its last reply stays whole in the record"
            );
        }
    }

    /// Ends the call in a server.
    pub(super) fn end(&self, guild: GuildId) {
        let mut calls = self.calls();
        let ongoing = calls.remove(&guild);
        self.close(calls, guild, ongoing);
    }

    /// Ends a call, unless it is over.
    pub(super) fn end_call(&self, key: CallKey) {
        let mut calls = self.calls();
        let is_there = calls.get(&key.guild).is_some_and(|ongoing| ongoing.number == key.number);
        let ongoing = if is_there { calls.remove(&key.guild) } else { None };
        self.close(calls, key.guild, ongoing);
    }

    /// Closes a call that was just taken from the others. Its room stays a place, without a gap, until
    /// [`VoiceCalls::follow`] is done with it.
    pub(super) fn close(
        &self,
        calls: MutexGuard<'_, HashMap<GuildId, Ongoing>>,
        guild: GuildId,
        ongoing: Option<Ongoing>,
    ) {
        if let Some(ongoing) = &ongoing {
            self.ending().push((guild, ongoing.channel));
        }
        drop(calls);
        if let Some(ongoing) = ongoing {
            ongoing.close();
        }
    }

    pub(super) fn ending(&self) -> MutexGuard<'_, Vec<(GuildId, ChannelId)>> {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that something is about to be said before these people.
    ///
    /// # Errors
    /// That cannot be written. Then nothing may be recorded.
    pub(super) async fn said_before(
        self: &Arc<Self>,
        channel: ChannelId,
        people: &BTreeSet<UserId>,
    ) -> std::io::Result<()> {
        if self.attendance.said_before(channel, people) { self.keep_attendance().await } else { Ok(()) }
    }

    pub(super) async fn keep_attendance(self: &Arc<Self>) -> std::io::Result<()> {
        let calls = self.clone();
        let kept = tokio::task::spawn_blocking(move || calls.attendance.keep());
        kept.await.unwrap_or_else(|error| Err(std::io::Error::other(error)))
    }

    /// Returns the server of a room with the bot in it, also of one that it is leaving.
    pub(super) fn guild_of_room(&self, channel: ChannelId) -> Option<GuildId> {
        let there = self.calls().iter().find(|(_, ongoing)| ongoing.channel == channel).map(|(guild, _)| *guild);
        let left = || self.ending().iter().find(|(_, room)| *room == channel).map(|(guild, _)| *guild);
        there.or_else(left)
    }
}
