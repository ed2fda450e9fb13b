//! The Hearth: its setup from the configuration, and `azera hearth`.
//!
//! Training is in `learning`, which a build without the feature `learning` leaves out. Such a build still withdraws and
//! forgets LoRAs that were trained before.

#[cfg(feature = "learning")]
mod learning;
#[cfg(not(feature = "learning"))]
#[path = "left_out.rs"]
mod learning;

use std::collections::BTreeMap;
use std::path::Path;

use azera_config::Config;
use azera_engine::Hearth;
use azera_model_registry::Models;
use azera_types::PlatformId;

use crate::discord;

pub use learning::{bench, check, run};

/// The folder of trained LoRAs, in the data folder.
const FOLDER: &str = "hearth";

/// Why the Hearth learns nothing on Discord unless the operator allows it.
const DISCORD_FORBIDS: &str =
    "Discord's Developer Policy forbids to train models on what people say there, unless Discord permitted it.";

/// Returns the Hearth if the operator enabled it now or before.
pub fn hearth(config: &Config, models: Models, data: &Path) -> anyhow::Result<Option<Hearth>> {
    let folder = data.join(FOLDER);
    if !config.hearth.enabled && !folder.exists() {
        return Ok(None);
    }
    let mut barred = BTreeMap::new();
    if !config.hearth.discord {
        barred.insert(PlatformId::new(discord::PLATFORM)?, DISCORD_FORBIDS.to_owned());
    } else if config.hearth.enabled {
        tracing::warn!("hearth.discord is on: {DISCORD_FORBIDS}");
    }
    Ok(Some(Hearth {
        // Without a trainer, the Hearth still withdraws earlier training.
        trainer: if config.hearth.enabled { Some(learning::trainer(config, models)?) } else { None },
        transport: learning::offload_transport(config, data),
        folder,
        exchanges: config.hearth.exchanges as usize,
        barred,
        max_bytes: u64::from(config.hearth.max_disk_mb) << 20,
    }))
}
