//! AdamW (Loshchilov and Hutter 2019), with the norm of all gradients clipped.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::lora::Lora;

/// The share of the running means that each step keeps, and the constant in the denominator.
const BETA_1: f32 = 0.9;
const BETA_2: f32 = 0.999;
const EPSILON: f32 = 1e-8;

/// The hyperparameters of a training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The rank of the LoRA.
    pub rank: usize,
    /// The scale of the LoRA is `alpha / rank`.
    pub alpha: f32,
    /// The seed of the initial values and of the order of the examples.
    pub seed: u64,
    /// The number of steps.
    pub steps: usize,
    /// The number of examples per step.
    pub batch: usize,
    /// The weight of an example: an example with n learned tokens counts as n to this power. With 1 all tokens have
    /// equal weight, with 0 all examples.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub length_power: f32,
    /// The highest learning rate.
    pub rate: f32,
    /// The number of steps in which the learning rate rises to `rate`.
    pub warm_up: usize,
    /// The share of `rate` at the last step. The learning rate falls to it along half a cosine.
    pub floor: f32,
    /// The share of each number that is subtracted per step, times the learning rate.
    pub weight_decay: f32,
    /// The longest gradient, as a Euclidean norm.
    pub clip: f32,
    /// The most tokens in a pass. Steps with more are split into several passes, whose gradients are added.
    pub pass_tokens: usize,
}

fn one() -> f32 {
    1.0
}

// serde passes a reference.
fn is_one(power: &f32) -> bool {
    *power == 1.0
}

impl Default for Recipe {
    fn default() -> Self {
        Self {
            rank: 16,
            alpha: 32.0,
            seed: 1,
            steps: 300,
            batch: 8,
            length_power: 1.0,
            rate: 6e-4,
            warm_up: 10,
            floor: 0.1,
            weight_decay: 0.01,
            clip: 1.0,
            pass_tokens: 512,
        }
    }
}

impl Recipe {
    pub(crate) fn check(&self) -> Result<(), String> {
        let counts = [self.rank, self.steps, self.batch, self.pass_tokens];
        let reals = [self.alpha, self.rate, self.clip];
        if counts.contains(&0) || reals.iter().any(|it| !it.is_finite() || *it <= 0.0) {
            return Err("rank, alpha, steps, batch, rate, clip and pass_tokens must be more than nothing".into());
        }
        if self.steps > 1_000_000 || self.batch > 4096 || self.rank > 1024 {
            return Err("there are at most a million steps, 4096 examples a step and rank 1024".into());
        }
        if ![self.floor, self.weight_decay, self.length_power].iter().all(|it| (0.0..=1.0).contains(it)) {
            return Err("floor, weight_decay and length_power lie between 0 and 1".into());
        }
        Ok(())
    }

    /// Returns the weight of a token of each example in a step, given their learned tokens. The weights of all tokens
    /// add up to 1.
    pub(crate) fn weights(&self, learned: &[usize]) -> Vec<f32> {
        let whole: f64 = learned.iter().map(|tokens| (*tokens as f64).powf(f64::from(self.length_power))).sum();
        let weight = |tokens: &usize| ((*tokens as f64).powf(f64::from(self.length_power) - 1.0) / whole) as f32;
        learned.iter().map(weight).collect()
    }

    /// Returns the learning rate of a step, counted from 0.
    pub(crate) fn rate_at(&self, step: usize) -> f32 {
        if step < self.warm_up {
            return self.rate * (step + 1) as f32 / self.warm_up as f32;
        }
        let rest = (self.steps.saturating_sub(self.warm_up + 1)).max(1) as f32;
        let way = ((step - self.warm_up) as f32 / rest).min(1.0);
        let share = self.floor + (1.0 - self.floor) * 0.5 * (1.0 + (std::f32::consts::PI * way).cos());
        self.rate * share
    }
}

/// Running means of the gradients and of their squares.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Moments {
    pub(crate) first: Lora,
    pub(crate) second: Lora,
}

impl Moments {
    /// Takes one step. The gradients are first scaled down to `recipe.clip`. Returns their norm before that.
    pub(crate) fn step(&mut self, recipe: &Recipe, step: usize, lora: &mut Lora, grads: &Lora) -> f32 {
        let square = |matrix: &crate::lora::Matrix| {
            matrix.values.iter().map(|value| f64::from(*value) * f64::from(*value)).sum::<f64>()
        };
        // The sum has a fixed order, whatever the number of threads.
        let squares: Vec<f64> = grads.matrices().collect::<Vec<_>>().into_par_iter().map(square).collect();
        let length = squares.iter().sum::<f64>().sqrt() as f32;
        let shrink = if length > recipe.clip { recipe.clip / length } else { 1.0 };
        let rate = recipe.rate_at(step);
        let count = i32::try_from(step + 1).unwrap_or(i32::MAX);
        let (unbias_1, unbias_2) = (1.0 - BETA_1.powi(count), 1.0 - BETA_2.powi(count));
        let moments = self.first.matrices_mut().zip(self.second.matrices_mut());
        let all: Vec<_> = lora.matrices_mut().zip(grads.matrices()).zip(moments).collect();
        all.into_par_iter().for_each(|((matrix, grads), (first, second))| {
            let moments = first.values.iter_mut().zip(&mut second.values);
            for ((value, grad), (first, second)) in matrix.values.iter_mut().zip(&grads.values).zip(moments) {
                let grad = grad * shrink;
                *first = BETA_1 * *first + (1.0 - BETA_1) * grad;
                *second = BETA_2 * *second + (1.0 - BETA_2) * grad * grad;
                let pace = (*first / unbias_1) / ((*second / unbias_2).sqrt() + EPSILON);
                *value -= rate * (pace + recipe.weight_decay * *value);
            }
        });
        length
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lora::{LoraPair, Matrix};

    fn recipe() -> Recipe {
        Recipe { steps: 21, rate: 1e-2, warm_up: 10, floor: 0.1, weight_decay: 0.5, clip: 1.0, ..Recipe::default() }
    }

    #[test]
    fn the_rate_rises_then_falls_to_its_floor() {
        let rates: Vec<f32> = (0..21).map(|step| recipe().rate_at(step)).collect();
        let near = |step: usize, rate: f32| assert!((rates[step] - rate).abs() < 1e-8, "{step}: {rates:?}");
        near(0, 1e-3);
        near(9, 1e-2);
        near(10, 1e-2);
        near(15, 5.5e-3);
        near(20, 1e-3);
        assert!(rates[..10].is_sorted() && rates[10..].iter().rev().is_sorted());
        assert_eq!(recipe().rate_at(99), rates[20]);
    }

    /// Returns a LoRA with one number in `A` and one in `B`.
    fn of(a: f32, b: f32) -> Lora {
        let one = |value| Matrix { values: vec![value], rows: 1, columns: 1 };
        Lora { architecture: "llama".into(), rank: 1, alpha: 1.0, pairs: vec![LoraPair { a: one(a), b: one(b) }] }
    }

    #[test]
    fn steps_match_a_computation_by_hand() {
        let mut moments = Moments { first: of(0.0, 0.0), second: of(0.0, 0.0) };
        let mut lora = of(1.0, 2.0);
        let near = |lora: &Lora, a: f32, b: f32| {
            let LoraPair { a: read, b: written } = &lora.pairs[0];
            let (read, written) = (read.values[0], written.values[0]);
            assert!((read - a).abs() < 1e-6 && (written - b).abs() < 1e-6, "{read} {written}");
        };
        // The gradients are clipped to 0.6 and 0.8. Each number moves by its rate of 0.001, and by 0.0005 of itself.
        assert_eq!(moments.step(&recipe(), 0, &mut lora, &of(30.0, 40.0)), 50.0);
        near(&lora, 0.9985, 1.998);
        // Means of -0.006 / 0.19 and 0.152 / 0.19, squares of 0.36 and 0.64, a rate of 0.002.
        moments.step(&recipe(), 1, &mut lora, &of(-0.6, 0.8));
        near(&lora, 0.997_606_8, 1.994_002);
    }
}
