//! The backups of the record for the web: the folder that the job of `azera run` writes.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use azera_adapter_http::{BackupError, BackupList, BackupState, BackupSummary, Backups, StoreError};
use azera_config::Config;
use azera_memory::Memory;
use azera_memory_backup::{Backup, Inspection};
use azera_types::{Clock, SystemClock};

use crate::backup::BackupJob;
use crate::bootstrap::App;

/// The backup folder, and the job that writes it.
#[derive(Clone)]
pub struct RecordBackups {
    memory: Arc<Memory>,
    job: Arc<BackupJob>,
    every_minutes: Option<u32>,
}

fn failed(error: impl Into<anyhow::Error>) -> StoreError {
    StoreError(format!("{:#}", error.into()))
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn summary(backup: &Backup) -> BackupSummary {
    let count = |table: &str| backup.manifest.rows.get(table).copied().unwrap_or(0);
    BackupSummary {
        name: name(&backup.path),
        at: backup.manifest.made_at,
        messages: count("messages"),
        memories: count("memories"),
        bytes: backup.file_bytes,
    }
}

impl RecordBackups {
    pub fn new(app: &App, config: &Config) -> Self {
        let every_minutes = config.backup.enabled.then_some(config.backup.every_minutes);
        Self { memory: app.memory.clone(), job: app.backups.clone(), every_minutes }
    }

    /// Works on the folder on a blocking thread.
    async fn work<T: Send + 'static>(&self, work: impl FnOnce(&Self) -> T + Send + 'static) -> Result<T, StoreError> {
        let this = self.clone();
        tokio::task::spawn_blocking(move || work(&this)).await.map_err(failed)
    }

    fn list_now(&self) -> Result<BackupList, StoreError> {
        let folder = self.job.folder();
        let found = folder.list().map_err(failed)?;
        // The folder may hold backups of other records.
        let record = self.memory.record();
        let own = found.backups.iter().filter(|backup| backup.manifest.record == record.identity());
        Ok(BackupList {
            folder: folder.dir().display().to_string(),
            every_minutes: self.every_minutes,
            backups: own.rev().map(summary).collect(),
            unreadable: found.unreadable.iter().map(|(path, _)| name(path)).collect(),
        })
    }

    fn verify_now(&self, wanted: &str) -> Result<BackupState, BackupError> {
        let found = self.job.folder().list().map_err(failed)?;
        if found.unreadable.iter().any(|(path, _)| name(path) == wanted) {
            return Ok(BackupState::Damaged);
        }
        let backup = found.backups.iter().find(|backup| name(&backup.path) == wanted).ok_or(BackupError::Missing)?;
        match backup.inspect(&mut |_| {}) {
            Ok(Inspection::Whole) => Ok(BackupState::Whole),
            Ok(Inspection::FilesMissing(missing)) => {
                Ok(BackupState::FilesMissing(u64::try_from(missing).unwrap_or(u64::MAX)))
            }
            Ok(Inspection::Removed) => Err(BackupError::Missing),
            Err(error) => {
                tracing::warn!(%error, "a backup is damaged");
                Ok(BackupState::Damaged)
            }
        }
    }
}

#[async_trait]
impl Backups for RecordBackups {
    async fn list(&self) -> Result<BackupList, StoreError> {
        self.work(Self::list_now).await?
    }

    async fn make(&self) -> Result<BackupSummary, StoreError> {
        let made = self.work(|this| this.job.make_now(SystemClock.now())).await?;
        made.map(|backup| summary(&backup)).map_err(failed)
    }

    async fn verify(&self, name: &str) -> Result<BackupState, BackupError> {
        let name = name.to_owned();
        self.work(move |this| this.verify_now(&name)).await?
    }
}
