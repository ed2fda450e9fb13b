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
    let all = mean_loss_while(base, adapter, examples, pass_tokens, threads, &|| true)?;
    // It was never to end.
    Ok(all.unwrap_or((f64::NAN, 0)))
}

/// The same as long as `goes_on`, which is asked before each pass: who wants the processor waits for one at most. `None` if it was to
/// end.
///
/// # Errors
/// As of [`mean_loss`].
pub fn mean_loss_while(
    base: &Base,
    adapter: Option<&Adapter>,
    examples: &[Example],
    pass_tokens: usize,
    threads: usize,
    goes_on: &(dyn Fn() -> bool + Sync),
) -> Result<Option<(f64, usize)>> {
    identify(examples, base.shape())?;
    let none = Adapter::zero(base.shape(), 1, 1.0);
    let packs = pack(&examples.iter().collect::<Vec<_>>(), pass_tokens);
    let tokens: usize = examples.iter().map(Example::learnt_tokens).sum();
    pool(threads)?.install(|| {
        let mut sum = 0.0;
        for pack in &packs {
            if !goes_on() {
                return Ok(None);
            }
            sum += pass(base, adapter.unwrap_or(&none), None, pack, None)?.iter().sum::<f64>();
        }
        Ok(Some((sum / tokens as f64, tokens)))
    })
}
