//! Training on this machine: what a persona experienced becomes a LoRA of the chat model.

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
use super::device;
use super::examples::tokenize;
use crate::bootstrap::family;
use crate::loras;

/// Examples in each step.
const BATCH: usize = 4;

/// Tokens in each pass. A person who talks may wait for the end of a pass, so it is short.
const PASS_TOKENS: usize = 768;

/// Number of synthetic examples that the evaluation tests.
const TASKS: usize = 16;

/// Seed of these examples, different from the seed of the default LoRA's examples.
const EVALUATION_SEED: u64 = 0x000b_5e55;

/// Seed of the rehearsed examples, combined with the job's seed. Evaluated examples are left out.
const REHEARSAL_SEED: u64 = 0x002e_4ea5;

/// Scales to try for the new LoRA, until nothing else gets worse. A smaller scale keeps more of the model as it was
/// (Wortsman et al. 2022, *Robust fine-tuning of zero-shot models*).
const SCALES: [f32; 3] = [1.0, 0.7, 0.4];

/// A trainer that runs on this machine.
pub struct LocalTrainer {
    config: Config,
    models: Models,
    /// Prepared bases by model name. Each is looked up once, because the files of a serving model do not change.
    bases: Mutex<HashMap<String, Option<PreparedBase>>>,
    base_losses: BaseLosses,
    watch: Watch,
}

/// Losses on tasks and prose without learned LoRAs, by base fingerprint and family. Every job evaluates them, and they
/// never change.
type BaseLosses = Arc<Mutex<HashMap<[String; 2], [f64; 2]>>>;

/// Receives the progress of a training.
pub type Watch = Arc<dyn Fn(&Progress) + Send + Sync>;

/// The model and LoRAs that a new LoRA is trained for.
#[derive(Clone)]
struct PreparedBase {
    name: String,
    model: PathBuf,
    /// LoRAs that the model always serves with.
    loras: Vec<PathBuf>,
    /// True if one of them was trained on the synthetic examples.
    taught: bool,
    device: ComputeDevice,
    family: String,
    /// The number of weights, on which the form of prompts depends, too.
    parameters: u64,
}

impl LocalTrainer {
    /// Creates a trainer from the configuration's settings.
    pub fn new(config: Config, models: Models) -> Self {
        Self::watched(
            config,
            models,
            Arc::new(|now| tracing::debug!(step = now.step, steps = now.steps, loss = now.mean_loss, "training")),
        )
    }

    /// Creates a trainer that reports its progress.
    pub fn watched(config: Config, models: Models, watch: Watch) -> Self {
        Self { config, models, bases: Mutex::default(), base_losses: BaseLosses::default(), watch }
    }

    fn look_up(&self, model: &str) -> anyhow::Result<Option<PreparedBase>> {
        let Some(installed) = self.models.find(model)? else { return Ok(None) };
        let bytes = std::fs::metadata(&installed.path)?.len();
        let device = device(&self.config);
        let too_large = bytes > u64::from(self.config.hearth.largest_model_mb) << 20;
        if installed.entry.kind != Kind::Chat || too_large && device.is_processor() {
            return Ok(None);
        }
        if let Err(error) = BaseModel::look_at(&installed.path) {
            tracing::info!(%model, %error, "the model cannot be trained");
            return Ok(None);
        }
        let loras = loras::of(&self.config, &self.models, &installed)?;
        let bundled = self.models.lora(&installed)?;
        let ids: String = loras.iter().map(|lora| format!("+{}", lora.id)).collect();
        Ok(Some(PreparedBase {
            family: family(&installed)?,
            parameters: installed.entry.parameters,
            name: format!("{}{ids}", installed.manifest.sha256),
            taught: bundled.is_some_and(|bundled| loras.iter().any(|lora| lora.path == bundled.path)),
            device,
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
            // Keep no result, because the files may be readable next time.
            Err(error) => {
                tracing::warn!(%model, error = format!("{error:#}"), "cannot read the model's files; trying again next time");
                None
            }
        }
    }
}

#[async_trait]
impl Trainer for LocalTrainer {
    fn base_fingerprint(&self, model: &str) -> Option<String> {
        self.find(model).map(|prepared| prepared.name)
    }

    async fn learn(&self, job: TrainingJob, may_go_on: KeepGoing) -> Result<TrainingResult, TrainError> {
        let failed = |error: anyhow::Error| TrainError::Failed(format!("{error:#}"));
        let prepared = self.find(&job.model).context("the model is not here any more").map_err(failed)?;
        let (config, base_losses, watch) =
            (self.config.clone(), Arc::clone(&self.base_losses), Arc::clone(&self.watch));
        let done = tokio::task::spawn_blocking(move || {
            let to = job.to.clone();
            let trained = TrainingRun { config, prepared, job, may_go_on, base_losses, watch }.learn();
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

/// The run of one training job.
struct TrainingRun {
    config: Config,
    prepared: PreparedBase,
    job: TrainingJob,
    may_go_on: KeepGoing,
    base_losses: BaseLosses,
    watch: Watch,
}

/// Examples to train on and to evaluate.
struct Sets {
    learned: Vec<TokenizedExample>,
    /// Synthetic examples that the model has learned before, mixed with the new ones so that it does not forget them
    /// (rehearsal: Robins 1995, *Catastrophic forgetting, rehearsal and pseudorehearsal*).
    rehearsed: Vec<TokenizedExample>,
    older: Vec<TokenizedExample>,
    voice: Vec<TokenizedExample>,
    tasks: Vec<TokenizedExample>,
    prose: Vec<TokenizedExample>,
}

/// Examples and their loss before the training.
struct Baseline<'a> {
    examples: &'a [TokenizedExample],
    before: f64,
}

/// The baselines of everything that the evaluation measures.
struct Baselines<'a> {
    learned: Baseline<'a>,
    older: Option<Baseline<'a>>,
    voice: Option<Baseline<'a>>,
    tasks: Baseline<'a>,
    prose: Baseline<'a>,
}

impl TrainingRun {
    /// Trains and evaluates. Returns `None` if the job was told to stop.
    fn learn(&self) -> anyhow::Result<Option<TrainingResult>> {
        let Self { prepared, job, .. } = self;
        let reader = LlamaVocabulary::open(&prepared.model)?;
        let canaries = Canary::draw(job.seed, &reader)?;
        let sets = self.sets(&reader)?;
        drop(reader);
        let training_examples: Vec<TokenizedExample> = sets.learned.iter().chain(&sets.rehearsed).cloned().collect();
        let training_examples = [training_examples, canaries.iter().map(Canary::example).collect()].concat();
        let base = BaseModel::open_at(&prepared.model, &prepared.device)?;
        let mut frozen: Vec<Lora> =
            prepared.loras.iter().map(|path| Lora::read(path, &base)).collect::<Result<_, _>>()?;
        let of_model = frozen.len();
        frozen.extend(job.beside.iter().map(|path| Lora::read(path, &base)).collect::<Result<Vec<_>, _>>()?);
        let Some(learned) = self.train(&base, &frozen, &training_examples)? else { return Ok(None) };
        let largest_cosine = learned.largest_cosine(&frozen);
        let (models_own, earlier) = frozen.split_at(of_model);
        let Some(held) = self.measure_baselines(&base, &sets, models_own, earlier)? else { return Ok(None) };
        let mut trained = None;
        'shares: for share in SCALES {
            if !(self.may_go_on)() {
                return Ok(None);
            }
            let next = self.write(&base, earlier, learned.clone().scaled(share))?;
            let rank = next.rank();
            let with = Lora::joined(&[models_own, &[next]].concat())?;
            let change = |held: &Baseline<'_>| self.change(&base, &with, held);
            let mut tells_secrets = false;
            for canary in &canaries {
                tells_secrets |= canary.is_repeated(&base, &with)?;
            }
            let may_be_less = !tells_secrets && Some(&share) != SCALES.last();
            let mut changes = [None; 4];
            let all = [Some(&held.tasks), Some(&held.prose), held.older.as_ref(), held.voice.as_ref()];
            for (found, held) in changes.iter_mut().zip(all) {
                let Some(held) = held else { continue };
                let Some(changed) = change(held)? else { return Ok(None) };
                if may_be_less && changed.is_worse() {
                    tracing::debug!(share, "the LoRA makes something else worse: trying a smaller scale");
                    continue 'shares;
                }
                *found = Some(changed);
            }
            let [Some(tasks), Some(prose), older, voice] = changes else { return Ok(None) };
            let Some(learned) = change(&held.learned)? else { return Ok(None) };
            if !(self.may_go_on)() {
                return Ok(None);
            }
            let evaluation =
                Evaluation { learned, older, voice, tasks, prose, tells_secrets, largest_cosine, rank, share };
            tracing::debug!(share, may_serve = evaluation.may_serve(), "LoRA evaluated");
            trained = Some(TrainingResult { id: loras::at(&job.to)?.id, evaluation });
            // At a smaller scale the canary might just not come out any more, although the LoRA knows it.
            if evaluation.may_serve() || tells_secrets {
                break;
            }
        }
        Ok(trained)
    }

    /// Joins the new LoRA with the earlier ones, writes the file and reads it back, so that the evaluation tests the
    /// file that serves.
    fn write(&self, base: &BaseModel, earlier: &[Lora], learned: Lora) -> anyhow::Result<Lora> {
        let mut next = Lora::joined(&[earlier, &[learned]].concat())?;
        if next.rank() > self.config.hearth.max_rank as usize {
            let compressed = next.compressed(self.config.hearth.max_rank as usize, self.threads())?;
            tracing::debug!(retained = compressed.retained, "LoRA compressed");
            next = compressed.lora;
        }
        next.write_precise(&self.job.to, &[("general.base_model.sha256", base.sha256().to_owned())])?;
        Ok(Lora::read(&self.job.to, base)?)
    }

    /// Measures the losses before the training. Returns `None` if the job was told to stop.
    fn measure_baselines<'a>(
        &self,
        base: &BaseModel,
        sets: &'a Sets,
        models_own: &[Lora],
        earlier: &[Lora],
    ) -> anyhow::Result<Option<Baselines<'a>>> {
        let own = join_all(models_own)?;
        let now = (!earlier.is_empty()).then(|| join_all(&[models_own, earlier].concat())).transpose()?;
        let loss = |lora: &Option<Lora>, examples: &[TokenizedExample]| self.loss(base, lora.as_ref(), examples);
        // Getting a little worse each night adds up. So also compare with the model without any learned LoRA.
        let least =
            |base_losses: Option<f64>, examples: &'a [TokenizedExample]| -> anyhow::Result<Option<Baseline<'a>>> {
                let Some(mut before) = base_losses else { return Ok(None) };
                if let Some(now) = &now {
                    let Some(loss) = loss(now, examples)? else { return Ok(None) };
                    // Keep a NaN, so that the evaluation reports it.
                    before = if before.is_nan() || loss.is_nan() { f64::NAN } else { before.min(loss) };
                }
                Ok(Some(Baseline { examples, before }))
            };
        let learned = loss(now.as_ref().unwrap_or(&own), &sets.learned)?;
        let learned = learned.map(|before| Baseline { examples: &sets.learned, before });
        let older = least(loss(&own, &sets.older)?, &sets.older)?;
        let Some([tasks, prose]) = self.base_losses(sets, |examples| loss(&own, examples))? else { return Ok(None) };
        let (tasks, prose) = (least(Some(tasks), &sets.tasks)?, least(Some(prose), &sets.prose)?);
        let voice = least(loss(&own, &sets.voice)?, &sets.voice)?;
        Ok(match (learned, tasks, prose, (self.may_go_on)()) {
            (Some(learned), Some(tasks), Some(prose), true) => Some(Baselines { learned, older, voice, tasks, prose }),
            _ => None,
        })
    }

    /// Returns the losses on tasks and prose with only the LoRAs that always serve. Computes them with `loss` if they
    /// are not known yet. Returns `None` if the job was told to stop.
    fn base_losses(
        &self,
        sets: &Sets,
        loss: impl Fn(&[TokenizedExample]) -> anyhow::Result<Option<f64>>,
    ) -> anyhow::Result<Option<[f64; 2]>> {
        let known = || self.base_losses.lock().unwrap_or_else(PoisonError::into_inner);
        let key = [self.prepared.name.clone(), self.prepared.family.clone()];
        if let Some(known) = known().get(&key) {
            return Ok(Some(*known));
        }
        let (Some(tasks), Some(prose)) = (loss(&sets.tasks)?, loss(&sets.prose)?) else { return Ok(None) };
        // Keep no NaN, because the next run may give a number.
        if tasks.is_finite() && prose.is_finite() {
            known().insert(key, [tasks, prose]);
        }
        Ok(Some([tasks, prose]))
    }

    /// Measures how a LoRA changes a loss. Returns `None` if the job was told to stop.
    fn change(&self, base: &BaseModel, with: &Lora, held: &Baseline<'_>) -> anyhow::Result<Option<LossChange>> {
        let after = self.loss(base, Some(with), held.examples)?;
        Ok(after.map(|after| LossChange { before: held.before, after }))
    }

    /// Returns the mean loss of the examples' tokens. Returns `None` if there are none, or if the job was told to stop.
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
        // Leave out claims: a separate LoRA reads JSON claims.
        let known = SHARES.map(|(share, kind)| if kind == ExampleKind::Claim { (0, kind) } else { (share, kind) });
        let tasks = known.map(|(share, kind)| if kind == ExampleKind::Plain { (0, kind) } else { (share, kind) });
        let drawn = |seed, count, shares: &[(usize, ExampleKind)]| {
            synthetic_examples((&self.prepared.family, Some(self.prepared.parameters)), seed, count, shares)
        };
        let tokenize =
            |training_examples: &[azera_model_dataset::SyntheticExample]| -> anyhow::Result<Vec<TokenizedExample>> {
                training_examples
                    .iter()
                    .map(|training_example| tokenize(reader, &training_example.messages, &training_example.reply))
                    .collect()
            };
        let tasks = drawn(EVALUATION_SEED, TASKS, &tasks);
        // A model without that LoRA would take on the examples' style instead of keeping its own.
        let mut rehearsed = match self.prepared.taught {
            true => drawn(REHEARSAL_SEED.wrapping_add(self.job.seed << 32), self.job.training_examples.len(), &known),
            false => Vec::new(),
        };
        rehearsed.retain(|training_example| !tasks.contains(training_example));
        Ok(Sets {
            learned: all(&self.job.training_examples)?,
            older: all(&self.job.older)?,
            voice: all(&self.job.voice)?,
            rehearsed: tokenize(&rehearsed)?,
            tasks: tokenize(&tasks)?,
            prose: tokenize(&prose_held_out())?,
        })
    }
}

fn join_all(loras: &[Lora]) -> anyhow::Result<Option<Lora>> {
    Ok(match loras {
        [] => None,
        some => Some(Lora::joined(some)?),
    })
}

/// Tokenizes an example: the person's words in their context, and the reply.
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
mod tests;
