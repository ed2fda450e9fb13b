//! Converts hits and usage into what adapters show.

use azera_adapter::{Hit, MemoryIdText, TurnUsage};
use azera_model_api::Usage;

pub(crate) fn hit(hit: &azera_memory::Hit) -> Hit {
    Hit {
        memory: MemoryIdText(hit.memory.id),
        kind: hit.memory.kind.as_str().to_owned(),
        scope: hit.memory.scope.clone(),
        sources: hit.memory.sources.clone(),
        score: hit.score,
        signals: hit.signals.iter().map(|signal| (*signal).to_owned()).collect(),
        text: hit.snippet.clone(),
    }
}

pub(crate) fn usage(usage: &Usage) -> TurnUsage {
    TurnUsage {
        prompt_tokens: usage.prompt_tokens,
        cached_tokens: usage.cached_tokens,
        evaluated_tokens: usage.evaluated_tokens,
        completion_tokens: usage.completion_tokens,
        ttft_ms: usage.ttft_ms,
        tokens_per_s: usage.tokens_per_s,
    }
}
