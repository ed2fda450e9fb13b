//! Reads the sets of evaluations, and sets up people and chats on the simulated platform.

use std::sync::Arc;

use anyhow::Context;
use azera_adapter::Host;
use azera_fake_sim::{Session, SessionError, SimPlatform, Timeline, replay};
use azera_types::{ManualClock, Timestamp};
use serde::de::DeserializeOwned;

use crate::bootstrap::App;
use crate::cli::EvalFacts;

/// Reads the first cases of a set, one JSON object per line: those of the file that somebody named, else the built-in ones.
pub fn cases<T: DeserializeOwned>(options: &EvalFacts, built_in: &str) -> anyhow::Result<Vec<T>> {
    let text = match &options.file {
        Some(file) => std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?,
        None => built_in.to_owned(),
    };
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .take(options.limit.unwrap_or(usize::MAX))
        .map(|(index, line)| serde_json::from_str(line).with_context(|| format!("line {}", index + 1)))
        .collect()
}

/// Plays a timeline that only describes the world.
pub async fn set_up(app: &App, clock: &ManualClock, sim: &Arc<SimPlatform>, timeline: &Timeline) -> anyhow::Result<()> {
    play(app, clock, sim, timeline, &mut std::io::sink()).await
}

/// Plays a timeline and writes the resulting events to `out`.
pub async fn play(
    app: &App,
    clock: &ManualClock,
    sim: &Arc<SimPlatform>,
    timeline: &Timeline,
    out: &mut (dyn std::io::Write + Send),
) -> anyhow::Result<()> {
    replay(timeline, sim, &mut SingleRunSession { app, clock }, out).await?;
    Ok(())
}

/// A session that cannot restart.
struct SingleRunSession<'a> {
    app: &'a App,
    clock: &'a ManualClock,
}

#[async_trait::async_trait]
impl Session for SingleRunSession<'_> {
    fn host(&self) -> Arc<dyn Host> {
        Arc::new(self.app.engine.clone())
    }

    async fn advance_to(&mut self, to: Timestamp) -> Result<(), SessionError> {
        self.clock.advance_to(to);
        Ok(())
    }

    async fn reopen(&mut self) -> Result<(), SessionError> {
        Err("a measurement does not restart".into())
    }
}
