//! Where recordings are kept, and what holds for all of them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use azera_adapter::VoiceError;
use azera_voice_call_recordings::RecordingFolder;
use serenity::all::ChannelId;
use tokio::time::Instant;

/// Shortest time between two questions for a recording in a voice channel, because everybody there is called each time.
const COOLDOWN: Duration = Duration::from_secs(60);

/// After a reported loss without a reported return, a shard is back once it has counted as connected for this long.
const CONNECTED_USUALLY: Duration = Duration::from_secs(60);

/// The same if events were dropped, because the return may be among them.
const CONNECTED_UNTOLD: Duration = Duration::from_secs(2);

/// The loss of a shard's connection that was told.
struct Loss {
    /// Since when the shard counts as connected all the same, as far as it was looked at.
    connected: Option<Instant>,
    /// For how long that must be so until it is believed.
    believed_after: Duration,
}

/// Where recordings are kept, and how long one may be.
pub(in crate::voice) struct Recorder {
    pub(super) folder: RecordingFolder,
    pub(super) most: Duration,
    /// When somebody asked for one lately, by voice channels.
    begun: Mutex<HashMap<ChannelId, Instant>>,
    /// The shards whose connection is lost, as far as that was told. Their stage may not show it yet, or show another
    /// connection that has not repeated all events.
    lost: Mutex<BTreeMap<u32, Loss>>,
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

    fn lost(&self) -> MutexGuard<'_, BTreeMap<u32, Loss>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a shard lost its connection.
    pub(super) fn shard_is_lost(&self, shard: u32) {
        self.lost().insert(shard, Loss { connected: None, believed_after: CONNECTED_USUALLY });
    }

    /// Notes that a shard is connected again and repeated its events.
    pub(super) fn shard_is_back(&self, shard: u32) {
        self.lost().remove(&shard);
    }

    /// Notes that events are missing. That a shard is back may be among them.
    pub(super) fn events_are_missing(&self) {
        self.lost().values_mut().for_each(|loss| loss.believed_after = CONNECTED_UNTOLD);
    }

    /// Returns true if it was told that a shard lost its connection, and not that it is back. `is_connected` is what it
    /// counts as now.
    pub(super) fn is_lost(&self, shard: u32, is_connected: bool) -> bool {
        let mut lost = self.lost();
        let Some(loss) = lost.get_mut(&shard) else { return false };
        loss.connected = loss.connected.or_else(|| is_connected.then(Instant::now)).filter(|_| is_connected);
        if loss.connected.is_some_and(|since| since.elapsed() >= loss.believed_after) {
            lost.remove(&shard);
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_shard_is_lost_until_it_is_told_that_it_is_back() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = RecordingFolder::open(scratch.path().join("calls"), 1 << 20).unwrap();
        let recorder = Recorder::new(folder, COOLDOWN);
        recorder.shard_is_lost(1);
        recorder.shard_is_lost(2);
        recorder.shard_is_lost(3);
        recorder.shard_is_back(1);
        assert_eq!([1, 2, 3, 4].map(|shard| recorder.is_lost(shard, true)), [false, true, true, false]);
        // That it came back may be among what is missing. One that still does not count as connected is lost still.
        recorder.events_are_missing();
        assert_eq!([2, 3].map(|shard| recorder.is_lost(shard, shard == 2)), [true, true]);
        tokio::time::advance(CONNECTED_UNTOLD).await;
        assert_eq!([2, 3].map(|shard| recorder.is_lost(shard, shard == 2)), [false, true]);
        // It counts as connected only from now on.
        assert!(recorder.is_lost(3, true));
        tokio::time::advance(CONNECTED_UNTOLD).await;
        assert!(!recorder.is_lost(3, true));
        // If nobody ever tells that it is back, it is believed in the end.
        recorder.shard_is_lost(4);
        assert!(recorder.is_lost(4, true));
        tokio::time::advance(CONNECTED_UNTOLD).await;
        assert!(recorder.is_lost(4, true));
        tokio::time::advance(CONNECTED_USUALLY).await;
        assert!(!recorder.is_lost(4, true));
    }
}
