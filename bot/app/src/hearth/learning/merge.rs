//! `azera hearth merge`: merges LoRAs.

use std::path::Path;

use anyhow::Context;
use azera_model_training::{BaseModel, Lora};
use serde_json::{Value, json};

use crate::cli::Merge;

/// Writes the mean of several LoRAs. The report says how much of it the rank keeps.
pub fn merge(model: &Path, options: &Merge) -> anyhow::Result<Value> {
    let base = BaseModel::open(model)?;
    let read = |path| Lora::read(path, &base).with_context(|| format!("reading {}", Path::display(path)));
    let loras: Vec<Lora> = options.loras.iter().map(|path| read(path)).collect::<Result<_, _>>()?;
    let merged = Lora::mean(&loras)?.compressed(options.rank, options.threads)?;
    let identities: Vec<String> = loras.iter().map(Lora::identity).collect();
    let notes = [
        ("general.base_model.sha256", base.sha256().to_owned()),
        ("azera.hearth.mean_of_sha256", identities.join(" ")),
    ];
    let lora = merged.lora.scaled(options.scale);
    lora.write(&options.out, &notes).with_context(|| format!("writing {}", options.out.display()))?;
    Ok(json!({"adapters": loras.len(), "rank": lora.rank(), "kept": merged.retained}))
}
