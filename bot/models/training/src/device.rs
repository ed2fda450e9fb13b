//! The device of a training, and the row operations of `slice`, `rope` and `attention` on tensors that are not in the
//! processor's memory. They use candle's operations, which run on every device. Tests compare them with those of the
//! processor, which keeps its own: they read memory once, while these read it once for each operation.

use std::fmt;

use candle_core::{Device, IndexOp, Tensor};

use crate::attention::{Heads, Segment};
use crate::base::Rope;
use crate::error::Result;

/// The device that computes a training.
#[derive(Debug, Clone)]
pub struct ComputeDevice(Device);

impl ComputeDevice {
    /// Returns the processor.
    pub fn processor() -> Self {
        Self(Device::Cpu)
    }

    /// Returns the first GPU in a build with `--features cuda`, and the processor in others. GPUs that support it
    /// (Ampere and later) then multiply matrices with 19 bits of each number (TF32): more than the 16 bits of other
    /// trainers, and many times as fast as 32.
    ///
    /// # Errors
    /// [`crate::Error::Compute`] if a build for GPUs finds none that works.
    pub fn best() -> Result<Self> {
        candle_core::cuda::set_gemm_reduced_precision_f32(true);
        Ok(Self(Device::cuda_if_available(0)?))
    }

    /// Returns true for the processor.
    pub fn is_processor(&self) -> bool {
        self.0.is_cpu()
    }

    pub(crate) fn device(&self) -> &Device {
        &self.0
    }
}

impl fmt::Display for ComputeDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_processor() { "the processor" } else { "a GPU" })
    }
}

#[cfg(test)]
thread_local! {
    /// Handles the processor's tensors as if they were on another device, so that both paths can be compared without a
    /// GPU.
    pub(crate) static FORCE_DEVICE_PATH: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Returns true if `x` is in the processor's memory.
pub(crate) fn is_here(x: &Tensor) -> bool {
    #[cfg(test)]
    if FORCE_DEVICE_PATH.get() {
        return false;
    }
    x.device().is_cpu()
}

fn weights(x: &Tensor, weight: &[f32]) -> Result<(Tensor, Tensor)> {
    let rows = x.elem_count() / weight.len();
    Ok((x.reshape((rows, weight.len()))?, Tensor::from_slice(weight, weight.len(), x.device())?))
}

fn inverse_root(x: &Tensor, epsilon: f32) -> Result<Tensor> {
    Ok((x.sqr()?.mean_keepdim(1)? + f64::from(epsilon))?.sqrt()?.recip()?)
}

pub(crate) fn norm(x: &Tensor, weight: &[f32], epsilon: f32) -> Result<Tensor> {
    let (rows, weight) = weights(x, weight)?;
    Ok(rows.broadcast_mul(&inverse_root(&rows, epsilon)?)?.broadcast_mul(&weight)?.reshape(x.shape())?)
}

pub(crate) fn norm_back(x: &Tensor, weight: &[f32], epsilon: f32, grad: &Tensor) -> Result<Tensor> {
    let width = weight.len();
    let (rows, weight) = weights(x, weight)?;
    let scale = inverse_root(&rows, epsilon)?;
    let grad = grad.reshape(rows.shape())?.broadcast_mul(&weight)?;
    let along = (&rows * &grad)?.sum_keepdim(1)?;
    let pull = ((along * scale.powf(3.0)?)? / width as f64)?;
    Ok((grad.broadcast_mul(&scale)? - rows.broadcast_mul(&pull)?)?.reshape(x.shape())?)
}

fn logistic(x: &Tensor) -> Result<Tensor> {
    Ok((x.neg()?.exp()? + 1.0)?.recip()?)
}

pub(crate) fn gated(gate: &Tensor, up: &Tensor) -> Result<Tensor> {
    Ok(((gate * logistic(gate)?)? * up)?)
}

pub(crate) fn gated_back(gate: &Tensor, up: &Tensor, grad: &Tensor) -> Result<(Tensor, Tensor)> {
    let open = logistic(gate)?;
    let to_up = ((grad * gate)? * &open)?;
    let slope = ((gate * (1.0 - &open)?)? + 1.0)?;
    Ok((((grad * up)? * (open * slope)?)?, to_up))
}

/// Rotates pairs of each head by angles with these cosines and sines, tokens by 1 by pairs.
pub(crate) fn turned(x: &Tensor, head_width: usize, (cos, sin): (&Tensor, &Tensor), rope: Rope) -> Result<Tensor> {
    let (tokens, width) = x.dims2()?;
    let pairs = cos.dim(2)?;
    let heads = x.reshape((tokens, width / head_width, head_width))?;
    let (turning, staying) = (heads.narrow(2, 0, 2 * pairs)?, heads.narrow(2, 2 * pairs, head_width - 2 * pairs)?);
    let (one, other) = match rope {
        Rope::Neighbours => {
            let turning = turning.contiguous()?.reshape((tokens, width / head_width, pairs, 2))?;
            (turning.i((.., .., .., 0))?, turning.i((.., .., .., 1))?)
        }
        Rope::Halves => (turning.narrow(2, 0, pairs)?, turning.narrow(2, pairs, pairs)?),
    };
    let to_one = (one.broadcast_mul(cos)? - other.broadcast_mul(sin)?)?;
    let to_other = (one.broadcast_mul(sin)? + other.broadcast_mul(cos)?)?;
    let turned = match rope {
        Rope::Neighbours => Tensor::stack(&[to_one, to_other], 3)?.reshape((tokens, width / head_width, 2 * pairs))?,
        Rope::Halves => Tensor::cat(&[to_one, to_other], 2)?,
    };
    if 2 * pairs == head_width {
        return Ok(turned.reshape((tokens, width))?);
    }
    Ok(Tensor::cat(&[turned, staying.contiguous()?], 2)?.reshape((tokens, width))?)
}

/// One segment's part of the attention.
struct Part {
    /// The segment's rows, and the rows that it sees.
    rows: Tensor,
    seen: Tensor,
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    weights: Tensor,
}

impl Part {
    fn of(heads: &Heads<'_>, segment: &Segment) -> Result<Self> {
        let device = heads.queries.device();
        let indices = |rows: Vec<usize>| {
            let rows: Vec<u32> = rows.into_iter().map(|row| row as u32).collect();
            Tensor::from_vec(rows.clone(), rows.len(), device)
        };
        let rows = indices(segment.rows.clone().collect())?;
        let seen = indices(segment.seen().into_iter().flatten().collect())?;
        let queries = heads.split_rows_on_device(heads.queries, &rows, heads.group())?;
        let keys = heads.split_rows_on_device(heads.keys, &seen, 1)?;
        let values = heads.split_rows_on_device(heads.values, &seen, 1)?;
        let (asking, all) = (rows.elem_count(), seen.elem_count());
        let hidden: Vec<f32> = (0..asking)
            .flat_map(|row| {
                (0..all).map(move |column| if column > all - asking + row { f32::NEG_INFINITY } else { 0.0 })
            })
            .collect();
        let hidden = Tensor::from_vec(hidden, (1, 1, asking, all), device)?;
        let scores = (queries.matmul(&keys.t()?)? * f64::from(heads.scale()))?;
        let shape = scores.shape().clone();
        let scores = scores.reshape((heads.shape.kv_heads, heads.group(), asking, all))?.broadcast_add(&hidden)?;
        let powers = scores.broadcast_sub(&scores.max_keepdim(3)?)?.exp()?;
        let weights = powers.broadcast_div(&powers.sum_keepdim(3)?)?.reshape(shape)?;
        Ok(Self { rows, seen, queries, keys, values, weights })
    }
}

impl Heads<'_> {
    /// Gathers these rows of `x` for each key head: heads by (members of the group, rows) by numbers.
    fn split_rows_on_device(&self, x: &Tensor, rows: &Tensor, group: usize) -> Result<Tensor> {
        let (heads, width, count) = (self.shape.kv_heads, self.shape.head_width, rows.elem_count());
        let chosen = x.index_select(rows, 0)?.reshape((count, heads, group, width))?;
        Ok(chosen.permute((1, 2, 0, 3))?.contiguous()?.reshape((heads, group * count, width))?)
    }

    /// Adds the result of [`Self::split_rows_on_device`] back to these rows of `out`.
    fn merge_on_device(&self, x: &Tensor, rows: &Tensor, out: &Tensor, group: usize) -> Result<Tensor> {
        let (heads, width, count) = (self.shape.kv_heads, self.shape.head_width, rows.elem_count());
        let x = x.reshape((heads, group, count, width))?.permute((2, 0, 1, 3))?.contiguous()?;
        Ok(out.index_add(rows, &x.reshape((count, heads * group * width))?, 0)?)
    }

    pub(crate) fn attend_on_device(&self, segments: &[Segment]) -> Result<Tensor> {
        let mut out = self.queries.zeros_like()?;
        for segment in segments {
            let part = Part::of(self, segment)?;
            out = self.merge_on_device(&part.weights.matmul(&part.values)?, &part.rows, &out, self.group())?;
        }
        Ok(out)
    }

    pub(crate) fn attend_back_on_device(&self, segments: &[Segment], grad: &Tensor) -> Result<[Tensor; 3]> {
        let mut to = [self.queries.zeros_like()?, self.keys.zeros_like()?, self.values.zeros_like()?];
        for segment in segments {
            let part = Part::of(self, segment)?;
            let grad = self.split_rows_on_device(grad, &part.rows, self.group())?;
            let values = part.weights.t()?.matmul(&grad)?;
            let grad = grad.matmul(&part.values.t()?)?;
            let along = (&grad * &part.weights)?.sum_keepdim(2)?;
            let scores = ((grad.broadcast_sub(&along)? * &part.weights)? * f64::from(self.scale()))?;
            let keys = scores.t()?.matmul(&part.queries)?;
            to = [
                self.merge_on_device(&scores.matmul(&part.keys)?, &part.rows, &to[0], self.group())?,
                self.merge_on_device(&keys, &part.seen, &to[1], 1)?,
                self.merge_on_device(&values, &part.seen, &to[2], 1)?,
            ];
        }
        Ok(to)
    }
}

/// Returns the cross-entropy of each row of `logits` for its correct token, and the gradients times `weights`.
pub(crate) fn cross_entropies(
    logits: &Tensor,
    tokens: &[u32],
    weights: Option<&[f32]>,
) -> Result<(Vec<f64>, Option<Tensor>)> {
    let (rows, _) = logits.dims2()?;
    let tokens = Tensor::from_slice(tokens, (rows, 1), logits.device())?;
    let shifted = logits.broadcast_sub(&logits.max_keepdim(1)?)?;
    let powers = shifted.exp()?;
    let whole = powers.sum_keepdim(1)?;
    let losses: Vec<f32> = (whole.log()? - shifted.gather(&tokens, 1)?)?.flatten_all()?.to_vec1()?;
    let grad = weights.map(|weights| -> Result<Tensor> {
        let weights = Tensor::from_slice(weights, (rows, 1), logits.device())?;
        Ok(powers.broadcast_mul(&(&weights / &whole)?)?.scatter_add(&tokens, &weights.neg()?, 1)?)
    });
    Ok((losses.into_iter().map(f64::from).collect(), grad.transpose()?))
}

/// Returns the Kullback-Leibler divergence of each row of `logits` from the row of `before`, and the gradients times
/// `weights`.
pub(crate) fn divergences(
    logits: &Tensor,
    before: &Tensor,
    weights: Option<&[f32]>,
) -> Result<(Vec<f64>, Option<Tensor>)> {
    let log_shares = |logits: &Tensor| -> Result<Tensor> {
        let shifted = logits.broadcast_sub(&logits.max_keepdim(1)?)?;
        Ok(shifted.broadcast_sub(&shifted.exp()?.sum_keepdim(1)?.log()?)?)
    };
    let (now, before) = (log_shares(logits)?, log_shares(before)?);
    let shares_before = before.exp()?;
    let losses: Vec<f32> = (&shares_before * (before - &now)?)?.sum(1)?.to_vec1()?;
    let grad = weights.map(|weights| -> Result<Tensor> {
        let weights = Tensor::from_slice(weights, (weights.len(), 1), logits.device())?;
        Ok((now.exp()? - shares_before)?.broadcast_mul(&weights)?)
    });
    Ok((losses.into_iter().map(f64::from).collect(), grad.transpose()?))
}
