//! The Hearth: what a persona lives through changes, slowly, who it is. Exchanges of one place become an adapter of the model that
//! answers there; it serves in that place alone, and in no other.
//!
//! Invariants:
//! - Nothing is learnt where whoever runs this did not switch it on, nor from anybody who did not say that they want it
//!   ([`azera_memory::Memory::trainable_exchanges`] gives nothing else); on another machine only from those who were told of it as they said so.
//! - An adapter serves in the place it was learnt in, and there only as long as everybody who reads along may read all of it.
//! - What it rests on is asked after at each start, each forgetting and each change; an adapter that rests on what is gone is
//!   removed with its file, before the next reply.
//! - An adapter serves after it was examined; what makes the persona worse in anything does not.
//!
//! How adapters are trained is another's matter ([`Trainer`]), and so is how a course gets to another machine ([`OffloadTransport`]).

mod consolidate;
mod evaluate;
mod lora_store;
mod offload;
mod offloaded;
mod select;
mod serve;
mod words;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

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

/// An exchange as the model reads it: the prompt of a turn, and the reply.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainingExample {
    /// The prompt.
    pub messages: Vec<ChatMessage>,
    /// What a person said, which the last message ends with; empty if nothing is to be learnt from that.
    pub words: String,
    /// The reply.
    pub reply: String,
}

impl std::fmt::Debug for TrainingExample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TrainingExample[{} messages]", self.messages.len())
    }
}

/// What is to be learnt, beside what is there, and what must not suffer by it.
#[derive(Debug, Clone)]
pub struct TrainingJob {
    /// The name of the model.
    pub model: String,
    /// What is to be learnt.
    pub training_examples: Vec<TrainingExample>,
    /// Exchanges of the same place that were learnt before, or are left out of this course.
    pub older: Vec<TrainingExample>,
    /// What the persona's file has it say.
    pub voice: Vec<TrainingExample>,
    /// The adapter that serves there by now.
    pub beside: Option<PathBuf>,
    /// Where the new one, which serves in the other's stead, is to be written.
    pub to: PathBuf,
    /// What its beginning and the order of the lessons are drawn from.
    pub seed: u64,
}

/// An adapter in its file, examined.
#[derive(Debug, Clone)]
pub struct TrainingResult {
    /// Its name.
    pub id: LoraId,
    /// What it changes.
    pub evaluation: Evaluation,
}

/// Why nothing was learnt.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// It was to end.
    #[error("learning was broken off")]
    BrokenOff,
    /// It cannot be done; a sentence for whoever runs this.
    #[error("{0}")]
    Failed(String),
}

/// Waits while somebody waits for an answer; `false` if learning is to end. It blocks, and is asked between small steps.
pub type KeepGoing = Arc<dyn Fn() -> bool + Send + Sync>;

/// What trains adapters.
#[async_trait]
pub trait Trainer: Send + Sync {
    /// What adapters for a model are made for: it and everything that is always used with it, as a name. `None` for a model that
    /// cannot learn here.
    fn base_fingerprint(&self, model: &str) -> Option<String>;

    /// Learns and examines.
    ///
    /// # Errors
    /// See [`TrainError`]; no file is left then.
    async fn learn(&self, job: TrainingJob, may_go_on: KeepGoing) -> Result<TrainingResult, TrainError>;
}

/// What learning needs.
pub struct Hearth {
    /// Who trains; nobody where learning is switched off. What was learnt before does not serve then, and is still withdrawn.
    pub trainer: Option<Arc<dyn Trainer>>,
    /// Who carries courses to another machine, where they are not to be learnt on this one. Without one, what is away is given up.
    pub transport: Option<Arc<dyn OffloadTransport>>,
    /// Where adapters are kept, as files of this program's alone.
    pub folder: PathBuf,
    /// Exchanges from which on it is worth while to learn; so many are learnt at a time.
    pub exchanges: usize,
    /// Platforms whose text is not learnt from, and why, for people.
    pub barred: BTreeMap<PlatformId, String>,
    /// Bytes that all adapters together may take; past them nothing more is learnt.
    pub max_bytes: u64,
}

impl std::fmt::Debug for Hearth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hearth").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// A hearth that burns: what it needs, and what was learnt by it.
pub(crate) struct HearthState {
    pub(crate) hearth: Hearth,
    pub(crate) lora_store: LoraStore,
    pub(crate) offloaded_jobs: OffloadedJobs,
    /// Held by whoever learns: one at a time.
    pub(crate) learning: Arc<tokio::sync::Mutex<()>>,
    /// Held by whoever looks whether something stands and then keeps or removes it.
    pub(crate) changing: std::sync::Mutex<()>,
    /// Held by whoever notes what came of something.
    pub(crate) noting: tokio::sync::Mutex<()>,
    /// What the course that is learnt here at the moment rests on.
    pub(crate) job: std::sync::Mutex<Option<Arc<RunningJob>>>,
}

/// A course that is learnt at the moment.
pub(crate) struct RunningJob {
    /// What it rests on.
    pub(crate) provenance: Provenance,
    /// The adapter that it is learnt beside.
    pub(crate) beside: Option<String>,
    /// Something of it is gone, so it is to end.
    pub(crate) is_gone: AtomicBool,
}

impl HearthState {
    /// Whether a draft is of use: what it rests on is there, and nothing ended what it was away as.
    fn is_wanted(&self, candidate: &Candidate<'_>) -> bool {
        candidate.offloaded_job.is_none_or(|offloaded_job| self.offloaded_jobs.has(offloaded_job))
            && !self.is_overtaken()
    }

    /// Whether something is gone that the course rests on which is learnt here at the moment.
    fn is_overtaken(&self) -> bool {
        let job = self.job.lock().unwrap_or_else(PoisonError::into_inner);
        job.as_ref().is_some_and(|job| job.is_gone.load(Ordering::Relaxed))
    }

    /// Takes note of what is learnt from now on, and beside which adapter.
    fn begin_job(&self, provenance: Provenance, beside: Option<String>) {
        let job = RunningJob { provenance, beside, is_gone: AtomicBool::new(false) };
        *self.job.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(job));
    }

    /// Takes note that nothing is learnt any more.
    fn end_job(&self) {
        *self.job.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Ends the course that is learnt here at the moment, if `is_void` says so of it.
    fn break_off(&self, is_void: impl FnOnce(&RunningJob) -> bool) {
        // Asking may read the record; learning asks after the course meanwhile.
        let job = self.job.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(job) = job.filter(|job| is_void(job)) {
            job.is_gone.store(true, Ordering::Relaxed);
        }
    }

    /// Whether adapters take all the room that they may.
    pub(crate) fn is_full(&self) -> bool {
        self.lora_store.bytes() >= self.hearth.max_bytes
    }

    /// What adapters for a model are made for, if there are to be any.
    pub(crate) fn base_fingerprint(&self, model: &str) -> Option<String> {
        self.hearth.trainer.as_ref()?.base_fingerprint(model)
    }
}

/// Something learnt that is not kept yet: a draft.
struct Candidate<'a> {
    trained: TrainingResult,
    learnt: LoraRecord,
    /// What it was learnt beside.
    beside: Option<LoraRecord>,
    /// As what it was away, if it was: what ends that ends this.
    offloaded_job: Option<&'a OffloadedJob>,
}

/// What an exchange becomes.
pub(crate) struct PreparedExample {
    pub(crate) training_example: TrainingExample,
    /// What a person said in it.
    pub(crate) said: MessageId,
    pub(crate) provenance: Provenance,
}
