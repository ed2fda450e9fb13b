use async_trait::async_trait;
use azera_types::Timestamp;
use thiserror::Error;

use crate::StoreError;

/// A backup of the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupSummary {
    /// The name of its file, which is unique in the folder.
    pub name: String,
    /// When it was made.
    pub at: Timestamp,
    /// Number of messages in it.
    pub messages: u64,
    /// Number of memories in it.
    pub memories: u64,
    /// The size of its file.
    pub bytes: u64,
}

/// The backups of the record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackupList {
    /// The folder.
    pub folder: String,
    /// Minutes between two backups that Azera makes by itself; `None` if it makes none.
    pub every_minutes: Option<u32>,
    /// The backups, newest first.
    pub backups: Vec<BackupSummary>,
    /// Names of files that look like a backup and cannot be read.
    pub unreadable: Vec<String>,
}

/// What a look at every byte of a backup found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackupState {
    /// It can be restored.
    Whole,
    /// Its rows are whole, and this number of files of messages is missing or damaged.
    FilesMissing(u64),
    /// It cannot be restored.
    Damaged,
}

/// Why a backup was not made or checked.
#[derive(Debug, Error)]
pub enum BackupError {
    /// There is no backup of that name.
    #[error("there is no such backup")]
    Missing,
    /// The disk or the record failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The backups of the record, for owners. They hold what everybody said, so no file of them is ever sent.
#[async_trait]
pub trait Backups: Send + Sync {
    /// Returns the backups.
    async fn list(&self) -> Result<BackupList, StoreError>;

    /// Makes a backup, and removes old ones as the configuration says.
    async fn make(&self) -> Result<BackupSummary, StoreError>;

    /// Reads a whole backup, and compares it with its checksums.
    async fn verify(&self, name: &str) -> Result<BackupState, BackupError>;
}
