//! Measures how long the stages of a turn take, for the log and for traces.

use std::fmt;
use std::time::Instant;

use azera_adapter::Turn;
use tracing::Span;
use tracing::field::Empty;

/// A stopwatch that is read at the end of each stage. Each stage is a span of the turn's span.
pub(crate) struct StageTimer {
    last: Instant,
    stages: Vec<(&'static str, f64)>,
    turn: Span,
    /// The present stage, which gets its name when it ends.
    stage: Span,
}

impl StageTimer {
    /// Begins to measure a turn on a platform.
    pub(crate) fn start(platform: &str) -> Self {
        let turn = tracing::info_span!(
            "turn",
            platform,
            outcome = Empty,
            prompt_tokens = Empty,
            cached_tokens = Empty,
            completion_tokens = Empty,
            first_token_ms = Empty,
            recalled = Empty,
        );
        let stage = stage_of(&turn);
        Self { last: Instant::now(), stages: Vec::new(), turn, stage }
    }

    /// Records that a stage has just ended.
    pub(crate) fn end(&mut self, stage: &'static str) {
        let now = Instant::now();
        self.stages.push((stage, (now - self.last).as_secs_f64() * 1_000.0));
        self.last = now;
        self.stage.record("otel.name", format_args!("turn.{stage}"));
        self.stage = stage_of(&self.turn);
    }

    /// Records how the turn ended, in a fixed word.
    pub(crate) fn outcome(&self, outcome: &'static str) {
        self.turn.record("outcome", outcome);
    }

    /// Records the numbers of a reply.
    pub(crate) fn reply(&self, turn: &Turn) {
        self.outcome("replied");
        let usage = &turn.usage;
        self.turn
            .record("prompt_tokens", usage.prompt_tokens)
            .record("cached_tokens", usage.cached_tokens)
            .record("completion_tokens", usage.completion_tokens)
            .record("first_token_ms", usage.ttft_ms)
            .record("recalled", turn.recalled.len());
    }
}

fn stage_of(turn: &Span) -> Span {
    tracing::info_span!(parent: turn, "turn.rest", otel.name = Empty)
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
