use std::sync::Arc;

use async_trait::async_trait;
use azera_adapter_http::{AccountStore, StoreError};
use azera_memory::{ListedAccount, Memory};
use azera_types::{PersonId, PlatformId};
use serde_json::Value;

/// Accounts in the record.
pub struct RecordAccounts {
    memory: Arc<Memory>,
    platform: PlatformId,
}

impl RecordAccounts {
    pub fn new(memory: Arc<Memory>, platform: PlatformId) -> Self {
        Self { memory, platform }
    }

    /// Works on the record on a blocking thread.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Memory, &PlatformId) -> Result<T, azera_memory::Error> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (memory, platform) = (self.memory.clone(), self.platform.clone());
        let done = tokio::task::spawn_blocking(move || work(&memory, &platform)).await;
        done.map_err(|error| StoreError(error.to_string()))?.map_err(|error| StoreError(error.to_string()))
    }
}

#[async_trait]
impl AccountStore for RecordAccounts {
    async fn load(&self) -> Result<Vec<(PersonId, Result<Value, StoreError>)>, StoreError> {
        let listed = self.work(|memory, platform| memory.accounts().list(platform)).await?;
        let read = |(person, account): ListedAccount| (person, account.map_err(|error| StoreError(error.to_string())));
        Ok(listed.into_iter().map(read).collect())
    }

    async fn save(&self, person: &PersonId, account: &Value) -> Result<(), StoreError> {
        let (person, account) = (person.clone(), account.clone());
        self.work(move |memory, platform| memory.accounts().put(platform, &person, &account)).await
    }

    async fn forget(&self, person: &PersonId) -> Result<(), StoreError> {
        let person = person.clone();
        self.work(move |memory, platform| memory.accounts().forget(platform, &person)).await
    }
}
