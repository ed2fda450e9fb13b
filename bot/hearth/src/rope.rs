//! Rotary positions (Su et al. 2021): pairs of numbers of each head turn by an angle that grows with the position.

use candle_core::{Device, Tensor};
use rayon::prelude::*;

use crate::base::{Base, Rope};
use crate::error::Result;
use crate::slice::read;

/// The turns of the tokens of a pass.
pub(crate) struct Turns {
    /// Cosine and sine of each token's angles, tokens by pairs.
    angles: Vec<(f32, f32)>,
    rope: Rope,
    pairs: usize,
    head_width: usize,
}

impl Turns {
    pub(crate) fn new(base: &Base, positions: &[u32]) -> Self {
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

    /// Turns every head of `x`, tokens by heads and their numbers; `back` turns the other way, which is how gradients go.
    pub(crate) fn turn(&self, x: &Tensor, back: bool) -> Result<Tensor> {
        let (tokens, width) = x.dims2()?;
        let mut out = vec![0.0; tokens * width];
        let sign = if back { -1.0 } else { 1.0 };
        read(x, |x| {
            let rows = out.par_chunks_mut(width).zip(x.par_chunks(width)).zip(self.angles.par_chunks(self.pairs));
            rows.for_each(|((out, x), angles)| {
                for (out, x) in out.chunks_exact_mut(self.head_width).zip(x.chunks_exact(self.head_width)) {
                    out.copy_from_slice(x);
                    for (pair, (cos, sin)) in angles.iter().enumerate() {
                        let (first, second) = match self.rope {
                            Rope::Neighbours => (2 * pair, 2 * pair + 1),
                            Rope::Halves => (pair, pair + self.pairs),
                        };
                        out[first] = x[first] * cos - x[second] * sin * sign;
                        out[second] = x[first] * sin * sign + x[second] * cos;
                    }
                }
            });
        })?;
        Ok(Tensor::from_vec(out, (tokens, width), &Device::Cpu)?)
    }
}
