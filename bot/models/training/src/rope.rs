//! Rotary positions (Su et al. 2021): pairs of numbers of each head are rotated by an angle that grows with the
//! position.

use candle_core::{Device, Tensor};
use rayon::prelude::*;

use crate::base::{BaseModel, Rope};
use crate::device::{self, is_here};
use crate::error::Result;
use crate::slice::read;

/// The rotations of the tokens of a pass.
pub(crate) struct Rotations {
    /// The cosine and sine of each token's angles, tokens by pairs.
    angles: Vec<(f32, f32)>,
    rope: Rope,
    pairs: usize,
    head_width: usize,
}

impl Rotations {
    pub(crate) fn new(base: &BaseModel, positions: &[u32]) -> Self {
        let shape = base.shape();
        let pairs = shape.rope_width / 2;
        let frequency = |pair: usize| {
            let power = -(2.0 * pair as f32) / shape.rope_width as f32;
            shape.rope_base.powf(power) / base.rope_factors[pair]
        };
        let frequencies: Vec<f32> = (0..pairs).map(frequency).collect();
        let turn = |(position, frequency): (f32, f32)| ((position * frequency).cos(), (position * frequency).sin());
        let of = |position: &u32| {
            let position = *position as f32;
            frequencies.iter().map(move |frequency| turn((position, *frequency))).collect::<Vec<_>>()
        };
        let angles = positions.iter().flat_map(of).collect();
        Self { angles, rope: shape.rope, pairs, head_width: shape.head_width }
    }

    /// Rotates every head of `x`, tokens by heads and their numbers. `back` rotates in the other direction, as for
    /// gradients.
    pub(crate) fn rotate(&self, x: &Tensor, back: bool) -> Result<Tensor> {
        let (tokens, width) = x.dims2()?;
        let sign = if back { -1.0 } else { 1.0 };
        if !is_here(x) {
            let tensor = |values: Vec<f32>| Tensor::from_vec(values, (tokens, 1, self.pairs), x.device());
            let cos = tensor(self.angles.iter().map(|(cos, _)| *cos).collect())?;
            let sin = tensor(self.angles.iter().map(|(_, sin)| sin * sign).collect())?;
            return device::turned(x, self.head_width, (&cos, &sin), self.rope);
        }
        let mut out = vec![0.0; tokens * width];
        read(x, |x| {
            let rows = out.par_chunks_mut(width).zip(x.par_chunks(width)).zip(self.angles.par_chunks(self.pairs));
            rows.for_each(|((out, x), angles)| {
                for (out, x) in out.chunks_exact_mut(self.head_width).zip(x.chunks_exact(self.head_width)) {
                    let (turning, staying) = out.split_at_mut(2 * self.pairs);
                    staying.copy_from_slice(&x[2 * self.pairs..]);
                    match self.rope {
                        Rope::Neighbours => {
                            let pairs = turning.as_chunks_mut::<2>().0.iter_mut().zip(x.as_chunks::<2>().0);
                            for (([to_one, to_other], [one, other]), (cos, sin)) in pairs.zip(angles) {
                                (*to_one, *to_other) = rotate_pair((*one, *other), *cos, sin * sign);
                            }
                        }
                        Rope::Halves => {
                            let (to_one, to_other) = turning.split_at_mut(self.pairs);
                            let (one, other) = x.split_at(self.pairs);
                            let pairs = to_one.iter_mut().zip(to_other).zip(one.iter().zip(other));
                            for (((to_one, to_other), (one, other)), (cos, sin)) in pairs.zip(angles) {
                                (*to_one, *to_other) = rotate_pair((*one, *other), *cos, sin * sign);
                            }
                        }
                    }
                }
            });
        })?;
        Ok(Tensor::from_vec(out, (tokens, width), &Device::Cpu)?)
    }
}

fn rotate_pair((one, other): (f32, f32), cos: f32, sin: f32) -> (f32, f32) {
    (one * cos - other * sin, one * sin + other * cos)
}
