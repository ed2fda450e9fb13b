//! How fast Azera asks Discord: what matters goes before what only looks nice.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Requests a second that Discord allows a bot in all
/// (<https://discord.com/developers/docs/topics/rate-limits#global-rate-limit>), less some for what serenity does by itself.
const REQUESTS: usize = 45;

/// Requests a second from which on no reply in the making is shown: the rest is for replies that are complete.
const NICETIES: usize = 25;

/// The time over which requests are counted.
const SPAN: Duration = Duration::from_secs(1);

/// The requests of the last second.
#[derive(Default)]
pub(crate) struct RequestPacer(Mutex<VecDeque<Instant>>);

impl RequestPacer {
    /// Waits until a request may be made, and counts it.
    pub(crate) async fn turn(&self) {
        loop {
            let wait = {
                let mut made = self.recent();
                if made.len() < REQUESTS {
                    made.push_back(Instant::now());
                    return;
                }
                made.front().map_or(SPAN, |first| SPAN.saturating_sub(first.elapsed()))
            };
            tokio::time::sleep(wait).await;
        }
    }

    /// Whether there is room for a request that nobody misses; counts it if so.
    pub(crate) fn spare(&self) -> bool {
        let mut made = self.recent();
        let room = made.len() < NICETIES;
        if room {
            made.push_back(Instant::now());
        }
        room
    }

    fn recent(&self) -> MutexGuard<'_, VecDeque<Instant>> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while made.front().is_some_and(|first| first.elapsed() >= SPAN) {
            made.pop_front();
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn niceties_give_way_before_replies_wait() {
        tokio::time::pause();
        let pace = RequestPacer::default();
        let begun = Instant::now();
        for _ in 0..NICETIES {
            assert!(pace.spare());
        }
        assert!(!pace.spare());
        for _ in NICETIES..REQUESTS {
            pace.turn().await;
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
        pace.turn().await;
        assert!(begun.elapsed() >= SPAN);
        assert!(pace.spare());
    }
}
