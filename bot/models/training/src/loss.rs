//! Evaluates how well a model predicts the learned tokens.

use crate::base::BaseModel;
use crate::error::Result;
use crate::lora::Lora;
use crate::pack::{TokenizedExample, identify, pack};
use crate::pass::pass;
use crate::train::pool;

/// Returns the mean cross-entropy of the learned tokens, in nats, and their number. For several LoRAs, pass their
/// [`Lora::joined`].
///
/// # Errors
/// [`crate::Error::Examples`] if the examples do not fit the model.
pub fn mean_loss(
    base: &BaseModel,
    lora: Option<&Lora>,
    examples: &[TokenizedExample],
    pass_tokens: usize,
    threads: usize,
) -> Result<(f64, usize)> {
    let all = mean_loss_while(base, lora, examples, pass_tokens, threads, &|| true)?;
    // It was never told to stop.
    Ok(all.unwrap_or((f64::NAN, 0)))
}

/// Computes [`mean_loss`] as long as `keep_going` returns true. It is called before each pass, so anybody else waits
/// for the processor for at most one pass. Returns `None` if it was told to stop.
///
/// # Errors
/// Those of [`mean_loss`].
pub fn mean_loss_while(
    base: &BaseModel,
    lora: Option<&Lora>,
    examples: &[TokenizedExample],
    pass_tokens: usize,
    threads: usize,
    keep_going: &(dyn Fn() -> bool + Sync),
) -> Result<Option<(f64, usize)>> {
    identify(examples, base.shape())?;
    let none = Lora::zero(base.shape(), 1, 1.0);
    let packs = pack(&examples.iter().collect::<Vec<_>>(), pass_tokens);
    let tokens: usize = examples.iter().map(TokenizedExample::learned_tokens).sum();
    pool(threads)?.install(|| {
        let mut sum = 0.0;
        for pack in &packs {
            if !keep_going() {
                return Ok(None);
            }
            sum += pass(base, lora.unwrap_or(&none), None, pack, None)?.iter().sum::<f64>();
        }
        Ok(Some((sum / tokens as f64, tokens)))
    })
}
