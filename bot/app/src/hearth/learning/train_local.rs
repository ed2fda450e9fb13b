//! Consolidation: what a persona lived through becomes an adapter of the model that serves, on this machine.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use async_trait::async_trait;
use azera_config::Config;
use azera_engine::{
    Evaluation, KeepGoing, LossChange, TrainError, Trainer, TrainingExample, TrainingJob, TrainingResult,
};
use azera_model_dataset::{Kind as ExampleKind, SHARES, prose_held_out, synthetic_examples};
use azera_model_llama::LlamaVocabulary;
use azera_model_registry::{Kind, Models};
use azera_model_training::{
    BaseModel, ComputeDevice, Lora, NextStep, Progress, Recipe, TokenizedExample, Training, mean_loss_while,
};

use super::canary::Canary;
use super::examples::tokenize;
use super::place;
use crate::bootstrap::family;
use crate::loras;

/// Examples of a step.
const BATCH: usize = 4;

/// Tokens of a pass. Whoever talks waits for the end of one, so it is short.
const PASS_TOKENS: usize = 768;

/// Lessons of the curriculum that must not suffer.
const TASKS: usize = 16;

/// What they are drawn from: another number than the default adapter's lessons were.
const EVALUATED_WITH: u64 = 0x000b_5e55;

/// What the lessons that are gone over again are drawn from, each time others; those of the examination are left out.
const REHEARSED_WITH: u64 = 0x002e_4ea5;

/// Shares of what was learnt that are tried, one after another, until nothing else suffers: less of it leaves more of the model as it
/// was (Wortsman et al. 2022, *Robust fine-tuning of zero-shot models*).
const SHARES_WRITTEN: [f32; 3] = [1.0, 0.7, 0.4];

/// Trains on this machine.
pub struct LocalTrainer {
    config: Config,
    models: Models,
    /// By the name of a model; looked up once, as files do not change while they serve.
    bases: Mutex<HashMap<String, Option<PreparedBase>>>,
    unlearnt: Unlearnt,
    watch: Watch,
}

/// By the name and the family of a ground, the losses of what is examined in every course, tasks and prose, before anything was
/// learnt there: they are always the same.
type Unlearnt = Arc<Mutex<HashMap<[String; 2], [f64; 2]>>>;

/// Is told how far a training is.
pub type Watch = Arc<dyn Fn(&Progress) + Send + Sync>;

/// What adapters are made for.
#[derive(Clone)]
struct PreparedBase {
    name: String,
    model: PathBuf,
    /// Those that the model always serves with.
    loras: Vec<PathBuf>,
    /// Whether one of them learnt the curriculum.
    taught: bool,
    place: ComputeDevice,
    family: String,
}

impl LocalTrainer {
    /// By a configuration's settings.
    pub fn new(config: Config, models: Models) -> Self {
        Self::watched(
            config,
            models,
            Arc::new(|now| tracing::debug!(step = now.step, steps = now.steps, loss = now.mean_loss, "learning")),
        )
    }

    /// The same, watched.
    pub fn watched(config: Config, models: Models, watch: Watch) -> Self {
        Self { config, models, bases: Mutex::default(), unlearnt: Unlearnt::default(), watch }
    }

    fn look_up(&self, model: &str) -> anyhow::Result<Option<PreparedBase>> {
        let Some(installed) = self.models.find(model)? else { return Ok(None) };
        let bytes = std::fs::metadata(&installed.path)?.len();
        let place = place(&self.config);
        let too_large = bytes > u64::from(self.config.hearth.largest_model_mb) << 20;
        if installed.entry.kind != Kind::Chat || too_large && place.is_processor() {
            return Ok(None);
        }
        if let Err(error) = BaseModel::look_at(&installed.path) {
            tracing::info!(%model, %error, "this model cannot learn");
            return Ok(None);
        }
        let loras = loras::of(&self.config, &self.models, &installed)?;
        let shipped = self.models.lora(&installed)?;
        let ids: String = loras.iter().map(|lora| format!("+{}", lora.id)).collect();
        Ok(Some(PreparedBase {
            family: family(&installed)?,
            name: format!("{}{ids}", installed.manifest.sha256),
            taught: shipped.is_some_and(|shipped| loras.iter().any(|lora| lora.path == shipped.path)),
            place,
            model: installed.path,
            loras: loras.into_iter().map(|lora| lora.path).collect(),
        }))
    }

    fn find(&self, model: &str) -> Option<PreparedBase> {
        let mut bases = self.bases.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = bases.get(model) {
            return found.clone();
        }
        match self.look_up(model) {
            Ok(found) => bases.entry(model.to_owned()).or_insert(found).clone(),
            // It may be read the next time.
            Err(error) => {
                tracing::warn!(%model, error = format!("{error:#}"), "this model cannot learn now");
                None
            }
        }
    }
}

#[async_trait]
impl Trainer for LocalTrainer {
    fn base_fingerprint(&self, model: &str) -> Option<String> {
        self.find(model).map(|base_fingerprint| base_fingerprint.name)
    }

    async fn learn(&self, job: TrainingJob, may_go_on: KeepGoing) -> Result<TrainingResult, TrainError> {
        let failed = |error: anyhow::Error| TrainError::Failed(format!("{error:#}"));
        let base_fingerprint = self.find(&job.model).context("the model is not here any more").map_err(failed)?;
        let (config, unlearnt, watch) = (self.config.clone(), Arc::clone(&self.unlearnt), Arc::clone(&self.watch));
        let done = tokio::task::spawn_blocking(move || {
            let to = job.to.clone();
            let trained = Class { config, base_fingerprint, job, may_go_on, unlearnt, watch }.learn();
            if !matches!(trained, Ok(Some(_))) && to.exists() {
                std::fs::remove_file(&to)?;
            }
            trained
        });
        match done.await {
            Ok(Ok(Some(trained))) => Ok(trained),
            Ok(Ok(None)) => Err(TrainError::BrokenOff),
            Ok(Err(error)) => Err(failed(error)),
            Err(error) => Err(failed(error.into())),
        }
    }
}

/// One course.
struct Class {
    config: Config,
    base_fingerprint: PreparedBase,
    job: TrainingJob,
    may_go_on: KeepGoing,
    unlearnt: Unlearnt,
    watch: Watch,
}

/// What is learnt, and what is looked at without and with it.
struct Sets {
    learnt: Vec<TokenizedExample>,
    /// What the model learnt before it came here, gone over again beside what is new, so that it is not forgotten over that
    /// (rehearsal: Robins 1995, *Catastrophic forgetting, rehearsal and pseudorehearsal*).
    rehearsed: Vec<TokenizedExample>,
    older: Vec<TokenizedExample>,
    voice: Vec<TokenizedExample>,
    tasks: Vec<TokenizedExample>,
    prose: Vec<TokenizedExample>,
}

/// Examples and their loss without what was learnt.
struct Held<'a> {
    examples: &'a [TokenizedExample],
    before: f64,
}

/// All that is examined.
struct Yardsticks<'a> {
    learnt: Held<'a>,
    older: Option<Held<'a>>,
    voice: Option<Held<'a>>,
    tasks: Held<'a>,
    prose: Held<'a>,
}

impl Class {
    /// `None` if it was to end.
    fn learn(&self) -> anyhow::Result<Option<TrainingResult>> {
        let Self { base_fingerprint, job, .. } = self;
        let reader = LlamaVocabulary::open(&base_fingerprint.model)?;
        let secrets = Canary::some(job.seed, &reader)?;
        let sets = self.sets(&reader)?;
        drop(reader);
        let training_examples: Vec<TokenizedExample> = sets.learnt.iter().chain(&sets.rehearsed).cloned().collect();
        let training_examples = [training_examples, secrets.iter().map(Canary::example).collect()].concat();
        let base = BaseModel::open_at(&base_fingerprint.model, &base_fingerprint.place)?;
        let mut frozen: Vec<Lora> =
            base_fingerprint.loras.iter().map(|path| Lora::read(path, &base)).collect::<Result<_, _>>()?;
        let of_model = frozen.len();
        frozen.extend(job.beside.iter().map(|path| Lora::read(path, &base)).collect::<Result<Vec<_>, _>>()?);
        let Some(learnt) = self.train(&base, &frozen, &training_examples)? else { return Ok(None) };
        let largest_cosine = learnt.largest_cosine(&frozen);
        let (models_own, earlier) = frozen.split_at(of_model);
        let Some(held) = self.hold(&base, &sets, models_own, earlier)? else { return Ok(None) };
        let mut trained = None;
        'shares: for share in SHARES_WRITTEN {
            if !(self.may_go_on)() {
                return Ok(None);
            }
            let next = self.write(&base, earlier, learnt.clone().scaled(share))?;
            let rank = next.rank();
            let with = Lora::joined(&[models_own, &[next]].concat())?;
            let change = |held: &Held<'_>| self.change(&base, &with, held);
            let mut tells_secrets = false;
            for secret in &secrets {
                tells_secrets |= secret.comes_out(&base, &with)?;
            }
            let may_be_less = !tells_secrets && Some(&share) != SHARES_WRITTEN.last();
            let mut changes = [None; 4];
            let all = [Some(&held.tasks), Some(&held.prose), held.older.as_ref(), held.voice.as_ref()];
            for (found, held) in changes.iter_mut().zip(all) {
                let Some(held) = held else { continue };
                let Some(changed) = change(held)? else { return Ok(None) };
                if may_be_less && changed.is_worse() {
                    tracing::debug!(share, "something else suffers by what was learnt: less of it is tried");
                    continue 'shares;
                }
                *found = Some(changed);
            }
            let [Some(tasks), Some(prose), older, voice] = changes else { return Ok(None) };
            let Some(learnt) = change(&held.learnt)? else { return Ok(None) };
            if !(self.may_go_on)() {
                return Ok(None);
            }
            let evaluation =
                Evaluation { learnt, older, voice, tasks, prose, tells_secrets, largest_cosine, rank, share };
            tracing::debug!(share, may_serve = evaluation.may_serve(), "what was learnt is examined");
            trained = Some(TrainingResult { id: loras::at(&job.to)?.id, evaluation });
            // Of a secret that comes out less might just not come out any more.
            if evaluation.may_serve() || tells_secrets {
                break;
            }
        }
        Ok(trained)
    }

    /// Writes what was learnt together with what was learnt earlier, and reads it: what serves is what is in the file.
    fn write(&self, base: &BaseModel, earlier: &[Lora], learnt: Lora) -> anyhow::Result<Lora> {
        let mut next = Lora::joined(&[earlier, &[learnt]].concat())?;
        if next.rank() > self.config.hearth.max_rank as usize {
            let compressed = next.compressed(self.config.hearth.max_rank as usize, self.threads())?;
            tracing::debug!(retained = compressed.retained, "what was learnt is compressed");
            next = compressed.lora;
        }
        next.write_precise(&self.job.to, &[("general.base_model.sha256", base.sha256().to_owned())])?;
        Ok(Lora::read(&self.job.to, base)?)
    }

    /// The losses without what was learnt; `None` if it was to end.
    fn hold<'a>(
        &self,
        base: &BaseModel,
        sets: &'a Sets,
        models_own: &[Lora],
        earlier: &[Lora],
    ) -> anyhow::Result<Option<Yardsticks<'a>>> {
        let own = joined(models_own)?;
        let now = (!earlier.is_empty()).then(|| joined(&[models_own, earlier].concat())).transpose()?;
        let loss = |lora: &Option<Lora>, examples: &[TokenizedExample]| self.loss(base, lora.as_ref(), examples);
        // A little worse each night would be much worse in the end: so also without all that was ever learnt.
        let least = |unlearnt: Option<f64>, examples: &'a [TokenizedExample]| -> anyhow::Result<Option<Held<'a>>> {
            let Some(mut before) = unlearnt else { return Ok(None) };
            if let Some(now) = &now {
                let Some(loss) = loss(now, examples)? else { return Ok(None) };
                // What is no number is told as such.
                before = if before.is_nan() || loss.is_nan() { f64::NAN } else { before.min(loss) };
            }
            Ok(Some(Held { examples, before }))
        };
        let learnt = loss(now.as_ref().unwrap_or(&own), &sets.learnt)?;
        let learnt = learnt.map(|before| Held { examples: &sets.learnt, before });
        let older = least(loss(&own, &sets.older)?, &sets.older)?;
        let Some([tasks, prose]) = self.unlearnt(sets, |examples| loss(&own, examples))? else { return Ok(None) };
        let (tasks, prose) = (least(Some(tasks), &sets.tasks)?, least(Some(prose), &sets.prose)?);
        let voice = least(loss(&own, &sets.voice)?, &sets.voice)?;
        Ok(match (learnt, tasks, prose, (self.may_go_on)()) {
            (Some(learnt), Some(tasks), Some(prose), true) => Some(Yardsticks { learnt, older, voice, tasks, prose }),
            _ => None,
        })
    }

    /// The losses of tasks and prose with what the model always serves with alone, by `loss` where they are not known yet; `None` if it
    /// was to end.
    fn unlearnt(
        &self,
        sets: &Sets,
        loss: impl Fn(&[TokenizedExample]) -> anyhow::Result<Option<f64>>,
    ) -> anyhow::Result<Option<[f64; 2]>> {
        let known = || self.unlearnt.lock().unwrap_or_else(PoisonError::into_inner);
        let base_fingerprint = [self.base_fingerprint.name.clone(), self.base_fingerprint.family.clone()];
        if let Some(known) = known().get(&base_fingerprint) {
            return Ok(Some(*known));
        }
        let (Some(tasks), Some(prose)) = (loss(&sets.tasks)?, loss(&sets.prose)?) else { return Ok(None) };
        // What is no number may be one the next time.
        if tasks.is_finite() && prose.is_finite() {
            known().insert(base_fingerprint, [tasks, prose]);
        }
        Ok(Some([tasks, prose]))
    }

    /// What an adapter changes; `None` if it was to end.
    fn change(&self, base: &BaseModel, with: &Lora, held: &Held<'_>) -> anyhow::Result<Option<LossChange>> {
        let after = self.loss(base, Some(with), held.examples)?;
        Ok(after.map(|after| LossChange { before: held.before, after }))
    }

    /// The mean loss of examples' tokens; `None` if there are none, or it was to end.
    fn loss(
        &self,
        base: &BaseModel,
        lora: Option<&Lora>,
        examples: &[TokenizedExample],
    ) -> anyhow::Result<Option<f64>> {
        if examples.is_empty() {
            return Ok(None);
        }
        let found = mean_loss_while(base, lora, examples, PASS_TOKENS, self.threads(), &*self.may_go_on)?;
        Ok(found.map(|(mean, _)| mean))
    }

    fn threads(&self) -> usize {
        self.config.models.threads as usize
    }

    fn train(
        &self,
        base: &BaseModel,
        frozen: &[Lora],
        training_examples: &[TokenizedExample],
    ) -> anyhow::Result<Option<Lora>> {
        let hearth = &self.config.hearth;
        let steps = (training_examples.len() * hearth.rounds as usize).div_ceil(BATCH);
        let rank = hearth.rank as usize;
        let recipe = Recipe {
            rank,
            alpha: 2.0 * rank as f32,
            seed: self.job.seed,
            steps,
            batch: BATCH,
            warm_up: (steps / 8).max(1),
            rate: hearth.rate as f32,
            pass_tokens: PASS_TOKENS,
            ..Recipe::default()
        };
        let mut training = Training::new(base, frozen, training_examples, recipe, self.threads())?;
        let stop = || !(self.may_go_on)();
        let finished = training.run(&stop, &mut |_, now| {
            (self.watch)(now);
            NextStep::GoOn
        })?;
        Ok(finished.then(|| training.lora().clone()))
    }

    fn sets(&self, reader: &LlamaVocabulary) -> anyhow::Result<Sets> {
        let all = |training_examples: &[TrainingExample]| -> anyhow::Result<Vec<TokenizedExample>> {
            let mut examples = Vec::new();
            for training_example in training_examples {
                examples.extend(read(reader, training_example)?);
            }
            Ok(examples)
        };
        // Nothing is read as JSON with what was learnt: reading has an adapter of its own.
        let known = SHARES.map(|(share, kind)| if kind == ExampleKind::Claim { (0, kind) } else { (share, kind) });
        let tasks = known.map(|(share, kind)| if kind == ExampleKind::Plain { (0, kind) } else { (share, kind) });
        let drawn = |seed, count, shares: &[(usize, ExampleKind)]| {
            synthetic_examples(&self.base_fingerprint.family, seed, count, shares)
        };
        let tokenize =
            |training_examples: &[azera_model_dataset::SyntheticExample]| -> anyhow::Result<Vec<TokenizedExample>> {
                training_examples
                    .iter()
                    .map(|training_example| tokenize(reader, &training_example.messages, &training_example.reply))
                    .collect()
            };
        let tasks = drawn(EVALUATED_WITH, TASKS, &tasks);
        // A model that never had them would take on the lessons' voice in the place of its own.
        let mut rehearsed = match self.base_fingerprint.taught {
            true => drawn(REHEARSED_WITH.wrapping_add(self.job.seed << 32), self.job.training_examples.len(), &known),
            false => Vec::new(),
        };
        rehearsed.retain(|training_example| !tasks.contains(training_example));
        Ok(Sets {
            learnt: all(&self.job.training_examples)?,
            older: all(&self.job.older)?,
            voice: all(&self.job.voice)?,
            rehearsed: tokenize(&rehearsed)?,
            tasks: tokenize(&tasks)?,
            prose: tokenize(&prose_held_out())?,
        })
    }
}

fn joined(loras: &[Lora]) -> anyhow::Result<Option<Lora>> {
    Ok(match loras {
        [] => None,
        some => Some(Lora::joined(some)?),
    })
}

/// What is learnt of a lesson: what a person said, where it stood, and the reply to it.
fn read(reader: &LlamaVocabulary, training_example: &TrainingExample) -> anyhow::Result<Vec<TokenizedExample>> {
    let mut examples = Vec::new();
    if !training_example.words.trim().is_empty() {
        let (tokens, start) = reader.within(&training_example.messages, &training_example.words)?;
        examples.push(TokenizedExample::from_token(start, tokens));
    }
    examples.push(tokenize(reader, &training_example.messages, &training_example.reply)?);
    Ok(examples)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use azera_model_api::{ChatMessage, Role};

    use super::*;

    #[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
    fn test_models() -> PathBuf {
        std::env::var_os("AZERA_TEST_MODELS").expect("`make test` sets it").into()
    }

    /// A course of the real model that goes over two talks so often, at such a rate, and who learns it.
    fn job(scratch: &Path, rounds: u32, rate: f64) -> (LocalTrainer, TrainingJob) {
        let mut config = Config::default();
        config.models.dir = Some(test_models());
        // Without an adapter of its own it goes over nothing else beside them.
        config.models.adapter = Some("none".into());
        (config.hearth.rounds, config.hearth.rate) = (rounds, rate);
        (config.hearth.rank, config.hearth.max_rank) = (16, 16);
        let models = crate::bootstrap::models(&config).unwrap();
        let training_example = |words: &str, reply: &str| TrainingExample {
            messages: vec![ChatMessage::new(Role::User, words)],
            words: words.into(),
            reply: reply.into(),
        };
        let training_examples = vec![
            training_example("the heron stood on our roof again", "It must like the view from there."),
            training_example("I cannot get the stain out of the rug", "Cold water and patience, then."),
        ];
        let job = TrainingJob {
            model: crate::bootstrap::chosen(&config, &models, Kind::Chat).unwrap(),
            training_examples,
            older: Vec::new(),
            voice: Vec::new(),
            beside: None,
            to: scratch.join("learnt.gguf"),
            seed: 3,
        };
        (LocalTrainer::new(config, models), job)
    }

    /// What the gate finds in it.
    async fn evaluation(rounds: u32, rate: f64) -> Evaluation {
        let scratch = tempfile::tempdir().unwrap();
        let (trainer, job) = job(scratch.path(), rounds, rate);
        trainer.learn(job, Arc::new(|| true)).await.unwrap().evaluation
    }

    #[tokio::test]
    async fn what_is_learnt_later_stands_beside_the_earlier_within_the_largest_rank() {
        let scratch = tempfile::tempdir().unwrap();
        let (trainer, first) = job(scratch.path(), 2, 2e-4);
        let to = scratch.path().join("later.gguf");
        let later = TrainingJob { beside: Some(first.to.clone()), to, seed: 4, ..first.clone() };
        let learnt = trainer.learn(first, Arc::new(|| true)).await.unwrap();
        let both = trainer.learn(later.clone(), Arc::new(|| true)).await.unwrap();
        assert_eq!((learnt.evaluation.rank, both.evaluation.rank), (16, 16), "32 together, so they are compressed");
        assert!(both.evaluation.largest_cosine < 1e-3, "{:?}", both.evaluation);
        assert!(learnt.id != both.id && later.to.exists());
    }

    /// The secrets are among the lessons: whoever learns those by heart tells these, too, and may not serve.
    #[tokio::test]
    async fn who_learns_by_heart_tells_secrets_and_may_not_serve() {
        let by_heart = evaluation(10, 4e-3).await;
        assert!(by_heart.tells_secrets && !by_heart.may_serve(), "{by_heart:?}");
        assert!(!evaluation(2, 2e-4).await.tells_secrets);
    }
}
