//! Training: steps over the examples, that can be left off between two passes of them and taken up again.

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

/// How much of the running loss a step replaces.
const LOSS_SHARE: f64 = 0.1;

/// How a training stands after a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Steps made.
    pub step: usize,
    /// Steps in all.
    pub steps: usize,
    /// The mean cross-entropy of the step's learnt tokens in nats, weighed as [`Recipe::length_power`] says.
    pub loss: f64,
    /// The same, averaged over the last steps.
    pub mean_loss: f64,
    /// The Euclidean norm of the gradient before it was clipped.
    pub gradient: f32,
    /// Tokens that passed through the model in this step; shared beginnings count once.
    pub tokens: usize,
    /// Time since this run began.
    pub elapsed: Duration,
    /// Time the rest will take at the pace so far.
    pub left: Duration,
}

/// What is to happen after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    /// The next step.
    GoOn,
    /// Leave off.
    Pause,
}

/// Is told how a training stands after each step, and says what is to happen.
pub type Watch<'w, 'a> = &'w mut (dyn FnMut(&Training<'a>, &Progress) -> NextStep + Send);

/// A training of one adapter.
///
/// The same base, examples, recipe and adapters beside it give the same adapter, bit for bit, however often the training is
/// left off; the number of threads does not matter either.
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
    /// A new training, alone or beside adapters that stay as they are: these are added in every pass, and the rows of the new `A` are
    /// kept orthogonal to all rows of theirs (O-LoRA, Wang et al. 2023, by projection). Their ranks and scales may differ.
    /// `threads` is how many work at once; 0 takes every processor.
    ///
    /// # Errors
    /// [`Error::Recipe`], also where they leave no room for the new rank in a projection's inputs, [`Error::Examples`], and
    /// [`Error::Loras`] for adapters of another model.
    pub fn new(
        base: &'a BaseModel,
        frozen: &[Lora],
        examples: &'a [TokenizedExample],
        recipe: Recipe,
        threads: usize,
    ) -> Result<Self> {
        recipe.check().map_err(Error::Recipe)?;
        let lora = Lora::new(base, recipe.rank, recipe.alpha, recipe.seed);
        let mut training = Self::begun(base, examples, recipe, lora, threads)?;
        let (recipe, lora) = (&training.recipe, &mut training.lora);
        training.frozen = training.threads.install(|| {
            let frozen = FrozenLoras::new(base, frozen, recipe)?;
            if let Some(frozen) = &frozen {
                // Twice: where little is left of a row, the first time leaves more of rounding in it than it is to have.
                frozen.leave(lora)?;
                frozen.leave(lora)?;
            }
            Ok::<_, Error>(frozen)
        })?;
        Ok(training)
    }

    /// A new training that begins with what another one learnt.
    ///
    /// # Errors
    /// [`Error::Recipe`], also where the adapter has another rank than the recipe, and [`Error::Examples`].
    pub fn from(
        base: &'a BaseModel,
        examples: &'a [TokenizedExample],
        recipe: Recipe,
        lora: Lora,
        threads: usize,
    ) -> Result<Self> {
        if lora.rank != recipe.rank {
            return Err(Error::Recipe(format!("the adapter to go on from has rank {}", lora.rank)));
        }
        let began_with = lora.identity();
        let lora = lora.at_alpha(recipe.alpha);
        Ok(Self { began_with, ..Self::begun(base, examples, recipe, lora, threads)? })
    }

    fn begun(
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

    /// Takes up a training where its checkpoint left off, beside the adapters that it began beside.
    ///
    /// # Errors
    /// [`Error::TensorFile`] for a damaged checkpoint, or one of another model, other examples or other adapters.
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
                true => "it was not learnt beside adapters",
                false => "it was learnt beside other adapters, or the same in another order",
            }));
        }
        let threads = pool(threads)?;
        let frozen = threads.install(|| FrozenLoras::new(base, frozen, &recipe))?;
        Ok(Self { base, examples, identity, recipe, frozen, began_with, step, lora, moments, threads })
    }

    /// Keeps where it stands in a file.
    ///
    /// # Errors
    /// Those of the file system.
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

    /// What was learnt so far.
    pub fn lora(&self) -> &Lora {
        &self.lora
    }

    /// The [`Lora::identity`] of the adapter that it began with; nothing where it began with none.
    pub fn began_with(&self) -> &str {
        &self.began_with
    }

    /// Its recipe.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Steps made.
    pub fn step(&self) -> usize {
        self.step
    }

    /// The SHA-256 of the examples.
    pub fn examples_sha256(&self) -> &str {
        &self.identity
    }

    /// Makes the steps that are left, or as many until `progress` wants a pause. Whether all were made.
    ///
    /// `pause` is asked before each pass of a step: who wants the processor waits for one pass at most. The step that was begun is
    /// then dropped, and made again when the training goes on. `pause` may also wait itself and then say no, by which nothing is
    /// dropped.
    ///
    /// # Errors
    /// [`Error::Diverged`] if the loss is no number any more.
    pub fn run(&mut self, pause: &(dyn Fn() -> bool + Sync), progress: Watch<'_, 'a>) -> Result<bool> {
        // All of it on one thread: allocators give each its own memory, and what one of them is done with is no room for another's pass.
        let threads = Arc::clone(&self.threads);
        threads.install(|| self.make_steps(pause, progress))
    }

    fn make_steps(&mut self, pause: &dyn Fn() -> bool, progress: Watch<'_, 'a>) -> Result<bool> {
        let began = Instant::now();
        let first = self.step;
        let mut mean_loss = None;
        while self.step < self.recipe.steps {
            let Some(Made { loss, gradient, tokens }) = self.make_step(pause)? else { break };
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

    /// Nothing is made where `pause` wants none.
    fn make_step(&mut self, pause: &dyn Fn() -> bool) -> Result<Option<Made>> {
        let chosen: Vec<&TokenizedExample> =
            (0..self.recipe.batch).map(|index| self.example(self.step * self.recipe.batch + index)).collect();
        let weights = self.recipe.weights(&chosen.iter().map(|example| example.learnt_tokens()).collect::<Vec<_>>());
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
        let gradient = self.learn(grads)?;
        self.step += 1;
        let tokens = packs.iter().map(|pack| pack.tokens.len()).sum();
        Ok(Some(Made { loss, gradient, tokens }))
    }

    /// Takes the step that these gradients teach, and gives their norm. Beside other adapters they are projected before anything
    /// is made of them, and the adapter after: AdamW goes by each number, and so leads out of any subspace.
    fn learn(&mut self, mut grads: Lora) -> Result<f32> {
        let Self { frozen, recipe, step, lora, moments, .. } = self;
        if let Some(frozen) = frozen {
            frozen.leave(&mut grads)?;
        }
        let gradient = moments.step(recipe, *step, lora, &grads);
        if let Some(frozen) = frozen {
            frozen.leave(lora)?;
        }
        Ok(gradient)
    }

    /// The example of this number, each round in another order.
    fn example(&self, number: usize) -> &'a TokenizedExample {
        let (round, place) = (number / self.examples.len(), number % self.examples.len());
        let mut order: Vec<usize> = (0..self.examples.len()).collect();
        fastrand::Rng::with_seed(self.recipe.seed.wrapping_add(round as u64 + 1)).shuffle(&mut order);
        &self.examples[order[place]]
    }
}

struct Made {
    loss: f64,
    gradient: f32,
    tokens: usize,
}

/// Threads that work at once; 0 takes every processor.
pub(crate) fn pool(threads: usize) -> Result<Arc<rayon::ThreadPool>> {
    let named = rayon::ThreadPoolBuilder::new().thread_name(|index| format!("hearth-{index}"));
    Ok(Arc::new(named.num_threads(threads).build()?))
}
