//! The [`VaultHost`] interface: the vaults of people. The record stores them sealed; only this file opens them.

use std::sync::Arc;

use async_trait::async_trait;
use azera_adapter::{HostError, Reading, VaultEntry, VaultHost, VaultValue};
use azera_memory::{Memory, VaultChange};
use azera_memory_vault::{EntryName, MasterKeys, Owner, SecretText, Vault};
use azera_types::{PersonId, PlaceKind, PlatformId, Timestamp};
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::error::Error;
use crate::services::Services;

/// Opens the sealed vault of a person.
fn opened(sealed: &[u8], person: &PersonId, keys: &dyn MasterKeys) -> Result<Vault, Error> {
    Ok(Vault::open(sealed, Owner::Person(person.clone()), &keys.masters()?)?)
}

/// Stores a value. Returns true if it replaced another one.
fn store(
    memory: &Memory,
    keys: &dyn MasterKeys,
    person: &PersonId,
    name: EntryName,
    value: &SecretText,
    now: Timestamp,
) -> Result<bool, Error> {
    // Any vault needs the key that sealed it, so then no other key may be made.
    let has_vaults = memory.vaults().any()?;
    memory.vaults().change(person, |sealed| {
        let masters = keys.masters_for_writing(has_vaults)?;
        let mut vault = match &sealed {
            Some(sealed) => opened(sealed, person, keys)?,
            None => Vault::new(Owner::Person(person.clone()))?,
        };
        let replaced = vault.set(name, value, now)?;
        Ok((VaultChange::Put(vault.seal(&masters)?), replaced))
    })
}

/// Deletes an entry. Returns false if there is none.
fn delete(memory: &Memory, keys: &dyn MasterKeys, person: &PersonId, name: &EntryName) -> Result<bool, Error> {
    memory.vaults().change(person, |sealed| {
        let Some(sealed) = sealed else { return Ok((VaultChange::Nothing, false)) };
        let mut vault = opened(&sealed, person, keys)?;
        if !vault.remove(name) {
            return Ok((VaultChange::Nothing, false));
        }
        let left =
            if vault.is_empty() { VaultChange::Remove } else { VaultChange::PutWithout(vault.seal(&keys.masters()?)?) };
        Ok((left, true))
    })
}

/// Returns the names in a person's vault for their export. Values are never exported.
pub fn exported_vault(memory: &Memory, keys: &dyn MasterKeys, person: &PersonId) -> Value {
    let sealed = memory.vaults().sealed(person).map_err(Error::from);
    match sealed.and_then(|sealed| sealed.map(|sealed| opened(&sealed, person, keys)).transpose()) {
        Ok(vault) => {
            let listed = vault.map(|vault| vault.list()).unwrap_or_default().into_iter();
            listed.map(|entry| json!({"name": entry.name, "changed_at": entry.changed_at})).collect()
        }
        // The rest of the export is still worth having.
        Err(error) => {
            tracing::warn!(%error, "a vault does not open for an export");
            json!("the names cannot be read now")
        }
    }
}

impl Services {
    /// Works on the vault of a person outside the async threads.
    async fn in_vault<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Memory, &dyn MasterKeys) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (memory, keys) = (self.memory.clone(), self.vault_keys.get().cloned().ok_or(Error::NoVault)?);
        let done = tokio::task::spawn_blocking(move || work(&memory, keys.as_ref())).await;
        done?
    }

    /// Opens the vault of a person; `None` if they have none.
    async fn vault_of(&self, person: PersonId) -> Result<Option<Vault>, Error> {
        self.in_vault(move |memory, keys| {
            memory.vaults().sealed(&person)?.map(|sealed| opened(&sealed, &person, keys)).transpose()
        })
        .await
    }

    /// Returns what [`exported_vault`] does.
    pub(crate) async fn exported_vault(&self, person: PersonId) -> Result<Value, Error> {
        if self.vault_keys.get().is_none() {
            return Ok(json!([]));
        }
        self.in_vault(move |memory, keys| Ok(exported_vault(memory, keys, &person))).await
    }
}

impl Engine {
    /// Gives the engine the keys of vaults. Call it once, before [`Engine::start`]; later calls change nothing.
    pub fn give_vault_keys(&self, keys: Arc<dyn MasterKeys>) {
        self.0.services.vault_keys.get_or_init(|| keys);
    }

    /// Fails unless the person is in a direct chat of their own.
    async fn alone(&self, platform: &PlatformId, at: &Reading) -> Result<(), Error> {
        let here = self.here(platform, at).await?.ok_or(Error::NotAllowed)?;
        match &here.place.kind {
            PlaceKind::Dm(person) if *person == at.person => Ok(()),
            _ => Err(Error::NotAllowed),
        }
    }

    async fn list_vault(&self, platform: &PlatformId, at: Reading) -> Result<Vec<VaultEntry>, Error> {
        self.alone(platform, &at).await?;
        let listed = self.0.services.vault_of(at.person).await?.map(|vault| vault.list()).unwrap_or_default();
        let entry = |info: azera_memory_vault::EntryInfo| VaultEntry {
            name: info.name.to_string(),
            changed_at: info.changed_at,
        };
        Ok(listed.into_iter().map(entry).collect())
    }

    async fn read_vault(&self, platform: &PlatformId, at: Reading, name: &str) -> Result<Option<VaultValue>, Error> {
        self.alone(platform, &at).await?;
        let name: EntryName = name.parse()?;
        let Some(vault) = self.0.services.vault_of(at.person).await? else { return Ok(None) };
        Ok(vault.get(&name)?.map(|value| VaultValue(value.expose().to_owned())))
    }

    async fn store_in_vault(
        &self,
        platform: &PlatformId,
        at: Reading,
        name: &str,
        value: VaultValue,
    ) -> Result<bool, Error> {
        self.alone(platform, &at).await?;
        let (name, value, now) = (name.parse()?, SecretText::new(value.0)?, self.0.services.clock.now());
        self.0.services.in_vault(move |memory, keys| store(memory, keys, &at.person, name, &value, now)).await
    }

    async fn delete_from_vault(&self, platform: &PlatformId, at: Reading, name: &str) -> Result<bool, Error> {
        self.alone(platform, &at).await?;
        let name = name.parse()?;
        self.0.services.in_vault(move |memory, keys| delete(memory, keys, &at.person, &name)).await
    }
}

#[async_trait]
impl VaultHost for Engine {
    async fn vault_entries(&self, platform: &PlatformId, at: Reading) -> Result<Vec<VaultEntry>, HostError> {
        self.for_adapter(self.list_vault(platform, at).await)
    }

    async fn vault_value(
        &self,
        platform: &PlatformId,
        at: Reading,
        name: String,
    ) -> Result<Option<VaultValue>, HostError> {
        self.for_adapter(self.read_vault(platform, at, &name).await)
    }

    async fn vault_store(
        &self,
        platform: &PlatformId,
        at: Reading,
        name: String,
        value: VaultValue,
    ) -> Result<bool, HostError> {
        self.for_adapter(self.store_in_vault(platform, at, &name, value).await)
    }

    async fn vault_delete(&self, platform: &PlatformId, at: Reading, name: String) -> Result<bool, HostError> {
        self.for_adapter(self.delete_from_vault(platform, at, &name).await)
    }
}
