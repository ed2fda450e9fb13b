//! Tools for the person's vault: `vault_store`, `vault_list`, `vault_get` and `vault_delete`.

use std::fmt;

use azera_adapter::VaultValue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::session::Caller;

/// A secret to keep.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToStore {
    /// A name: 1 to 64 of the characters a-z, A-Z, 0-9, `.`, `_` and `-`.
    name: String,
    /// The secret, a text of at most 16 KiB.
    value: String,
}

/// The name of a secret.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfEntry {
    /// The name, from `vault_list`.
    name: String,
}

/// What was stored.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Stored {
    /// The name.
    name: String,
    /// True if an older value was replaced.
    replaced: bool,
}

/// What was deleted.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Deleted {
    /// The name.
    name: String,
    /// Always true; a name that is not there is an error.
    deleted: bool,
}

/// A secret.
#[derive(Serialize, JsonSchema)]
pub(crate) struct VaultSecret {
    /// The name.
    name: String,
    /// The secret itself.
    value: String,
}

impl fmt::Debug for VaultSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VaultSecret")
    }
}

/// The name of a secret, and when it was stored.
#[derive(Serialize, JsonSchema)]
pub(crate) struct VaultItem {
    /// The name. `vault_get` and `vault_delete` take it.
    name: String,
    /// When the value was stored (RFC 3339).
    changed_at: String,
}

/// Every secret of the person, by name.
#[derive(Serialize, JsonSchema)]
pub(crate) struct VaultList {
    /// The names; there are at most 200.
    entries: Vec<VaultItem>,
}

impl Caller {
    pub(crate) async fn vault_list(&self) -> Result<VaultList, Failure> {
        let at = self.begin().await?;
        let entries = self.engine.vault.vault_entries(&self.session.platform, at).await?;
        let item =
            |entry: azera_adapter::VaultEntry| VaultItem { name: entry.name, changed_at: entry.changed_at.to_string() };
        Ok(VaultList { entries: entries.into_iter().map(item).collect() })
    }

    pub(crate) async fn vault_get(&self, of: OfEntry) -> Result<VaultSecret, Failure> {
        let at = self.begin().await?;
        let found = self.engine.vault.vault_value(&self.session.platform, at, of.name.clone()).await?;
        let VaultValue(value) = found.ok_or_else(|| missing(&of.name))?;
        Ok(VaultSecret { name: of.name, value })
    }

    pub(crate) async fn vault_store(&self, to: ToStore) -> Result<Stored, Failure> {
        let at = self.begin().await?;
        let ToStore { name, value } = to;
        let replaced =
            self.engine.vault.vault_store(&self.session.platform, at, name.clone(), VaultValue(value)).await?;
        Ok(Stored { name, replaced })
    }

    pub(crate) async fn vault_delete(&self, of: OfEntry) -> Result<Deleted, Failure> {
        let at = self.begin().await?;
        if !self.engine.vault.vault_delete(&self.session.platform, at, of.name.clone()).await? {
            return Err(missing(&of.name));
        }
        Ok(Deleted { name: of.name, deleted: true })
    }
}

fn missing(name: &str) -> Failure {
    Failure::refused(format!("There is no secret {name:?}. `vault_list` names those there are."))
}
