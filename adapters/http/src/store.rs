use async_trait::async_trait;
use azera_types::PersonId;
use serde_json::Value;

use crate::{LogLevel, LogLine, StoreError};

/// Where the accounts of the web are stored: one value for each account. It is part of the record, so it is backed up, and a
/// forgotten account leaves the backups, too.
#[async_trait]
pub trait AccountStore: Send + Sync {
    /// Returns every account. One that cannot be read is an error of its own.
    async fn load(&self) -> Result<Vec<(PersonId, Result<Value, StoreError>)>, StoreError>;

    /// Stores an account, flushed.
    async fn save(&self, person: &PersonId, account: &Value) -> Result<(), StoreError>;

    /// Removes an account for good, also from backups.
    async fn forget(&self, person: &PersonId) -> Result<(), StoreError>;
}

/// The state of the whole program, for operators.
#[async_trait]
pub trait Operations: Send + Sync {
    /// Returns why the program cannot answer people now; `None` if it can.
    async fn trouble(&self) -> Option<String>;

    /// Returns all measurements in the text format of Prometheus, version 0.0.4. They name no person and contain no text
    /// that people wrote.
    async fn metrics(&self) -> Result<String, StoreError>;

    /// Returns the newest `most` lines of the log since the start that are at least this grave, the newest last. They hold
    /// nothing that people wrote.
    fn log(&self, least: LogLevel, most: usize) -> Vec<LogLine>;
}
