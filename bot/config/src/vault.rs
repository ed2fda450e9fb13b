use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Config, Secret};

/// The beginning of a value that names an entry of the vault.
const PREFIX: &str = "vault:";

// The doc comments of these fields are also the comments of azera.example.toml, so they address the operator.

/// Secrets that are encrypted at rest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Vault {
    /// The file with the vault's key, mode 600. Azera makes it with the first secret. It must not lie in the data folder or
    /// among the backups: whoever has both can read the secrets. When unset: beside the data folder, with `.vault-key` after
    /// the folder's name.
    #[schemars(length(min = 1, max = 4096), example = "/etc/azera/vault.key")]
    pub key_file: Option<PathBuf>,
}

/// A setting whose value is an entry of the vault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultReference {
    /// The section of the setting.
    pub section: &'static str,
    /// The key of the setting.
    pub key: &'static str,
    /// The name of the entry.
    pub name: String,
}

impl Config {
    /// Returns every setting that may hold a secret, with its section and key.
    fn secrets_mut(&mut self) -> [(&'static str, &'static str, &mut Option<Secret>); 13] {
        [
            ("models", "hub_token", &mut self.models.hub_token),
            ("chat_server", "key", &mut self.chat_server.key),
            ("embedding_server", "key", &mut self.embedding_server.key),
            ("rerank_server", "key", &mut self.rerank_server.key),
            ("working_server", "password", &mut self.working_server.password),
            ("vector_server", "key", &mut self.vector_server.key),
            ("recognition_server", "key", &mut self.recognition_server.key),
            ("speech_server", "key", &mut self.speech_server.key),
            ("matrix", "password", &mut self.matrix.password),
            ("matrix", "token", &mut self.matrix.token),
            ("discord", "token", &mut self.discord.token),
            ("images", "key", &mut self.images.key),
            ("vision_server", "key", &mut self.vision_server.key),
        ]
    }

    /// Puts the values of the vault in the place of `vault:NAME`. `find` returns the value of an entry, or why there is none.
    /// Returns the settings without a value, and why; they are unset then, so that no server is sent the name as a password.
    pub fn resolve_secrets(
        &mut self,
        find: &mut dyn FnMut(&VaultReference) -> Result<Secret, String>,
    ) -> Vec<(VaultReference, String)> {
        let mut missing = Vec::new();
        for (section, key, value) in self.secrets_mut() {
            let name = value.as_ref().and_then(|secret| secret.expose().strip_prefix(PREFIX));
            let Some(name) = name.map(str::to_owned) else { continue };
            let reference = VaultReference { section, key, name };
            let found = find(&reference).and_then(|secret| fits(section, key, &secret).map(|()| secret));
            *value = match found {
                Ok(secret) => Some(secret),
                Err(why) => {
                    missing.push((reference, why));
                    None
                }
            };
        }
        missing
    }
}

/// Fails if a secret is not what the setting may be. The error says nothing of the secret.
fn fits(section: &str, key: &str, secret: &Secret) -> Result<(), String> {
    let Some(key) = crate::keys::section(section).and_then(|section| section.key(key)) else { return Ok(()) };
    match key.kind.check(&toml::Value::String(secret.expose().to_owned())) {
        Some(_) => Ok(()),
        None => Err(format!("its value must be {}", key.kind)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_secret_setting_can_name_an_entry() {
        let mut config = Config::default();
        let listed = config.secrets_mut().map(|(section, key, _)| format!("{section}.{key}"));
        let mut listed = listed.to_vec();
        listed.sort();
        let sections = crate::keys::sections().iter();
        let mut declared: Vec<String> = sections
            .flat_map(|section| {
                section.keys.iter().filter(|key| key.secret).map(|key| format!("{}.{}", section.name, key.name))
            })
            .collect();
        declared.sort();
        assert_eq!(listed, declared);
    }
}
