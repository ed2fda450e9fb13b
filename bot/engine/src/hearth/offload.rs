//! Training on another machine: writes a job for it, and evaluates the result like one trained here.
//!
//! An offloaded job rests on its sources like a LoRA: if one goes, the job is removed, and a later result is not
//! accepted.

use std::fs;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use azera_memory::Provenance;
use azera_types::Timestamp;

use super::lora_store::LoraRecord;
use super::offloaded::{JOB_EXTENSION, OffloadError, OffloadResult, OffloadTransport, OffloadedJob, RESULT_EXTENSION};
use super::select::TrainingContext;
use super::serve::{TrainingLogEntry, TrainingOutcome};
use super::{Candidate, HearthState, TrainError, TrainingJob};
use crate::background::{PersonaPlace, is_past};
use crate::error::Error;
use crate::hearth::Learning;
use crate::turn::any_seed;

/// Longest wait for a usable result.
const MAX_WAIT: Duration = Duration::from_secs(30 * 24 * 3_600);

/// How long a result that cannot be used is kept after the wait is over, before the job is given up.
const RETRY_RESULT_FOR: Duration = Duration::from_secs(24 * 3_600);

impl Learning {
    /// Writes a job for another machine.
    pub(super) async fn send_offload(
        &self,
        hearth: &Arc<HearthState>,
        (home, context): (&PersonaPlace, &TrainingContext),
        transport: Arc<dyn OffloadTransport>,
        job: TrainingJob,
        (learned, holds): (LoraRecord, Provenance),
    ) -> Result<(), Error> {
        let (number, at, exchanges) = (learned.number, learned.at, job.training_examples.len());
        let (name, chat) = (format!("{:08x}{:08x}", any_seed(), any_seed()), context.chat.clone());
        let offloaded_job = OffloadedJob { name, chat, learned, holds, beside: context.serving.clone(), exchanges };
        let entry = |outcome| TrainingLogEntry::new(number, at, exchanges, outcome);
        // Logged first, because from then on forgetting a source may end the job, and logs that.
        self.log_training(hearth, home, entry(TrainingOutcome::Offloaded)).await?;
        let of = Arc::clone(hearth);
        let sent = self
            .services
            .blocking(move |memory| {
                let file = of.offloaded_jobs.file(&offloaded_job.name, JOB_EXTENSION);
                let sent = transport.send(&job, &offloaded_job.learned.base_fingerprint, &file).and_then(|()| {
                    let _changing = of.changing.lock().unwrap_or_else(PoisonError::into_inner);
                    let failed = |error: &dyn std::fmt::Display| TrainError::Failed(error.to_string());
                    let has_sources =
                        memory.training().provenance_holds(&offloaded_job.holds).map_err(|error| failed(&error))?
                            && offloaded_job.beside.as_ref().is_none_or(|beside| of.lora_store.has(beside));
                    if has_sources {
                        of.offloaded_jobs.keep(offloaded_job.clone()).map_err(|error| failed(&error))?;
                    }
                    Ok(has_sources)
                });
                if !matches!(sent, Ok(true))
                    && let Err(error) = of.offloaded_jobs.remove_files(&offloaded_job)
                {
                    tracing::error!(%error, "cannot remove the files of an offloaded job");
                }
                Ok(sent)
            })
            .await?;
        match sent {
            Ok(true) => {
                tracing::info!(persona = %home.persona, exchanges, "a training job waits for another machine; run azera hearth pack");
                Ok(())
            }
            // A source went meanwhile.
            Ok(false) => self.log_training(hearth, home, entry(TrainingOutcome::Withdrawn)).await,
            Err(error) => {
                tracing::warn!(persona = %home.persona, %error, "cannot write a training job for another machine");
                self.log_training(hearth, home, entry(TrainingOutcome::Failed)).await
            }
        }
    }

    /// Returns true if no training takes place there because the LoRA in service may not leave this machine.
    pub(crate) async fn is_held_up(&self, hearth: &HearthState, home: &PersonaPlace) -> Result<bool, Error> {
        match self.training_context(hearth, home).await? {
            Some(context) => Ok(!self.may_be_sent(&context).await?),
            None => Ok(false),
        }
    }

    /// Returns true if the LoRA in service may go where jobs go, because a job continues from it.
    pub(super) async fn may_be_sent(&self, context: &TrainingContext) -> Result<bool, Error> {
        let Some(serving) = context.serving.clone().filter(|_| context.offload) else { return Ok(true) };
        self.services.blocking(move |memory| memory.training().may_offload(&serving.provenance)).await
    }

    /// Checks, if it is time to, for results and for jobs that waited too long. It handles them in a task of its own.
    pub(crate) async fn poll_offloaded(self: &Arc<Self>, now: Timestamp) {
        let Some(hearth) = self.state.get() else { return };
        if hearth.offloaded_jobs.next_look(now).is_none_or(|next| next > now) {
            return;
        }
        hearth.offloaded_jobs.note_look(now);
        let Ok(guard) = Arc::clone(&hearth.learning).try_lock_owned() else { return };
        let arrived = hearth
            .offloaded_jobs
            .all()
            .into_iter()
            .filter_map(|offloaded_job| Some((self.next_step(hearth, &offloaded_job, now)?, offloaded_job)));
        let arrived: Vec<(Arrival, OffloadedJob)> = arrived.collect();
        if arrived.is_empty() {
            return;
        }
        let (learning, hearth) = (Arc::clone(self), Arc::clone(hearth));
        self.services.tasks.spawn(async move {
            let _guard = guard;
            for (next_step, offloaded_job) in arrived {
                if learning.services.stopping.is_cancelled() {
                    return;
                }
                let done = match next_step {
                    Arrival::Back { is_overdue } => learning.receive_offloaded(&hearth, &offloaded_job, is_overdue).await,
                    Arrival::Lost => learning.give_up(&hearth, &offloaded_job).await,
                };
                match done {
                    Ok(()) => {}
                    Err(error) if error.is_transient() => tracing::info!(%error, "the result of an offloaded job is postponed"),
                    Err(error) => {
                        tracing::warn!(persona = %offloaded_job.learned.persona, %error, "cannot handle the result of an offloaded job");
                    }
                }
            }
        });
    }

    /// Returns what to do about an offloaded job; `None` to go on waiting.
    fn next_step(&self, hearth: &HearthState, offloaded_job: &OffloadedJob, now: Timestamp) -> Option<Arrival> {
        // The absolute difference counts: a job from much later than now comes from a clock that was wrong.
        let is_overdue = now.duration_since(offloaded_job.learned.at).unsigned_abs() >= MAX_WAIT;
        if hearth.offloaded_jobs.file(&offloaded_job.name, RESULT_EXTENSION).exists() {
            Some(Arrival::Back { is_overdue })
        } else {
            is_overdue.then_some(Arrival::Lost)
        }
    }

    /// Evaluates a result like one trained here. Gives the job up if that was impossible for too long.
    async fn receive_offloaded(
        &self,
        hearth: &Arc<HearthState>,
        offloaded_job: &OffloadedJob,
        is_overdue: bool,
    ) -> Result<(), Error> {
        if self.has_conversation(&offloaded_job.home()).await? {
            return Ok(());
        }
        let evaluation_result = self.evaluate(hearth, offloaded_job).await;
        match evaluation_result {
            Ok(EvaluationResult::Over) => drop(self.drop_offloaded(hearth, offloaded_job).await),
            Ok(EvaluationResult::Useless) => self.give_up(hearth, offloaded_job).await?,
            Ok(EvaluationResult::NotNow) | Err(_) => {
                let now = self.services.clock.now();
                let of_no_use = hearth.offloaded_jobs.of_no_use_since(offloaded_job, now);
                if is_overdue && !self.services.stopping.is_cancelled() && is_past(of_no_use, RETRY_RESULT_FOR, now) {
                    self.give_up(hearth, offloaded_job).await?;
                }
            }
        }
        evaluation_result.map(drop)
    }

    /// Returns true if a conversation is going on there, or ended just now.
    async fn has_conversation(&self, home: &PersonaPlace) -> Result<bool, Error> {
        let Some(activity) = self.minds.agenda.place_activity(home) else { return Ok(false) };
        let rest = self.minds.overrides(&home.platform, &home.place).await?.garden.rest;
        Ok(!is_past(activity.said, rest, self.services.clock.now()))
    }

    async fn evaluate(
        &self,
        hearth: &Arc<HearthState>,
        offloaded_job: &OffloadedJob,
    ) -> Result<EvaluationResult, Error> {
        let home = offloaded_job.home();
        let model = self.services.model().info().name.clone();
        let (Some(transport), Some(base_fingerprint)) =
            (hearth.setup.transport.clone(), hearth.base_fingerprint(&model))
        else {
            return Ok(EvaluationResult::NotNow);
        };
        // Another model answers at the moment; the result may be of use later.
        if base_fingerprint != offloaded_job.learned.base_fingerprint {
            return Ok(EvaluationResult::NotNow);
        }
        // The chat with the newest message may be gone; then the job's own chat serves, if it still exists.
        let context = match self.training_context(hearth, &home).await? {
            None => self.training_context_in(hearth, &home, offloaded_job.chat.clone()).await?,
            context => context,
        };
        let Some(context) = context else { return Ok(EvaluationResult::NotNow) };
        let (of, name) = (Arc::clone(hearth), offloaded_job.name.clone());
        let received = self
            .services
            .blocking(move |_| {
                let (job, learned) =
                    (of.offloaded_jobs.file(&name, JOB_EXTENSION), of.offloaded_jobs.file(&name, RESULT_EXTENSION));
                let received = transport.receive(&job, &learned, &of.lora_store.draft());
                if let Err(error) = &received {
                    let of_no_use = matches!(error, OffloadError::NotOfIt(_));
                    let removed = if of_no_use { fs::remove_file(&learned) } else { Ok(()) };
                    let removing = azera_memory::Error::io("removing a useless result");
                    of.lora_store.clear_draft().and(removed).map_err(removing)?;
                }
                Ok(received)
            })
            .await?;
        let OffloadResult { training_examples, older, trained } = match received {
            Ok(back) => back,
            Err(error) => {
                tracing::warn!(persona = %home.persona, %error, "rejecting a result from another machine");
                let is_lost = matches!(error, OffloadError::NoJob(_));
                return Ok(if is_lost { EvaluationResult::Useless } else { EvaluationResult::NotNow });
            }
        };
        let learned =
            LoraRecord { id: trained.id.to_string(), at: self.services.clock.now(), ..offloaded_job.learned.clone() };
        // It was put into service, and a stop came before that was recorded.
        if hearth.lora_store.has(&learned) {
            let of = Arc::clone(hearth);
            self.services
                .blocking(move |_| of.lora_store.clear_draft().map_err(azera_memory::Error::io("removing a draft")))
                .await?;
            return Ok(EvaluationResult::Over);
        }
        let candidate =
            Candidate { trained, learned, beside: offloaded_job.beside.clone(), offloaded_job: Some(offloaded_job) };
        let is_settled = self.keep_or_drop(hearth, &home, &context, &candidate, &training_examples, &older).await?;
        Ok(if is_settled { EvaluationResult::Over } else { EvaluationResult::NotNow })
    }

    /// Gives up an offloaded job, if it is still waited for.
    async fn give_up(&self, hearth: &Arc<HearthState>, offloaded_job: &OffloadedJob) -> Result<(), Error> {
        if !hearth.offloaded_jobs.drop_one(offloaded_job) {
            return Ok(());
        }
        self.drop_offloaded(hearth, offloaded_job).await;
        let (number, at, exchanges) =
            (offloaded_job.learned.number, self.services.clock.now(), offloaded_job.exchanges);
        let entry = TrainingLogEntry::new(number, at, exchanges, TrainingOutcome::Lost);
        self.log_training(hearth, &offloaded_job.home(), entry).await
    }

    /// Removes an offloaded job and its files. Returns true if nothing is left.
    pub(super) async fn drop_offloaded(&self, hearth: &Arc<HearthState>, offloaded_job: &OffloadedJob) -> bool {
        hearth.offloaded_jobs.drop_one(offloaded_job);
        let (of, gone) = (Arc::clone(hearth), offloaded_job.clone());
        let removed = tokio::task::spawn_blocking(move || of.offloaded_jobs.remove_files(&gone)).await;
        let is_gone = matches!(removed, Ok(Ok(())));
        if !is_gone {
            tracing::error!(job = %offloaded_job.name, "cannot remove the files of an offloaded job");
        }
        is_gone
    }
}

/// What to do about an offloaded job.
enum Arrival {
    /// A result arrived.
    Back {
        /// The wait is over: if the result is useless now, the job is given up.
        is_overdue: bool,
    },
    /// The wait is over without a result.
    Lost,
}

/// How the evaluation of a result ended.
enum EvaluationResult {
    /// It was put into service or dropped, or a source is gone.
    Over,
    /// It is impossible for now: another model answers, the key is gone, the file is not a result of this job, or
    /// something failed.
    NotNow,
    /// It will never be possible.
    Useless,
}
