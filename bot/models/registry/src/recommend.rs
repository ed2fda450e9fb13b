//! Recommends a model for a machine.

use crate::{
    entry::{Kind, ModelEntry},
    registry::Registry,
};

/// How many tenths of the GPU's memory a chat model may take. The rest is for longer contexts and the screen.
const GPU_TENTHS: u64 = 9;
/// How many tenths of main memory a model may take. The rest is for everything else that runs.
const RAM_TENTHS: u64 = 5;
/// The largest model that runs at reading speed on a common processor. Each generated token reads every weight once.
/// Two cores were measured at 117 tokens/s with 98 MB of weights, which gives 6 tokens/s for the 1.8 GB of Qwen3 1.7B.
const CPU_PARAMETERS: u64 = 2_200_000_000;
const MIB: u64 = 1 << 20;

/// The memory of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Main memory, in bytes.
    pub ram_bytes: u64,
    /// Memory of the GPU that this build can use, in bytes.
    pub gpu_bytes: Option<u64>,
}

impl Registry {
    /// Returns the largest model of a kind that runs well on the machine, or `None` if even the smallest does not fit.
    /// Models without a source are not considered, because nobody could download them.
    pub fn recommend(&self, kind: Kind, machine: Machine) -> Option<&ModelEntry> {
        let ram_mib = machine.ram_bytes / MIB * RAM_TENTHS / 10;
        let gpu_mib = machine.gpu_bytes.map_or(0, |bytes| bytes / MIB * GPU_TENTHS / 10);
        self.entries()
            .iter()
            .filter(|entry| entry.kind == kind && !entry.sources.is_empty())
            .filter(|entry| {
                // Embedding runs for every message, so without a GPU it must take only milliseconds.
                let is_fast = match kind {
                    Kind::Chat => entry.parameters <= CPU_PARAMETERS,
                    Kind::Embedding => entry.parameters <= CPU_PARAMETERS / 10,
                };
                entry.ram_mib <= gpu_mib || (entry.ram_mib <= ram_mib && is_fast)
            })
            .max_by_key(|entry| entry.parameters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_model_that_runs_well_is_recommended() {
        const GIB: u64 = 1 << 30;
        fn check(ram: u64, gpu: Option<u64>, chat: Option<&str>, embedding: Option<&str>) {
            let registry = Registry::built_in().unwrap();
            let machine = Machine { ram_bytes: ram, gpu_bytes: gpu };
            let name = |kind| registry.recommend(kind, machine).map(|entry| entry.name.as_str());
            assert_eq!((name(Kind::Chat), name(Kind::Embedding)), (chat, embedding), "{machine:?}");
        }
        check(GIB / 8, None, None, None);
        check(GIB, None, Some("smollm2-135m"), Some("minilm-l6-v2"));
        check(4 * GIB, None, Some("qwen3-0.6b"), Some("minilm-l6-v2"));
        check(8 * GIB, None, Some("qwen3-1.7b"), Some("minilm-l6-v2"));
        check(256 * GIB, None, Some("qwen3-1.7b"), Some("minilm-l6-v2"));
        check(16 * GIB, Some(6 * GIB), Some("qwen3-4b"), Some("qwen3-embedding-0.6b"));
        check(16 * GIB, Some(8 * GIB), Some("qwen3-8b"), Some("qwen3-embedding-0.6b"));
        check(16 * GIB, Some(24 * GIB), Some("qwen3-14b"), Some("qwen3-embedding-0.6b"));
    }
}
