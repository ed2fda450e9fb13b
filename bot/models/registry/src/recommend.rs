//! Recommends a model for a machine.

use crate::{entry::ModelEntry, kind::Kind, registry::Registry};

/// How many tenths of the GPU's memory a chat model may take. The rest is for longer contexts and the screen.
const GPU_TENTHS: u64 = 9;
/// How many tenths of main memory a model may take. The rest is for everything else that runs.
const RAM_TENTHS: u64 = 5;
/// The largest model that runs at reading speed on a common processor. Each generated token reads every weight once.
/// Two cores were measured at 117 tokens/s with 98 MB of weights, which gives 6 tokens/s for the 1.8 GB of Qwen3 1.7B.
const CPU_PARAMETERS: u64 = 2_200_000_000;
const MIB: u64 = 1 << 20;

/// The free memory that a chat model larger than the default needs, in bytes. A Linux machine of 4 GB reports less.
const TALKING_FREE_BYTES: u64 = 3_600 * MIB;
/// The cores that it needs, to begin its reply within 1.5 seconds.
const TALKING_CORES: usize = 2;

/// The memory and processor of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Main memory, in bytes.
    pub ram_bytes: u64,
    /// Main memory that nothing uses, in bytes.
    pub free_bytes: u64,
    /// Processor cores.
    pub cores: usize,
    /// Memory of the GPU that this build can use, in bytes.
    pub gpu_bytes: Option<u64>,
}

/// The chat model for a machine on which nobody chose one, and the reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The model.
    pub entry: ModelEntry,
    /// The reason, as the end of a sentence after "because".
    pub reason: String,
}

impl Registry {
    /// Chooses the chat model for a machine that can reach the model hub: on a GPU the largest that fits, on a processor
    /// with enough free memory and cores one that was tried and can talk, and otherwise the default. `None` if the
    /// registry has no default.
    pub fn choose(&self, machine: Machine) -> Option<Choice> {
        let chosen = |entry: &ModelEntry, reason: String| Some(Choice { entry: entry.clone(), reason });
        let default = self.default_of(Kind::Chat)?;
        let free_mib = machine.free_bytes / MIB;
        let gpu_mib = machine.gpu_bytes.map_or(0, |bytes| bytes / MIB * GPU_TENTHS / 10);
        if let Some(entry) = self.largest(|entry| entry.ram_mib <= gpu_mib && entry.ram_mib > default.ram_mib) {
            return chosen(entry, format!("its {} MB fit into the GPU", entry.ram_mib));
        }
        if machine.free_bytes < TALKING_FREE_BYTES || machine.cores < TALKING_CORES {
            let cores = machine.cores;
            return chosen(
                default,
                format!(
                    "a larger one needs 4 GB of free memory and two cores, and this machine has {free_mib} MB and {cores}"
                ),
            );
        }
        match self.largest(|entry| entry.talks && entry.ram_mib <= free_mib * RAM_TENTHS / 10) {
            Some(entry) => {
                chosen(entry, format!("{free_mib} MB of memory are free and there are {} cores", machine.cores))
            }
            None => chosen(default, "no larger model was found to talk well on such a machine".to_owned()),
        }
    }

    /// Returns the largest chat model with a source that suits.
    fn largest(&self, suits: impl Fn(&ModelEntry) -> bool) -> Option<&ModelEntry> {
        let chat = self.entries().iter().filter(|entry| entry.kind == Kind::Chat && !entry.sources.is_empty());
        chat.filter(|entry| suits(entry)).max_by_key(|entry| entry.parameters)
    }

    /// Returns true if a chat model runs well on the machine.
    pub fn runs_well(entry: &ModelEntry, machine: Machine) -> bool {
        let ram_mib = machine.ram_bytes / MIB * RAM_TENTHS / 10;
        let gpu_mib = machine.gpu_bytes.map_or(0, |bytes| bytes / MIB * GPU_TENTHS / 10);
        entry.ram_mib <= gpu_mib || (entry.ram_mib <= ram_mib && entry.parameters <= CPU_PARAMETERS)
    }

    /// Returns the largest model of a kind that runs well on the machine, or `None` if even the smallest does not fit.
    /// Models without a source are not considered, because nobody could download them.
    pub fn recommend(&self, kind: Kind, machine: Machine) -> Option<&ModelEntry> {
        let ram_mib = machine.ram_bytes / MIB * RAM_TENTHS / 10;
        let gpu_mib = machine.gpu_bytes.map_or(0, |bytes| bytes / MIB * GPU_TENTHS / 10);
        self.entries()
            .iter()
            .filter(|entry| entry.kind == kind && !entry.sources.is_empty())
            .filter(|entry| {
                // Embedding runs for every message, so without a GPU it must take only milliseconds. A recogniser must
                // be done when the person expects an answer.
                let is_fast = match kind {
                    Kind::Chat => entry.parameters <= CPU_PARAMETERS,
                    Kind::Embedding => entry.parameters <= CPU_PARAMETERS / 10,
                    // Engines of speech run on the processor alone.
                    Kind::Speech | Kind::Voice | Kind::Vad => true,
                    // It reads many texts for every question.
                    Kind::Reranker => entry.parameters <= CPU_PARAMETERS / 50,
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
            let machine = Machine { ram_bytes: ram, free_bytes: ram, cores: 4, gpu_bytes: gpu };
            let name = |kind| registry.recommend(kind, machine).map(|entry| entry.name.as_str());
            assert_eq!((name(Kind::Chat), name(Kind::Embedding)), (chat, embedding), "{machine:?}");
        }
        check(GIB / 8, None, None, None);
        check(GIB, None, Some("smollm2-135m"), Some("minilm-l6-v2"));
        check(4 * GIB, None, Some("qwen2.5-coder-1.5b"), Some("minilm-l6-v2"));
        check(8 * GIB, None, Some("qwen3-1.7b"), Some("minilm-l6-v2"));
        check(256 * GIB, None, Some("qwen3-1.7b"), Some("minilm-l6-v2"));
        check(16 * GIB, Some(6 * GIB), Some("qwen3-4b"), Some("qwen3-embedding-0.6b"));
        check(16 * GIB, Some(8 * GIB), Some("qwen3-8b"), Some("qwen3-embedding-0.6b"));
        check(16 * GIB, Some(16 * GIB), Some("qwen3-14b"), Some("qwen3-embedding-0.6b"));
        check(16 * GIB, Some(24 * GIB), Some("mistral-small-24b"), Some("qwen3-embedding-0.6b"));
    }

    #[test]
    fn a_first_pull_chooses_by_free_memory_cores_and_gpu() {
        const GIB: u64 = 1 << 30;
        #[track_caller]
        fn check(free: u64, cores: usize, gpu: Option<u64>, name: &str, says: &str) {
            let machine = Machine { ram_bytes: 2 * free, free_bytes: free, cores, gpu_bytes: gpu };
            let choice = Registry::built_in().unwrap().choose(machine).unwrap();
            assert_eq!(choice.entry.name, name, "{machine:?}");
            assert!(choice.reason.contains(says), "{}", choice.reason);
        }
        check(GIB, 8, None, "smollm2-135m", "1024 MB and 8");
        check(8 * GIB, 1, None, "smollm2-135m", "8192 MB and 1");
        check(4 * GIB, 2, None, "qwen2.5-coder-1.5b", "4096 MB of memory are free and there are 2 cores");
        check(64 * GIB, 32, None, "qwen2.5-coder-1.5b", "32 cores");
        check(64 * GIB, 32, Some(8 * GIB), "qwen3-8b", "GPU");
    }
}
