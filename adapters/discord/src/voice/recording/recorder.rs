//! Where recordings are kept, and what holds for all of them.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use azera_adapter::VoiceError;
use azera_voice_call_recordings::RecordingFolder;
use serenity::all::ChannelId;
use tokio::time::Instant;

/// Shortest time between two questions for a recording in a voice channel, because everybody there is called each time.
const COOLDOWN: Duration = Duration::from_secs(60);

/// Where recordings are kept, and how long one may be.
pub(in crate::voice) struct Recorder {
    pub(super) folder: RecordingFolder,
    pub(super) most: Duration,
    /// When somebody asked for one lately, by voice channels.
    begun: Mutex<HashMap<ChannelId, Instant>>,
    /// The shards whose connection is lost, as far as that was told. Their stage may not show it yet, or show another
    /// connection that has not repeated all events.
    lost: Mutex<BTreeSet<u32>>,
}

impl Recorder {
    pub(super) fn new(folder: RecordingFolder, most: Duration) -> Self {
        Self { folder, most, begun: Mutex::default(), lost: Mutex::default() }
    }

    pub(super) fn not_too_often(&self, channel: ChannelId) -> Result<(), VoiceError> {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.retain(|_, begun| begun.elapsed() < COOLDOWN);
        if begun.contains_key(&channel) {
            return Err(VoiceError::Unavailable(
                "Somebody asked for a recording of this call less than a minute ago. Try again in a minute.".to_owned(),
            ));
        }
        begun.insert(channel, Instant::now());
        Ok(())
    }

    fn lost(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a shard lost its connection.
    pub(super) fn shard_is_lost(&self, shard: u32) {
        self.lost().insert(shard);
    }

    /// Notes that a shard is connected again and repeated its events.
    pub(super) fn shard_is_back(&self, shard: u32) {
        self.lost().remove(&shard);
    }

    /// Forgets which shards are lost, because events are missing. Their stages decide then.
    pub(super) fn events_are_missing(&self) {
        self.lost().clear();
    }

    /// Returns true if it was told that a shard lost its connection, and not that it is back.
    pub(super) fn is_lost(&self, shard: u32) -> bool {
        self.lost().contains(&shard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_lost_until_it_is_told_that_it_is_back() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = RecordingFolder::open(scratch.path().join("calls"), 1 << 20).unwrap();
        let recorder = Recorder::new(folder, COOLDOWN);
        recorder.shard_is_lost(1);
        recorder.shard_is_lost(2);
        recorder.shard_is_back(1);
        assert_eq!([1, 2, 3].map(|shard| recorder.is_lost(shard)), [false, true, false]);
        // Whether it came back may be among what is missing.
        recorder.events_are_missing();
        assert!(!recorder.is_lost(2));
    }
}
