//! Sets up people and chats on the simulated platform.

use std::sync::Arc;

use azera_adapter::Host;
use azera_fake_sim::{Session, SessionError, SimPlatform, Timeline, replay};
use azera_types::{ManualClock, Timestamp};

use crate::bootstrap::App;

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
