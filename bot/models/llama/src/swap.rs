use std::collections::HashMap;

use azera_model_api::SessionKey;
use llama_cpp_2::SeqState;
use llama_cpp_2::token::LlamaToken;

use crate::lora::LoraSetKey;
use crate::prompt::PrefixKey;

/// Evaluated tokens outside the key-value cache.
pub(crate) struct SwappedKv {
    pub(crate) tokens: Vec<LlamaToken>,
    /// The LoRAs under which they were evaluated.
    pub(crate) set: Option<LoraSetKey>,
    /// The shared prefix with the first `base_len` tokens, which are not in `tail`.
    pub(crate) base: Option<PrefixKey>,
    pub(crate) base_len: usize,
    /// The remaining tokens; `None` if there are none.
    pub(crate) tail: Option<SeqState>,
}

impl SwappedKv {
    fn bytes(&self) -> usize {
        self.tail.as_ref().map_or(0, SeqState::byte_len) + size_of_val(self.tokens.as_slice())
    }
}

/// The owner of swapped-out tokens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum SwapKey {
    Session(SessionKey),
    Prefix(PrefixKey),
}

/// Swapped-out tokens in main memory, within a limit of bytes. The oldest are dropped first.
pub(crate) struct KvSwap {
    limit_bytes: usize,
    bytes: usize,
    entries: HashMap<SwapKey, (u64, SwappedKv)>,
    clock: u64,
}

impl KvSwap {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, bytes: 0, entries: HashMap::new(), clock: 0 }
    }

    pub(crate) fn put(&mut self, key: SwapKey, parked: SwappedKv) {
        self.take(&key);
        self.bytes += parked.bytes();
        self.clock += 1;
        self.entries.insert(key, (self.clock, parked));
        while self.bytes > self.limit_bytes {
            let oldest = self.entries.iter().min_by_key(|(_, (time, _))| *time).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { break };
            self.take(&oldest);
        }
    }

    pub(crate) fn take(&mut self, key: &SwapKey) -> Option<SwappedKv> {
        let (_, parked) = self.entries.remove(key)?;
        self.bytes -= parked.bytes();
        Some(parked)
    }

    /// Drops every entry for which `keep` is false.
    pub(crate) fn retain(&mut self, keep: impl Fn(&SwappedKv) -> bool) {
        self.entries.retain(|_, (_, parked)| {
            let retained = keep(parked);
            if !retained {
                self.bytes -= parked.bytes();
            }
            retained
        });
    }

    pub(crate) fn get(&self, key: &SwapKey) -> Option<&SwappedKv> {
        self.entries.get(key).map(|(_, parked)| parked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(name: &str) -> SwapKey {
        SwapKey::Session(SessionKey::new(name))
    }

    fn tokens(count: usize) -> SwappedKv {
        SwappedKv { tokens: vec![LlamaToken::new(1); count], set: None, base: None, base_len: 0, tail: None }
    }

    #[test]
    fn the_oldest_entries_are_dropped_above_the_limit() {
        let mut swap = KvSwap::new(100);
        swap.put(session("a"), tokens(10));
        swap.put(session("b"), tokens(10));
        assert!(swap.get(&session("a")).is_some());
        swap.put(session("a"), tokens(12));
        swap.put(session("c"), tokens(13));
        let left: Vec<bool> = ["a", "b", "c"].map(|name| swap.get(&session(name)).is_some()).into();
        assert_eq!(left, [true, false, true]);
        assert_eq!(swap.take(&session("a")).map(|parked| parked.tokens.len()), Some(12));
        swap.put(session("d"), tokens(30));
        assert!(swap.get(&session("d")).is_none(), "more than the whole budget is not kept");
        assert_eq!(swap.bytes, 0);
    }
}
