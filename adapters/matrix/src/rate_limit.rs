//! Rate limits for people and rooms.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use matrix_sdk::ruma::{OwnedRoomId, OwnedUserId};
use tokio::time::Instant;

use crate::Limits;

/// Most people and rooms that are tracked; beyond that, inactive ones are dropped.
const MAX_TRACKED: usize = 10_000;

/// The decision about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RateDecision {
    /// Handle it.
    Yes,
    /// Ignore it, and send a notice. There is one notice until messages are accepted again.
    Tell,
    /// Ignore it.
    No,
}

/// A token bucket that holds the messages of a minute.
#[derive(Debug)]
struct Bucket {
    left: f64,
    at: Instant,
    warned_at: bool,
}

impl Bucket {
    fn full(per_minute: u32, now: Instant) -> Self {
        Self { left: f64::from(per_minute), at: now, warned_at: false }
    }

    fn fill(&mut self, per_minute: u32, now: Instant) {
        let most = f64::from(per_minute);
        let filled = now.duration_since(self.at).as_secs_f64() / 60.0 * most;
        (self.left, self.at) = ((self.left + filled).min(most), now);
    }

    fn take(&mut self, per_minute: u32, now: Instant) -> RateDecision {
        self.fill(per_minute, now);
        if self.left >= 1.0 {
            self.left -= 1.0;
            self.warned_at = false;
            return RateDecision::Yes;
        }
        if std::mem::replace(&mut self.warned_at, true) { RateDecision::No } else { RateDecision::Tell }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Who {
    Person(OwnedUserId),
    Room(OwnedRoomId),
}

/// The buckets of all people and rooms.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    limits: Limits,
    buckets: Mutex<HashMap<Who, Bucket>>,
}

impl RateLimiter {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, buckets: Mutex::default() }
    }

    /// Counts a message of a person in a room.
    pub(crate) fn heed(&self, user: &OwnedUserId, room: &OwnedRoomId) -> RateDecision {
        self.heed_at(user, room, Instant::now())
    }

    /// Counts a missed message, which is handled in any case.
    pub(crate) fn missed(&self, user: &OwnedUserId, room: &OwnedRoomId) {
        self.missed_at(user, room, Instant::now());
    }

    fn missed_at(&self, user: &OwnedUserId, room: &OwnedRoomId, now: Instant) {
        let mut buckets = self.buckets(now);
        let of_both = [
            (Who::Person(user.clone()), self.limits.person_per_minute),
            (Who::Room(room.clone()), self.limits.room_per_minute),
        ];
        for (who, per_minute) in of_both {
            let bucket = buckets.entry(who).or_insert_with(|| Bucket::full(per_minute, now));
            bucket.fill(per_minute, now);
            bucket.left = (bucket.left - 1.0).max(0.0);
        }
    }

    fn buckets(&self, now: Instant) -> MutexGuard<'_, HashMap<Who, Bucket>> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() > MAX_TRACKED {
            // After a minute of inactivity a bucket is full, and not needed.
            buckets.retain(|_, bucket| now.duration_since(bucket.at) < Duration::from_secs(60));
        }
        buckets
    }

    fn heed_at(&self, user: &OwnedUserId, room: &OwnedRoomId, now: Instant) -> RateDecision {
        let mut buckets = self.buckets(now);
        let mut take = |who, per_minute: u32| {
            buckets.entry(who).or_insert_with(|| Bucket::full(per_minute, now)).take(per_minute, now)
        };
        match take(Who::Person(user.clone()), self.limits.person_per_minute) {
            RateDecision::Yes => take(Who::Room(room.clone()), self.limits.room_per_minute),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_over_the_limit_gets_one_notice_and_is_heard_again_later() {
        let rate_limiter = RateLimiter::new(Limits { person_per_minute: 2, room_per_minute: 3 });
        let user = |name: &str| OwnedUserId::try_from(format!("@{name}:a")).unwrap();
        let room = OwnedRoomId::try_from("!r:a").unwrap();
        let now = Instant::now();
        let heed = |name, later| rate_limiter.heed_at(&user(name), &room, now + Duration::from_secs(later));
        assert_eq!([heed("ann", 0), heed("ann", 0), heed("ann", 0), heed("ann", 1)], {
            [RateDecision::Yes, RateDecision::Yes, RateDecision::Tell, RateDecision::No]
        });
        assert_eq!(
            [heed("bob", 1), heed("bob", 1)],
            [RateDecision::Yes, RateDecision::Tell],
            "the room's limit is reached"
        );
        assert_eq!([heed("ann", 40), heed("ann", 41)], [RateDecision::Yes, RateDecision::Tell]);
        // Missed messages count, but do not use up the notice.
        for _ in 0..3 {
            rate_limiter.missed_at(&user("cid"), &room, now + Duration::from_secs(200));
        }
        assert_eq!(
            [heed("cid", 200), heed("cid", 201), heed("cid", 250)],
            [RateDecision::Tell, RateDecision::No, RateDecision::Yes]
        );
    }
}
