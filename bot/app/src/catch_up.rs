//! Indexes what waits before somebody searches for it: after a restore, or when an index was lost.

use std::time::Duration;

use crate::bootstrap::App;
use crate::progress::Bar;

/// Memories up to which a start waits for their vectors; it takes some seconds. More are embedded in the background.
const FEW: usize = 500;

/// How often the progress is shown.
const SHOW_EVERY: Duration = Duration::from_millis(500);

/// Indexes everything that waits, with progress on the error output; returns how many memories.
pub async fn catch_up(app: &App) -> anyhow::Result<usize> {
    let waiting = queued(app).await?;
    if waiting == 0 {
        return Ok(0);
    }
    let bar = Bar::new();
    let mut shown = tokio::time::interval(SHOW_EVERY);
    let indexing = app.engine.index_all();
    tokio::pin!(indexing);
    loop {
        tokio::select! {
            indexed = &mut indexing => return Ok(indexed?),
            _ = shown.tick() => {
                let left = queued(app).await?;
                bar.count("indexing memories", waiting.saturating_sub(left), waiting.max(left));
            }
        }
    }
}

/// Makes memories searchable before the first answer: all by their words, and few also by their meaning. A failure only
/// delays this, because the running engine tries again.
pub async fn prepare(app: &App) {
    let prepared = async {
        let waiting = queued(app).await?;
        if waiting > FEW {
            tracing::warn!(memories = waiting, "indexing words first; the meaning follows in the background");
            app.engine.index_all_words().await?;
        } else if waiting > 0 {
            app.engine.index_all().await?;
        }
        anyhow::Ok(())
    };
    if let Err(error) = prepared.await {
        tracing::warn!(%error, "not all memories are indexed yet");
    }
}

async fn queued(app: &App) -> anyhow::Result<usize> {
    let memory = app.memory.clone();
    Ok(tokio::task::spawn_blocking(move || memory.indexing().queued()).await??)
}
