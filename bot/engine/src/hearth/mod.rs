//! The Hearth: training in the weights. Exchanges of one place become a LoRA for the model that answers there; the LoRA
//! serves only in that place. `select` picks the examples, `consolidate` runs a training job, `evaluate` checks the
//! result, `serve` puts LoRAs into service and withdraws them, and `offload` uses another machine. Other crates
//! implement [`Trainer`], which trains LoRAs, and [`OffloadTransport`], which carries jobs to another machine. Begin with
//! `consolidate`.
//!
//! Invariants:
//! - Nothing is trained where the operator did not enable it, nor on people who did not consent
//!   ([`azera_memory::Training::exchanges`] returns nothing else). Another machine only gets data of people who
//!   knew of it when they consented.
//! - A LoRA serves only in its own place, and only while everybody who reads there may read all of its sources.
//! - The sources of a LoRA are checked at each start, each forgetting and each change. A LoRA with a source that is
//!   gone is removed with its file, before the next reply.
//! - A LoRA serves only after its evaluation. One that makes the persona worse in anything is dropped.

mod consolidate;
mod evaluate;
mod lora_store;
mod offload;
mod offloaded;
mod select;
mod serve;
mod words;

use crate::access::AccessControl;
use crate::indexing::Indexer;
use crate::minds::MindService;
use crate::services::Services;
use crate::turn::Judge;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};

use async_trait::async_trait;
use azera_memory::Provenance;
use azera_model_api::{ChatMessage, LoraId};
use azera_types::{MessageId, PlatformId};
use serde::{Deserialize, Serialize};

pub use evaluate::{Evaluation, LossChange};
use lora_store::{LoraRecord, LoraStore};
pub use offloaded::{JOB_EXTENSION, OFFLOAD_FOLDER, OffloadError, OffloadResult, OffloadTransport, RESULT_EXTENSION};
use offloaded::{OffloadedJob, OffloadedJobs};
pub(crate) use serve::{TrainingLogEntry, TrainingOutcome};

/// Trains in the weights, and serves what was trained.
pub(crate) struct Learning {
    pub(crate) services: Arc<Services>,
    pub(crate) access: Arc<AccessControl>,
    pub(crate) minds: Arc<MindService>,
    pub(crate) indexer: Arc<Indexer>,
    pub(crate) judge: Arc<Judge>,
    /// Unset if training is off.
    pub(crate) state: OnceLock<Arc<HearthState>>,
}

/// An exchange as the model reads it: the prompt of a turn, and the reply.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainingExample {
    /// The prompt.
    pub messages: Vec<ChatMessage>,
    /// The person's words, which the last message ends with; empty if they are not trained on.
    pub words: String,
    /// The reply.
    pub reply: String,
}

impl std::fmt::Debug for TrainingExample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TrainingExample[{} messages]", self.messages.len())
    }
}

/// One run of the trainer.
#[derive(Debug, Clone)]
pub struct TrainingJob {
    /// The name of the model.
    pub model: String,
    /// The examples to train on.
    pub training_examples: Vec<TrainingExample>,
    /// Exchanges of the same place that were trained on before or are left out of this job. Their loss must not grow.
    pub older: Vec<TrainingExample>,
    /// Example replies from the persona's file. Their loss must not grow.
    pub voice: Vec<TrainingExample>,
    /// The LoRA in service there, beside which the new one is trained.
    pub beside: Option<PathBuf>,
    /// Where to write the new LoRA, which replaces the one in service.
    pub to: PathBuf,
    /// Seed of the initial weights and of the order of the examples.
    pub seed: u64,
}

/// A trained LoRA in its file, with its evaluation.
#[derive(Debug, Clone)]
pub struct TrainingResult {
    /// The LoRA's id.
    pub id: LoraId,
    /// The measured effects of the LoRA.
    pub evaluation: Evaluation,
}

/// Why training failed.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// It was stopped.
    #[error("learning was broken off")]
    BrokenOff,
    /// It is impossible; a sentence for the operator.
    #[error("{0}")]
    Failed(String),
}

/// Waits while somebody waits for an answer, and returns `false` if training is to end. It blocks, and is called
/// between small steps.
pub type KeepGoing = Arc<dyn Fn() -> bool + Send + Sync>;

/// Trains LoRAs.
#[async_trait]
pub trait Trainer: Send + Sync {
    /// Returns the base fingerprint: a name for a model together with everything that is always loaded with it. Returns
    /// `None` for a model that cannot be trained here.
    fn base_fingerprint(&self, model: &str) -> Option<String>;

    /// Trains and evaluates a LoRA.
    ///
    /// # Errors
    /// See [`TrainError`]; then no file is left.
    async fn learn(&self, job: TrainingJob, may_go_on: KeepGoing) -> Result<TrainingResult, TrainError>;
}

/// What training in the weights needs.
pub struct Hearth {
    /// The trainer; `None` where training is off. Then no LoRA serves, but sources that go still remove theirs.
    pub trainer: Option<Arc<dyn Trainer>>,
    /// Carries jobs to another machine, where they are not trained on this one. Without it, offloaded jobs are given
    /// up.
    pub transport: Option<Arc<dyn OffloadTransport>>,
    /// The folder of LoRA files, for this program alone.
    pub folder: PathBuf,
    /// Number of exchanges that makes training worthwhile; each job trains on that many.
    pub exchanges: usize,
    /// Platforms whose text is not trained on, and why, for people.
    pub barred: BTreeMap<PlatformId, String>,
    /// Maximum size of all LoRAs together, in bytes; at that size no more are trained.
    pub max_bytes: u64,
}

impl std::fmt::Debug for Hearth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hearth").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// The state of the Hearth, where it is enabled.
pub(crate) struct HearthState {
    pub(crate) setup: Hearth,
    pub(crate) lora_store: LoraStore,
    pub(crate) offloaded_jobs: OffloadedJobs,
    /// Held while a job runs, so that only one runs at a time.
    pub(crate) learning: Arc<tokio::sync::Mutex<()>>,
    /// Held while sources are checked and the LoRA is then kept or removed.
    pub(crate) changing: std::sync::Mutex<()>,
    /// Held while the training log is changed.
    pub(crate) noting: tokio::sync::Mutex<()>,
    /// The job that is running on this machine now.
    pub(crate) job: std::sync::Mutex<Option<Arc<RunningJob>>>,
}

/// A running training job.
pub(crate) struct RunningJob {
    /// The sources of its examples.
    pub(crate) provenance: Provenance,
    /// The id of the LoRA that it trains beside.
    pub(crate) beside: Option<String>,
    /// Whether one of its sources is gone, so that it has to end.
    pub(crate) is_gone: AtomicBool,
}

impl HearthState {
    /// Returns true if a draft is still of use: its sources are there, and its offloaded job, if any, was not ended.
    fn is_wanted(&self, candidate: &Candidate<'_>) -> bool {
        candidate.offloaded_job.is_none_or(|offloaded_job| self.offloaded_jobs.has(offloaded_job))
            && !self.is_overtaken()
    }

    /// Returns true if a source of the running job is gone.
    fn is_overtaken(&self) -> bool {
        let job = self.job.lock().unwrap_or_else(PoisonError::into_inner);
        job.as_ref().is_some_and(|job| job.is_gone.load(Ordering::Relaxed))
    }

    /// Records the running job's sources, and the LoRA that it trains beside.
    fn begin_job(&self, provenance: Provenance, beside: Option<String>) {
        let job = RunningJob { provenance, beside, is_gone: AtomicBool::new(false) };
        *self.job.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(job));
    }

    /// Records that no job is running.
    fn end_job(&self) {
        *self.job.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Ends the running job if `is_void` returns true for it.
    fn break_off(&self, is_void: impl FnOnce(&RunningJob) -> bool) {
        // The lock is not held during `is_void`, which may read the record, because training checks the job meanwhile.
        let job = self.job.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(job) = job.filter(|job| is_void(job)) {
            job.is_gone.store(true, Ordering::Relaxed);
        }
    }

    /// Returns true if LoRAs take up all the space they may.
    pub(crate) fn is_full(&self) -> bool {
        self.lora_store.bytes() >= self.setup.max_bytes
    }

    /// Returns the base fingerprint of a model, if it can be trained.
    pub(crate) fn base_fingerprint(&self, model: &str) -> Option<String> {
        self.setup.trainer.as_ref()?.base_fingerprint(model)
    }
}

/// A trained LoRA that is not in service yet.
struct Candidate<'a> {
    trained: TrainingResult,
    learned: LoraRecord,
    /// The LoRA that it was trained beside.
    beside: Option<LoraRecord>,
    /// Its offloaded job, if another machine trained it. Ending that job ends the candidate.
    offloaded_job: Option<&'a OffloadedJob>,
}

/// An exchange prepared for training.
pub(crate) struct PreparedExample {
    pub(crate) training_example: TrainingExample,
    /// The person's message in it.
    pub(crate) said: MessageId,
    pub(crate) provenance: Provenance,
}
