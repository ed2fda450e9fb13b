//! Causal attention over packed sequences, with groups of queries that share keys.
//!
//! Sequences follow each other without padding. A sequence that begins like another does not contain that beginning
//! again: it refers to its rows, and its tokens see them and their own past. A beginning can itself refer to others. So
//! a beginning that many examples share is computed once, and all their gradients for it are summed before they are
//! propagated.

use std::ops::Range;

use candle_core::{CpuStorage, Device, InplaceOp1, InplaceOp2, Layout, Tensor};
use rayon::prelude::*;

use crate::base::Shape;
use crate::device::is_here;
use crate::error::Result;
use crate::slice::{dot, exp, most, numbers, read};

/// A range of packed tokens that attends to itself and to earlier rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Its rows.
    pub(crate) rows: Range<usize>,
    /// The rows of its beginning, in order; empty if it contains its own beginning.
    pub(crate) prefix: Vec<Range<usize>>,
}

impl Segment {
    /// Returns the rows that its last token sees.
    pub(crate) fn seen(&self) -> Vec<Range<usize>> {
        self.prefix.iter().chain([&self.rows]).cloned().collect()
    }
}

/// The queries, keys and values of a layer: tokens by heads and their numbers, with positions applied.
pub(crate) struct Heads<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) queries: &'a Tensor,
    pub(crate) keys: &'a Tensor,
    pub(crate) values: &'a Tensor,
}

/// The queries, keys and values of one segment, head by head.
struct Split {
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
}

impl Heads<'_> {
    /// Computes the attention output of each token: tokens by heads and their numbers.
    pub(crate) fn attend(&self, segments: &[Segment]) -> Result<Tensor> {
        if !is_here(self.queries) {
            return self.attend_on_device(segments);
        }
        let (tokens, width) = self.queries.dims2()?;
        let mut out = vec![0.0; tokens * width];
        let taken = each(segments, |segment| {
            let split = self.split(segment)?;
            Ok(self.weights(&split, segment)?.matmul(&split.values)?)
        })?;
        for (segment, taken) in segments.iter().zip(taken) {
            self.merge(&taken, segment.rows.clone(), &mut out, self.group())?;
        }
        Ok(Tensor::from_vec(out, (tokens, width), &Device::Cpu)?)
    }

    /// Returns the gradients of [`Self::attend`] for queries, keys and values.
    pub(crate) fn attend_back(&self, segments: &[Segment], grad: &Tensor) -> Result<[Tensor; 3]> {
        if !is_here(self.queries) {
            return self.attend_back_on_device(segments, grad);
        }
        let (tokens, queried) = self.queries.dims2()?;
        let (_, answered) = self.keys.dims2()?;
        let mut to_queries = vec![0.0; tokens * queried];
        let (mut to_keys, mut to_values) = (vec![0.0; tokens * answered], vec![0.0; tokens * answered]);
        let scale = self.scale();
        let backs = each(segments, |segment| {
            let split = self.split(segment)?;
            let weights = self.weights(&split, segment)?;
            let grad = self.split_rows(grad, std::slice::from_ref(&segment.rows), self.group())?;
            let values = weights.transpose(1, 2)?.matmul(&grad)?;
            let scores = grad.matmul(&split.values.transpose(1, 2)?)?;
            scores.inplace_op2(&weights, &SoftmaxBack { columns: weights.dim(2)?, scale })?;
            let queries = scores.matmul(&split.keys)?;
            let keys = scores.transpose(1, 2)?.matmul(&split.queries)?;
            Ok((queries, keys, values))
        })?;
        // Segments with a shared beginning add to the same rows, in a fixed order that does not depend on threads.
        for (segment, (queries, keys, values)) in segments.iter().zip(backs) {
            self.merge(&queries, segment.rows.clone(), &mut to_queries, self.group())?;
            let seen = segment.seen();
            self.merge(&keys, seen.iter().cloned().flatten(), &mut to_keys, 1)?;
            self.merge(&values, seen.iter().cloned().flatten(), &mut to_values, 1)?;
        }
        Ok([
            Tensor::from_vec(to_queries, (tokens, queried), &Device::Cpu)?,
            Tensor::from_vec(to_keys, (tokens, answered), &Device::Cpu)?,
            Tensor::from_vec(to_values, (tokens, answered), &Device::Cpu)?,
        ])
    }

    pub(crate) fn group(&self) -> usize {
        self.shape.heads / self.shape.kv_heads
    }

    pub(crate) fn scale(&self) -> f32 {
        1.0 / (self.shape.head_width as f32).sqrt()
    }

    fn split(&self, segment: &Segment) -> Result<Split> {
        let seen = segment.seen();
        Ok(Split {
            queries: self.split_rows(self.queries, std::slice::from_ref(&segment.rows), self.group())?,
            keys: self.split_rows(self.keys, &seen, 1)?,
            values: self.split_rows(self.values, &seen, 1)?,
        })
    }

    /// Computes the attention weights: key heads by queries of their group by tokens.
    fn weights(&self, split: &Split, segment: &Segment) -> Result<Tensor> {
        let scores = split.queries.matmul(&split.keys.transpose(1, 2)?)?;
        let softmax = Softmax {
            columns: scores.dim(2)?,
            queries: segment.rows.len(),
            before: segment.prefix.iter().map(ExactSizeIterator::len).sum(),
            scale: self.scale(),
        };
        scores.inplace_op1(&softmax)?;
        Ok(scores)
    }

    /// Gathers these rows of `x` for each key head: heads by (members of the group, rows) by numbers.
    fn split_rows(&self, x: &Tensor, ranges: &[Range<usize>], group: usize) -> Result<Tensor> {
        let (heads, width) = (self.shape.kv_heads, self.shape.head_width);
        let rows: usize = ranges.iter().map(ExactSizeIterator::len).sum();
        let mut out = Vec::with_capacity(heads * group * rows * width);
        read(x, |x| {
            for head in 0..heads * group {
                for row in ranges.iter().cloned().flatten() {
                    out.extend_from_slice(&x[(row * heads * group + head) * width..][..width]);
                }
            }
        })?;
        Ok(Tensor::from_vec(out, (heads, group * rows, width), &Device::Cpu)?)
    }

    /// Adds the result of [`Self::split_rows`] back to these rows of `out`.
    fn merge(
        &self,
        x: &Tensor,
        rows: impl Iterator<Item = usize> + Clone,
        out: &mut [f32],
        group: usize,
    ) -> Result<()> {
        let (heads, width) = (self.shape.kv_heads, self.shape.head_width);
        read(x, |x| {
            let mut pieces = x.chunks_exact(width);
            for head in 0..heads * group {
                for (row, piece) in rows.clone().zip(&mut pieces) {
                    let to = &mut out[(row * heads * group + head) * width..][..width];
                    to.iter_mut().zip(piece).for_each(|(to, piece)| *to += piece);
                }
            }
        })
    }
}

/// Computes a value for each segment in parallel, and returns them in order.
fn each<T: Send>(segments: &[Segment], make: impl Fn(&Segment) -> Result<T> + Sync + Send) -> Result<Vec<T>> {
    segments.par_iter().map(make).collect()
}

/// Turns scores into weights. Each query sees the tokens before its segment and its own past.
struct Softmax {
    columns: usize,
    queries: usize,
    before: usize,
    scale: f32,
}

impl InplaceOp1 for Softmax {
    fn name(&self) -> &'static str {
        "causal-softmax"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, _: &Layout) -> candle_core::Result<()> {
        numbers(storage)?.par_chunks_mut(self.columns).enumerate().for_each(|(index, row)| {
            let seen = self.before + index % self.queries + 1;
            let (row, hidden) = row.split_at_mut(seen);
            let largest = most(row);
            row.iter_mut().for_each(|score| *score = exp((*score - largest) * self.scale));
            let whole = 1.0 / row.iter().sum::<f32>();
            row.iter_mut().for_each(|weight| *weight *= whole);
            hidden.fill(0.0);
        });
        Ok(())
    }
}

/// Computes the gradient of a softmax for its scores: `w (g - sum(w g))`, times their scale.
struct SoftmaxBack {
    columns: usize,
    scale: f32,
}

impl InplaceOp2 for SoftmaxBack {
    fn name(&self) -> &'static str {
        "softmax-back"
    }

    fn cpu_fwd(
        &self,
        storage: &mut CpuStorage,
        _: &Layout,
        weights: &CpuStorage,
        _: &Layout,
    ) -> candle_core::Result<()> {
        let weights = weights.as_slice::<f32>()?;
        let rows = numbers(storage)?.par_chunks_mut(self.columns).zip(weights.par_chunks(self.columns));
        rows.for_each(|(grad, weights)| {
            let along = dot(grad, weights);
            grad.iter_mut().zip(weights).for_each(|(grad, weight)| *grad = weight * (*grad - along) * self.scale);
        });
        Ok(())
    }
}
