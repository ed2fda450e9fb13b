//! Backups, for owners: which there are, a new one, and whether one is whole.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Method;
use schemars::JsonSchema;
use serde::Serialize;

use crate::accounts::{Caller, Scope};
use crate::backups::{BackupError, BackupState, BackupSummary};
use crate::endpoint::{Endpoint, Need, Parted};
use crate::problem::Problem;
use crate::web::Shared;

/// A backup.
#[derive(Debug, Serialize, JsonSchema)]
struct Backup {
    /// The name of its file.
    name: String,
    /// When it was made (RFC 3339).
    created_at: String,
    /// Number of messages in it.
    messages: u64,
    /// Number of memories in it.
    memories: u64,
    /// The size of its file in bytes.
    size: u64,
}

/// The backups, newest first.
#[derive(Debug, Serialize, JsonSchema)]
struct Listed {
    /// The backups.
    items: Vec<Backup>,
    /// How many there are.
    total: usize,
    /// The folder on the server.
    folder: String,
    /// Minutes between two backups that Azera makes by itself if anything changed; null if it makes none.
    every_minutes: Option<u32>,
    /// Names of files that look like a backup and cannot be read.
    unreadable: Vec<String>,
}

/// Whether a backup can be restored.
#[derive(Debug, Serialize, JsonSchema)]
struct Verified {
    /// `whole`, `files_missing` or `damaged`.
    status: &'static str,
    /// Number of files of messages that are missing or damaged.
    missing_files: u64,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let admin = Need::Scope(Scope::Admin);
    vec![
        Endpoint::new(Method::GET, "/api/backups", admin, "List the backups", list).answers::<Listed>(),
        Endpoint::new(Method::POST, "/api/backups", admin, "Make a backup now", make).answers::<Backup>(),
        Endpoint::new(Method::POST, "/api/backups/{name}/verify", admin, "Read a whole backup, and check it", verify)
            .answers::<Verified>(),
    ]
}

impl From<BackupSummary> for Backup {
    fn from(backup: BackupSummary) -> Self {
        let BackupSummary { name, at, messages, memories, bytes } = backup;
        Self { name, created_at: at.to_string(), messages, memories, size: bytes }
    }
}

async fn list(State(shared): State<Arc<Shared>>) -> Result<axum::Json<Listed>, Problem> {
    let found = shared.backups()?.list().await.map_err(|error| Problem::internal(&error))?;
    let items: Vec<Backup> = found.backups.into_iter().map(Backup::from).collect();
    Ok(axum::Json(Listed {
        total: items.len(),
        items,
        folder: found.folder,
        every_minutes: found.every_minutes,
        unreadable: found.unreadable,
    }))
}

async fn make(State(shared): State<Arc<Shared>>, caller: Caller) -> Result<axum::Json<Backup>, Problem> {
    shared.count_message(&caller)?;
    let made = shared.backups()?.make().await.map_err(|error| Problem::internal(&error))?;
    Ok(axum::Json(made.into()))
}

async fn verify(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Parted(name): Parted<String>,
) -> Result<axum::Json<Verified>, Problem> {
    shared.count_message(&caller)?;
    let state = shared.backups()?.verify(&name).await.map_err(|error| match error {
        BackupError::Missing => Problem::not_found("backup"),
        BackupError::Store(error) => Problem::internal(&error),
    })?;
    let (status, missing_files) = match state {
        BackupState::Whole => ("whole", 0),
        BackupState::FilesMissing(missing) => ("files_missing", missing),
        BackupState::Damaged => ("damaged", 0),
    };
    Ok(axum::Json(Verified { status, missing_files }))
}
