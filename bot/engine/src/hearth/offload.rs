//! Learning on another machine: a course is laid out for it, and what comes back is examined as if it had been learnt here.
//!
//! What is away rests on what it was made of, like what is kept: it goes with it, and what comes back later is not taken in.

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
use crate::engine::Engine;
use crate::error::Error;
use crate::generate::any_seed;

/// How long is waited for something of use to come back.
const PATIENCE: Duration = Duration::from_secs(30 * 24 * 3_600);

/// How long what came back must have been of no use before it is given up for that.
const SECOND_THOUGHTS: Duration = Duration::from_secs(24 * 3_600);

impl Engine {
    /// Lays out a course for another machine.
    pub(super) async fn send_offload(
        &self,
        burning: &Arc<HearthState>,
        (home, context): (&PersonaPlace, &TrainingContext),
        transport: Arc<dyn OffloadTransport>,
        job: TrainingJob,
        (learnt, holds): (LoraRecord, Provenance),
    ) -> Result<(), Error> {
        let (number, at, exchanges) = (learnt.number, learnt.at, job.training_examples.len());
        let (name, chat) = (format!("{:08x}{:08x}", any_seed(), any_seed()), context.chat.clone());
        let offloaded_job = OffloadedJob { name, chat, learnt, holds, beside: context.serving.clone(), exchanges };
        let entry = |outcome| TrainingLogEntry::new(number, at, exchanges, outcome);
        // Before it is kept: from then on forgetting may end it, and notes that.
        self.log_training(burning, home, entry(TrainingOutcome::Offloaded)).await?;
        let of = Arc::clone(burning);
        let sent = self
            .blocking(move |memory| {
                let file = of.offloaded_jobs.file(&offloaded_job.name, JOB_EXTENSION);
                let sent = transport.send(&job, &offloaded_job.learnt.base_fingerprint, &file).and_then(|()| {
                    let _changing = of.changing.lock().unwrap_or_else(PoisonError::into_inner);
                    let failed = |error: &dyn std::fmt::Display| TrainError::Failed(error.to_string());
                    let founded = memory.provenance_holds(&offloaded_job.holds).map_err(|error| failed(&error))?
                        && offloaded_job.beside.as_ref().is_none_or(|beside| of.lora_store.has(beside));
                    if founded {
                        of.offloaded_jobs.keep(offloaded_job.clone()).map_err(|error| failed(&error))?;
                    }
                    Ok(founded)
                });
                if !matches!(sent, Ok(true))
                    && let Err(error) = of.offloaded_jobs.remove_files(&offloaded_job)
                {
                    tracing::error!(%error, "what is left of a course could not be removed");
                }
                Ok(sent)
            })
            .await?;
        match sent {
            Ok(true) => {
                tracing::info!(persona = %home.persona, exchanges, "a course waits to be learnt elsewhere: azera hearth pack");
                Ok(())
            }
            // Something that it rests on went meanwhile.
            Ok(false) => self.log_training(burning, home, entry(TrainingOutcome::Withdrawn)).await,
            Err(error) => {
                tracing::warn!(persona = %home.persona, %error, "a course for another machine could not be laid out");
                self.log_training(burning, home, entry(TrainingOutcome::Failed)).await
            }
        }
    }

    /// Whether nothing is learnt in a home because what serves there may not go to the other machine.
    pub(crate) async fn is_held_up(&self, burning: &HearthState, home: &PersonaPlace) -> Result<bool, Error> {
        match self.training_context(burning, home).await? {
            Some(context) => Ok(!self.may_be_sent(&context).await?),
            None => Ok(false),
        }
    }

    /// Whether what serves in a place may go where its courses go: a course goes on from it.
    pub(super) async fn may_be_sent(&self, context: &TrainingContext) -> Result<bool, Error> {
        let Some(serving) = context.serving.clone().filter(|_| context.offload) else { return Ok(true) };
        self.blocking(move |memory| memory.may_offload(&serving.provenance)).await
    }

    /// Looks, if it is time to, whether something came back or was waited for long enough. It goes on by itself.
    pub(crate) async fn poll_offloaded(&self, now: Timestamp) {
        let Some(burning) = self.0.hearth.get() else { return };
        if burning.offloaded_jobs.next_look(now).is_none_or(|next| next > now) {
            return;
        }
        burning.offloaded_jobs.note_look(now);
        let Ok(held) = Arc::clone(&burning.learning).try_lock_owned() else { return };
        let arrived = burning
            .offloaded_jobs
            .all()
            .into_iter()
            .filter_map(|offloaded_job| Some((self.arrival(burning, &offloaded_job, now)?, offloaded_job)));
        let arrived: Vec<(Arrival, OffloadedJob)> = arrived.collect();
        if arrived.is_empty() {
            return;
        }
        let (core, burning) = (self.clone(), Arc::clone(burning));
        self.0.tasks.spawn(async move {
            let _held = held;
            for (arrival, offloaded_job) in arrived {
                if core.0.stopping.is_cancelled() {
                    return;
                }
                let done = match arrival {
                    Arrival::Back { is_overdue } => core.receive_offloaded(&burning, &offloaded_job, is_overdue).await,
                    Arrival::Lost => core.give_up(&burning, &offloaded_job).await,
                };
                match done {
                    Ok(()) => {}
                    Err(error) if error.is_transient() => tracing::info!(%error, "what came back waits"),
                    Err(error) => {
                        tracing::warn!(persona = %offloaded_job.learnt.persona, %error, "what came back could not be looked at");
                    }
                }
            }
        });
    }

    /// What is to be done about what is away; `None` if it is to be waited for.
    fn arrival(&self, burning: &HearthState, offloaded_job: &OffloadedJob, now: Timestamp) -> Option<Arrival> {
        // What was laid out much later than now was laid out by a clock that was wrong.
        let is_overdue = now.duration_since(offloaded_job.learnt.at).unsigned_abs() >= PATIENCE;
        if burning.offloaded_jobs.file(&offloaded_job.name, RESULT_EXTENSION).exists() {
            Some(Arrival::Back { is_overdue })
        } else {
            is_overdue.then_some(Arrival::Lost)
        }
    }

    /// Examines what came back as if it had been learnt here; what could not be examined for too long is given up.
    async fn receive_offloaded(
        &self,
        burning: &Arc<HearthState>,
        offloaded_job: &OffloadedJob,
        is_overdue: bool,
    ) -> Result<(), Error> {
        if self.is_talked_in(&offloaded_job.home()).await? {
            return Ok(());
        }
        let evaluation_result = self.evaluate(burning, offloaded_job).await;
        match evaluation_result {
            Ok(EvaluationResult::Over) => drop(self.drop_offloaded(burning, offloaded_job).await),
            Ok(EvaluationResult::Useless) => self.give_up(burning, offloaded_job).await?,
            Ok(EvaluationResult::NotNow) | Err(_) => {
                let now = self.0.clock.now();
                let of_no_use = burning.offloaded_jobs.of_no_use_since(offloaded_job, now);
                if is_overdue && !self.0.stopping.is_cancelled() && is_past(of_no_use, SECOND_THOUGHTS, now) {
                    self.give_up(burning, offloaded_job).await?;
                }
            }
        }
        evaluation_result.map(drop)
    }

    /// Whether somebody talks in a home, or did just now.
    async fn is_talked_in(&self, home: &PersonaPlace) -> Result<bool, Error> {
        let Some(activity) = self.0.agenda.place_activity(home) else { return Ok(false) };
        let rest = self.overrides(&home.platform, &home.place).await?.garden.rest;
        Ok(!is_past(activity.said, rest, self.0.clock.now()))
    }

    async fn evaluate(
        &self,
        burning: &Arc<HearthState>,
        offloaded_job: &OffloadedJob,
    ) -> Result<EvaluationResult, Error> {
        let home = offloaded_job.home();
        let model = self.model().info().name.clone();
        let (Some(transport), Some(base_fingerprint)) =
            (burning.hearth.transport.clone(), burning.base_fingerprint(&model))
        else {
            return Ok(EvaluationResult::NotNow);
        };
        // Another model answers at the moment: this may be of use again.
        if base_fingerprint != offloaded_job.learnt.base_fingerprint {
            return Ok(EvaluationResult::NotNow);
        }
        // The chat spoken in last may be gone, and so may the one in which it was laid out.
        let context = match self.training_context(burning, &home).await? {
            None => self.training_context_in(burning, &home, offloaded_job.chat.clone()).await?,
            context => context,
        };
        let Some(context) = context else { return Ok(EvaluationResult::NotNow) };
        let (of, names) = (Arc::clone(burning), offloaded_job.name.clone());
        let received = self
            .blocking(move |_| {
                let (job, learnt) =
                    (of.offloaded_jobs.file(&names, JOB_EXTENSION), of.offloaded_jobs.file(&names, RESULT_EXTENSION));
                let received = transport.receive(&job, &learnt, &of.lora_store.draft());
                if let Err(error) = &received {
                    let of_no_use = matches!(error, OffloadError::NotOfIt(_));
                    let removed = if of_no_use { fs::remove_file(&learnt) } else { Ok(()) };
                    let removing = azera_memory::Error::io("removing what is of no use");
                    of.lora_store.clear_draft().and(removed).map_err(removing)?;
                }
                Ok(received)
            })
            .await?;
        let OffloadResult { training_examples, older, trained } = match received {
            Ok(back) => back,
            Err(error) => {
                tracing::warn!(persona = %home.persona, %error, "what came back from another machine is not taken in");
                let is_lost = matches!(error, OffloadError::NoJob(_));
                return Ok(if is_lost { EvaluationResult::Useless } else { EvaluationResult::NotNow });
            }
        };
        let learnt = LoraRecord { id: trained.id.to_string(), at: self.0.clock.now(), ..offloaded_job.learnt.clone() };
        // Kept, and broken off before that was noted.
        if burning.lora_store.has(&learnt) {
            let of = Arc::clone(burning);
            self.blocking(move |_| of.lora_store.clear_draft().map_err(azera_memory::Error::io("removing a draft")))
                .await?;
            return Ok(EvaluationResult::Over);
        }
        let candidate =
            Candidate { trained, learnt, beside: offloaded_job.beside.clone(), offloaded_job: Some(offloaded_job) };
        let is_settled = self.keep_or_drop(burning, &home, &context, &candidate, &training_examples, &older).await?;
        Ok(if is_settled { EvaluationResult::Over } else { EvaluationResult::NotNow })
    }

    /// Gives up on what nothing of use came back of, if it is still waited for.
    async fn give_up(&self, burning: &Arc<HearthState>, offloaded_job: &OffloadedJob) -> Result<(), Error> {
        if !burning.offloaded_jobs.drop_one(offloaded_job) {
            return Ok(());
        }
        self.drop_offloaded(burning, offloaded_job).await;
        let (number, at, exchanges) = (offloaded_job.learnt.number, self.0.clock.now(), offloaded_job.exchanges);
        let entry = TrainingLogEntry::new(number, at, exchanges, TrainingOutcome::Lost);
        self.log_training(burning, &offloaded_job.home(), entry).await
    }

    /// Whether nothing is left of what was away.
    pub(super) async fn drop_offloaded(&self, burning: &Arc<HearthState>, offloaded_job: &OffloadedJob) -> bool {
        burning.offloaded_jobs.drop_one(offloaded_job);
        let (of, gone) = (Arc::clone(burning), offloaded_job.clone());
        let removed = tokio::task::spawn_blocking(move || of.offloaded_jobs.remove_files(&gone)).await;
        let is_gone = matches!(removed, Ok(Ok(())));
        if !is_gone {
            tracing::error!(job = %offloaded_job.name, "a course for another machine could not be removed");
        }
        is_gone
    }
}

/// What is to be done about what is away.
enum Arrival {
    /// It came back.
    Back {
        /// It was waited for long enough: if it is of no use now, it is given up.
        is_overdue: bool,
    },
    /// It was waited for long enough, and is not back.
    Lost,
}

/// How the examination of what came back went.
enum EvaluationResult {
    /// It was kept or dropped, or what it rests on is gone.
    Over,
    /// It can't be now: another model answers, the key is gone, it was no such file, or something failed.
    NotNow,
    /// It can't ever be.
    Useless,
}
