//! Calls that end, and what must be on disk by then.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serenity::all::{ChannelId, GuildId, UserId};
use tokio::task::JoinSet;

use super::{CallKey, Ongoing, VoiceCalls};

/// How long calls may take to end when the process does.
const ENDING: Duration = Duration::from_secs(5);

/// The room of a call, with its server.
type Room = (GuildId, ChannelId);

/// The rooms of calls that end. They stay places until what was said there is recorded.
#[derive(Default)]
pub(super) struct Ending(Arc<Mutex<Rooms>>);

#[derive(Default)]
struct Rooms {
    /// One entry for each task that handles what a call reports.
    followed: Vec<Room>,
    /// One entry for each call that ended while such a task goes on.
    ending: Vec<Room>,
}

/// Stands for the task that handles what a call in a room reports. Once it is dropped, also by a panic, the room of a call that
/// ended, or ends later, is no place any more: nothing of it will be recorded.
pub(super) struct Followed {
    rooms: Arc<Mutex<Rooms>>,
    room: Room,
}

impl Rooms {
    fn count(rooms: &[Room], room: Room) -> usize {
        rooms.iter().filter(|other| **other == room).count()
    }

    fn remove_one(rooms: &mut Vec<Room>, room: Room) {
        if let Some(at) = rooms.iter().position(|other| *other == room) {
            rooms.swap_remove(at);
        }
    }
}

impl Ending {
    /// Notes that a call ends.
    fn add(&self, room: Room) {
        let mut rooms = locked(&self.0);
        if Rooms::count(&rooms.ending, room) < Rooms::count(&rooms.followed, room) {
            rooms.ending.push(room);
        }
    }

    /// Notes that a task handles what a call reports, for as long as it holds the result.
    pub(super) fn follow(&self, room: Room) -> Followed {
        locked(&self.0).followed.push(room);
        Followed { rooms: Arc::clone(&self.0), room }
    }

    /// Returns the rooms, also of calls that go on.
    pub(super) fn rooms(&self) -> Vec<Room> {
        locked(&self.0).followed.clone()
    }

    fn guild_of(&self, channel: ChannelId) -> Option<GuildId> {
        locked(&self.0).ending.iter().find(|(_, room)| *room == channel).map(|(guild, _)| *guild)
    }
}

fn locked(rooms: &Mutex<Rooms>) -> MutexGuard<'_, Rooms> {
    rooms.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Followed {
    fn drop(&mut self) {
        let mut rooms = locked(&self.rooms);
        Rooms::remove_one(&mut rooms.followed, self.room);
        if Rooms::count(&rooms.ending, self.room) > Rooms::count(&rooms.followed, self.room) {
            Rooms::remove_one(&mut rooms.ending, self.room);
        }
    }
}

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
            calls.iter().for_each(|(guild, ongoing)| self.ending.add((*guild, ongoing.channel)));
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
            self.ending.add((guild, ongoing.channel));
            self.has_ended((guild, ongoing.channel));
        }
        drop(calls);
        if let Some(ongoing) = ongoing {
            ongoing.close();
        }
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
        there.or_else(|| self.ending.guild_of(channel))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_of_a_call_is_a_place_until_what_was_said_is_recorded_and_not_behind_a_panic() {
        let (ending, room) = (Ending::default(), (GuildId::new(1), ChannelId::new(2)));
        let is_place = || ending.guild_of(room.1) == Some(room.0);
        let followed = ending.follow(room);
        assert!(!is_place(), "it is one by the call itself");
        ending.add(room);
        assert!(is_place());
        drop(followed);
        assert!(!is_place());
        // The call goes on for a while after the panic.
        let followed = ending.follow(room);
        let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| -> u8 {
            let _followed = followed;
            panic!("as it should");
        }));
        assert!(panics.is_err());
        ending.add(room);
        assert!(!is_place(), "nobody would remove it");
    }

    #[test]
    fn calls_one_after_another_in_a_room_do_not_end_each_other() {
        let (ending, room) = (Ending::default(), (GuildId::new(1), ChannelId::new(2)));
        let is_place = || ending.guild_of(room.1).is_some();
        let (first, second) = (ending.follow(room), ending.follow(room));
        ending.add(room);
        drop(second);
        assert!(is_place(), "the first is still recorded");
        drop(first);
        assert!(!is_place());
    }
}
