use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// The comments of these fields are also the comments of azera.example.toml: they speak to the operator.

/// Learning in the weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Hearth {
    /// Let personas learn. It takes a model on this machine, and its processor for minutes at night; whoever talks comes first.
    pub enabled: bool,
    /// Learn from what is said on Discord, too. Discord's Developer Policy forbids to train models on message content unless Discord
    /// permitted it: set this only where it did.
    pub discord: bool,
    /// Learn on another machine, with more or faster cores: what is to be learnt is laid out, sealed, in the data folder, `azera hearth pack`
    /// copies it to be carried there, and `azera hearth install` brings back what came of it. Nothing is learnt on this one then.
    pub elsewhere: bool,
    /// Exchanges that are learnt at a time. A place needs an eighth more, which are left out to see what becomes of them.
    #[schemars(range(min = 4, max = 128))]
    pub exchanges: u32,
    /// Times that each of them is gone over.
    #[schemars(range(min = 1, max = 10))]
    pub rounds: u32,
    /// How much a lesson may change: the rank of its adapter.
    #[schemars(range(min = 1, max = 64))]
    pub rank: u32,
    /// The rank of all lessons of a place together. Past it, they are compressed.
    #[schemars(range(min = 1, max = 256))]
    pub max_rank: u32,
    /// The learning rate.
    #[schemars(range(min = 0.000001, max = 0.01))]
    pub rate: f64,
    /// The largest model that learns with the processor, in megabytes of its file. Larger ones take too long on a small machine; it
    /// does not count for a GPU, nor for what is learnt elsewhere.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub largest_model_mb: u32,
    /// Megabytes that all adapters together may take on disk. Past them earlier versions go, and then nothing more is learnt.
    #[schemars(range(min = 64, max = 1_000_000))]
    pub max_disk_mb: u32,
}

impl Default for Hearth {
    fn default() -> Self {
        Self {
            enabled: false,
            discord: false,
            elsewhere: false,
            exchanges: 32,
            rounds: 2,
            rank: 8,
            max_rank: 32,
            rate: 2e-4,
            largest_model_mb: 1_500,
            max_disk_mb: 4_096,
        }
    }
}
