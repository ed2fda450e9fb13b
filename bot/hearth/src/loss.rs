//! How well what is to be learnt is known.

use crate::adapter::Adapter;
use crate::base::Base;
use crate::error::Result;
use crate::pack::{Example, identify, pack};
use crate::pass::pass;
use crate::train::pool;

/// The mean cross-entropy in nats of what is to be learnt, and of how many tokens it is the mean. Of several adapters together
/// it is that of [`Adapter::joined`].
///
/// # Errors
/// [`crate::Error::Examples`] for examples that do not fit the model.
pub fn mean_loss(
    base: &Base,
    adapter: Option<&Adapter>,
    examples: &[Example],
    pass_tokens: usize,
    threads: usize,
) -> Result<(f64, usize)> {
    let sums = sums(base, adapter, examples, pass_tokens, threads)?;
    let tokens = examples.iter().map(Example::learnt_tokens).sum();
    Ok((sums.iter().sum::<f64>() / tokens as f64, tokens))
}

/// The mean cross-entropy of each example in nats a token that is to be learnt, in their order.
///
/// # Errors
/// [`crate::Error::Examples`] for examples that do not fit the model.
pub fn losses(
    base: &Base,
    adapter: Option<&Adapter>,
    examples: &[Example],
    pass_tokens: usize,
    threads: usize,
) -> Result<Vec<f64>> {
    let sums = sums(base, adapter, examples, pass_tokens, threads)?;
    Ok(sums.iter().zip(examples).map(|(sum, example)| sum / example.learnt_tokens() as f64).collect())
}

/// The cross-entropy of each example, summed over its tokens.
fn sums(
    base: &Base,
    adapter: Option<&Adapter>,
    examples: &[Example],
    pass_tokens: usize,
    threads: usize,
) -> Result<Vec<f64>> {
    identify(examples, base.shape())?;
    let none = Adapter::zero(base.shape(), 1, 1.0);
    let packs = pack(&examples.iter().collect::<Vec<_>>(), pass_tokens);
    let mut sums = vec![0.0; examples.len()];
    pool(threads)?.install(|| {
        for pack in &packs {
            let losses = pass(base, adapter.unwrap_or(&none), None, pack, None)?;
            pack.owners.iter().zip(losses).for_each(|(owner, loss)| sums[*owner] += loss);
        }
        Ok(sums)
    })
}
