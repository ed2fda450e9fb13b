//! Converts hits and usage into what adapters show.

use azera_adapter::{Hit, Holding, MemoryIdText, TurnUsage};
use azera_memory::{Stretch, Validity};
use azera_model_api::Usage;
use azera_types::TimeZone;

use crate::zones::stretch;

/// Returns from when until when a memory holds, in the days of a time zone.
pub(crate) fn holding(validity: &Validity, zone: &TimeZone) -> Holding {
    let told = |when: Option<Stretch>| when.map(|(from, to)| stretch(from, to, zone));
    Holding {
        holds_since: told(validity.since),
        held_until: told(validity.until),
        replaced_by: validity.replaced_by.map(MemoryIdText),
    }
}

pub(crate) fn hit(hit: &azera_memory::Hit, zone: &TimeZone) -> Hit {
    Hit {
        memory: MemoryIdText(hit.memory.id),
        kind: hit.memory.kind.as_str().to_owned(),
        scope: hit.memory.scope.clone(),
        sources: hit.memory.sources.clone(),
        score: hit.score,
        signals: hit.signals.iter().map(|signal| (*signal).to_owned()).collect(),
        text: hit.snippet.clone(),
        holding: holding(&hit.validity, zone),
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
