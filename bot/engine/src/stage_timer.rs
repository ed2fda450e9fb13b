//! Measures how long the stages of a turn take, for the log.

use std::fmt;
use std::time::Instant;

/// A stopwatch that is read at the end of each stage.
pub(crate) struct StageTimer {
    last: Instant,
    stages: Vec<(&'static str, f64)>,
}

impl StageTimer {
    pub(crate) fn start() -> Self {
        Self { last: Instant::now(), stages: Vec::new() }
    }

    /// Records that a stage has just ended.
    pub(crate) fn end(&mut self, stage: &'static str) {
        let now = Instant::now();
        self.stages.push((stage, (now - self.last).as_secs_f64() * 1_000.0));
        self.last = now;
    }
}

impl fmt::Display for StageTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (stage, ms)) in self.stages.iter().enumerate() {
            let gap = if index == 0 { "" } else { ", " };
            write!(f, "{gap}{stage} {ms:.1} ms")?;
        }
        Ok(())
    }
}
