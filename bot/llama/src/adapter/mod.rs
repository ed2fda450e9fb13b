//! Low-rank adapters on a model that serves.
//!
//! llama.cpp's adapters belong to a context: whatever it decodes, it decodes with all that are set. So the engine
//! decodes for one set of adapters at a time. A set is always one adapter to llama.cpp, its parts joined here: the
//! binding can set no second one, and one pair of products is less work than several.

mod base;
mod lora;
mod made_up;
mod shelf;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::Mutex;

use azera_model::{Adapter, AdapterId};
use llama_cpp_2::model::{LlamaLoraAdapter, LlamaModel};
use sha2::{Digest, Sha256};

pub use lora::MAX_ADAPTER_BYTES;
pub use made_up::MadeUp;
pub(crate) use shelf::Shelf;
pub use shelf::check_adapter;

/// Names a set of adapters: which, how strong, in which order.
#[derive(Clone)]
pub(crate) struct SetKey {
    digest: [u8; 32],
    members: Arc<[AdapterId]>,
}

impl SetKey {
    pub(crate) fn of(adapters: &[Adapter]) -> Self {
        let mut hasher = Sha256::new();
        for adapter in adapters {
            hasher.update(adapter.id.as_bytes());
            hasher.update(adapter.scale.to_le_bytes());
        }
        Self { digest: hasher.finalize().into(), members: adapters.iter().map(|adapter| adapter.id).collect() }
    }

    /// Tells this set from every other.
    pub(crate) fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// Whether an adapter is in it.
    pub(crate) fn has(&self, adapter: &AdapterId) -> bool {
        self.members.contains(adapter)
    }
}

impl PartialEq for SetKey {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for SetKey {}

impl Hash for SetKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }
}

impl fmt::Debug for SetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.members.iter()).finish()
    }
}

/// A set of adapters in memory, as one adapter of llama.cpp.
pub(crate) struct Loaded {
    pub(crate) key: SetKey,
    pub(crate) adapter: Mutex<LlamaLoraAdapter>,
    pub(crate) scale: f32,
    bytes: u64,
    /// What the adapter was read for, and leaves memory with.
    _hull: LlamaModel,
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded").field("key", &self.key).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}
