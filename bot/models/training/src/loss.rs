//! How well what is to be learnt is known.

use crate::base::BaseModel;
use crate::error::Result;
use crate::lora::Lora;
use crate::pack::{TokenizedExample, identify, pack};
use crate::pass::pass;
use crate::train::pool;

/// The mean cross-entropy in nats of what is to be learnt, and of how many tokens it is the mean. Of several adapters together
/// it is that of [`Lora::joined`].
///
/// # Errors
/// [`crate::Error::Examples`] for examples that do not fit the model.
pub fn mean_loss(
    base: &BaseModel,
    lora: Option<&Lora>,
    examples: &[TokenizedExample],
    pass_tokens: usize,
    threads: usize,
) -> Result<(f64, usize)> {
    let all = mean_loss_while(base, lora, examples, pass_tokens, threads, &|| true)?;
    // It was never to end.
    Ok(all.unwrap_or((f64::NAN, 0)))
}

/// The same as long as `goes_on`, which is asked before each pass: who wants the processor waits for one at most. `None` if it was to
/// end.
///
/// # Errors
/// As of [`mean_loss`].
pub fn mean_loss_while(
    base: &BaseModel,
    lora: Option<&Lora>,
    examples: &[TokenizedExample],
    pass_tokens: usize,
    threads: usize,
    goes_on: &(dyn Fn() -> bool + Sync),
) -> Result<Option<(f64, usize)>> {
    identify(examples, base.shape())?;
    let none = Lora::zero(base.shape(), 1, 1.0);
    let packs = pack(&examples.iter().collect::<Vec<_>>(), pass_tokens);
    let tokens: usize = examples.iter().map(TokenizedExample::learnt_tokens).sum();
    pool(threads)?.install(|| {
        let mut sum = 0.0;
        for pack in &packs {
            if !goes_on() {
                return Ok(None);
            }
            sum += pass(base, lora.unwrap_or(&none), None, pack, None)?.iter().sum::<f64>();
        }
        Ok(Some((sum / tokens as f64, tokens)))
    })
}
