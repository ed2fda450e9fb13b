//! Which model suits a machine.

use crate::{
    entry::{Kind, ModelEntry},
    registry::Registry,
};

/// Of every ten bytes of a GPU's memory, how many a chat model may take: the rest is for longer contexts and the screen.
const GPU_TENTHS: u64 = 9;
/// Of every ten bytes of main memory, how many a model may take beside everything else that runs.
const RAM_TENTHS: u64 = 5;
/// The largest model that still converses at reading speed on a common processor: generation reads every weight once a
/// token, and two cores were measured at 117 tokens/s on 98 MB of them, which makes 6 on the 1.8 GB of Qwen3 1.7B.
const CPU_PARAMETERS: u64 = 2_200_000_000;
const MIB: u64 = 1 << 20;

/// What a machine has to run models with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Main memory in bytes.
    pub ram_bytes: u64,
    /// Memory of the GPU that this build can use, in bytes.
    pub gpu_bytes: Option<u64>,
}

impl Registry {
    /// The largest model of a kind that runs well on the machine. Models without a source are not counted, since nobody
    /// could fetch them. `None` where not even the smallest fits.
    pub fn recommend(&self, kind: Kind, machine: Machine) -> Option<&ModelEntry> {
        let ram_mib = machine.ram_bytes / MIB * RAM_TENTHS / 10;
        let gpu_mib = machine.gpu_bytes.map_or(0, |bytes| bytes / MIB * GPU_TENTHS / 10);
        self.entries()
            .iter()
            .filter(|entry| entry.kind == kind && !entry.sources.is_empty())
            .filter(|entry| {
                // Embedding runs for every message, so without a GPU only what takes milliseconds will do.
                let swift = match kind {
                    Kind::Chat => entry.parameters <= CPU_PARAMETERS,
                    Kind::Embedding => entry.parameters <= CPU_PARAMETERS / 10,
                };
                entry.ram_mib <= gpu_mib || (entry.ram_mib <= ram_mib && swift)
            })
            .max_by_key(|entry| entry.parameters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_that_runs_well() {
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
