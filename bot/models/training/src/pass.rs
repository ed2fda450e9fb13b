//! One pass through the model: the loss of the learned tokens, and the gradients of a LoRA.

use candle_core::Tensor;
use rayon::prelude::*;

use crate::base::{BaseModel, PROJECTIONS};
use crate::device::{cross_entropies, divergences, is_here};
use crate::error::Result;
use crate::layer::{LayerCache, PassContext};
use crate::lora::Lora;
use crate::pack::Pack;
use crate::rope::Rotations;
use crate::slice::{exp, matrix, most, norm, norm_back, read};

/// The number of rows whose probabilities over the whole vocabulary are held at once.
const CHOSEN_ROWS: usize = 128;

/// Returns the loss of each target of a pass, with the `frozen` LoRA added: its cross-entropy or, in a pack that keeps,
/// the divergence from the model without the LoRA. With `learned`, the gradients of the LoRA, weighted by example, are
/// added there.
pub(crate) fn pass(
    base: &BaseModel,
    lora: &Lora,
    frozen: Option<&Lora>,
    pack: &Pack,
    learned: Option<(&[f32], &mut Lora)>,
) -> Result<Vec<f64>> {
    let rotations = Rotations::new(base, &pack.positions);
    let context = PassContext { shape: base.shape(), rotations: &rotations, segments: &pack.segments };
    let mut x = base.embed(&pack.tokens)?;
    let without = || hidden(base, &context, &Lora::zero(base.shape(), 1, 1.0), frozen, x.clone());
    let before = pack.keeps.then(without).transpose()?;
    let mut cached: Vec<LayerCache> = Vec::new();
    for (index, layer) in base.layers.iter().enumerate() {
        let (out, of_layer) = context.forward(layer, &lora.layer(index, frozen, base.place())?, x)?;
        x = out;
        if learned.is_some() {
            cached.push(of_layer);
        }
    }
    let weights: Option<Vec<f32>> =
        learned.as_ref().map(|(weights, _)| pack.owners.iter().map(|owner| weights[*owner]).collect());
    let (losses, mut grad) = likelihoods(base, &x, before.as_ref(), &pack.targets, weights.as_deref())?;
    drop((x, before));
    let Some((_, learned)) = learned else { return Ok(losses) };
    let parts = learned.pairs.chunks_mut(PROJECTIONS.len()).enumerate();
    for ((index, learned), (layer, of_layer)) in parts.rev().zip(base.layers.iter().zip(cached).rev()) {
        grad = context.backward(layer, &lora.layer(index, frozen, base.place())?, &of_layer, &grad, learned)?;
    }
    Ok(losses)
}

/// Returns the logits after each token of a sequence, tokens by vocabulary.
pub fn logits(base: &BaseModel, lora: Option<&Lora>, tokens: &[u32]) -> Result<Vec<f32>> {
    let none = Lora::zero(base.shape(), 1, 1.0);
    let example = crate::TokenizedExample { tokens: tokens.to_vec(), learned: Vec::new(), keeps: false };
    let mut values = Vec::with_capacity(tokens.len() * base.shape().vocabulary);
    for pack in crate::pack::pack(&[&example], usize::MAX) {
        let rotations = Rotations::new(base, &pack.positions);
        let context = PassContext { shape: base.shape(), rotations: &rotations, segments: &pack.segments };
        let x = hidden(base, &context, lora.unwrap_or(&none), None, base.embed(&pack.tokens)?)?;
        values.extend(scores(base, &norm(&x, &base.output_norm, base.shape().epsilon)?)?);
    }
    Ok(values)
}

/// Returns the hidden states after the last layer, without keeping values for a backward pass.
fn hidden(
    base: &BaseModel,
    context: &PassContext<'_>,
    lora: &Lora,
    frozen: Option<&Lora>,
    mut x: Tensor,
) -> Result<Tensor> {
    for (index, layer) in base.layers.iter().enumerate() {
        x = context.forward(layer, &lora.layer(index, frozen, base.place())?, x)?.0;
    }
    Ok(x)
}

/// Returns the logits of normed hidden states.
fn scores(base: &BaseModel, normed: &Tensor) -> Result<Vec<f32>> {
    let (rows, vocabulary) = (normed.dim(0)?, base.shape().vocabulary);
    let mut logits = vec![0.0_f32; rows * vocabulary];
    for part in base.vocabulary() {
        let (first, part) = part?;
        let width = part.dim(0)?;
        read(&normed.matmul(&part.t()?)?, |scores| {
            let rows = logits.par_chunks_exact_mut(vocabulary).zip(scores.par_chunks_exact(width));
            rows.for_each(|(row, scores)| row[first..first + width].copy_from_slice(scores));
        })?;
    }
    Ok(logits)
}

/// Returns the cross-entropy of each target or, with hidden states from `before`, the divergence from those. Also
/// returns the gradients for the hidden states, multiplied by `weights`.
fn likelihoods(
    base: &BaseModel,
    x: &Tensor,
    before: Option<&Tensor>,
    targets: &[(usize, u32)],
    weights: Option<&[f32]>,
) -> Result<(Vec<f64>, Tensor)> {
    if !is_here(x) {
        return likelihoods_on_device(base, x, before, targets, weights);
    }
    let (rows, width) = x.dims2()?;
    let shape = base.shape();
    let mut grad = vec![0.0_f32; if weights.is_some() { rows * width } else { 0 }];
    let mut losses = Vec::with_capacity(targets.len());
    for (part, targets) in targets.chunks(CHOSEN_ROWS).enumerate() {
        let weight = |index: usize| weights.map(|weights| weights[part * CHOSEN_ROWS + index]);
        let chosen_of = |x: &Tensor| {
            let mut chosen = Vec::with_capacity(targets.len() * width);
            read(x, |x| targets.iter().for_each(|(row, _)| chosen.extend_from_slice(&x[row * width..][..width])))?;
            matrix(chosen, targets.len(), width)
        };
        let scores_of = |chosen: &Tensor| scores(base, &norm(chosen, &base.output_norm, shape.epsilon)?);
        let chosen = chosen_of(x)?;
        let before = before.map(|before| scores_of(&chosen_of(before)?)).transpose()?;
        let mut logits = scores_of(&chosen)?;
        let of_rows: Vec<f64> = logits
            .par_chunks_mut(shape.vocabulary)
            .zip(targets)
            .enumerate()
            .map(|(index, (row, (_, token)))| match &before {
                Some(before) => divergence(row, &before[index * shape.vocabulary..][..shape.vocabulary], weight(index)),
                None => cross_entropy(row, *token as usize, weight(index)),
            })
            .collect();
        losses.extend(of_rows);
        if weights.is_none() {
            continue;
        }
        let mut to_normed: Option<Tensor> = None;
        for part in base.vocabulary() {
            let (first, part) = part?;
            let tokens = part.dim(0)?;
            let mut of_part = vec![0.0; targets.len() * tokens];
            let rows = of_part.par_chunks_exact_mut(tokens).zip(logits.par_chunks_exact(shape.vocabulary));
            rows.for_each(|(part, row)| part.copy_from_slice(&row[first..first + tokens]));
            let more = matrix(of_part, targets.len(), tokens)?.matmul(&part)?;
            to_normed = Some(match to_normed {
                Some(so_far) => (so_far + more)?,
                None => more,
            });
        }
        let Some(to_normed) = to_normed else { continue };
        read(&norm_back(&chosen, &base.output_norm, shape.epsilon, &to_normed)?, |to_chosen| {
            for ((row, _), to_chosen) in targets.iter().zip(to_chosen.chunks_exact(width)) {
                let to = &mut grad[row * width..][..width];
                to.iter_mut().zip(to_chosen).for_each(|(to, more)| *to += more);
            }
        })?;
    }
    let rows = if weights.is_some() { rows } else { 0 };
    Ok((losses, matrix(grad, rows, width)?))
}

/// Computes [`likelihoods`] for hidden states that are not in the processor's memory.
fn likelihoods_on_device(
    base: &BaseModel,
    x: &Tensor,
    before: Option<&Tensor>,
    targets: &[(usize, u32)],
    weights: Option<&[f32]>,
) -> Result<(Vec<f64>, Tensor)> {
    let epsilon = base.shape().epsilon;
    let mut grad = x.zeros_like()?;
    let mut losses = Vec::with_capacity(targets.len());
    for (part, targets) in targets.chunks(CHOSEN_ROWS).enumerate() {
        let weights = weights.map(|weights| &weights[part * CHOSEN_ROWS..][..targets.len()]);
        let rows: Vec<u32> = targets.iter().map(|(row, _)| *row as u32).collect();
        let tokens: Vec<u32> = targets.iter().map(|(_, token)| *token).collect();
        let rows = Tensor::from_vec(rows, targets.len(), x.device())?;
        let chosen = x.index_select(&rows, 0)?;
        let normed = norm(&chosen, &base.output_norm, epsilon)?;
        let logits_of = |normed: &Tensor| -> Result<Tensor> {
            let parts = base.vocabulary().map(|part| Ok(normed.matmul(&part?.1.t()?)?));
            Ok(Tensor::cat(&parts.collect::<Result<Vec<_>>>()?, 1)?)
        };
        let logits = logits_of(&normed)?;
        let (of_rows, to_logits) = match before {
            Some(before) => {
                let before = norm(&before.index_select(&rows, 0)?, &base.output_norm, epsilon)?;
                divergences(&logits, &logits_of(&before)?, weights)?
            }
            None => cross_entropies(&logits, &tokens, weights)?,
        };
        losses.extend(of_rows);
        let Some(to_logits) = to_logits else { continue };
        let mut to_normed = normed.zeros_like()?;
        for part in base.vocabulary() {
            let (first, part) = part?;
            to_normed = (to_normed + to_logits.narrow(1, first, part.dim(0)?)?.contiguous()?.matmul(&part)?)?;
        }
        grad = grad.index_add(&rows, &norm_back(&chosen, &base.output_norm, epsilon, &to_normed)?, 0)?;
    }
    Ok((losses, grad))
}

/// Returns `-log softmax(row)[token]`, and replaces the row by its gradient times `weight`.
fn cross_entropy(row: &mut [f32], token: usize, weight: Option<f32>) -> f64 {
    let largest = most(row);
    let chosen = row[token] - largest;
    row.iter_mut().for_each(|logit| *logit = exp(*logit - largest));
    let whole: f64 = row.chunks(1024).map(|part| f64::from(part.iter().sum::<f32>())).sum();
    if let Some(weight) = weight {
        let scale = weight / whole as f32;
        row.iter_mut().for_each(|value| *value *= scale);
        row[token] -= weight;
    }
    whole.ln() - f64::from(chosen)
}

/// Returns the Kullback-Leibler divergence of `softmax(row)` from `softmax(before)`, and replaces the row by its
/// gradient times `weight`.
fn divergence(row: &mut [f32], before: &[f32], weight: Option<f32>) -> f64 {
    let whole_of = |row: &[f32], largest: f32| -> f64 {
        row.chunks(1024).map(|part| f64::from(part.iter().map(|logit| exp(*logit - largest)).sum::<f32>())).sum()
    };
    let (largest, largest_before) = (most(row), most(before));
    let (whole, whole_before) = (whole_of(row, largest), whole_of(before, largest_before));
    let shift = f64::from(largest) + whole.ln() - f64::from(largest_before) - whole_before.ln();
    let share = |logit: f32, largest: f32, whole: f64| exp(logit - largest) / whole as f32;
    let gap = |(now, then): (&f32, &f32)| {
        f64::from(share(*then, largest_before, whole_before)) * (f64::from(*then) - f64::from(*now))
    };
    let loss = shift + row.iter().zip(before).map(gap).sum::<f64>();
    if let Some(weight) = weight {
        row.iter_mut().zip(before).for_each(|(now, then)| {
            *now = weight * (share(*now, largest, whole) - share(*then, largest_before, whole_before));
        });
    }
    loss
}
