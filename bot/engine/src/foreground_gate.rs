//! Tells background jobs whether somebody waits for an answer, so that they can yield to live chat.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

/// Time after the last turn until nobody is expected to write again at once.
const LULL: Duration = Duration::from_millis(50);

/// Counts the turns in progress.
pub(crate) struct ForegroundGate {
    turns: watch::Sender<Turns>,
}

#[derive(Default)]
struct Turns {
    under_way: usize,
    /// When a turn last began or ended.
    changed: Option<Instant>,
}

impl Turns {
    fn change(&mut self, under_way: usize) {
        *self = Self { under_way, changed: Some(Instant::now()) };
    }
}

/// One turn in progress; dropping it ends the turn.
pub(crate) struct ForegroundGuard(watch::Sender<Turns>);

impl ForegroundGate {
    pub(crate) fn new() -> Self {
        Self { turns: watch::Sender::default() }
    }

    /// Registers that somebody waits for an answer.
    pub(crate) fn enter(&self) -> ForegroundGuard {
        self.turns.send_modify(|turns| turns.change(turns.under_way + 1));
        ForegroundGuard(self.turns.clone())
    }

    /// Waits until nobody waits for an answer. Returns false if that took longer than `at_most`.
    pub(crate) async fn until_idle(&self, at_most: Duration) -> bool {
        let mut turns = self.turns.subscribe();
        timeout(at_most, turns.wait_for(|turns| turns.under_way == 0)).await.is_ok()
    }

    /// Waits until somebody waits for an answer.
    pub(crate) async fn until_busy(&self) {
        // The sender lives as long as this borrow.
        self.turns.subscribe().wait_for(|turns| turns.under_way > 0).await.ok();
    }

    /// Waits until nobody has waited for an answer for a short time, but not longer than `at_most`: on a busy server
    /// that moment would never come.
    pub(crate) async fn until_quiet(&self, at_most: Duration) {
        let mut turns = self.turns.subscribe();
        let quiet = async {
            // The sender lives as long as this borrow.
            while let Ok(changed) = turns.wait_for(|turns| turns.under_way == 0).await.map(|turns| turns.changed) {
                let Some(changed) = changed else { return };
                if timeout_at(changed + LULL, turns.changed()).await.is_err() {
                    return;
                }
            }
        };
        // The caller goes on after a timeout, too.
        timeout(at_most, quiet).await.ok();
    }
}

impl Drop for ForegroundGuard {
    fn drop(&mut self) {
        self.0.send_modify(|turns| turns.change(turns.under_way.saturating_sub(1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with a tolerance, because timers have whole milliseconds.
    fn near(begun: Instant, time: Duration) -> bool {
        begun.elapsed().abs_diff(time) <= Duration::from_millis(2)
    }

    #[tokio::test]
    async fn until_quiet_returns_after_a_pause_without_turns_or_after_the_limit() {
        tokio::time::pause();
        let foreground = ForegroundGate::new();
        let begun = Instant::now();
        foreground.until_quiet(Duration::from_secs(1)).await;
        assert_eq!(begun.elapsed(), Duration::ZERO, "nobody ever waited");
        let waiting = foreground.enter();
        let begun = Instant::now();
        foreground.until_quiet(Duration::from_secs(1)).await;
        assert!(near(begun, Duration::from_secs(1)));
        let begun = Instant::now();
        let leave = async {
            timeout(Duration::from_millis(300), std::future::pending::<()>()).await.ok();
            drop(waiting);
        };
        tokio::join!(foreground.until_quiet(Duration::from_secs(1)), leave);
        assert!(near(begun, Duration::from_millis(300) + LULL));
        let begun = Instant::now();
        foreground.until_quiet(Duration::from_secs(1)).await;
        assert_eq!(begun.elapsed(), Duration::ZERO, "the lull lasts");
    }
}
