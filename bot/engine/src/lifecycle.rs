//! Starting and stopping the engine.

use std::sync::Arc;

use azera_affect::DangerLexicon;
use tokio::task::JoinHandle;

use crate::engine::Engine;
use crate::error::Error;

impl Engine {
    /// Takes up what an earlier run left (undelivered replies, unanswered messages) and starts the background work.
    /// Attach platforms first.
    pub async fn start(&self) -> Result<(), Error> {
        // Compiling the phrases takes most of a second, which the first message need not wait for.
        self.0.services.tasks.spawn_blocking(DangerLexicon::builtin);
        self.0.minds.wake().await?;
        self.0.learning.withdraw_unfounded(None).await;
        self.0.services.tasks.spawn(Arc::clone(&self.0.indexer).keep_indexed());
        self.0.services.tasks.spawn(Arc::clone(&self.0.turns).keep_delivering());
        self.0.services.tasks.spawn(Arc::clone(&self.0.pictures).keep_drawing());
        self.0.background.hear_again().await?;
        if let Err(error) = self.0.services.samples().await {
            tracing::warn!(%error, "cannot look for recordings of voices that wait for an answer");
        }
        let forgetting = Arc::clone(&self.0.forgetting);
        // A platform that is slow must not hold up the start.
        self.0.services.tasks.spawn(async move { forgetting.retract_due().await });
        self.start_jobs();
        self.0.turns.deliver_outbox().await?;
        self.0.turns.take_up(|_| true).await?;
        self.0.indexer.wake();
        Ok(())
    }

    /// Runs a task that [`Engine::stop`] waits for.
    pub fn spawn<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.0.services.tasks.spawn(task)
    }

    /// Stops the engine: finishes turns in progress, ends the background work, and overwrites forgotten bytes on disk.
    pub async fn stop(&self) {
        self.0.services.stopping.cancel();
        self.0.services.tasks.close();
        self.0.services.tasks.wait().await;
        self.0.turns.files.idle().await;
        self.0.turns.deliver_leftovers().await;
        if let Err(error) = self.0.indexer.scrub().await {
            tracing::warn!(%error, "cannot overwrite forgotten bytes now; the next start will");
        }
        self.finish_jobs().await;
    }
}
