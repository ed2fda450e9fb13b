//! Background jobs: work that the clock starts.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use azera_types::Timestamp;
use tracing::field::Empty;

use crate::engine::Engine;

/// Time between two checks for due work.
const CHECK_EVERY: Duration = Duration::from_secs(10);

/// Why a job failed. The engine logs it and runs the job again at the next check.
pub type JobError = Box<dyn std::error::Error + Send + Sync>;

/// Work that the clock starts.
#[async_trait]
pub trait Job: Send + Sync {
    /// Returns the job's name for the log.
    fn name(&self) -> &'static str;

    /// Returns when the job has something to do next; `None` if it has nothing.
    fn next_due(&self) -> Option<Timestamp>;

    /// Does everything that is due at `now`, which may be nothing. The engine calls it every few seconds and whenever
    /// it settles, but never while it is already running.
    async fn run(&self, now: Timestamp) -> Result<(), JobError>;

    /// Does what cannot wait for the next start. The engine calls it once, after everything else has stopped.
    async fn finish(&self, now: Timestamp) -> Result<(), JobError>;
}

/// A job, and the lock held while it runs.
#[derive(Clone)]
pub(crate) struct Scheduled {
    job: Arc<dyn Job>,
    running: Arc<tokio::sync::Mutex<()>>,
}

impl Engine {
    /// Adds a job. [`Engine::start`] starts it.
    pub fn add_job(&self, job: Arc<dyn Job>) {
        let mut jobs = self.0.jobs.write().unwrap_or_else(PoisonError::into_inner);
        jobs.push(Scheduled { job, running: Arc::default() });
    }

    fn jobs(&self) -> Vec<Scheduled> {
        self.0.jobs.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts all jobs.
    pub(crate) fn start_jobs(&self) {
        for scheduled in self.jobs() {
            self.0.services.tasks.spawn(self.clone().keep_running(scheduled));
        }
    }

    async fn keep_running(self, scheduled: Scheduled) {
        loop {
            tokio::select! {
                () = self.0.services.stopping.cancelled() => return,
                () = tokio::time::sleep(CHECK_EVERY) => {}
            }
            self.run_job(&scheduled).await;
        }
    }

    /// Returns when the next job is due.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.jobs().iter().filter_map(|scheduled| scheduled.job.next_due()).min()
    }

    /// Runs all jobs that are due, and waits for the training they start. Only tests and replays that move the clock
    /// need this.
    pub async fn run_jobs(&self) {
        for scheduled in self.jobs() {
            self.run_job(&scheduled).await;
        }
        self.0.learning.until_nobody_learns().await;
    }

    async fn run_job(&self, scheduled: &Scheduled) {
        let _running = scheduled.running.lock().await;
        let now = self.0.services.clock.now();
        let is_due = scheduled.job.next_due().is_some_and(|due| due <= now);
        // A look that finds nothing to do is no span.
        let span = is_due.then(|| tracing::info_span!("job", job = scheduled.job.name(), outcome = Empty));
        let ran = scheduled.job.run(now).await;
        if let Some(span) = span {
            span.record("outcome", if ran.is_ok() { "done" } else { "failed" });
        }
        if let Err(error) = ran {
            tracing::warn!(job = scheduled.job.name(), %error, "a job failed; retrying later");
        }
    }

    /// Lets every job finish what it must.
    pub(crate) async fn finish_jobs(&self) {
        for scheduled in self.jobs() {
            if let Err(error) = scheduled.job.finish(self.0.services.clock.now()).await {
                tracing::warn!(job = scheduled.job.name(), %error, "a job failed while finishing; the next start tries again");
            }
        }
    }
}
