//! A layer of the model, there and back: attention and the gated feed-forward part, each behind a norm and added to what came.
//!
//! What is cheap to compute again on the way back (norms, turns, attention's weights, the gate) is not kept.

use candle_core::Tensor;

use crate::attention::{Heads, Segment};
use crate::base::{Layer, Shape};
use crate::error::Result;
use crate::lora::{LoraPair, LowRankUpdate};
use crate::rope::Rotations;
use crate::slice::{gated, gated_back, norm, norm_back, sum};

/// What a pass is about, whatever the layer.
pub(crate) struct PassContext<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) turns: &'a Rotations,
    pub(crate) segments: &'a [Segment],
}

/// What the way back needs.
pub(crate) struct LayerCache {
    x: Tensor,
    questions: Tensor,
    keys: Tensor,
    values: Tensor,
    taken: Tensor,
    middle: Tensor,
    gate: Tensor,
    up: Tensor,
}

impl PassContext<'_> {
    /// What the layer makes of `x`, and what the way back needs.
    pub(crate) fn forward(&self, layer: &Layer, low: &[LowRankUpdate], x: Tensor) -> Result<(Tensor, LayerCache)> {
        let epsilon = self.shape.epsilon;
        let project = |which: usize, x: &Tensor| low[which].project(x, &layer.projection(which)?);
        let normed = norm(&x, &layer.attn_norm, epsilon)?;
        let (questions, keys, values) = (project(0, &normed)?, project(1, &normed)?, project(2, &normed)?);
        drop(normed);
        let (turned_questions, turned_keys) = self.turned(layer, &questions, &keys)?;
        let heads = Heads { shape: self.shape, questions: &turned_questions, keys: &turned_keys, values: &values };
        let taken = heads.attend(self.segments)?;
        let middle = sum(project(3, &taken)?, &x)?;
        let normed = norm(&middle, &layer.ffn_norm, epsilon)?;
        let (gate, up) = (project(4, &normed)?, project(5, &normed)?);
        drop(normed);
        let out = sum(project(6, &gated(&gate, &up)?)?, &middle)?;
        Ok((out, LayerCache { x, questions, keys, values, taken, middle, gate, up }))
    }

    /// What the layer hands back to its `x`. What its adapters learn is added to `learnt`, a pair for each projection.
    pub(crate) fn backward(
        &self,
        layer: &Layer,
        low: &[LowRankUpdate],
        cached: &LayerCache,
        grad: &Tensor,
        learnt: &mut [LoraPair],
    ) -> Result<Tensor> {
        let epsilon = self.shape.epsilon;
        let mut back = |which: usize, x: &Tensor, grad: &Tensor| {
            low[which].project_back(x, &layer.projection(which)?, grad, &mut learnt[which])
        };
        let to_inner = back(6, &gated(&cached.gate, &cached.up)?, grad)?;
        let (to_gate, to_up) = gated_back(&cached.gate, &cached.up, &to_inner)?;
        drop(to_inner);
        let normed = norm(&cached.middle, &layer.ffn_norm, epsilon)?;
        let to_normed = sum(back(4, &normed, &to_gate)?, &back(5, &normed, &to_up)?)?;
        drop((to_gate, to_up, normed));
        let to_middle = sum(norm_back(&cached.middle, &layer.ffn_norm, epsilon, &to_normed)?, grad)?;
        let to_taken = back(3, &cached.taken, &to_middle)?;
        let (questions, keys) = self.turned(layer, &cached.questions, &cached.keys)?;
        let heads = Heads { shape: self.shape, questions: &questions, keys: &keys, values: &cached.values };
        let [to_questions, to_keys, to_values] = heads.attend_back(self.segments, &to_taken)?;
        let to_questions = self.turned_back(&cached.questions, norms(layer).0, &to_questions)?;
        let to_keys = self.turned_back(&cached.keys, norms(layer).1, &to_keys)?;
        let normed = norm(&cached.x, &layer.attn_norm, epsilon)?;
        let to_normed = sum(back(0, &normed, &to_questions)?, &back(1, &normed, &to_keys)?)?;
        let to_normed = sum(to_normed, &back(2, &normed, &to_values)?)?;
        sum(norm_back(&cached.x, &layer.attn_norm, epsilon, &to_normed)?, &to_middle)
    }

    /// Questions and keys normed, where the architecture norms heads, and turned by their positions.
    fn turned(&self, layer: &Layer, questions: &Tensor, keys: &Tensor) -> Result<(Tensor, Tensor)> {
        let turned = |x: &Tensor, weight: Option<&[f32]>| match weight {
            Some(weight) => self.turns.turn(&norm(x, weight, self.shape.epsilon)?, false),
            None => self.turns.turn(x, false),
        };
        let (of_questions, of_keys) = norms(layer);
        Ok((turned(questions, of_questions)?, turned(keys, of_keys)?))
    }

    fn turned_back(&self, x: &Tensor, weight: Option<&[f32]>, grad: &Tensor) -> Result<Tensor> {
        let grad = self.turns.turn(grad, true)?;
        match weight {
            Some(weight) => norm_back(x, weight, self.shape.epsilon, &grad),
            None => Ok(grad),
        }
    }
}

/// The norms of the heads of questions and of keys.
fn norms(layer: &Layer) -> (Option<&[f32]>, Option<&[f32]>) {
    match &layer.head_norms {
        Some((questions, keys)) => (Some(questions), Some(keys)),
        None => (None, None),
    }
}
