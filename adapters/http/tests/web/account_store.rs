//! A store of accounts in memory, which a test can damage or hold.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use azera_adapter_http::{AccountStore, StoreError};
use azera_types::PersonId;
use serde_json::Value;
use tokio::sync::{Notify, Semaphore};

/// Accounts in memory.
pub struct Accounts {
    /// As the record has them: in bytes.
    stored: Mutex<HashMap<PersonId, Vec<u8>>>,
    /// The person whose account was damaged.
    damaged: Mutex<Option<PersonId>>,
    /// A change takes a permit before it is stored.
    open: Semaphore,
    begun: Notify,
    saves: AtomicUsize,
}

impl Default for Accounts {
    fn default() -> Self {
        Self {
            stored: Mutex::default(),
            damaged: Mutex::default(),
            open: Semaphore::new(Semaphore::MAX_PERMITS),
            begun: Notify::new(),
            saves: AtomicUsize::new(0),
        }
    }
}

impl Accounts {
    /// Returns how many changes were stored.
    pub fn saves(&self) -> usize {
        self.saves.load(Ordering::Relaxed)
    }

    pub fn text(&self) -> String {
        let stored = self.stored.lock().unwrap();
        stored.values().map(|account| String::from_utf8_lossy(account).into_owned()).collect()
    }

    /// Returns the person of an account that is stored, by its name.
    pub fn person(&self, name: &str) -> PersonId {
        let is_named = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(&format!("\"name\":\"{name}\""));
        let stored = self.stored.lock().unwrap();
        let named = stored.iter().find(|(_, bytes)| is_named(bytes)).map(|(person, _)| person.clone());
        named.unwrap_or_else(|| self.damaged.lock().unwrap().clone().unwrap())
    }

    /// Puts other bytes in the place of an account.
    pub fn damage(&self, name: &str, bytes: &[u8]) {
        let person = self.person(name);
        self.stored.lock().unwrap().insert(person.clone(), bytes.to_vec());
        *self.damaged.lock().unwrap() = Some(person);
    }

    /// Lets changes wait until [`Self::release`].
    pub fn hold(&self) {
        self.open.forget_permits(Semaphore::MAX_PERMITS);
    }

    /// Waits until a change waits.
    pub async fn held(&self) {
        self.begun.notified().await;
    }

    pub fn release(&self) {
        self.open.add_permits(Semaphore::MAX_PERMITS);
    }
}

#[async_trait]
impl AccountStore for Accounts {
    async fn load(&self) -> Result<Vec<(PersonId, Result<Value, StoreError>)>, StoreError> {
        let read = |bytes: &[u8]| serde_json::from_slice(bytes).map_err(|error| StoreError(error.to_string()));
        let stored = self.stored.lock().unwrap();
        Ok(stored.iter().map(|(person, account)| (person.clone(), read(account))).collect())
    }

    async fn save(&self, person: &PersonId, account: &Value) -> Result<(), StoreError> {
        self.saves.fetch_add(1, Ordering::Relaxed);
        if self.open.available_permits() == 0 {
            self.begun.notify_one();
        }
        let _permit = self.open.acquire().await.unwrap();
        self.stored.lock().unwrap().insert(person.clone(), serde_json::to_vec(account).unwrap());
        Ok(())
    }

    async fn forget(&self, person: &PersonId) -> Result<(), StoreError> {
        self.stored.lock().unwrap().remove(person);
        Ok(())
    }
}
