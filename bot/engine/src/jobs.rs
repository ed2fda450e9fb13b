//! Jobs: work that comes due by the clock and not by a message.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use azera_types::Timestamp;

use crate::engine::Engine;

/// Time between two looks at what is due.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// What a job says went wrong. It is logged, and the job is asked again at the next look.
pub type JobError = Box<dyn std::error::Error + Send + Sync>;

/// Work that comes due by the clock.
#[async_trait]
pub trait Job: Send + Sync {
    /// What the log calls it.
    fn name(&self) -> &'static str;

    /// When something is due next, as things stand now; `None` if nothing is.
    fn next_due(&self) -> Option<Timestamp>;

    /// Does what is due at `now`, which may be nothing. Called every few seconds, and whenever the core settles, but never
    /// while it runs already.
    async fn run(&self, now: Timestamp) -> Result<(), JobError>;

    /// Does what must not wait for the next start. Called once, after everything else has stopped.
    async fn finish(&self, now: Timestamp) -> Result<(), JobError>;
}

/// A job, and who runs it.
#[derive(Clone)]
pub(crate) struct Scheduled {
    job: Arc<dyn Job>,
    running: Arc<tokio::sync::Mutex<()>>,
}

impl Engine {
    /// Adds a job, which [`Engine::start`] begins to look after.
    pub fn add_job(&self, job: Arc<dyn Job>) {
        let mut jobs = self.0.jobs.write().unwrap_or_else(PoisonError::into_inner);
        jobs.push(Scheduled { job, running: Arc::default() });
    }

    fn jobs(&self) -> Vec<Scheduled> {
        self.0.jobs.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Begins to look after every job.
    pub(crate) fn start_jobs(&self) {
        for scheduled in self.jobs() {
            self.0.tasks.spawn(self.clone().look_after(scheduled));
        }
    }

    async fn look_after(self, scheduled: Scheduled) {
        loop {
            tokio::select! {
                () = self.0.stopping.cancelled() => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            self.run_job(&scheduled).await;
        }
    }

    /// When a job is due next, as things stand now.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.jobs().iter().filter_map(|scheduled| scheduled.job.next_due()).min()
    }

    /// Does whatever is due now, and waits for what that leads to. Nobody needs to call this, unless they move the clock.
    pub async fn run_jobs(&self) {
        for scheduled in self.jobs() {
            self.run_job(&scheduled).await;
        }
        self.until_nobody_learns().await;
    }

    async fn run_job(&self, scheduled: &Scheduled) {
        let _running = scheduled.running.lock().await;
        if let Err(error) = scheduled.job.run(self.0.clock.now()).await {
            tracing::warn!(job = scheduled.job.name(), %error, "a job failed and will be tried again");
        }
    }

    /// Lets every job end what it must.
    pub(crate) async fn finish_jobs(&self) {
        for scheduled in self.jobs() {
            if let Err(error) = scheduled.job.finish(self.0.clock.now()).await {
                tracing::warn!(job = scheduled.job.name(), %error, "a job failed and will be tried at the next start");
            }
        }
    }
}
