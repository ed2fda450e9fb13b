//! The forward and backward pass of a layer: attention and the gated feed-forward part, each after a norm and with a
//! residual connection.
//!
//! Values that are cheap to recompute in the backward pass (norms, rotations, attention weights, the gate) are not
//! kept.

use candle_core::Tensor;

use crate::attention::{Heads, Segment};
use crate::base::{Layer, Shape};
use crate::error::Result;
use crate::lora::{LoraPair, LowRankUpdate};
use crate::rope::Rotations;
use crate::slice::{gated, gated_back, norm, norm_back, sum};

/// The data of a pass that all layers share.
pub(crate) struct PassContext<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) rotations: &'a Rotations,
    pub(crate) segments: &'a [Segment],
}

/// The values that the backward pass needs.
pub(crate) struct LayerCache {
    x: Tensor,
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    taken: Tensor,
    middle: Tensor,
    gate: Tensor,
    up: Tensor,
}

impl PassContext<'_> {
    /// Computes the output of the layer for `x`. Returns it with the values for the backward pass.
    pub(crate) fn forward(&self, layer: &Layer, low: &[LowRankUpdate], x: Tensor) -> Result<(Tensor, LayerCache)> {
        let epsilon = self.shape.epsilon;
        let project = |which: usize, x: &Tensor| low[which].project(x, &layer.projection(which)?);
        let normed = norm(&x, &layer.attn_norm, epsilon)?;
        let biased = |which: usize| match &layer.biases {
            Some(biases) => Ok(project(which, &normed)?.broadcast_add(&biases[which])?),
            None => project(which, &normed),
        };
        let (queries, keys, values) = (biased(0)?, biased(1)?, biased(2)?);
        drop(normed);
        let (rotated_queries, rotated_keys) = self.rotated(layer, &queries, &keys)?;
        let heads = Heads { shape: self.shape, queries: &rotated_queries, keys: &rotated_keys, values: &values };
        let taken = heads.attend(self.segments)?;
        let middle = sum(project(3, &taken)?, &x)?;
        let normed = norm(&middle, &layer.ffn_norm, epsilon)?;
        let (gate, up) = (project(4, &normed)?, project(5, &normed)?);
        drop(normed);
        let out = sum(project(6, &gated(&gate, &up)?)?, &middle)?;
        Ok((out, LayerCache { x, queries, keys, values, taken, middle, gate, up }))
    }

    /// Returns the gradient for the layer's `x`. Adds the gradients of its LoRA to `learned`, one pair for each
    /// projection.
    pub(crate) fn backward(
        &self,
        layer: &Layer,
        low: &[LowRankUpdate],
        cached: &LayerCache,
        grad: &Tensor,
        learned: &mut [LoraPair],
    ) -> Result<Tensor> {
        let epsilon = self.shape.epsilon;
        let mut back = |which: usize, x: &Tensor, grad: &Tensor| {
            low[which].project_back(x, &layer.projection(which)?, grad, &mut learned[which])
        };
        let to_inner = back(6, &gated(&cached.gate, &cached.up)?, grad)?;
        let (to_gate, to_up) = gated_back(&cached.gate, &cached.up, &to_inner)?;
        drop(to_inner);
        let normed = norm(&cached.middle, &layer.ffn_norm, epsilon)?;
        let to_normed = sum(back(4, &normed, &to_gate)?, &back(5, &normed, &to_up)?)?;
        drop((to_gate, to_up, normed));
        let to_middle = sum(norm_back(&cached.middle, &layer.ffn_norm, epsilon, &to_normed)?, grad)?;
        let to_taken = back(3, &cached.taken, &to_middle)?;
        let (queries, keys) = self.rotated(layer, &cached.queries, &cached.keys)?;
        let heads = Heads { shape: self.shape, queries: &queries, keys: &keys, values: &cached.values };
        let [to_queries, to_keys, to_values] = heads.attend_back(self.segments, &to_taken)?;
        let to_queries = self.rotated_back(&cached.queries, norms(layer).0, &to_queries)?;
        let to_keys = self.rotated_back(&cached.keys, norms(layer).1, &to_keys)?;
        let normed = norm(&cached.x, &layer.attn_norm, epsilon)?;
        let to_normed = sum(back(0, &normed, &to_queries)?, &back(1, &normed, &to_keys)?)?;
        let to_normed = sum(to_normed, &back(2, &normed, &to_values)?)?;
        sum(norm_back(&cached.x, &layer.attn_norm, epsilon, &to_normed)?, &to_middle)
    }

    /// Returns the queries and keys, normed if the architecture norms heads, and rotated by their positions.
    fn rotated(&self, layer: &Layer, queries: &Tensor, keys: &Tensor) -> Result<(Tensor, Tensor)> {
        let rotated = |x: &Tensor, weight: Option<&[f32]>| match weight {
            Some(weight) => self.rotations.rotate(&norm(x, weight, self.shape.epsilon)?, false),
            None => self.rotations.rotate(x, false),
        };
        let (of_queries, of_keys) = norms(layer);
        Ok((rotated(queries, of_queries)?, rotated(keys, of_keys)?))
    }

    fn rotated_back(&self, x: &Tensor, weight: Option<&[f32]>, grad: &Tensor) -> Result<Tensor> {
        let grad = self.rotations.rotate(grad, true)?;
        match weight {
            Some(weight) => norm_back(x, weight, self.shape.epsilon, &grad),
            None => Ok(grad),
        }
    }
}

/// Returns the norms of the heads' queries and keys.
fn norms(layer: &Layer) -> (Option<&[f32]>, Option<&[f32]>) {
    match &layer.head_norms {
        Some((queries, keys)) => (Some(queries), Some(keys)),
        None => (None, None),
    }
}
