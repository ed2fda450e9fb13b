//! How a chat model computes attention.

use azera_model_api::Error;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::model::LlamaModel;

use crate::backend;
use crate::config::{LlamaChatConfig, STEP_TOKENS};

/// llama.cpp's `LLAMA_FLASH_ATTN_TYPE_DISABLED`.
const DISABLED: i32 = 0;

/// The most tokens that plain attention reads at a time. More are hardly read faster.
const MOST_TOKENS: usize = 128;

/// The fewest tokens that are worth reading at a time.
const FEWEST_TOKENS: usize = 32;

/// The most memory for the scores of plain attention, in bytes.
const SCORE_BYTES: usize = 128 << 20;

/// Bytes of one score.
const BYTES: usize = size_of::<f32>();

/// On processors llama.cpp's flash attention is quick for long steps alone. An answer reads a few tokens behind a long
/// cached conversation, and then writes one token at a time: plain attention does both in half the time or less, and
/// reads long prompts more slowly. BENCHMARKS.md has the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attention {
    /// As llama.cpp chooses.
    Chosen,
    /// Plain attention.
    Plain {
        /// Tokens read at a time.
        tokens: u32,
    },
}

impl Attention {
    /// Returns how a model computes attention.
    pub(crate) fn of(config: &LlamaChatConfig, model: &LlamaModel) -> Result<Self, Error> {
        let on_gpu = config.gpu_layers != Some(0) && backend::backend()?.supports_gpu_offload();
        let heads = usize::try_from(model.n_head()).unwrap_or(usize::MAX);
        Ok(if on_gpu { Self::Chosen } else { Self::on_processors(config.cache_tokens, heads) })
    }

    /// Returns the attention for a cache of so many tokens and a model with so many heads. Plain attention holds a score of
    /// each token that is read, for each head and each token of the cache. Flash attention holds none, so it remains where
    /// that would take too much memory.
    fn on_processors(cells: usize, heads: usize) -> Self {
        let bytes = cells.saturating_mul(heads).saturating_mul(BYTES).max(1);
        match u32::try_from((SCORE_BYTES / bytes).min(MOST_TOKENS)) {
            Ok(tokens) if SCORE_BYTES / bytes >= FEWEST_TOKENS => Self::Plain { tokens },
            _ => Self::Chosen,
        }
    }

    /// Sets it, for steps of at most [`STEP_TOKENS`].
    pub(crate) fn set(self, params: LlamaContextParams) -> LlamaContextParams {
        match self {
            Self::Chosen => params.with_n_ubatch(u32::try_from(STEP_TOKENS).unwrap_or(u32::MAX)),
            Self::Plain { tokens } => params.with_n_ubatch(tokens).with_flash_attention_policy(DISABLED),
        }
    }

    /// Returns the identity of evaluated tokens of this model. Plain attention lays its values out in another way, so
    /// neither kind can read what the other one wrote.
    pub(crate) fn identity(self, model: &str) -> String {
        match self {
            Self::Chosen => model.to_owned(),
            Self::Plain { .. } => format!("{model}, plain attention"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_attention_has_a_bound_of_memory() {
        // The default model and context.
        assert_eq!(Attention::on_processors(16_384, 9), Attention::Plain { tokens: 128 });
        // Seven billion weights.
        assert_eq!(Attention::on_processors(16_384, 32), Attention::Plain { tokens: 64 });
        assert_eq!(Attention::on_processors(131_072, 32), Attention::Chosen, "scores of 16 MB for each token");
        assert_eq!(Attention::on_processors(usize::MAX, 32), Attention::Chosen);
    }

    #[test]
    fn what_plain_attention_evaluated_is_its_own() {
        let (plain, chosen) = (Attention::Plain { tokens: 64 }, Attention::Chosen);
        assert_ne!(plain.identity("a"), chosen.identity("a"));
        assert_eq!(plain.identity("a"), Attention::Plain { tokens: 128 }.identity("a"));
        let params = plain.set(LlamaContextParams::default());
        assert_eq!((params.n_ubatch(), params.flash_attention_policy()), (64, DISABLED));
        let params = chosen.set(LlamaContextParams::default());
        assert_eq!(params.flash_attention_policy(), LlamaContextParams::default().flash_attention_policy());
    }
}
