//! Low-rank adapters on a model that serves.
//!
//! llama.cpp's adapters belong to a context: whatever it decodes, it decodes with all that are set. So the engine
//! decodes for one set of adapters at a time. A set is always one adapter to llama.cpp, its parts joined here: the
//! binding can set no second one, and one pair of products is less work than several.

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

/// Names a set of adapters: which, how strong, in which order.
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

    /// Tells this set from every other.
    pub(crate) fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// Whether an adapter is in it.
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

/// A set of adapters in memory, as one adapter of llama.cpp.
pub(crate) struct LoadedLoras {
    pub(crate) key: LoraSetKey,
    pub(crate) lora: Mutex<LlamaLoraAdapter>,
    pub(crate) scale: f32,
    bytes: u64,
    /// What the adapter was read for, and leaves memory with.
    _hull: LlamaModel,
}

impl fmt::Debug for LoadedLoras {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedLoras").field("key", &self.key).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}
