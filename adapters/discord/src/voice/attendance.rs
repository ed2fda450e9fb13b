//! Who heard all that was said in a voice channel since when. A person who missed anything has heard nothing from before.
//!
//! It is kept on disk before anything is recorded that somebody missed. Without the file everybody starts anew, so that
//! nobody is shown what they did not hear.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use azera_types::Timestamp;
use serenity::all::{ChannelId, UserId};

/// By channel and person: the time in milliseconds since 1970 from which they heard everything.
type Since = BTreeMap<ChannelId, BTreeMap<UserId, i64>>;

/// Who heard what.
pub(super) struct Attendance {
    path: PathBuf,
    since: Mutex<Since>,
}

impl Attendance {
    /// Reads the file in a folder. A damaged one counts as missing.
    pub(super) fn open(folder: &Path) -> Self {
        let path = folder.join("discord-voice.json");
        let read = std::fs::read(&path).ok();
        let since = read.and_then(|bytes| {
            serde_json::from_slice(&bytes)
                .inspect_err(|error| tracing::warn!(%error, "cannot read who was in voice channels; starting anew"))
                .ok()
        });
        Self { path, since: Mutex::new(since.unwrap_or_default()) }
    }

    /// Records that a person is in a channel. If they missed nothing since they were there before, that time counts on.
    pub(super) fn came(&self, channel: ChannelId, user: UserId, now: Timestamp) {
        self.lock().entry(channel).or_default().entry(user).or_insert(now.as_millisecond());
    }

    /// Returns true if a person heard everything in a channel since some time.
    pub(super) fn is_there(&self, channel: ChannelId, user: UserId) -> bool {
        self.lock().get(&channel).is_some_and(|there| there.contains_key(&user))
    }

    /// Records that something is about to be said before these people. All others miss it.
    ///
    /// # Errors
    /// The file cannot be written. Then nothing may be recorded.
    pub(super) fn said_before(&self, channel: ChannelId, present: &BTreeSet<UserId>) -> std::io::Result<()> {
        let mut since = self.lock();
        let Some(there) = since.get_mut(&channel) else { return Ok(()) };
        let before = there.len();
        there.retain(|user, _| present.contains(user));
        if there.len() == before { Ok(()) } else { self.write(&since) }
    }

    /// Returns the time from which all these people heard everything in a channel.
    pub(super) fn since(&self, channel: ChannelId, present: &BTreeSet<UserId>, now: Timestamp) -> Timestamp {
        let all = self.lock();
        let there = all.get(&channel);
        let since = |user: &UserId| there.and_then(|there| there.get(user)).copied();
        let newest = present.iter().map(|user| since(user).unwrap_or(now.as_millisecond())).max();
        newest.and_then(|newest| Timestamp::from_millisecond(newest).ok()).unwrap_or(now)
    }

    /// Returns the channels of which a person heard everything, each with the time since when.
    pub(super) fn of(&self, user: UserId) -> Vec<(ChannelId, Timestamp)> {
        let all = self.lock();
        let theirs = all.iter().filter_map(|(channel, there)| Some((*channel, *there.get(&user)?)));
        theirs.filter_map(|(channel, since)| Some((channel, Timestamp::from_millisecond(since).ok()?))).collect()
    }

    /// Forgets channels.
    pub(super) fn forget(&self, channels: &[ChannelId]) {
        let mut since = self.lock();
        let before = since.len();
        since.retain(|channel, _| !channels.contains(channel));
        if since.len() != before
            && let Err(error) = self.write(&since)
        {
            tracing::warn!(%error, "cannot write who was in voice channels");
        }
    }

    /// Writes the file atomically.
    fn write(&self, since: &Since) -> std::io::Result<()> {
        let temporary = self.path.with_extension("json.new");
        let mut file = std::fs::File::create(&temporary)?;
        file.write_all(&serde_json::to_vec(since)?)?;
        file.sync_all()?;
        std::fs::rename(&temporary, &self.path)
    }

    fn lock(&self) -> MutexGuard<'_, Since> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: ChannelId = ChannelId::new(1);
    const ANN: UserId = UserId::new(10);
    const BOB: UserId = UserId::new(11);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn nobody_is_shown_what_they_did_not_hear() {
        let folder = tempfile::tempdir().unwrap();
        let attendance = Attendance::open(folder.path());
        let (ann, both) = (BTreeSet::from([ANN]), BTreeSet::from([ANN, BOB]));
        attendance.came(ROOM, ANN, at(100));
        attendance.said_before(ROOM, &ann).unwrap();
        assert_eq!(attendance.since(ROOM, &ann, at(150)), at(100));
        attendance.came(ROOM, BOB, at(200));
        attendance.said_before(ROOM, &both).unwrap();
        assert_eq!(attendance.since(ROOM, &both, at(250)), at(200), "Bob came later");
        assert_eq!(attendance.since(ROOM, &ann, at(250)), at(100), "alone, Ann knows all");
        // Bob is gone while something is said. What he heard before no longer counts.
        attendance.said_before(ROOM, &ann).unwrap();
        assert_eq!(attendance.of(BOB), []);
        attendance.came(ROOM, BOB, at(300));
        assert_eq!(attendance.since(ROOM, &both, at(350)), at(300));
        // Nothing is said while both are gone, so Ann missed nothing. Bob was not written down: he starts anew.
        drop(attendance);
        let attendance = Attendance::open(folder.path());
        attendance.came(ROOM, ANN, at(900));
        assert_eq!(attendance.of(ANN), [(ROOM, at(100))]);
        assert_eq!(attendance.since(ROOM, &both, at(950)), at(950), "nobody saw Bob come");
        attendance.forget(&[ROOM]);
        assert_eq!(Attendance::open(folder.path()).of(ANN), []);
    }
}
