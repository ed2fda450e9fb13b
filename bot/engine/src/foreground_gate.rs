//! Whether somebody waits for an answer. What can wait gives way to them.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

/// Time without a turn from which on nobody is expected to say more at once.
const LULL: Duration = Duration::from_millis(50);

/// Turns under way.
pub(crate) struct ForegroundGate {
    turns: watch::Sender<Turns>,
}

#[derive(Default)]
struct Turns {
    under_way: usize,
    /// When there was last one more or one less.
    changed: Option<Instant>,
}

impl Turns {
    fn change(&mut self, under_way: usize) {
        *self = Self { under_way, changed: Some(Instant::now()) };
    }
}

/// One turn under way, as long as it is held.
pub(crate) struct ForegroundGuard<'a>(&'a ForegroundGate);

impl ForegroundGate {
    pub(crate) fn new() -> Self {
        Self { turns: watch::Sender::default() }
    }

    /// Somebody waits for an answer.
    pub(crate) fn enter(&self) -> ForegroundGuard<'_> {
        self.turns.send_modify(|turns| turns.change(turns.under_way + 1));
        ForegroundGuard(self)
    }

    /// Waits until nobody waits for an answer; whether that came within `at_most`.
    pub(crate) async fn until_idle(&self, at_most: Duration) -> bool {
        let mut turns = self.turns.subscribe();
        timeout(at_most, turns.wait_for(|turns| turns.under_way == 0)).await.is_ok()
    }

    /// Waits until somebody waits for an answer.
    pub(crate) async fn until_busy(&self) {
        // The sender lives as long as this borrows it.
        self.turns.subscribe().wait_for(|turns| turns.under_way > 0).await.ok();
    }

    /// Waits until nobody has waited for an answer for a moment, but not longer than `at_most`: on a busy server that would
    /// be never.
    pub(crate) async fn until_quiet(&self, at_most: Duration) {
        let mut turns = self.turns.subscribe();
        let quiet = async {
            // The sender lives as long as this borrows it.
            while let Ok(changed) = turns.wait_for(|turns| turns.under_way == 0).await.map(|turns| turns.changed) {
                let Some(changed) = changed else { return };
                if timeout_at(changed + LULL, turns.changed()).await.is_err() {
                    return;
                }
            }
        };
        // Either way it is time to go on.
        timeout(at_most, quiet).await.ok();
    }
}

impl Drop for ForegroundGuard<'_> {
    fn drop(&mut self) {
        self.0.turns.send_modify(|turns| turns.change(turns.under_way.saturating_sub(1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Timers go by whole milliseconds.
    fn near(begun: Instant, time: Duration) -> bool {
        begun.elapsed().abs_diff(time) <= Duration::from_millis(2)
    }

    #[tokio::test]
    async fn a_lull_comes_when_nobody_waits_any_more_or_it_has_taken_too_long() {
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
