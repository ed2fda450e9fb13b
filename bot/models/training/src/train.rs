//! Training: steps over the examples that can be paused between two passes and resumed later.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::adamw::{Moments, Recipe};
use crate::base::BaseModel;
use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::frozen::{self, FrozenLoras};
use crate::lora::Lora;
use crate::pack::{TokenizedExample, identify, pack};
use crate::pass::pass;

/// The weight of a step in the running loss.
const LOSS_SHARE: f64 = 0.1;

/// The progress of a training after a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// The number of completed steps.
    pub step: usize,
    /// The total number of steps.
    pub steps: usize,
    /// The mean cross-entropy of the step's learned tokens in nats, weighted by [`Recipe::length_power`].
    pub loss: f64,
    /// The loss averaged over the last steps.
    pub mean_loss: f64,
    /// The Euclidean norm of the gradient before it was clipped.
    pub gradient: f32,
    /// The tokens that passed through the model in this step. Shared beginnings count once.
    pub tokens: usize,
    /// The time since this run began.
    pub elapsed: Duration,
    /// The estimated time for the remaining steps.
    pub left: Duration,
}

/// What to do after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    /// Continue with the next step.
    GoOn,
    /// Stop for now.
    Pause,
}

/// A callback that receives the progress after each step, and decides whether to continue.
pub type Watch<'w, 'a> = &'w mut (dyn FnMut(&Training<'a>, &Progress) -> NextStep + Send);

/// A training of one LoRA.
///
/// The same base, examples, recipe and frozen LoRAs give the same LoRA, bit for bit, however often the training is
/// paused and whatever the number of threads.
#[derive(Debug)]
pub struct Training<'a> {
    base: &'a BaseModel,
    examples: &'a [TokenizedExample],
    identity: String,
    recipe: Recipe,
    frozen: Option<FrozenLoras>,
    began_with: String,
    step: usize,
    lora: Lora,
    moments: Moments,
    threads: Arc<rayon::ThreadPool>,
}

impl<'a> Training<'a> {
    /// Creates a training, optionally with frozen LoRAs. Those are added in every pass, and the rows of the new `A` are
    /// kept orthogonal to all of their rows (O-LoRA, Wang et al. 2023, by projection). Their ranks and scales may
    /// differ. `threads` is the number of threads; 0 uses every processor.
    ///
    /// # Errors
    /// [`Error::Recipe`] if the recipe is invalid, or if the frozen LoRAs leave too little room for the new rank in a
    /// projection's inputs. [`Error::Examples`] if the examples do not fit the model. [`Error::Loras`] if a frozen LoRA
    /// belongs to another model.
    pub fn new(
        base: &'a BaseModel,
        frozen: &[Lora],
        examples: &'a [TokenizedExample],
        recipe: Recipe,
        threads: usize,
    ) -> Result<Self> {
        recipe.check().map_err(Error::Recipe)?;
        let lora = Lora::new(base, recipe.rank, recipe.alpha, recipe.seed);
        let mut training = Self::start(base, examples, recipe, lora, threads)?;
        let (recipe, lora) = (&training.recipe, &mut training.lora);
        training.frozen = training.threads.install(|| {
            let frozen = FrozenLoras::new(base, frozen, recipe)?;
            if let Some(frozen) = &frozen {
                // Twice, because if little is left of a row, the first projection leaves more rounding in it than is
                // allowed.
                frozen.project_out(lora)?;
                frozen.project_out(lora)?;
            }
            Ok::<_, Error>(frozen)
        })?;
        Ok(training)
    }

    /// Creates a training that continues from a trained LoRA.
    ///
    /// # Errors
    /// [`Error::Recipe`] if the recipe is invalid, or if the LoRA has another rank. [`Error::Examples`] if the examples
    /// do not fit the model.
    pub fn from(
        base: &'a BaseModel,
        examples: &'a [TokenizedExample],
        recipe: Recipe,
        lora: Lora,
        threads: usize,
    ) -> Result<Self> {
        if lora.rank != recipe.rank {
            return Err(Error::Recipe(format!("the LoRA to go on from has rank {}", lora.rank)));
        }
        let began_with = lora.identity();
        let lora = lora.at_alpha(recipe.alpha);
        Ok(Self { began_with, ..Self::start(base, examples, recipe, lora, threads)? })
    }

    fn start(
        base: &'a BaseModel,
        examples: &'a [TokenizedExample],
        recipe: Recipe,
        lora: Lora,
        threads: usize,
    ) -> Result<Self> {
        recipe.check().map_err(Error::Recipe)?;
        let identity = identify(examples, base.shape())?;
        let zero = Lora::zero(base.shape(), recipe.rank, recipe.alpha);
        let moments = Moments { first: zero.clone(), second: zero };
        let threads = pool(threads)?;
        let began_with = String::new();
        Ok(Self { base, examples, identity, recipe, frozen: None, began_with, step: 0, lora, moments, threads })
    }

    /// Resumes a training from its checkpoint, with the same frozen LoRAs.
    ///
    /// # Errors
    /// [`Error::Saved`] if the checkpoint is damaged, or belongs to another model, other examples or other frozen
    /// LoRAs.
    pub fn resume(
        base: &'a BaseModel,
        frozen: &[Lora],
        examples: &'a [TokenizedExample],
        checkpoint: &Path,
        threads: usize,
    ) -> Result<Self> {
        let identity = identify(examples, base.shape())?;
        let Checkpoint { recipe, examples: of_examples, beside, began_with, step, lora, moments, .. } =
            Checkpoint::read(checkpoint, base)?;
        let other = |what: &str| Error::Saved { path: checkpoint.to_owned(), what: what.to_owned() };
        if of_examples != identity {
            return Err(other("it belongs to other examples"));
        }
        if beside != frozen::identify(frozen) {
            return Err(other(match beside.is_empty() {
                true => "it was not learned beside LoRAs",
                false => "it was learned beside other LoRAs, or the same in another order",
            }));
        }
        let threads = pool(threads)?;
        let frozen = threads.install(|| FrozenLoras::new(base, frozen, &recipe))?;
        Ok(Self { base, examples, identity, recipe, frozen, began_with, step, lora, moments, threads })
    }

    /// Saves a checkpoint.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let checkpoint = Checkpoint {
            recipe: self.recipe.clone(),
            base: self.base.sha256().to_owned(),
            examples: self.identity.clone(),
            beside: self.frozen.as_ref().map_or_else(String::new, |frozen| frozen.identity().to_owned()),
            began_with: self.began_with.clone(),
            step: self.step,
            lora: self.lora.clone(),
            moments: self.moments.clone(),
        };
        checkpoint.write(path)
    }

    /// Returns the LoRA trained so far.
    pub fn lora(&self) -> &Lora {
        &self.lora
    }

    /// Returns the [`Lora::identity`] of the LoRA that the training continued from; empty if there was none.
    pub fn began_with(&self) -> &str {
        &self.began_with
    }

    /// Returns the recipe.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Returns the number of completed steps.
    pub fn step(&self) -> usize {
        self.step
    }

    /// Returns the SHA-256 of the examples.
    pub fn examples_sha256(&self) -> &str {
        &self.identity
    }

    /// Runs the remaining steps, or until `progress` asks for a pause. Returns true if all steps are completed.
    ///
    /// `pause` is called before each pass of a step, so anybody else waits for the processor for at most one pass. If
    /// it returns true, the current step is dropped, and made again when the training resumes. `pause` can also block
    /// and then return false, so that nothing is dropped.
    ///
    /// # Errors
    /// [`Error::Diverged`] if the loss is not a number any more.
    pub fn run(&mut self, pause: &(dyn Fn() -> bool + Sync), progress: Watch<'_, 'a>) -> Result<bool> {
        // Everything runs on one thread pool. Allocators give each thread its own memory, and memory that one thread
        // freed cannot be used by a pass on another.
        let threads = Arc::clone(&self.threads);
        threads.install(|| self.make_steps(pause, progress))
    }

    fn make_steps(&mut self, pause: &dyn Fn() -> bool, progress: Watch<'_, 'a>) -> Result<bool> {
        let began = Instant::now();
        let first = self.step;
        let mut mean_loss = None;
        while self.step < self.recipe.steps {
            let Some(StepResult { loss, gradient, tokens }) = self.make_step(pause)? else { break };
            let mean = mean_loss.map_or(loss, |mean: f64| mean + (loss - mean) * LOSS_SHARE);
            mean_loss = Some(mean);
            let elapsed = began.elapsed();
            let left = elapsed.mul_f64((self.recipe.steps - self.step) as f64 / (self.step - first).max(1) as f64);
            let steps = self.recipe.steps;
            let now = Progress { step: self.step, steps, loss, mean_loss: mean, gradient, tokens, elapsed, left };
            if progress(self, &now) == NextStep::Pause {
                break;
            }
        }
        Ok(self.step >= self.recipe.steps)
    }

    /// Makes one step. Returns `None` if `pause` returned true.
    fn make_step(&mut self, pause: &dyn Fn() -> bool) -> Result<Option<StepResult>> {
        let chosen: Vec<&TokenizedExample> =
            (0..self.recipe.batch).map(|index| self.example(self.step * self.recipe.batch + index)).collect();
        let weights = self.recipe.weights(&chosen.iter().map(|example| example.learned_tokens()).collect::<Vec<_>>());
        let packs = pack(&chosen, self.recipe.pass_tokens);
        let mut grads = Lora::zero(self.base.shape(), self.recipe.rank, self.recipe.alpha);
        let (base, lora) = (self.base, &self.lora);
        let beside = self.frozen.as_ref().map(FrozenLoras::sum);
        let mut loss = 0.0;
        for pack in &packs {
            if pause() {
                return Ok(None);
            }
            let losses = pass(base, lora, beside, pack, Some((&weights, &mut grads)))?;
            loss += losses.iter().zip(&pack.owners).map(|(loss, owner)| loss * f64::from(weights[*owner])).sum::<f64>();
        }
        if !loss.is_finite() {
            return Err(Error::Diverged { step: self.step });
        }
        let gradient = self.apply_gradients(grads)?;
        self.step += 1;
        let tokens = packs.iter().map(|pack| pack.tokens.len()).sum();
        Ok(Some(StepResult { loss, gradient, tokens }))
    }

    /// Takes the step for these gradients, and returns their norm. With frozen LoRAs, the gradients are projected
    /// before they are used, and the LoRA afterwards: AdamW changes each number separately, and so leaves any subspace.
    fn apply_gradients(&mut self, mut grads: Lora) -> Result<f32> {
        let Self { frozen, recipe, step, lora, moments, .. } = self;
        if let Some(frozen) = frozen {
            frozen.project_out(&mut grads)?;
        }
        let gradient = moments.step(recipe, *step, lora, &grads);
        if let Some(frozen) = frozen {
            frozen.project_out(lora)?;
        }
        Ok(gradient)
    }

    /// Returns the example with this number. Each round has another order.
    fn example(&self, number: usize) -> &'a TokenizedExample {
        let (round, place) = (number / self.examples.len(), number % self.examples.len());
        let mut order: Vec<usize> = (0..self.examples.len()).collect();
        fastrand::Rng::with_seed(self.recipe.seed.wrapping_add(round as u64 + 1)).shuffle(&mut order);
        &self.examples[order[place]]
    }
}

struct StepResult {
    loss: f64,
    gradient: f32,
    tokens: usize,
}

/// Creates a pool of `threads` threads; 0 uses every processor.
pub(crate) fn pool(threads: usize) -> Result<Arc<rayon::ThreadPool>> {
    let named = rayon::ThreadPoolBuilder::new().thread_name(|index| format!("hearth-{index}"));
    Ok(Arc::new(named.num_threads(threads).build()?))
}
