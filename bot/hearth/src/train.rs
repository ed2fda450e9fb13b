//! Training: steps over the examples, that can be left off between two of them and taken up again.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::adamw::{Moments, Recipe};
use crate::adapter::Adapter;
use crate::base::Base;
use crate::error::{Error, Result};
use crate::pack::{Example, identify, pack};
use crate::pass::pass;
use crate::saved::Checkpoint;

/// How much of the running loss a step replaces.
const LOSS_SHARE: f64 = 0.1;

/// How a training stands after a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Steps made.
    pub step: usize,
    /// Steps in all.
    pub steps: usize,
    /// The mean cross-entropy of the step's learnt tokens, in nats.
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
pub enum Then {
    /// The next step.
    GoOn,
    /// Leave off.
    Pause,
}

/// A training of one adapter.
///
/// The same base, examples and recipe give the same adapter, bit for bit, however often the training is left off; the
/// number of threads does not matter either.
#[derive(Debug)]
pub struct Training<'a> {
    base: &'a Base,
    examples: &'a [Example],
    identity: String,
    recipe: Recipe,
    step: usize,
    adapter: Adapter,
    moments: Moments,
    threads: rayon::ThreadPool,
}

impl<'a> Training<'a> {
    /// A new training. `threads` is how many work at once; 0 takes every processor.
    ///
    /// # Errors
    /// [`Error::Recipe`] and [`Error::Examples`].
    pub fn new(base: &'a Base, examples: &'a [Example], recipe: Recipe, threads: usize) -> Result<Self> {
        recipe.check().map_err(Error::Recipe)?;
        let adapter = Adapter::new(base, recipe.rank, recipe.alpha, recipe.seed);
        Self::begun(base, examples, recipe, adapter, threads)
    }

    /// A new training that begins with what another one learnt.
    ///
    /// # Errors
    /// [`Error::Recipe`], also where the adapter has another rank or alpha than the recipe, and [`Error::Examples`].
    pub fn from(
        base: &'a Base,
        examples: &'a [Example],
        recipe: Recipe,
        adapter: Adapter,
        threads: usize,
    ) -> Result<Self> {
        if adapter.rank != recipe.rank || adapter.alpha != recipe.alpha {
            let Adapter { rank, alpha, .. } = adapter;
            return Err(Error::Recipe(format!("the adapter to go on from has rank {rank} and alpha {alpha}")));
        }
        Self::begun(base, examples, recipe, adapter, threads)
    }

    fn begun(
        base: &'a Base,
        examples: &'a [Example],
        recipe: Recipe,
        adapter: Adapter,
        threads: usize,
    ) -> Result<Self> {
        recipe.check().map_err(Error::Recipe)?;
        let identity = identify(examples, base.shape())?;
        let zero = Adapter::zero(base.shape(), recipe.rank, recipe.alpha);
        let moments = Moments { first: zero.clone(), second: zero };
        Ok(Self { base, examples, identity, recipe, step: 0, adapter, moments, threads: pool(threads)? })
    }

    /// Takes up a training where its checkpoint left off.
    ///
    /// # Errors
    /// [`Error::Saved`] for a damaged checkpoint, or one of another model or other examples.
    pub fn resume(base: &'a Base, examples: &'a [Example], checkpoint: &Path, threads: usize) -> Result<Self> {
        let identity = identify(examples, base.shape())?;
        let Checkpoint { recipe, examples: of_examples, step, adapter, moments, .. } =
            Checkpoint::read(checkpoint, base)?;
        if of_examples != identity {
            let what = "it belongs to other examples".to_owned();
            return Err(Error::Saved { path: checkpoint.to_owned(), what });
        }
        Ok(Self { base, examples, identity, recipe, step, adapter, moments, threads: pool(threads)? })
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
            step: self.step,
            adapter: self.adapter.clone(),
            moments: self.moments.clone(),
        };
        checkpoint.write(path)
    }

    /// What was learnt so far.
    pub fn adapter(&self) -> &Adapter {
        &self.adapter
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
    /// # Errors
    /// [`Error::Diverged`] if the loss is no number any more.
    pub fn run(&mut self, progress: &mut dyn FnMut(&Self, &Progress) -> Then) -> Result<bool> {
        let began = Instant::now();
        let first = self.step;
        let mut mean_loss = None;
        while self.step < self.recipe.steps {
            let Made { loss, gradient, tokens } = self.make_step()?;
            let mean = mean_loss.map_or(loss, |mean: f64| mean + (loss - mean) * LOSS_SHARE);
            mean_loss = Some(mean);
            let elapsed = began.elapsed();
            let left = elapsed.mul_f64((self.recipe.steps - self.step) as f64 / (self.step - first).max(1) as f64);
            let steps = self.recipe.steps;
            let now = Progress { step: self.step, steps, loss, mean_loss: mean, gradient, tokens, elapsed, left };
            if progress(self, &now) == Then::Pause {
                break;
            }
        }
        Ok(self.step >= self.recipe.steps)
    }

    fn make_step(&mut self) -> Result<Made> {
        let chosen: Vec<&Example> =
            (0..self.recipe.batch).map(|index| self.example(self.step * self.recipe.batch + index)).collect();
        let learnt: usize = chosen.iter().map(|example| example.learnt_tokens()).sum();
        let packs = pack(&chosen, self.recipe.pass_tokens);
        let mut grads = Adapter::zero(self.base.shape(), self.recipe.rank, self.recipe.alpha);
        let (base, adapter, grads_to) = (self.base, &self.adapter, &mut grads);
        let loss = self.threads.install(|| -> Result<f64> {
            let mut loss = 0.0;
            for pack in &packs {
                loss += pass(base, adapter, pack, 1.0 / learnt as f32, Some(&mut *grads_to))?;
            }
            Ok(loss / learnt as f64)
        })?;
        if !loss.is_finite() {
            return Err(Error::Diverged { step: self.step });
        }
        let gradient = self.moments.step(&self.recipe, self.step, &mut self.adapter, &grads);
        self.step += 1;
        Ok(Made { loss, gradient, tokens: packs.iter().map(|pack| pack.tokens.len()).sum() })
    }

    /// The example of this number, each round in another order.
    fn example(&self, number: usize) -> &'a Example {
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

/// The mean cross-entropy in nats of what is to be learnt, and of how many tokens it is the mean.
///
/// # Errors
/// [`Error::Examples`] for examples that do not fit the model.
pub fn mean_loss(
    base: &Base,
    adapter: Option<&Adapter>,
    examples: &[Example],
    pass_tokens: usize,
    threads: usize,
) -> Result<(f64, usize)> {
    identify(examples, base.shape())?;
    let none = Adapter::zero(base.shape(), 1, 1.0);
    let packs = pack(&examples.iter().collect::<Vec<_>>(), pass_tokens);
    let tokens = examples.iter().map(Example::learnt_tokens).sum();
    let loss = pool(threads)?.install(|| -> Result<f64> {
        packs.iter().map(|pack| pass(base, adapter.unwrap_or(&none), pack, 0.0, None)).sum()
    })?;
    Ok((loss / tokens as f64, tokens))
}

fn pool(threads: usize) -> Result<rayon::ThreadPool> {
    Ok(rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|index| format!("hearth-{index}")).build()?)
}
