use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// The doc comments of these fields are also the comments of azera.example.toml, so they address the operator.

/// Learning in the weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Hearth {
    /// Let personas learn. This needs a model on this machine, and its processor for some minutes at night. Live chat
    /// goes first.
    pub enabled: bool,
    /// Also learn from messages on Discord. Discord's Developer Policy forbids training models on message content
    /// without Discord's permission: set this only if you have it.
    pub discord: bool,
    /// Train on another machine, with more or faster cores. Azera then writes sealed training jobs to the data folder
    /// and trains nothing on this machine. `azera hearth pack` copies a job so that you can carry it over, and
    /// `azera hearth install` takes the result in.
    pub elsewhere: bool,
    /// Exchanges in one training job. A place needs an eighth more, which are held out to evaluate the result.
    #[schemars(range(min = 4, max = 128))]
    pub exchanges: u32,
    /// Passes over the training examples in one job.
    #[schemars(range(min = 1, max = 10))]
    pub rounds: u32,
    /// The rank of the LoRA that one training job makes, which limits how much it can change.
    #[schemars(range(min = 1, max = 64))]
    pub rank: u32,
    /// The total rank of the LoRAs of one place. Above it, they are compressed.
    #[schemars(range(min = 1, max = 256))]
    pub max_rank: u32,
    /// The learning rate.
    #[schemars(range(min = 0.000001, max = 0.01))]
    pub rate: f64,
    /// The largest model to train on the processor, in megabytes of its file. Larger ones take too long on a small
    /// machine. The limit does not apply to a GPU or to training on another machine.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub largest_model_mb: u32,
    /// Megabytes that all LoRAs together may use on disk. Above it, Azera deletes earlier versions first, and then
    /// stops training.
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
