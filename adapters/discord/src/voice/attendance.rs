//! Who heard all that was said in a voice channel since when. A person who missed anything has heard nothing from before.
//!
//! It is kept on disk before anything is recorded that somebody missed. Without the file everybody starts anew, so that
//! nobody is shown what they did not hear.
//!
//! While the gateway is lost, it is not known who is there. If the loss is noticed and something is said meanwhile, nobody
//! counts as having heard anything in that channel until Discord repeated the events of that time. If it does not, that
//! stays so. A loss that is not noticed, because Discord asks for another connection or closes this one, is corrected by
//! what Discord repeats: until then, those who were there before count as hearers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use azera_types::Timestamp;
use serenity::all::{ChannelId, GuildId, UserId};

/// By channel and person: the time in milliseconds since 1970 from which they heard everything.
type Since = BTreeMap<ChannelId, BTreeMap<UserId, i64>>;

/// What is known, and how often it changed in a way that must be on disk.
struct Known {
    since: Since,
    /// The channels in which something was said while it was not known who is there, with their servers.
    in_doubt: BTreeMap<ChannelId, GuildId>,
    changes: u64,
}

impl Known {
    /// Returns since when whom is known to have heard everything in a channel.
    fn certain(&self, channel: ChannelId) -> Option<&BTreeMap<UserId, i64>> {
        self.since.get(&channel).filter(|_| !self.in_doubt.contains_key(&channel))
    }
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
        let known = Known { since: since.unwrap_or_default(), in_doubt: BTreeMap::new(), changes: 0 };
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

    /// Records that a person missed what was said in a channel. [`Attendance::keep`] must write it.
    pub(super) fn missed(&self, channel: ChannelId, user: UserId) {
        let mut known = self.lock();
        let is_news = known.since.get_mut(&channel).is_some_and(|there| there.remove(&user).is_some());
        known.changes += u64::from(is_news);
    }

    /// Records that something is said while it is not known who is there. Until [`Attendance::settle`], nobody counts as
    /// having heard anything in the channel. Returns true if [`Attendance::keep`] must write that first.
    pub(super) fn doubt(&self, guild: GuildId, channel: ChannelId) -> bool {
        let mut known = self.lock();
        let is_news = known.in_doubt.insert(channel, guild).is_none();
        known.changes += u64::from(is_news);
        known.changes > self.written.load(Ordering::Acquire)
    }

    /// Returns true if it is in doubt who heard what was said in a channel.
    pub(super) fn is_in_doubt(&self, channel: ChannelId) -> bool {
        self.lock().in_doubt.contains_key(&channel)
    }

    /// Ends the doubt in some servers. If it was told meanwhile who came and left, those who missed nothing count again;
    /// otherwise nobody does. [`Attendance::keep`] must write it.
    pub(super) fn settle(&self, is_settled: impl Fn(GuildId) -> bool, was_told: bool) {
        let mut known = self.lock();
        let doubted = known.in_doubt.iter().filter(|(_, guild)| is_settled(**guild));
        let settled: Vec<ChannelId> = doubted.map(|(channel, _)| *channel).collect();
        for channel in &settled {
            known.in_doubt.remove(channel);
            if !was_told {
                known.since.remove(channel);
            }
        }
        known.changes += u64::from(!settled.is_empty());
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
            let certain: BTreeMap<ChannelId, &BTreeMap<UserId, i64>> =
                known.since.keys().filter_map(|channel| Some((*channel, known.certain(*channel)?))).collect();
            (serde_json::to_vec(&certain)?, known.changes)
        };
        azera_files::write(&self.path, &bytes)?;
        self.written.store(changes, Ordering::Release);
        Ok(())
    }

    /// Returns the time from which all these people heard everything in a channel.
    pub(super) fn since(&self, channel: ChannelId, present: &BTreeSet<UserId>, now: Timestamp) -> Timestamp {
        let all = self.lock();
        let there = all.certain(channel);
        let since = |user: &UserId| there.and_then(|there| there.get(user)).copied();
        let newest = present.iter().map(|user| since(user).unwrap_or(now.as_millisecond())).max();
        newest.and_then(|newest| Timestamp::from_millisecond(newest).ok()).unwrap_or(now)
    }

    /// Returns the channels of which a person heard everything, each with the time since when.
    pub(super) fn of(&self, user: UserId) -> Vec<(ChannelId, Timestamp)> {
        let all = self.lock();
        let theirs = all.since.keys().filter_map(|channel| Some((*channel, *all.certain(*channel)?.get(&user)?)));
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
    fn what_was_said_in_doubt_is_for_nobody_until_it_is_told_who_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let attendance = Attendance::open(folder.path());
        let (server, other) = (GuildId::new(1), GuildId::new(2));
        let on_disk = |user: UserId| Attendance::open(folder.path()).of(user);
        attendance.came(ROOM, ANN, at(100));
        attendance.came(ROOM, BOB, at(100));
        assert!(attendance.doubt(server, ROOM));
        attendance.keep().unwrap();
        assert!(!attendance.doubt(server, ROOM), "it is on disk");
        assert!(attendance.is_in_doubt(ROOM));
        assert_eq!((attendance.of(ANN), on_disk(ANN)), (vec![], vec![]));
        assert_eq!(attendance.since(ROOM, &BTreeSet::from([ANN]), at(150)), at(150));
        assert!(attendance.is_there(ROOM, ANN), "nothing is known against it");
        attendance.settle(|guild| guild == other, true);
        assert_eq!(attendance.of(ANN), []);
        // Bob was away meanwhile, and Ann was not.
        attendance.missed(ROOM, BOB);
        attendance.settle(|guild| guild == server, true);
        assert!(!attendance.is_in_doubt(ROOM));
        attendance.keep().unwrap();
        assert_eq!((attendance.of(ANN), on_disk(ANN)), (vec![(ROOM, at(100))], vec![(ROOM, at(100))]));
        assert_eq!((attendance.of(BOB), on_disk(BOB)), (vec![], vec![]));
        // Nobody tells who was there.
        attendance.doubt(server, ROOM);
        attendance.settle(|guild| guild == server, false);
        attendance.keep().unwrap();
        assert_eq!((attendance.of(ANN), on_disk(ANN)), (vec![], vec![]));
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
