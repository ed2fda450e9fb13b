//! Operations on the processor's tensors as plain slices, row by row. candle multiplies matrices; the other operations
//! are a few lines each and run on rayon's threads by rows, so that results do not depend on the number of threads.
//! Tensors on another device are passed to `device`.

use candle_core::{CpuStorage, Device, InplaceOp2, Layout, Storage, Tensor};
use rayon::prelude::*;

use crate::device::{self, is_here};
use crate::error::Result;

/// The number of rows that a thread takes at once.
const ROWS: usize = 16;

/// Passes the numbers of a contiguous tensor to `with`. Those of a tensor on another device are copied first.
pub(crate) fn read<T>(tensor: &Tensor, with: impl FnOnce(&[f32]) -> T) -> Result<T> {
    let tensor = &tensor.to_device(&Device::Cpu)?;
    let (storage, layout) = tensor.storage_and_layout();
    let Storage::Cpu(storage) = &*storage else {
        return Err(candle_core::Error::Msg("the tensor is not on the processor".into()).into());
    };
    let Some((start, end)) = layout.contiguous_offsets() else {
        return Err(candle_core::Error::Msg("the tensor is not contiguous".into()).into());
    };
    Ok(with(&storage.as_slice::<f32>()?[start..end]))
}

/// Returns the numbers of a tensor that is being changed.
pub(crate) fn numbers(storage: &mut CpuStorage) -> candle_core::Result<&mut [f32]> {
    match storage {
        CpuStorage::F32(numbers) => Ok(numbers),
        _ => Err(candle_core::Error::Msg("the tensor does not hold 32-bit floats".into())),
    }
}

/// Creates a matrix.
pub(crate) fn matrix(values: Vec<f32>, rows: usize, columns: usize) -> Result<Tensor> {
    Ok(Tensor::from_vec(values, (rows, columns), &Device::Cpu)?)
}

/// Computes `left + right` in place of `left`.
pub(crate) fn sum(left: Tensor, right: &Tensor) -> Result<Tensor> {
    if !is_here(&left) {
        return Ok((left + right)?);
    }
    left.inplace_op2(right, &Add)?;
    Ok(left)
}

struct Add;

impl InplaceOp2 for Add {
    fn name(&self) -> &'static str {
        "add"
    }

    fn cpu_fwd(
        &self,
        storage: &mut CpuStorage,
        left: &Layout,
        right: &CpuStorage,
        at: &Layout,
    ) -> candle_core::Result<()> {
        let (Some((first, end)), Some((from, to))) = (left.contiguous_offsets(), at.contiguous_offsets()) else {
            return Err(candle_core::Error::Msg("the tensor is not contiguous".into()));
        };
        let left = &mut numbers(storage)?[first..end];
        let right = &right.as_slice::<f32>()?[from..to];
        let length = ROWS * 1024;
        left.par_chunks_mut(length).zip(right.par_chunks(length)).for_each(|(left, right)| {
            left.iter_mut().zip(right).for_each(|(left, right)| *left += right);
        });
        Ok(())
    }
}

/// Computes `x / sqrt(mean(x^2) + epsilon) * weight` for each `weight.len()` numbers (RMSNorm, Zhang and Sennrich
/// 2019).
pub(crate) fn norm(x: &Tensor, weight: &[f32], epsilon: f32) -> Result<Tensor> {
    if !is_here(x) {
        return device::norm(x, weight, epsilon);
    }
    let width = weight.len();
    let mut out = vec![0.0; x.elem_count()];
    read(x, |x| {
        out.par_chunks_mut(width * ROWS).zip(x.par_chunks(width * ROWS)).for_each(|(out, x)| {
            for (out, x) in out.chunks_exact_mut(width).zip(x.chunks_exact(width)) {
                let scale = inverse_root(x, epsilon);
                out.iter_mut().zip(x.iter().zip(weight)).for_each(|(out, (x, weight))| *out = x * scale * weight);
            }
        });
    })?;
    Ok(Tensor::from_vec(out, x.shape(), &Device::Cpu)?)
}

/// Returns the gradient of [`norm`] for `x`: `s w g - x s^3 / n * sum(x w g)`, where `s` is the inverse root.
pub(crate) fn norm_back(x: &Tensor, weight: &[f32], epsilon: f32, grad: &Tensor) -> Result<Tensor> {
    if !is_here(x) {
        return device::norm_back(x, weight, epsilon, grad);
    }
    let width = weight.len();
    let mut out = vec![0.0; x.elem_count()];
    read(x, |x| {
        read(grad, |grad| {
            let parts = out.par_chunks_mut(width * ROWS).zip(x.par_chunks(width * ROWS));
            parts.zip(grad.par_chunks(width * ROWS)).for_each(|((out, x), grad)| {
                let rows = out.chunks_exact_mut(width).zip(x.chunks_exact(width)).zip(grad.chunks_exact(width));
                for ((out, x), grad) in rows {
                    let scale = inverse_root(x, epsilon);
                    let along: f32 = dot3(x, weight, grad);
                    let pull = scale * scale * scale * along / width as f32;
                    let row = out.iter_mut().zip(x).zip(weight.iter().zip(grad));
                    row.for_each(|((out, x), (weight, grad))| *out = scale * weight * grad - x * pull);
                }
            });
        })
    })??;
    Ok(Tensor::from_vec(out, x.shape(), &Device::Cpu)?)
}

fn inverse_root(x: &[f32], epsilon: f32) -> f32 {
    1.0 / (dot(x, x) / x.len() as f32 + epsilon).sqrt()
}

/// Computes the dot product in sixteen lanes, which processors add at once.
pub(crate) fn dot(left: &[f32], right: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; 16];
    let (left, left_rest) = left.as_chunks::<16>();
    let (right, right_rest) = right.as_chunks::<16>();
    for (left, right) in left.iter().zip(right) {
        lanes.iter_mut().zip(left.iter().zip(right)).for_each(|(lane, (left, right))| *lane += left * right);
    }
    let rest: f32 = left_rest.iter().zip(right_rest).map(|(left, right)| left * right).sum();
    lanes.iter().sum::<f32>() + rest
}

fn dot3(a: &[f32], b: &[f32], c: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; 16];
    let ((a, a_rest), (b, b_rest), (c, c_rest)) = (a.as_chunks::<16>(), b.as_chunks::<16>(), c.as_chunks::<16>());
    for ((a, b), c) in a.iter().zip(b).zip(c) {
        lanes.iter_mut().zip(a.iter().zip(b).zip(c)).for_each(|(lane, ((a, b), c))| *lane += a * b * c);
    }
    let rest: f32 = a_rest.iter().zip(b_rest).zip(c_rest).map(|((a, b), c)| a * b * c).sum();
    lanes.iter().sum::<f32>() + rest
}

/// Returns the largest number.
pub(crate) fn most(row: &[f32]) -> f32 {
    let larger = |one: f32, other: f32| if one < other { other } else { one };
    let mut lanes = [f32::NEG_INFINITY; 16];
    let (row, rest) = row.as_chunks::<16>();
    for row in row {
        lanes.iter_mut().zip(row).for_each(|(lane, value)| *lane = larger(*lane, *value));
    }
    lanes.iter().chain(rest).fold(f32::NEG_INFINITY, |largest, value| larger(largest, *value))
}

/// Computes `silu(gate) * up`.
pub(crate) fn gated(gate: &Tensor, up: &Tensor) -> Result<Tensor> {
    if !is_here(gate) {
        return device::gated(gate, up);
    }
    let mut out = vec![0.0; gate.elem_count()];
    read(gate, |gate| {
        read(up, |up| {
            let parts = out.par_chunks_mut(4096).zip(gate.par_chunks(4096)).zip(up.par_chunks(4096));
            parts.for_each(|((out, gate), up)| {
                out.iter_mut()
                    .zip(gate.iter().zip(up))
                    .for_each(|(out, (gate, up))| *out = gate * logistic(*gate) * up);
            });
        })
    })??;
    Ok(Tensor::from_vec(out, gate.shape(), &Device::Cpu)?)
}

/// Returns the gradients of [`gated`] for `gate` and `up`.
pub(crate) fn gated_back(gate: &Tensor, up: &Tensor, grad: &Tensor) -> Result<(Tensor, Tensor)> {
    if !is_here(gate) {
        return device::gated_back(gate, up, grad);
    }
    let (mut to_gate, mut to_up) = (vec![0.0; gate.elem_count()], vec![0.0; gate.elem_count()]);
    read(gate, |gate| {
        read(up, |up| {
            read(grad, |grad| {
                let out = to_gate.par_chunks_mut(4096).zip(to_up.par_chunks_mut(4096));
                let given = gate.par_chunks(4096).zip(up.par_chunks(4096)).zip(grad.par_chunks(4096));
                out.zip(given).for_each(|((to_gate, to_up), ((gate, up), grad))| {
                    let out = to_gate.iter_mut().zip(to_up);
                    for ((to_gate, to_up), ((gate, up), grad)) in out.zip(gate.iter().zip(up).zip(grad)) {
                        let open = logistic(*gate);
                        *to_up = grad * gate * open;
                        *to_gate = grad * up * open * (1.0 + gate * (1.0 - open));
                    }
                });
            })
        })
    })???;
    let shape = gate.shape();
    Ok((Tensor::from_vec(to_gate, shape, &Device::Cpu)?, Tensor::from_vec(to_up, shape, &Device::Cpu)?))
}

fn logistic(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// Computes e to the power of `x`, within two units in the last place between -87 and 88, and clamped outside. It is a
/// polynomial that compilers can vectorize, unlike calls of the C library (Cephes' `expf`, Moshier 1992).
pub(crate) fn exp(x: f32) -> f32 {
    let x = x.clamp(-87.0, 88.0);
    let whole = (x * std::f32::consts::LOG2_E).round_ties_even();
    let rest = x - whole * 0.693_359_4 - whole * -2.121_944_4e-4;
    let mut sum = 1.987_569_1e-4;
    for term in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 5e-1] {
        sum = sum * rest + term;
    }
    // 2^whole: after adding 2^23, the integer is in the lowest bits, from where it is shifted to become the exponent.
    let power = f32::from_bits((whole + (8_388_608.0 + 127.0)).to_bits() << 23);
    (sum * rest * rest + rest + 1.0) * power
}
