//! LoRAs on a running model.
//!
//! In llama.cpp, LoRAs belong to a context: every batch is decoded with all that are set. So the engine decodes for one
//! set of LoRAs at a time. To llama.cpp each set is a single LoRA, whose parts are joined here: the binding cannot set
//! a second one, and one pair of products is less work than several.
//!
//! `pool.rs` loads and keeps sets, `file.rs` checks and joins files, `shape.rs` knows which weights a model has, and
//! `random.rs` makes LoRAs for tests and measurements.

mod file;
mod pool;
mod random;
mod shape;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::Mutex;

use azera_model_api::{Lora, LoraId};
use llama_cpp_2::model::{LlamaLoraAdapter, LlamaModel};
use sha2::{Digest, Sha256};

pub use file::MAX_LORA_BYTES;
pub(crate) use pool::LoraPool;
pub use pool::check_lora;
pub use random::RandomLora;

/// Identifies a set of LoRAs: their ids, scales and order.
#[derive(Clone)]
pub(crate) struct LoraSetKey {
    digest: [u8; 32],
    members: Arc<[LoraId]>,
}

impl LoraSetKey {
    pub(crate) fn of(loras: &[Lora]) -> Self {
        let mut hasher = Sha256::new();
        for lora in loras {
            hasher.update(lora.id.as_bytes());
            hasher.update(lora.scale.to_le_bytes());
        }
        Self { digest: hasher.finalize().into(), members: loras.iter().map(|lora| lora.id).collect() }
    }

    /// Returns a digest that differs for every set.
    pub(crate) fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// Returns true if the set contains a LoRA.
    pub(crate) fn has(&self, lora: &LoraId) -> bool {
        self.members.contains(lora)
    }
}

impl PartialEq for LoraSetKey {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for LoraSetKey {}

impl Hash for LoraSetKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }
}

impl fmt::Debug for LoraSetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.members.iter()).finish()
    }
}

/// A set of LoRAs in memory, as one LoRA of llama.cpp.
pub(crate) struct LoadedLoras {
    pub(crate) key: LoraSetKey,
    pub(crate) lora: Mutex<LlamaLoraAdapter>,
    pub(crate) scale: f32,
    bytes: u64,
    /// The model that the LoRA was loaded for. The LoRA leaves memory with it.
    _skeleton: LlamaModel,
}

impl fmt::Debug for LoadedLoras {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedLoras").field("key", &self.key).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}
