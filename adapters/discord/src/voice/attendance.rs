//! Who heard all that was said in a voice channel since when. A person who missed anything has heard nothing from before.
//!
//! It is kept on disk before anything is recorded that somebody missed. Without the file everybody starts anew, so that
//! nobody is shown what they did not hear.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use azera_types::Timestamp;
use serenity::all::{ChannelId, UserId};

/// By channel and person: the time in milliseconds since 1970 from which they heard everything.
type Since = BTreeMap<ChannelId, BTreeMap<UserId, i64>>;

/// What is known, and how often it changed in a way that must be on disk.
struct Known {
    since: Since,
    changes: u64,
}

/// Who heard what.
pub(super) struct Attendance {
    path: PathBuf,
    known: Mutex<Known>,
    /// Held while the file is written. Nobody who only asks waits for it.
    writing: Mutex<()>,
    /// How many of the changes are on disk.
    written: AtomicU64,
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
        let known = Known { since: since.unwrap_or_default(), changes: 0 };
        Self { path, known: Mutex::new(known), writing: Mutex::default(), written: AtomicU64::default() }
    }

    /// Records that a person is in a channel. If they missed nothing since they were there before, that time counts on.
    pub(super) fn came(&self, channel: ChannelId, user: UserId, now: Timestamp) {
        self.lock().since.entry(channel).or_default().entry(user).or_insert(now.as_millisecond());
    }

    /// Returns true if a person heard everything in a channel since some time.
    pub(super) fn is_there(&self, channel: ChannelId, user: UserId) -> bool {
        self.lock().since.get(&channel).is_some_and(|there| there.contains_key(&user))
    }

    /// Records that something is about to be said before these people. All others miss it. Returns true if [`Attendance::keep`]
    /// must write that first.
    pub(super) fn said_before(&self, channel: ChannelId, present: &BTreeSet<UserId>) -> bool {
        let mut known = self.lock();
        if let Some(there) = known.since.get_mut(&channel) {
            let before = there.len();
            there.retain(|user, _| present.contains(user));
            known.changes += u64::from(there.len() != before);
        }
        known.changes > self.written.load(Ordering::Acquire)
    }

    /// Writes what changed. It waits for the disk.
    ///
    /// # Errors
    /// The file cannot be written. Then nothing may be recorded.
    pub(super) fn keep(&self) -> std::io::Result<()> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let (bytes, changes) = {
            let known = self.lock();
            if known.changes == self.written.load(Ordering::Acquire) {
                return Ok(());
            }
            (serde_json::to_vec(&known.since)?, known.changes)
        };
        azera_files::write(&self.path, &bytes)?;
        self.written.store(changes, Ordering::Release);
        Ok(())
    }

    /// Returns the time from which all these people heard everything in a channel.
    pub(super) fn since(&self, channel: ChannelId, present: &BTreeSet<UserId>, now: Timestamp) -> Timestamp {
        let all = self.lock();
        let there = all.since.get(&channel);
        let since = |user: &UserId| there.and_then(|there| there.get(user)).copied();
        let newest = present.iter().map(|user| since(user).unwrap_or(now.as_millisecond())).max();
        newest.and_then(|newest| Timestamp::from_millisecond(newest).ok()).unwrap_or(now)
    }

    /// Returns the channels of which a person heard everything, each with the time since when.
    pub(super) fn of(&self, user: UserId) -> Vec<(ChannelId, Timestamp)> {
        let all = self.lock();
        let theirs = all.since.iter().filter_map(|(channel, there)| Some((*channel, *there.get(&user)?)));
        theirs.filter_map(|(channel, since)| Some((channel, Timestamp::from_millisecond(since).ok()?))).collect()
    }

    /// Forgets channels. Returns true if [`Attendance::keep`] must write that.
    pub(super) fn forget(&self, channels: &[ChannelId]) -> bool {
        let mut known = self.lock();
        let before = known.since.len();
        known.since.retain(|channel, _| !channels.contains(channel));
        known.changes += u64::from(known.since.len() != before);
        known.changes > self.written.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn said_before(attendance: &Attendance, present: &BTreeSet<UserId>) {
        if attendance.said_before(ROOM, present) {
            attendance.keep().unwrap();
        }
    }

    #[test]
    fn nobody_is_shown_what_they_did_not_hear() {
        let folder = tempfile::tempdir().unwrap();
        let attendance = Attendance::open(folder.path());
        let (ann, both) = (BTreeSet::from([ANN]), BTreeSet::from([ANN, BOB]));
        attendance.came(ROOM, ANN, at(100));
        said_before(&attendance, &ann);
        assert_eq!(attendance.since(ROOM, &ann, at(150)), at(100));
        attendance.came(ROOM, BOB, at(200));
        said_before(&attendance, &both);
        assert_eq!(attendance.since(ROOM, &both, at(250)), at(200), "Bob came later");
        assert_eq!(attendance.since(ROOM, &ann, at(250)), at(100), "alone, Ann knows all");
        // Bob is gone while something is said. What he heard before no longer counts.
        said_before(&attendance, &ann);
        assert_eq!(attendance.of(BOB), []);
        attendance.came(ROOM, BOB, at(300));
        assert_eq!(attendance.since(ROOM, &both, at(350)), at(300));
        // Nothing is said while both are gone, so Ann missed nothing. Bob was not written down: he starts anew.
        drop(attendance);
        let attendance = Attendance::open(folder.path());
        attendance.came(ROOM, ANN, at(900));
        assert_eq!(attendance.of(ANN), [(ROOM, at(100))]);
        assert_eq!(attendance.since(ROOM, &both, at(950)), at(950), "nobody saw Bob come");
        assert!(attendance.forget(&[ROOM]));
        attendance.keep().unwrap();
        assert_eq!(Attendance::open(folder.path()).of(ANN), []);
    }

    #[test]
    fn what_the_disk_refused_is_written_before_anything_else_is_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let away = folder.path().join("away");
        let attendance = Attendance::open(&away);
        let ann = BTreeSet::from([ANN]);
        attendance.came(ROOM, ANN, at(100));
        attendance.came(ROOM, BOB, at(100));
        assert!(attendance.said_before(ROOM, &ann), "Bob misses it");
        attendance.keep().unwrap_err();
        assert!(attendance.said_before(ROOM, &ann), "nobody else left, and still it is not on disk");
        std::fs::create_dir(&away).unwrap();
        attendance.keep().unwrap();
        assert!(!attendance.said_before(ROOM, &ann));
        assert_eq!(Attendance::open(&away).of(BOB), []);
    }
}
