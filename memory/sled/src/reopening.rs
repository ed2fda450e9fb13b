//! Recovery from a failed write. After one failed write, usually on a full disk, sled refuses all others. Once there is
//! space, the store opens its files again, as after a crash.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering as Atomic;
use std::sync::{Arc, TryLockError};
use std::time::{Duration, Instant};

use azera_memory::Error;

use crate::database::{Database, SNAPSHOT};
use crate::store::{CACHE_BYTES, Flushed, SledStore, hold, last_batch};
use crate::watermark::Watermark;

/// Wait between two attempts, each of which costs as much as a start.
pub(crate) const WAIT: Duration = Duration::from_secs(1);

/// Bytes that must be free before an attempt: opening writes a snapshot of sled's page table and a new segment.
pub(crate) const ROOM_BYTES: usize = 4 * 1024 * 1024;

/// Bytes written to test for free space. They are not zeros, because some file systems do not store zeros.
static PAGE: [u8; 64 * 1024] = [1; 64 * 1024];

/// File written to test for free space.
const ROOM: &str = "room";

impl SledStore {
    /// Opens the store again if a write failed and there is space now. Until the old files are closed for this, most
    /// rows can be read. If opening then fails, nothing can be read until an attempt succeeds.
    ///
    /// Flushed changes are there afterwards; others are gone, as after a crash.
    pub(crate) fn reopen_if_failed(&self) -> Result<(), Error> {
        if !self.failed.load(Atomic::Acquire) {
            return Ok(());
        }
        // A copy in progress keeps the database open.
        let _copying = match self.copying.try_lock() {
            Ok(copying) => copying,
            Err(TryLockError::Poisoned(copying)) => copying.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(self.not_written()),
        };
        let _writing = hold(&self.writing);
        let mut flushed = hold(&self.flushed);
        if !self.failed.load(Atomic::Acquire) {
            return Ok(());
        }
        if flushed.reopened.is_some_and(|at| at.elapsed() < WAIT) {
            return Err(self.not_written());
        }
        flushed.reopened = Some(Instant::now());
        let mut open = self.write();
        let path = open.generations.path();
        ensure_disk_space(&path, ROOM_BYTES + snapshot_bytes(&path)?)?;
        open.generations.sync()?;
        let Some(database) = Arc::get_mut(&mut open.database) else { return Err(self.not_written()) };
        // sled locks its files, so the old database must be closed first.
        self.unreadable.store(true, Atomic::Release);
        database.close();
        let database = Database::open(&path, CACHE_BYTES)?;
        let last = last_batch(&database)?;
        let watermark = Watermark::open(&path, last)?;
        if last < flushed.batch {
            let why = format!("{} flushed changes are missing; restore a backup", flushed.batch - last);
            return Err(Error::Backend { what: "opening the store again", why, transient: false });
        }
        *flushed = Flushed { reopened: flushed.reopened, ..Flushed::new(0, watermark) };
        open.database = Arc::new(database);
        self.applied.store(last, Atomic::Release);
        self.reopenings.fetch_add(1, Atomic::AcqRel);
        self.unreadable.store(false, Atomic::Release);
        self.failed.store(false, Atomic::Release);
        tracing::warn!(dir = %path.display(), "reopened the store after a failed write");
        Ok(())
    }
}

/// Returns the size in bytes of the snapshots of sled's page table; opening writes another one.
fn snapshot_bytes(dir: &Path) -> Result<usize, Error> {
    let what = "looking at the snapshots of the store";
    let mut bytes = 0;
    for entry in fs::read_dir(dir).map_err(Error::io(what))? {
        let entry = entry.map_err(Error::io(what))?;
        if entry.file_name().to_string_lossy().starts_with(SNAPSHOT) {
            // sled may remove a snapshot at any moment.
            bytes += entry.metadata().map_or(0, |metadata| metadata.len());
        }
    }
    Ok(usize::try_from(bytes).unwrap_or(usize::MAX / 2))
}

/// Fails if this many bytes do not fit on the disk.
pub(crate) fn ensure_disk_space(dir: &Path, bytes: usize) -> Result<(), Error> {
    let path = dir.join(ROOM);
    let written = File::create(&path).and_then(|mut file| {
        for _ in 0..bytes.div_ceil(PAGE.len()) {
            file.write_all(&PAGE)?;
        }
        file.sync_all()
    });
    let removed = fs::remove_file(&path);
    written.and(removed).map_err(Error::io("making sure of room for the store"))
}

#[cfg(test)]
mod tests {
    use azera_memory::{Batch, Durability, Store, Table};

    use super::*;

    fn put(store: &SledStore, value: &[u8]) -> Result<(), Error> {
        let mut batch = Batch::new();
        batch.put(Table::Messages, b"key", value);
        store.commit(batch, Durability::Flushed)
    }

    #[test]
    fn a_read_reopens_a_store_that_a_failed_write_made_unreadable() {
        let dir = tempfile::tempdir().unwrap();
        let store = SledStore::open(dir.path()).unwrap();
        let get = || store.get(Table::Messages, b"key");
        put(&store, b"value").unwrap();
        // This is the state after a background write failed and a read noticed it.
        store.failed.store(true, Atomic::Release);
        store.unreadable.store(true, Atomic::Release);
        let copying = hold(&store.copying);
        assert_eq!(get().unwrap().as_deref(), Some(b"value".as_slice()), "a read does not wait for the copy");
        drop(copying);
        assert_eq!(store.reopenings.load(Atomic::Acquire), 0);
        assert!(put(&store, b"other").is_err());
        assert!(get().unwrap_err().is_transient(), "data read earlier may be lost");
        assert_eq!(store.reopenings.load(Atomic::Acquire), 1);
        assert_eq!(get().unwrap().as_deref(), Some(b"value".as_slice()));
        put(&store, b"other").unwrap();
        assert_eq!(get().unwrap().as_deref(), Some(b"other".as_slice()));
    }
}
