//! How a chat model computes attention.

use azera_model_api::Error;
use llama_cpp_2::context::params::LlamaContextParams;

use crate::backend;
use crate::config::STEP_TOKENS;

/// llama.cpp's `LLAMA_FLASH_ATTN_TYPE_DISABLED`.
const DISABLED: i32 = 0;

/// Tokens that plain attention reads at a time. It holds the scores of all of them against the whole cache in memory:
/// 512 would take four times as much, and were hardly read faster.
const PLAIN_TOKENS: u32 = 128;

/// On processors llama.cpp's flash attention is quick for long prompts alone. An answer evaluates a few tokens after a
/// long cached conversation, and then writes one token at a time: plain attention does both in half the time or less, and
/// reads long prompts more slowly. BENCHMARKS.md has the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attention {
    /// As llama.cpp chooses.
    OnGpu,
    /// Plain attention.
    OnProcessors,
}

impl Attention {
    /// Returns how a model with so many layers on a GPU computes attention. `None` stands for all of them, where there is a
    /// GPU.
    pub(crate) fn of(gpu_layers: Option<u32>) -> Result<Self, Error> {
        let on_gpu = gpu_layers != Some(0) && backend::backend()?.supports_gpu_offload();
        Ok(if on_gpu { Self::OnGpu } else { Self::OnProcessors })
    }

    /// Sets it, for steps of at most [`STEP_TOKENS`].
    pub(crate) fn set(self, params: LlamaContextParams) -> LlamaContextParams {
        let step = u32::try_from(STEP_TOKENS).unwrap_or(u32::MAX);
        match self {
            Self::OnGpu => params.with_n_ubatch(step),
            Self::OnProcessors => params.with_n_ubatch(step.min(PLAIN_TOKENS)).with_flash_attention_policy(DISABLED),
        }
    }

    /// Returns a name for how the cache is laid out. State that one writes cannot be read by the other.
    pub(crate) fn layout(self) -> &'static str {
        match self {
            Self::OnGpu => "flash",
            Self::OnProcessors => "plain",
        }
    }
}
