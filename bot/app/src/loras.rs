//! The LoRAs that chat models are loaded with.

use std::fs::File;
use std::io;
use std::path::Path;

use anyhow::Context;
use azera_config::Config;
use azera_model_api::{Lora, LoraId};
use azera_model_gguf::GgufHeader;
use azera_model_registry::{InstalledModel, Kind, Models};
use sha2::{Digest, Sha256};

use crate::bootstrap::chosen;

/// Value of `models.adapter` that turns LoRAs off for every model.
pub const NONE: &str = "none";

/// Returns a model's LoRAs. The configured LoRA belongs to the configured chat model and fits no other; other models
/// use their bundled ones.
pub fn of(config: &Config, models: &Models, installed: &InstalledModel) -> anyhow::Result<Vec<Lora>> {
    match &config.models.adapter {
        Some(path) if path.as_os_str() == NONE => Ok(Vec::new()),
        Some(path) if chosen(config, models, Kind::Chat)? == installed.entry.name => {
            Ok(vec![at(path).with_context(|| format!("models.adapter: {}", path.display()))?])
        }
        _ => {
            let bundled = models.lora(installed)?;
            let lora = bundled.map(|it| anyhow::Ok(Lora::new(it.sha256.parse()?, it.path))).transpose()?;
            Ok(lora.into_iter().collect())
        }
    }
}

/// Returns the LoRA that a model reads with. Returns none if the model runs without the LoRA that this one was trained
/// on top of.
pub fn reading(config: &Config, models: &Models, installed: &InstalledModel) -> anyhow::Result<Option<Lora>> {
    let uses_bundled = match &config.models.adapter {
        Some(path) => path.as_os_str() != NONE && chosen(config, models, Kind::Chat)? != installed.entry.name,
        None => true,
    };
    let bundled = if uses_bundled { models.reading_lora(installed)? } else { None };
    bundled.map(|it| Ok(Lora::new(it.sha256.parse()?, it.path))).transpose()
}

/// Opens a LoRA file and computes its id from its present bytes.
pub fn at(path: &Path) -> io::Result<Lora> {
    let mut hasher = Sha256::new();
    io::copy(&mut File::open(path)?, &mut hasher)?;
    Ok(Lora::new(LoraId::new(hasher.finalize().into()), path))
}

/// Returns the first LoRA that names another base file than the model's. It may still fit: the same weights in another
/// quantization are another file.
pub fn of_another<'a>(
    loras: impl IntoIterator<Item = &'a Lora>,
    model_sha256: &str,
) -> anyhow::Result<Option<&'a Lora>> {
    for lora in loras {
        let file = File::open(&lora.path).with_context(|| format!("opening {}", lora.path.display()))?;
        let header = GgufHeader::read(file).with_context(|| format!("reading {}", lora.path.display()))?;
        if header.base_sha256.is_some_and(|base| base != model_sha256) {
            return Ok(Some(lora));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use azera_model_gguf::{GgufFile, Value};

    use super::*;

    #[test]
    fn a_lora_trained_on_another_file_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let lora_of = |base: Option<&str>| {
            let mut file = GgufFile::default();
            file.set("general.architecture", Value::String("llama".into()));
            if let Some(base) = base {
                file.set("general.base_model.sha256", Value::String(base.into()));
            }
            let path = folder.path().join(base.unwrap_or("none"));
            file.write(&mut File::create(&path).unwrap()).unwrap();
            at(&path).unwrap()
        };
        let all = [lora_of(None), lora_of(Some("5ea")), lora_of(Some("b0a7"))];
        let mismatched = |loras: &[Lora]| of_another(loras, "5ea").unwrap().map(|it| it.path.clone());
        assert_eq!(mismatched(&all[..2]), None, "others write no base");
        assert_eq!(mismatched(&all), Some(all[2].path.clone()));
    }
}
