//! Paces requests to Discord: important ones go before optional ones.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Requests per second that Discord allows a bot
/// (<https://discord.com/developers/docs/topics/rate-limits#global-rate-limit>), minus some for serenity itself.
const REQUESTS: usize = 45;

/// Requests per second above which optional ones are skipped, so that complete replies have the rest.
const OPTIONAL_REQUESTS: usize = 25;

/// The time over which requests are counted.
const SPAN: Duration = Duration::from_secs(1);

/// The requests of the last second.
#[derive(Default)]
pub(crate) struct RequestPacer(Mutex<VecDeque<Instant>>);

impl RequestPacer {
    /// Waits until a request may be sent, and counts it.
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

    /// Returns true and counts a request if there is capacity for an optional one.
    pub(crate) fn spare(&self) -> bool {
        let mut made = self.recent();
        let room = made.len() < OPTIONAL_REQUESTS;
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
    async fn optional_requests_are_skipped_before_replies_wait() {
        tokio::time::pause();
        let pace = RequestPacer::default();
        let begun = Instant::now();
        for _ in 0..OPTIONAL_REQUESTS {
            assert!(pace.spare());
        }
        assert!(!pace.spare());
        for _ in OPTIONAL_REQUESTS..REQUESTS {
            pace.turn().await;
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
        pace.turn().await;
        assert!(begun.elapsed() >= SPAN);
        assert!(pace.spare());
    }
}
