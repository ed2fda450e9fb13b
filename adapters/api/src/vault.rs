use std::fmt;

use async_trait::async_trait;
use azera_types::{PlatformId, Timestamp};

use crate::{HostError, Reading};

/// A secret of a person. `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct VaultValue(pub String);

impl fmt::Debug for VaultValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VaultValue")
    }
}

/// An entry of a person's vault, without its value. `Debug` hides the name.
#[derive(Clone, PartialEq, Eq)]
pub struct VaultEntry {
    /// The name.
    pub name: String,
    /// When the value was set.
    pub changed_at: Timestamp,
}

impl fmt::Debug for VaultEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VaultEntry({})", self.changed_at)
    }
}

/// The vaults of people. Every call is for the person of the `Reading`, in a direct chat that nobody else reads; elsewhere it
/// is [`HostError::NotAllowed`]. Values are encrypted at rest. They are in no index, no prompt, no export and no log.
#[async_trait]
pub trait VaultHost: Send + Sync {
    /// Lists the entries of the person's vault by name.
    ///
    /// # Errors
    /// The vault does not open, or there is no key for it.
    async fn vault_entries(&self, platform: &PlatformId, at: Reading) -> Result<Vec<VaultEntry>, HostError>;

    /// Returns the value of an entry; `None` if there is none of this name.
    ///
    /// # Errors
    /// Those of [`VaultHost::vault_entries`].
    async fn vault_value(
        &self,
        platform: &PlatformId,
        at: Reading,
        name: String,
    ) -> Result<Option<VaultValue>, HostError>;

    /// Stores a value. Returns true if it replaced another one.
    ///
    /// # Errors
    /// Those of [`VaultHost::vault_entries`]; [`HostError::Refused`] for a name or a value that is not allowed, and for a full
    /// vault.
    async fn vault_store(
        &self,
        platform: &PlatformId,
        at: Reading,
        name: String,
        value: VaultValue,
    ) -> Result<bool, HostError>;

    /// Deletes an entry for good, also from backups. Returns false if there is none of this name.
    ///
    /// # Errors
    /// Those of [`VaultHost::vault_entries`].
    async fn vault_delete(&self, platform: &PlatformId, at: Reading, name: String) -> Result<bool, HostError>;
}
