//! Starting and stopping the engine.

use azera_affect::DangerLexicon;

use crate::engine::Engine;
use crate::error::Error;

impl Engine {
    /// Takes up what an earlier run left (undelivered replies, unanswered messages) and starts the background work.
    /// Attach platforms first.
    pub async fn start(&self) -> Result<(), Error> {
        // Compiling the phrases takes most of a second, which the first message need not wait for.
        self.0.tasks.spawn_blocking(DangerLexicon::builtin);
        self.wake().await?;
        self.withdraw_unfounded(None).await;
        self.0.tasks.spawn(self.clone().keep_indexed());
        self.0.tasks.spawn(self.clone().keep_delivering());
        self.hear_again().await?;
        self.start_jobs();
        self.deliver_outbox().await?;
        self.take_up(|_| true).await?;
        self.0.index_wanted.notify_one();
        Ok(())
    }

    /// Stops the engine: finishes turns in progress, ends the background work, and overwrites forgotten bytes on disk.
    pub async fn stop(&self) {
        self.0.stopping.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
        self.deliver_leftovers().await;
        if let Err(error) = self.scrub().await {
            tracing::warn!(%error, "cannot overwrite forgotten bytes now; the next start will");
        }
        self.finish_jobs().await;
    }
}
