//! Consolidation: when a persona rests, it is trained on the exchanges that surprised it most in a place. Training
//! pauses for live chat.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use azera_memory::Provenance;
use azera_model_api::{ChatRequest, Lora, Priority, Sampling};
use azera_types::Timestamp;

use super::evaluate::{EvaluationFault, fault, fault_of_reply};
use super::lora_store::LoraRecord;
use super::select::{SelectedExamples, TrainingContext};
use super::serve::{TrainingLogEntry, TrainingOutcome};
use super::{Candidate, HearthState, KeepGoing, PreparedExample, TrainError, TrainingExample, TrainingJob};
use crate::background::PersonaPlace;
use crate::error::Error;
use crate::hearth::Learning;
use crate::overrides::Overrides;
use crate::turn::any_seed;

/// Wait between two training jobs in one place.
const PAUSE: Duration = Duration::from_secs(6 * 3_600);

/// How often the wait doubles at most, once for each failure in a row; up to eight days.
const MAX_DOUBLINGS: u32 = 5;

/// How often a test reply that live chat interrupts is retried.
const MAX_ATTEMPTS: usize = 20;

/// Number of replies generated to test a new LoRA.
const TEST_REPLIES: usize = 4;

/// Attempts that must all loop before the LoRA is blamed; small models sometimes loop by themselves.
const LOOPS: u32 = 2;

/// What happened to a new LoRA.
enum Fate {
    Kept,
    Faulty(EvaluationFault),
    /// Something that it rests on went during training.
    Overtaken,
}

/// Returns the number of the next training job of a persona in a place.
fn next_number(hearth: &HearthState, home: &PersonaPlace, context: &TrainingContext) -> u32 {
    let lora_store = hearth.lora_store.of(&home.persona, &home.place);
    let numbers = context.entries.iter().map(|entry| entry.number).chain(lora_store.iter().map(|record| record.number));
    numbers.max().unwrap_or(0) + 1
}

/// Logs why no training takes place now.
fn log_training_error(home: &PersonaPlace, error: &Error) {
    match error.is_transient() {
        true => tracing::info!(%error, "training is postponed"),
        false => tracing::warn!(persona = %home.persona, %error, "cannot train"),
    }
}

impl Learning {
    /// Starts to train in a place if it is time to: the persona rests, and no other training runs. The training goes on
    /// in a task of its own.
    pub(crate) async fn learn_if_due(
        self: &Arc<Self>,
        home: &PersonaPlace,
        overrides: &Overrides,
        now: Timestamp,
    ) -> Result<(), Error> {
        let Some(hearth) = self.state.get() else { return Ok(()) };
        if hearth.setup.trainer.is_none() || hearth.setup.barred.contains_key(&home.platform) {
            return Ok(());
        }
        if hearth.offloaded_jobs.of(&home.persona, &home.place).is_some() {
            return Ok(());
        }
        let entries = self.training_log_of(home).await?;
        let again = matches!(entries.last(), Some(TrainingLogEntry { outcome: TrainingOutcome::Withdrawn, .. }));
        if !again {
            // A failure is likely to repeat, so the wait grows with each failure in a row.
            let is_failure = |entry: &&TrainingLogEntry| {
                matches!(entry.outcome, TrainingOutcome::Dropped(_) | TrainingOutcome::Failed | TrainingOutcome::Lost)
            };
            let finished = entries.iter().rev().filter(|entry| entry.outcome != TrainingOutcome::Offloaded);
            let failures = finished.take_while(is_failure).count();
            let pause = PAUSE * 2_u32.pow(u32::try_from(failures).unwrap_or(u32::MAX).min(MAX_DOUBLINGS));
            let lately =
                |entry: &TrainingLogEntry| entry.at <= now && now.duration_since(entry.at).unsigned_abs() < pause;
            let Some(state) = self.minds.states.state(&home.persona, &home.place, now) else { return Ok(()) };
            let rests = state.energy <= overrides.params.constants.energy_tired || overrides.params.is_night(now);
            if !rests || entries.last().is_some_and(lately) {
                return Ok(());
            }
        }
        // Other places only wait for training that really runs: a place with too few exchanges does not block them.
        if hearth.learning.try_lock().is_err() {
            return Ok(());
        }
        let chosen = match self.examples_to_train(hearth, home, again).await {
            Ok(chosen) => chosen,
            Err(error) => {
                log_training_error(home, &error);
                return Ok(());
            }
        };
        let (Some((context, chosen)), Ok(guard)) = (chosen, Arc::clone(&hearth.learning).try_lock_owned()) else {
            return Ok(());
        };
        let (learning, hearth, home) = (Arc::clone(self), Arc::clone(hearth), home.clone());
        self.services.tasks.spawn(async move {
            let _guard = guard;
            let learned = learning.take_job(&hearth, &home, &context, chosen).await;
            hearth.end_job();
            if let Err(error) = learned {
                log_training_error(&home, &error);
            }
        });
        Ok(())
    }

    /// Returns what to train on in a place, if there is enough.
    async fn examples_to_train(
        &self,
        hearth: &HearthState,
        home: &PersonaPlace,
        again: bool,
    ) -> Result<Option<(TrainingContext, SelectedExamples)>, Error> {
        let Some(context) = self.training_context(hearth, home).await? else { return Ok(None) };
        if !self.may_be_sent(&context).await? {
            return Ok(None);
        }
        let chosen = self.choose(&context, hearth.setup.exchanges, again).await?;
        if chosen.is_none() && again {
            let entry = TrainingLogEntry::new(
                next_number(hearth, home, &context),
                self.services.clock.now(),
                0,
                TrainingOutcome::TooLittle,
            );
            self.log_training(hearth, home, entry).await?;
        }
        Ok(chosen.map(|chosen| (context, chosen)))
    }

    async fn take_job(
        self: &Arc<Self>,
        hearth: &Arc<HearthState>,
        home: &PersonaPlace,
        context: &TrainingContext,
        chosen: SelectedExamples,
    ) -> Result<(), Error> {
        let model = self.services.model();
        let name = model.info().name.clone();
        let (Some(base_fingerprint), Some(trainer)) = (hearth.base_fingerprint(&name), hearth.setup.trainer.as_ref())
        else {
            return Ok(());
        };
        let now = self.services.clock.now();
        let number = next_number(hearth, home, context);
        let SelectedExamples { training_examples, older } = chosen;
        if !self.has_room(hearth, &base_fingerprint).await {
            tracing::info!("LoRAs take up hearth.max_disk_mb; skipping training");
            return Ok(());
        }
        let mut learned = LoraRecord {
            platform: home.platform.clone(),
            persona: home.persona.clone(),
            place: home.place.clone(),
            number,
            base_fingerprint,
            id: String::new(),
            provenance: context.serving.as_ref().map_or_else(Provenance::default, |serving| serving.provenance.clone()),
            said: context.serving.as_ref().map_or_else(BTreeSet::new, |serving| serving.said.clone()),
            at: now,
        };
        let mut exchanges = Vec::with_capacity(training_examples.len());
        for PreparedExample { training_example, said, provenance } in training_examples {
            learned.provenance.join(provenance);
            learned.said.insert(said);
            exchanges.push(training_example);
        }
        // The older examples go to another machine, too, so their sources count.
        let mut holds = learned.provenance.clone();
        let older: Vec<TrainingExample> = older
            .into_iter()
            .map(|PreparedExample { training_example, provenance, .. }| {
                holds.join(provenance);
                training_example
            })
            .collect();
        let seed = self.services.config.seed.unwrap_or_else(|| u64::from(any_seed()));
        let job = TrainingJob {
            model: name,
            voice: self.voice(context),
            beside: context.serving.as_ref().and_then(|it| Some(hearth.lora_store.file(&it.id.parse().ok()?))),
            to: hearth.lora_store.draft(),
            seed: seed.wrapping_add(u64::from(number)),
            training_examples: exchanges.clone(),
            older: older.clone(),
        };
        if let Some(transport) = &hearth.setup.transport {
            return self.send_offload(hearth, (home, context), Arc::clone(transport), job, (learned, holds)).await;
        }
        hearth.begin_job(holds.clone(), context.serving.as_ref().map(|it| it.id.clone()));
        // From now on, forgetting a source ends the job; this check covers what was forgotten before.
        if !self.services.blocking(move |memory| memory.training().provenance_holds(&holds)).await? {
            return Ok(());
        }
        tracing::info!(persona = %home.persona, exchanges = exchanges.len(), "training on exchanges");
        let trained = match trainer.learn(job, self.may_go_on(Arc::clone(hearth))).await {
            Ok(trained) => trained,
            Err(TrainError::BrokenOff) => return Ok(()),
            Err(TrainError::Failed(why)) => {
                tracing::warn!(persona = %home.persona, %why, "training failed");
                let entry = TrainingLogEntry::new(number, now, exchanges.len(), TrainingOutcome::Failed);
                return self.log_training(hearth, home, entry).await;
            }
        };
        learned.id = trained.id.to_string();
        let candidate = Candidate { trained, learned, beside: context.serving.clone(), offloaded_job: None };
        self.keep_or_drop(hearth, home, context, &candidate, &exchanges, &older).await.map(drop)
    }

    /// Puts a draft into service or drops it, and logs which. Returns true if that is settled. It is not if the engine
    /// stops, or if evaluating the result of an offloaded job fails, which is retried.
    pub(super) async fn keep_or_drop(
        &self,
        hearth: &Arc<HearthState>,
        home: &PersonaPlace,
        context: &TrainingContext,
        candidate: &Candidate<'_>,
        training_examples: &[TrainingExample],
        older: &[TrainingExample],
    ) -> Result<bool, Error> {
        let Candidate { trained, learned, .. } = candidate;
        let test_prompts: Vec<TrainingExample> =
            older.iter().chain(training_examples).take(TEST_REPLIES).cloned().collect();
        let fate = self.keep_if_good(hearth, context, candidate, &test_prompts, training_examples).await;
        if !matches!(fate, Ok(Fate::Kept)) {
            self.let_go(learned).await;
            let (of, left) = (Arc::clone(hearth), learned.clone());
            self.services
                .blocking(move |_| {
                    of.lora_store.remove_draft(&left).map_err(azera_memory::Error::io("removing a draft"))
                })
                .await?;
        }
        let entry = |outcome| TrainingLogEntry {
            // JSON has no number for infinity or NaN.
            learned: Some(trained.evaluation.learned).filter(|it| it.before.is_finite() && it.after.is_finite()),
            ..TrainingLogEntry::new(learned.number, self.services.clock.now(), training_examples.len(), outcome)
        };
        match fate {
            // From now on, forgetting a source finds the LoRA.
            Ok(Fate::Kept) => self.log_training(hearth, home, entry(TrainingOutcome::Serving)).await?,
            Ok(Fate::Overtaken) => {}
            Ok(Fate::Faulty(fault)) => {
                tracing::info!(persona = %home.persona, ?fault, "dropping a LoRA that failed the evaluation");
                self.log_training(hearth, home, entry(TrainingOutcome::Dropped(fault))).await?;
                if let Some(offloaded_job) = candidate.offloaded_job {
                    self.drop_offloaded(hearth, offloaded_job).await;
                }
            }
            // A stop interrupts the evaluation, and says nothing about the LoRA.
            Err(_) if self.services.stopping.is_cancelled() => return Ok(false),
            // The operator carried it here, so it is not dropped.
            Err(error) if candidate.offloaded_job.is_some() => {
                tracing::warn!(persona = %home.persona, %error, "cannot evaluate the result of an offloaded job; retrying");
                return Ok(false);
            }
            Err(error) => {
                tracing::warn!(persona = %home.persona, %error, "cannot evaluate a LoRA");
                self.log_training(hearth, home, entry(TrainingOutcome::Failed)).await?;
            }
        }
        Ok(true)
    }

    /// Puts a LoRA into service, if it has no fault and none of its sources went meanwhile.
    async fn keep_if_good(
        &self,
        hearth: &Arc<HearthState>,
        context: &TrainingContext,
        candidate: &Candidate<'_>,
        test_prompts: &[TrainingExample],
        training_examples: &[TrainingExample],
    ) -> Result<Fate, Error> {
        let Candidate { trained, learned, beside, offloaded_job } = candidate;
        let fault = match fault(&trained.evaluation) {
            Some(fault) => Some(fault),
            None => self.try_replies(context, hearth, candidate, test_prompts, training_examples).await?,
        };
        if !hearth.is_wanted(candidate) {
            return Ok(Fate::Overtaken);
        }
        if let Some(fault) = fault {
            // From now on nothing else ends the job.
            let is_ours = offloaded_job.is_none_or(|offloaded_job| hearth.offloaded_jobs.drop_one(offloaded_job));
            return Ok(if is_ours { Fate::Faulty(fault) } else { Fate::Overtaken });
        }
        let (of, new, id) = (Arc::clone(hearth), learned.clone(), trained.id);
        let (beside, offloaded_job) = (beside.clone(), offloaded_job.cloned());
        let gone = self
            .services
            .blocking(move |memory| {
                let _changing = of.changing.lock().unwrap_or_else(PoisonError::into_inner);
                if offloaded_job.as_ref().is_some_and(|offloaded_job| !of.offloaded_jobs.has(offloaded_job))
                    || !memory.training().provenance_holds(&new.provenance)?
                    || beside.is_some_and(|beside| !of.lora_store.has(&beside))
                {
                    return Ok(None);
                }
                let io = azera_memory::Error::io("keeping a LoRA");
                let gone = std::fs::rename(of.lora_store.draft(), of.lora_store.file(&id))
                    .and_then(|()| of.lora_store.keep(new))
                    .map_err(io)?;
                // From now on, the LoRA's own sources decide.
                if let Some(offloaded_job) = &offloaded_job {
                    of.offloaded_jobs.drop_one(offloaded_job);
                }
                Ok(Some(gone))
            })
            .await?;
        let Some(gone) = gone else { return Ok(Fate::Overtaken) };
        for older in gone {
            self.let_go(&older).await;
        }
        Ok(Fate::Kept)
    }

    /// Returns true if there is room for another LoRA, after removing earlier versions if necessary.
    async fn has_room(&self, hearth: &Arc<HearthState>, base_fingerprint: &str) -> bool {
        let (of, base_fingerprint) = (Arc::clone(hearth), base_fingerprint.to_owned());
        let made_room = tokio::task::spawn_blocking(move || {
            let mut gone = Vec::new();
            while of.is_full() {
                let _changing = of.changing.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(spare) = of.lora_store.oldest_spare(&base_fingerprint) else { return (false, gone) };
                if let Err(error) = of.lora_store.remove_files(&spare) {
                    tracing::error!(%error, "cannot remove an old LoRA to make room");
                    return (false, gone);
                }
                of.lora_store.drop_one(&spare);
                gone.push(spare);
            }
            (true, gone)
        });
        let (has, gone) = made_room.await.unwrap_or_default();
        for older in gone {
            self.let_go(&older).await;
        }
        has
    }

    /// Returns a blocking function that waits while somebody waits for an answer. It returns false once the training
    /// has to end.
    fn may_go_on(self: &Arc<Self>, hearth: Arc<HearthState>) -> KeepGoing {
        let (learning, runtime) = (Arc::clone(self), tokio::runtime::Handle::current());
        Arc::new(move || {
            runtime.block_on(async {
                loop {
                    if hearth.is_overtaken() {
                        return false;
                    }
                    let still = tokio::select! {
                        () = learning.services.stopping.cancelled() => return false,
                        still = learning.services.foreground.until_idle(PAUSE) => still,
                    };
                    if still {
                        return true;
                    }
                }
            })
        })
    }

    /// Returns what is wrong with replies made with a new LoRA, if anything is.
    async fn try_replies(
        &self,
        context: &TrainingContext,
        hearth: &HearthState,
        candidate: &Candidate<'_>,
        test_prompts: &[TrainingExample],
        training_examples: &[TrainingExample],
    ) -> Result<Option<EvaluationFault>, Error> {
        let lora = Lora::new(candidate.trained.id, hearth.lora_store.draft());
        for test_prompt in test_prompts {
            // A prompt must not be used after something in it was forgotten.
            if !hearth.is_wanted(candidate) {
                return Ok(None);
            }
            let question: String = test_prompt.messages.iter().map(|it| format!("{}\n", it.content)).collect();
            let others = training_examples.iter().filter(|training_example| *training_example != test_prompt);
            let others = || {
                others
                    .clone()
                    .flat_map(|training_example| [training_example.reply.as_str(), training_example.words.as_str()])
            };
            let mut looped = 0;
            for attempt in 0..LOOPS {
                // With a fixed seed, the evaluation is reproducible, too.
                let seed = self.services.config.seed.map_or_else(any_seed, |seed| (seed as u32).wrapping_add(attempt));
                let request = ChatRequest {
                    sampling: Sampling { seed: Some(seed), ..context.form.sampling.clone() },
                    max_tokens: self.services.config.reply_tokens.min(context.form.reply_tokens),
                    priority: Priority::Background,
                    loras: vec![lora.clone()],
                    ..ChatRequest::new(test_prompt.messages.clone())
                };
                match fault_of_reply(&self.ask_until_answered(request).await?, &question, others()) {
                    Some(EvaluationFault::Loops) => looped += 1,
                    Some(fault) => return Ok(Some(fault)),
                    None => break,
                }
            }
            if looped == LOOPS {
                return Ok(Some(EvaluationFault::Loops));
            }
        }
        Ok(None)
    }

    /// Asks until live chat no longer interrupts, because training everything again would take longer.
    async fn ask_until_answered(&self, request: ChatRequest) -> Result<String, Error> {
        for _ in 1..MAX_ATTEMPTS {
            match self.services.ask_quietly(request.clone()).await {
                Err(Error::Interrupted) if !self.services.stopping.is_cancelled() => {
                    self.services.foreground.until_idle(PAUSE).await;
                }
                answer => return answer,
            }
        }
        self.services.ask_quietly(request).await
    }

    /// Returns when a LoRA was last dropped, and the lines for a journal entry about it.
    pub(crate) async fn setback(&self, home: &PersonaPlace) -> Result<Option<(Timestamp, String)>, Error> {
        let dropped = |entry: TrainingLogEntry| match entry.outcome {
            TrainingOutcome::Dropped(fault) => Some((entry, fault)),
            _ => None,
        };
        let Some((TrainingLogEntry { at, exchanges, .. }, fault)) =
            self.training_log_of(home).await?.into_iter().rev().find_map(dropped)
        else {
            return Ok(None);
        };
        let in_words = fault.in_words();
        let lines = format!(
            "- Tried: I went over {exchanges} talks once more to make them part of me.\n- Outcome: I let it go, for it {in_words}.",
        );
        Ok(Some((at, lines)))
    }
}
