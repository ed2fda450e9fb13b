//! Operations on LoRAs of one model: their sum as one LoRA, the nearest LoRA of a lower rank, and how close to
//! orthogonal their inputs are.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::lora::{Lora, LoraPair, Matrix};
use crate::span::{OrthonormalBasis, ROUNDED, combined, dot, length, separate};
use crate::train::pool;

/// A LoRA that was compressed to a lower rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Compressed {
    /// The compressed LoRA.
    pub lora: Lora,
    /// The share of the squared singular values that is left, over all projections; 1 if nothing was lost.
    pub retained: f64,
}

impl Lora {
    /// Returns one LoRA that changes the model as all of these together. Its rank is the sum of theirs, and its scale
    /// is 1.
    ///
    /// # Errors
    /// [`Error::Loras`] if there are none, or if they are made for different models.
    pub fn joined(loras: &[Self]) -> Result<Self> {
        Self::joined_at(1.0, loras)
    }

    /// Returns one LoRA with the mean of their changes: common changes stay, and those of single ones get weaker
    /// (Wortsman et al. 2022, *Model soups*). Its rank is the sum of theirs.
    ///
    /// # Errors
    /// Those of [`Lora::joined`].
    pub fn mean(loras: &[Self]) -> Result<Self> {
        let part = 1.0 / loras.len() as f32;
        Ok(Self::joined(loras)?.scaled(part))
    }

    /// Computes [`Lora::joined`] with another scale, by which the changes are divided beforehand.
    pub(crate) fn joined_at(scale: f32, loras: &[Self]) -> Result<Self> {
        let first = loras.first().ok_or_else(|| Error::Loras("there are none".into()))?;
        if let Some(place) = loras.iter().position(|lora| !lora.has_same_shape(first)) {
            return Err(Error::Loras(format!("number {} is made for another model", place + 1)));
        }
        let rank = loras.iter().map(|lora| lora.rank).sum();
        let joined = |index: usize| {
            let pairs = || loras.iter().map(move |lora| (&lora.pairs[index], lora.scale() / scale));
            let (inputs, outputs) = (first.pairs[index].a.columns, first.pairs[index].b.rows);
            let a = pairs().flat_map(|(pair, _)| pair.a.values.iter().copied()).collect();
            let row = |row| pairs().flat_map(move |(pair, by)| pair.b.row(row).iter().map(move |value| value * by));
            let b = (0..outputs).flat_map(row).collect();
            LoraPair {
                a: Matrix { values: a, rows: rank, columns: inputs },
                b: Matrix { values: b, rows: outputs, columns: rank },
            }
        };
        Ok(Self {
            architecture: first.architecture.clone(),
            rank,
            alpha: scale * rank as f32,
            pairs: (0..first.pairs.len()).map(joined).collect(),
        })
    }

    /// Returns the nearest LoRA of at most this rank. It keeps the largest singular values of each projection's
    /// `alpha / rank * B A`; no other matrix of that rank is nearer by the Frobenius norm (Eckart and Young 1936). The
    /// rows of its `A` are orthonormal, or zero if fewer are needed. Its scale is 1. `threads` is as in
    /// [`crate::Training::new`].
    ///
    /// # Errors
    /// [`Error::Loras`] for rank 0, and if a number is not finite.
    pub fn compressed(&self, rank: usize, threads: usize) -> Result<Compressed> {
        if rank == 0 {
            return Err(Error::Loras("nothing is left at rank 0".into()));
        }
        if !self.matrices().all(|matrix| matrix.values.iter().all(|value| value.is_finite())) {
            return Err(Error::Loras("it holds what is no number".into()));
        }
        let rank = rank.min(self.rank);
        let scale = f64::from(self.scale());
        let parts: Vec<Part> =
            pool(threads)?.install(|| self.pairs.par_iter().map(|pair| Part::of(pair, scale, rank)).collect());
        let (retained, whole) = parts.iter().fold((0.0, 0.0), |sum, part| (sum.0 + part.retained, sum.1 + part.whole));
        let pairs = parts.into_iter().map(|part| part.pair).collect();
        let lora = Self { architecture: self.architecture.clone(), rank, alpha: rank as f32, pairs };
        Ok(Compressed { lora, retained: if whole > 0.0 { retained / whole } else { 1.0 } })
    }

    /// Returns the largest absolute cosine between a row of its `A` and a row of theirs for the same projection. It is
    /// 0 if the inputs that it reads are orthogonal to all that they read.
    pub fn largest_cosine(&self, others: &[Self]) -> f32 {
        let mut largest = 0.0_f64;
        for (pair, other) in others.iter().flat_map(|other| self.pairs.iter().zip(&other.pairs)) {
            let measured = |row: Vec<f64>| (length(&row), row);
            let theirs: Vec<(f64, Vec<f64>)> = other.a.wide().map(measured).collect();
            for (own, row) in pair.a.wide().map(measured) {
                for (theirs, other) in theirs.iter().filter(|(theirs, _)| *theirs != 0.0 && own != 0.0) {
                    let cosine = (dot(&row, other) / (own * theirs)).abs();
                    // A NaN is kept, because it is not orthogonal.
                    if cosine > largest || cosine.is_nan() {
                        largest = cosine;
                    }
                }
            }
        }
        largest as f32
    }
}

/// A compressed projection, with its squared singular values.
struct Part {
    pair: LoraPair,
    retained: f64,
    whole: f64,
}

impl Part {
    /// Writes both thin factors in orthonormal bases, and decomposes the small matrix between them.
    fn of(pair: &LoraPair, scale: f64, rank: usize) -> Self {
        let (inputs, outputs) = (pair.a.columns, pair.b.rows);
        let read = OrthonormalBasis::of(pair.a.wide(), ROUNDED);
        let directions = read.basis.len();
        let written: Vec<Vec<f64>> = pair.b.wide().map(|row| combined(&row, &read.coefficients, directions)).collect();
        let column = |index: usize| written.iter().map(|row| row[index] * scale).collect();
        let written = OrthonormalBasis::of((0..directions).map(column), ROUNDED);
        let mut left = written.coefficients;
        let mut right: Vec<Vec<f64>> = (0..directions)
            .map(|one| (0..directions).map(|other| if one == other { 1.0 } else { 0.0 }).collect())
            .collect();
        separate(&mut left, &mut right);
        let mut found: Vec<(f64, Vec<f64>, Vec<f64>)> =
            left.into_iter().zip(right).map(|(left, right)| (length(&left), left, right)).collect();
        found.sort_by(|one, other| other.0.total_cmp(&one.0));
        let squares = |found: &[(f64, Vec<f64>, Vec<f64>)]| found.iter().map(|(value, ..)| value * value).sum::<f64>();
        let whole = squares(&found);
        let least = found.first().map_or(0.0, |(largest, ..)| largest * ROUNDED);
        found.retain(|(value, ..)| *value > least);
        let exact = found.len() <= rank;
        found.truncate(rank);
        let retained = if exact { whole } else { squares(&found) };
        let (mut a, mut b) = (Matrix::zero(rank, inputs), Matrix::zero(outputs, rank));
        for (index, (_, left, right)) in found.iter().enumerate() {
            let row = combined(right, &read.basis, inputs);
            a.values[index * inputs..][..inputs].iter_mut().zip(row).for_each(|(to, value)| *to = value as f32);
            let column = combined(left, &written.basis, outputs);
            b.values.iter_mut().skip(index).step_by(rank).zip(column).for_each(|(to, value)| *to = value as f32);
        }
        Self { pair: LoraPair { a, b }, retained, whole }
    }
}
