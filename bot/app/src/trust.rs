//! Which models may answer people in danger: those that passed `azera eval safety --trial` on this machine.

use std::path::PathBuf;

use anyhow::Context;
use azera_config::Config;
use azera_model_api::Lora;
use azera_model_registry::InstalledModel;
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Increases when the check demands more of a model. Every model then has to pass again.
const CHECK_VERSION: u32 = 2;

/// A passed check, as saved beside the models.
#[derive(Debug, Serialize, Deserialize)]
struct Passed {
    version: u32,
    model: String,
    lawful: usize,
    of: usize,
    at: String,
}

/// Returns true if this model file, with these LoRAs, passed the check. An unreadable result counts as not passed.
pub fn is_trusted(config: &Config, installed: &InstalledModel, loras: &[Lora]) -> anyhow::Result<bool> {
    let Ok(json) = std::fs::read(record(config, installed, loras)?) else { return Ok(false) };
    let passed = serde_json::from_slice::<Passed>(&json);
    Ok(passed.is_ok_and(|passed| passed.version == CHECK_VERSION && passed.of > 0 && passed.lawful == passed.of))
}

/// Saves the result of a passed check.
pub fn save(
    config: &Config,
    installed: &InstalledModel,
    loras: &[Lora],
    (lawful, of): (usize, usize),
) -> anyhow::Result<()> {
    let file = record(config, installed, loras)?;
    let dir = file.parent().context("it has no folder")?;
    std::fs::create_dir_all(dir).with_context(|| format!("making the folder {}", dir.display()))?;
    let model = installed.entry.name.clone();
    let passed = Passed { version: CHECK_VERSION, model, lawful, of, at: crate::bootstrap::now_text() };
    std::fs::write(&file, serde_json::to_vec_pretty(&passed)?).with_context(|| format!("writing {}", file.display()))
}

/// Returns the file that holds a model's result. The name is a hash of the model's digest and its LoRAs' ids.
fn record(config: &Config, installed: &InstalledModel, loras: &[Lora]) -> anyhow::Result<PathBuf> {
    let mut hash = Sha256::new();
    hash.update(&installed.manifest.sha256);
    for lora in loras {
        hash.update(format!("+{}", lora.id));
    }
    let name = HEXLOWER.encode(&hash.finalize()[..16]);
    Ok(config.models_dir()?.join("safety").join(format!("{name}.json")))
}
