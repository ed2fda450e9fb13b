//! The shards that lost their connection to the gateway, as far as that was told. `gaps` asks it for what is said, and recordings
//! ask it for who is there.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// After a loss that was told, and no return, a shard is back for recordings once it has counted as connected for this long.
const CONNECTED_USUALLY: Duration = Duration::from_secs(60);

/// The same if events were dropped, because the return may be among them.
const CONNECTED_UNTOLD: Duration = Duration::from_secs(2);

/// The loss of a shard's connection.
struct Loss {
    /// True if events were dropped since, among which the return may be.
    may_be_over: bool,
    /// Since when the shard counts as connected all the same, as far as it was looked at.
    connected: Option<Instant>,
    /// For how long that must be so until it is believed.
    believed_after: Duration,
}

/// The shards whose loss was told, and not their return. What a shard counts as may not show it yet, or show another connection
/// that has not repeated all events.
#[derive(Default)]
pub(super) struct LostShards(BTreeMap<u32, Loss>);

impl LostShards {
    /// Notes that a shard lost its connection.
    pub(super) fn note_lost(&mut self, shard: u32) {
        self.0.insert(shard, Loss { may_be_over: false, connected: None, believed_after: CONNECTED_USUALLY });
    }

    /// Notes that a shard is connected again and repeated its events.
    pub(super) fn note_back(&mut self, shard: u32) {
        self.0.remove(&shard);
    }

    /// Notes that events were dropped. That a shard is back may be among them.
    pub(super) fn note_missing_events(&mut self) {
        for loss in self.0.values_mut() {
            (loss.may_be_over, loss.believed_after) = (true, loss.believed_after.min(CONNECTED_UNTOLD));
        }
    }

    /// Returns true if it is certain that a shard's loss was told, and not its return.
    pub(super) fn is_told(&self, shard: u32) -> bool {
        self.0.get(&shard).is_some_and(|loss| !loss.may_be_over)
    }

    /// Returns true if a shard may be lost still. `is_connected` is what it counts as now.
    pub(super) fn may_be_lost(&mut self, shard: u32, is_connected: bool) -> bool {
        let Some(loss) = self.0.get_mut(&shard) else { return false };
        loss.connected = loss.connected.or_else(|| is_connected.then(Instant::now)).filter(|_| is_connected);
        let is_believed = loss.connected.is_some_and(|since| since.elapsed() >= loss.believed_after);
        if is_believed {
            // From now on its stage alone counts.
            loss.believed_after = Duration::ZERO;
        }
        !is_believed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_shard_is_lost_until_it_is_told_that_it_is_back() {
        let mut shards = LostShards::default();
        (1..=3).for_each(|shard| shards.note_lost(shard));
        shards.note_back(1);
        assert_eq!([1, 2, 3, 4].map(|shard| shards.may_be_lost(shard, true)), [false, true, true, false]);
        assert_eq!([1, 2, 3, 4].map(|shard| shards.is_told(shard)), [false, true, true, false]);
        // That it came back may be among what is missing. One that still does not count as connected is lost still.
        shards.note_missing_events();
        assert_eq!([2, 3].map(|shard| shards.is_told(shard)), [false, false]);
        assert_eq!([2, 3].map(|shard| shards.may_be_lost(shard, shard == 2)), [true, true]);
        tokio::time::advance(CONNECTED_UNTOLD).await;
        assert_eq!([2, 3].map(|shard| shards.may_be_lost(shard, shard == 2)), [false, true]);
        // It counts as connected only from now on.
        assert!(shards.may_be_lost(3, true));
        tokio::time::advance(CONNECTED_UNTOLD).await;
        assert!(!shards.may_be_lost(3, true));
    }

    #[tokio::test(start_paused = true)]
    async fn a_return_that_nobody_tells_is_believed_in_the_end_for_recordings_alone() {
        let mut shards = LostShards::default();
        shards.note_lost(4);
        assert!(shards.may_be_lost(4, true));
        tokio::time::advance(CONNECTED_UNTOLD).await;
        assert!(shards.may_be_lost(4, true));
        tokio::time::advance(CONNECTED_USUALLY).await;
        assert!(!shards.may_be_lost(4, true) && shards.is_told(4));
        assert!(shards.may_be_lost(4, false) && !shards.may_be_lost(4, true), "its stage counts");
        shards.note_lost(4);
        assert!(shards.may_be_lost(4, true), "it is lost anew");
    }
}
