//! Rounds of indexing: one at a time, in lulls of live chat unless somebody waits for a round to end.

use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard, watch};

use crate::foreground_gate::ForegroundGate;

/// Lets one round run at a time.
#[derive(Default)]
pub(crate) struct IndexingRounds {
    running: Mutex<()>,
    /// Callers that wait for the running round to end.
    waiting: watch::Sender<usize>,
}

/// One caller that waits; dropping it ends the wait.
struct Waiting<'a>(&'a watch::Sender<usize>);

impl IndexingRounds {
    /// Begins a round once no other one runs.
    pub(crate) async fn begin(&self) -> MutexGuard<'_, ()> {
        self.running.lock().await
    }

    /// Begins a round that somebody waits for. The running one goes on without pauses until it ends.
    pub(crate) async fn begin_soon(&self) -> MutexGuard<'_, ()> {
        self.waiting.send_modify(|callers| *callers += 1);
        let _waiting = Waiting(&self.waiting);
        self.running.lock().await
    }

    /// Waits for a lull of live chat, but not longer than `at_most`, and not while somebody waits for the round to end.
    pub(crate) async fn until_quiet(&self, foreground: &ForegroundGate, at_most: Duration) {
        let mut waiting = self.waiting.subscribe();
        tokio::select! {
            () = foreground.until_quiet(at_most) => {}
            _ = waiting.wait_for(|callers| *callers > 0) => {}
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|callers| *callers -= 1);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    const LONG: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_round_that_somebody_waits_for_does_not_wait_for_answers() {
        let (rounds, foreground) = (IndexingRounds::default(), ForegroundGate::new());
        let _answering = foreground.enter();
        let round = rounds.begin().await;
        let begun = Instant::now();
        rounds.until_quiet(&foreground, LONG).await;
        assert!(begun.elapsed() >= LONG, "nobody waits for it");
        let begun = Instant::now();
        let waits = async {
            let _round = rounds.begin_soon().await;
        };
        let goes_on = async {
            tokio::task::yield_now().await;
            rounds.until_quiet(&foreground, LONG).await;
            rounds.until_quiet(&foreground, LONG).await;
            drop(round);
        };
        tokio::join!(waits, goes_on);
        assert_eq!(begun.elapsed(), Duration::ZERO);
        rounds.until_quiet(&foreground, LONG).await;
        assert!(begun.elapsed() >= LONG, "nobody waits any more");
        assert!(
            tokio::time::timeout(LONG, async {
                let _round = rounds.begin().await;
                let gave_up = tokio::time::timeout(LONG / 2, rounds.begin_soon()).await;
                assert!(gave_up.is_err());
                let begun = Instant::now();
                rounds.until_quiet(&foreground, LONG / 4).await;
                assert!(begun.elapsed() >= LONG / 4, "who gave up does not wait");
            })
            .await
            .is_ok()
        );
    }
}
