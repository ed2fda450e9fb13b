//! Consolidation: when a persona rests, what surprised it most in a place is learnt. Whoever wants an answer meanwhile has the machine.

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
use crate::engine::Engine;
use crate::error::Error;
use crate::generate::any_seed;
use crate::overrides::Overrides;

/// Time between two tries in one place.
const PAUSE: Duration = Duration::from_secs(6 * 3_600);

/// How often that time is doubled at most, once for each try in a row that came to nothing: to eight days.
const MOST_DOUBLINGS: u32 = 5;

/// How often replies are tried that somebody who talks breaks off.
const TRIES: usize = 20;

/// Replies that are tried with a new adapter.
const TRIED_REPLIES: usize = 4;

/// Tries of which each must loop for it to be the adapter's fault: small models do that at times by themselves.
const LOOPS: u32 = 2;

/// What became of something learnt.
enum Fate {
    Retained,
    Faulty(EvaluationFault),
    /// Something that it rests on went while it was learnt.
    Overtaken,
}

/// The number of the next lesson of a home.
fn next_number(burning: &HearthState, home: &PersonaPlace, context: &TrainingContext) -> u32 {
    let lora_store = burning.lora_store.of(&home.persona, &home.place);
    let numbers =
        context.entries.iter().map(|entry| entry.number).chain(lora_store.iter().map(|lora_store| lora_store.number));
    numbers.max().unwrap_or(0) + 1
}

/// Says why nothing is learnt now.
fn cannot_learn(home: &PersonaPlace, error: &Error) {
    match error.is_transient() {
        true => tracing::info!(%error, "what was to be learnt waits"),
        false => tracing::warn!(persona = %home.persona, %error, "nothing could be learnt"),
    }
}

impl Engine {
    /// Begins to learn in a home, if it is time to: the persona rests, and nobody learns. It goes on by itself.
    pub(crate) async fn learn_if_due(
        &self,
        home: &PersonaPlace,
        overrides: &Overrides,
        now: Timestamp,
    ) -> Result<(), Error> {
        let Some(burning) = self.0.hearth.get() else { return Ok(()) };
        if burning.hearth.trainer.is_none() || burning.hearth.barred.contains_key(&home.platform) {
            return Ok(());
        }
        if burning.offloaded_jobs.of(&home.persona, &home.place).is_some() {
            return Ok(());
        }
        let entries = self.training_log_of(home).await?;
        let again = matches!(entries.last(), Some(TrainingLogEntry { outcome: TrainingOutcome::Withdrawn, .. }));
        if !again {
            // What came to nothing comes to nothing again, so it is tried less and less often.
            let in_vain = |entry: &&TrainingLogEntry| {
                matches!(entry.outcome, TrainingOutcome::Dropped(_) | TrainingOutcome::Failed | TrainingOutcome::Lost)
            };
            let in_words = entries.iter().rev().filter(|entry| entry.outcome != TrainingOutcome::Offloaded);
            let failures = in_words.take_while(in_vain).count();
            let pause = PAUSE * 2_u32.pow(u32::try_from(failures).unwrap_or(u32::MAX).min(MOST_DOUBLINGS));
            let lately =
                |entry: &TrainingLogEntry| entry.at <= now && now.duration_since(entry.at).unsigned_abs() < pause;
            let Some(state) = self.0.minds.state(&home.persona, &home.place, now) else { return Ok(()) };
            let rests = state.energy <= overrides.params.constants.energy_tired || overrides.params.is_night(now);
            if !rests || entries.last().is_some_and(lately) {
                return Ok(());
            }
        }
        // Only who really learns is waited for: a home with too little does not keep another from its turn.
        if burning.learning.try_lock().is_err() {
            return Ok(());
        }
        let chosen = match self.what_waits(burning, home, again).await {
            Ok(chosen) => chosen,
            Err(error) => {
                cannot_learn(home, &error);
                return Ok(());
            }
        };
        let (Some((context, chosen)), Ok(held)) = (chosen, Arc::clone(&burning.learning).try_lock_owned()) else {
            return Ok(());
        };
        let (core, burning, home) = (self.clone(), Arc::clone(burning), home.clone());
        self.0.tasks.spawn(async move {
            let _held = held;
            let learnt = core.take_job(&burning, &home, &context, chosen).await;
            burning.end_job();
            if let Err(error) = learnt {
                cannot_learn(&home, &error);
            }
        });
        Ok(())
    }

    /// What is to be learnt in a home, if there is enough.
    async fn what_waits(
        &self,
        burning: &HearthState,
        home: &PersonaPlace,
        again: bool,
    ) -> Result<Option<(TrainingContext, SelectedExamples)>, Error> {
        let Some(context) = self.training_context(burning, home).await? else { return Ok(None) };
        if !self.may_be_sent(&context).await? {
            return Ok(None);
        }
        let chosen = self.choose(&context, burning.hearth.exchanges, again).await?;
        if chosen.is_none() && again {
            let entry = TrainingLogEntry::new(
                next_number(burning, home, &context),
                self.0.clock.now(),
                0,
                TrainingOutcome::TooLittle,
            );
            self.log_training(burning, home, entry).await?;
        }
        Ok(chosen.map(|chosen| (context, chosen)))
    }

    async fn take_job(
        &self,
        burning: &Arc<HearthState>,
        home: &PersonaPlace,
        context: &TrainingContext,
        chosen: SelectedExamples,
    ) -> Result<(), Error> {
        let model = self.model();
        let name = model.info().name.clone();
        let (Some(base_fingerprint), Some(trainer)) =
            (burning.base_fingerprint(&name), burning.hearth.trainer.as_ref())
        else {
            return Ok(());
        };
        let now = self.0.clock.now();
        let number = next_number(burning, home, context);
        let SelectedExamples { training_examples, older } = chosen;
        if !self.has_room(burning, &base_fingerprint).await {
            tracing::info!("what was learnt takes all that hearth.max_disk_mb allows; nothing more is learnt");
            return Ok(());
        }
        let mut learnt = LoraRecord {
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
            learnt.provenance.join(provenance);
            learnt.said.insert(said);
            exchanges.push(training_example);
        }
        // What must not suffer goes along to another machine, too.
        let mut holds = learnt.provenance.clone();
        let older: Vec<TrainingExample> = older
            .into_iter()
            .map(|PreparedExample { training_example, provenance, .. }| {
                holds.join(provenance);
                training_example
            })
            .collect();
        let seed = self.0.config.seed.unwrap_or_else(|| u64::from(any_seed()));
        let job = TrainingJob {
            model: name,
            voice: self.voice(context),
            beside: context.serving.as_ref().and_then(|it| Some(burning.lora_store.file(&it.id.parse().ok()?))),
            to: burning.lora_store.draft(),
            seed: seed.wrapping_add(u64::from(number)),
            training_examples: exchanges.clone(),
            older: older.clone(),
        };
        if let Some(transport) = &burning.hearth.transport {
            return self.send_offload(burning, (home, context), Arc::clone(transport), job, (learnt, holds)).await;
        }
        burning.begin_job(holds.clone(), context.serving.as_ref().map(|it| it.id.clone()));
        // Whatever goes from now on ends it; what went before does, too.
        if !self.blocking(move |memory| memory.provenance_holds(&holds)).await? {
            return Ok(());
        }
        tracing::info!(persona = %home.persona, exchanges = exchanges.len(), "learning what was lived through");
        let trained = match trainer.learn(job, self.may_go_on(Arc::clone(burning))).await {
            Ok(trained) => trained,
            Err(TrainError::BrokenOff) => return Ok(()),
            Err(TrainError::Failed(why)) => {
                tracing::warn!(persona = %home.persona, %why, "nothing could be learnt");
                let entry = TrainingLogEntry::new(number, now, exchanges.len(), TrainingOutcome::Failed);
                return self.log_training(burning, home, entry).await;
            }
        };
        learnt.id = trained.id.to_string();
        let candidate = Candidate { trained, learnt, beside: context.serving.clone(), offloaded_job: None };
        self.keep_or_drop(burning, home, context, &candidate, &exchanges, &older).await.map(drop)
    }

    /// Keeps a draft or drops it, and notes which. Whether that is settled: a stop breaks it off, and what is away is tried again if
    /// something fails.
    pub(super) async fn keep_or_drop(
        &self,
        burning: &Arc<HearthState>,
        home: &PersonaPlace,
        context: &TrainingContext,
        candidate: &Candidate<'_>,
        training_examples: &[TrainingExample],
        older: &[TrainingExample],
    ) -> Result<bool, Error> {
        let Candidate { trained, learnt, .. } = candidate;
        let test_prompts: Vec<TrainingExample> =
            older.iter().chain(training_examples).take(TRIED_REPLIES).cloned().collect();
        let lora_store = self.keep_if_good(burning, context, candidate, &test_prompts, training_examples).await;
        if !matches!(lora_store, Ok(Fate::Retained)) {
            self.let_go(learnt).await;
            let (of, left) = (Arc::clone(burning), learnt.clone());
            self.blocking(move |_| {
                of.lora_store.remove_draft(&left).map_err(azera_memory::Error::io("removing a draft"))
            })
            .await?;
        }
        let entry = |outcome| TrainingLogEntry {
            // What is no number cannot be written down.
            learnt: Some(trained.evaluation.learnt).filter(|it| it.before.is_finite() && it.after.is_finite()),
            ..TrainingLogEntry::new(learnt.number, self.0.clock.now(), training_examples.len(), outcome)
        };
        match lora_store {
            // Whatever is forgotten from now on finds it.
            Ok(Fate::Retained) => self.log_training(burning, home, entry(TrainingOutcome::Serving)).await?,
            Ok(Fate::Overtaken) => {}
            Ok(Fate::Faulty(fault)) => {
                tracing::info!(persona = %home.persona, ?fault, "what was learnt is dropped");
                self.log_training(burning, home, entry(TrainingOutcome::Dropped(fault))).await?;
                if let Some(offloaded_job) = candidate.offloaded_job {
                    self.drop_offloaded(burning, offloaded_job).await;
                }
            }
            // A stop breaks it off, and says nothing of what was learnt.
            Err(_) if self.0.stopping.is_cancelled() => return Ok(false),
            // Somebody carried it here.
            Err(error) if candidate.offloaded_job.is_some() => {
                tracing::warn!(persona = %home.persona, %error, "what came back could not be examined; it is tried again");
                return Ok(false);
            }
            Err(error) => {
                tracing::warn!(persona = %home.persona, %error, "what was learnt could not be examined");
                self.log_training(burning, home, entry(TrainingOutcome::Failed)).await?;
            }
        }
        Ok(true)
    }

    /// Keeps what was learnt, if nothing is wrong with it, and nothing that it rests on went meanwhile.
    async fn keep_if_good(
        &self,
        burning: &Arc<HearthState>,
        context: &TrainingContext,
        candidate: &Candidate<'_>,
        test_prompts: &[TrainingExample],
        training_examples: &[TrainingExample],
    ) -> Result<Fate, Error> {
        let Candidate { trained, learnt, beside, offloaded_job } = candidate;
        let fault = match fault(&trained.evaluation) {
            Some(fault) => Some(fault),
            None => self.try_replies(context, burning, candidate, test_prompts, training_examples).await?,
        };
        if !burning.is_wanted(candidate) {
            return Ok(Fate::Overtaken);
        }
        if let Some(fault) = fault {
            // From now on nothing else ends it.
            let is_ours = offloaded_job.is_none_or(|offloaded_job| burning.offloaded_jobs.drop_one(offloaded_job));
            return Ok(if is_ours { Fate::Faulty(fault) } else { Fate::Overtaken });
        }
        let (of, new, id) = (Arc::clone(burning), learnt.clone(), trained.id);
        let (beside, offloaded_job) = (beside.clone(), offloaded_job.cloned());
        let gone = self
            .blocking(move |memory| {
                let _changing = of.changing.lock().unwrap_or_else(PoisonError::into_inner);
                if offloaded_job.as_ref().is_some_and(|offloaded_job| !of.offloaded_jobs.has(offloaded_job))
                    || !memory.provenance_holds(&new.provenance)?
                    || beside.is_some_and(|beside| !of.lora_store.has(&beside))
                {
                    return Ok(None);
                }
                let io = azera_memory::Error::io("keeping what was learnt");
                let gone = std::fs::rename(of.lora_store.draft(), of.lora_store.file(&id))
                    .and_then(|()| of.lora_store.keep(new))
                    .map_err(io)?;
                // From now on what ends the adapter is what counts.
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
        Ok(Fate::Retained)
    }

    /// Whether another adapter may be kept, once earlier versions have made way.
    async fn has_room(&self, burning: &Arc<HearthState>, base_fingerprint: &str) -> bool {
        let (of, base_fingerprint) = (Arc::clone(burning), base_fingerprint.to_owned());
        let question = tokio::task::spawn_blocking(move || {
            let mut gone = Vec::new();
            while of.is_full() {
                let _changing = of.changing.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(spare) = of.lora_store.oldest_spare(&base_fingerprint) else { return (false, gone) };
                if let Err(error) = of.lora_store.remove_files(&spare) {
                    tracing::error!(%error, "what was to make way could not be removed");
                    return (false, gone);
                }
                of.lora_store.drop_one(&spare);
                gone.push(spare);
            }
            (true, gone)
        });
        let (has, gone) = question.await.unwrap_or_default();
        for older in gone {
            self.let_go(&older).await;
        }
        has
    }

    /// Waits, off the async threads, while somebody waits for an answer; not once something is gone that is being learnt.
    fn may_go_on(&self, burning: Arc<HearthState>) -> KeepGoing {
        let (core, runtime) = (self.clone(), tokio::runtime::Handle::current());
        Arc::new(move || {
            runtime.block_on(async {
                loop {
                    if burning.is_overtaken() {
                        return false;
                    }
                    let still = tokio::select! {
                        () = core.0.stopping.cancelled() => return false,
                        still = core.0.foreground.until_idle(PAUSE) => still,
                    };
                    if still {
                        return true;
                    }
                }
            })
        })
    }

    /// What is wrong with replies made with a new adapter, if anything is.
    async fn try_replies(
        &self,
        context: &TrainingContext,
        burning: &HearthState,
        candidate: &Candidate<'_>,
        test_prompts: &[TrainingExample],
        training_examples: &[TrainingExample],
    ) -> Result<Option<EvaluationFault>, Error> {
        let lora = Lora::new(candidate.trained.id, burning.lora_store.draft());
        for test_prompt in test_prompts {
            // Nobody is asked with what was forgotten meanwhile.
            if !burning.is_wanted(candidate) {
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
                // Whoever wants replies to be reproducible wants what they decide to be, too.
                let seed = self.0.config.seed.map_or_else(any_seed, |seed| (seed as u32).wrapping_add(attempt));
                let request = ChatRequest {
                    sampling: Sampling { seed: Some(seed), ..context.form.sampling.clone() },
                    max_tokens: self.0.config.reply_tokens.min(context.form.reply_tokens),
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

    /// Asks until nobody breaks it off: training it all again would take longer.
    async fn ask_until_answered(&self, request: ChatRequest) -> Result<String, Error> {
        for _ in 1..TRIES {
            match self.ask_quietly(request.clone()).await {
                Err(Error::Interrupted) if !self.0.stopping.is_cancelled() => {
                    self.0.foreground.until_idle(PAUSE).await;
                }
                in_words => return in_words,
            }
        }
        self.ask_quietly(request).await
    }

    /// When a try came to nothing last, and what is told of it, a line each.
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
