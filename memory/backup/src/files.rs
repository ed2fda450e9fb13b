//! The files of messages beside the backups: each file once, however many backups contain it. A file goes when no backup
//! of the record contains it any more.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use azera_memory::{BlobStore, Record};
use azera_memory_blobs::DiskBlobs;
use azera_types::BlobId;

use crate::Error;
use crate::file::Backup;

/// Returns the files beside a backup of this record.
pub(crate) fn beside(backup: &Path, record: &str) -> DiskBlobs {
    let folder = backup.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    in_folder(folder, record)
}

/// Returns the files in a folder of backups.
pub(crate) fn in_folder(dir: &Path, record: &str) -> DiskBlobs {
    DiskBlobs::at(path(dir, record))
}

/// Returns the files in a folder of backups for the process that owns the record, and removes half-written ones.
pub(crate) fn to_write(dir: &Path, record: &str) -> Result<DiskBlobs, Error> {
    Ok(DiskBlobs::open(path(dir, record))?)
}

fn path(dir: &Path, record: &str) -> PathBuf {
    dir.join(format!("files-{record}"))
}

/// Copies a file of the record beside its backups, unless it is there whole: each backup reads every file that it
/// contains and compares the SHA-256. A file that went meanwhile is left out: it was forgotten, or removed to make room.
pub(crate) fn copy(record: &Record<'_>, to: &DiskBlobs, id: &BlobId) -> Result<(), Error> {
    match to.get(id) {
        Ok(Some(_)) => return Ok(()),
        Ok(None) => {}
        Err(error) => tracing::warn!(%error, "a file beside the backups is damaged; copying it again"),
    }
    match record.blob(id) {
        Ok(Some(bytes)) => Ok(to.put(id, &bytes)?),
        Ok(None) => Ok(()),
        // One damaged file must not block the backup.
        Err(error @ azera_memory::Error::Damaged { .. }) => {
            tracing::warn!(%error, "a file is not backed up");
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Removes the files that none of the backups contains.
pub(crate) fn sweep(store: &DiskBlobs, backups: &[Backup]) -> Result<(), Error> {
    let held = store.list()?;
    if held.is_empty() {
        return Ok(());
    }
    let mut wanted = BTreeSet::new();
    for backup in backups {
        wanted.extend(backup.files()?);
    }
    for (id, _) in held.into_iter().filter(|(id, _)| !wanted.contains(id)) {
        store.remove(&id)?;
    }
    Ok(())
}

/// Returns the size of the files beside the backups in bytes.
pub(crate) fn bytes(store: &DiskBlobs) -> Result<u64, Error> {
    Ok(store.list()?.iter().map(|(_, bytes)| bytes).sum())
}
