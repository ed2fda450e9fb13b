//! The floor of free disk space: below it, the record takes nothing new, so that no store runs into a full disk.
//!
//! Writes to a full disk fail cleanly in the record, the vector index and the text index. But the text index, the
//! models and SQLite map files into memory, where a full disk can end the process without a word.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use azera_memory::{Batch, Durability, Entry, Error, Order, Store, Table};

/// Returns the bytes that this user may still write to the disk of a folder.
pub fn free_bytes(dir: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(dir)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Asks for the free bytes of a disk.
pub type Probe = Box<dyn Fn() -> io::Result<u64> + Send + Sync>;

/// A store that takes no new work while its disk has less free space than the floor. What was begun is finished.
pub struct RoomyStore {
    store: Arc<dyn Store>,
    dir: PathBuf,
    floor_bytes: u64,
    probe: Probe,
    /// Whether the last answer was below the floor.
    low: AtomicBool,
}

impl RoomyStore {
    /// Wraps a store whose files lie in `dir`.
    pub fn new(store: Arc<dyn Store>, dir: &Path, floor_bytes: u64) -> Self {
        let folder = dir.to_owned();
        Self::with_probe(store, dir, floor_bytes, Box::new(move || free_bytes(&folder)))
    }

    /// Wraps a store, and asks `probe` for the free space.
    pub fn with_probe(store: Arc<dyn Store>, dir: &Path, floor_bytes: u64, probe: Probe) -> Self {
        Self { store, dir: dir.to_owned(), floor_bytes, probe, low: AtomicBool::new(false) }
    }

    fn report(&self, free_bytes: u64, low: bool) {
        let (dir, free_mb, floor_mb) = (self.dir.display(), free_bytes >> 20, self.floor_bytes >> 20);
        if low {
            tracing::error!(
                %dir, free_mb, floor_mb,
                "too little room on the disk: no new message is taken until there is more (data.min_free_mb)"
            );
        } else {
            tracing::warn!(%dir, free_mb, floor_mb, "there is room on the disk again");
        }
    }
}

impl Store for RoomyStore {
    fn room(&self) -> Result<(), Error> {
        // A disk that cannot be asked is no full disk.
        let Ok(free) = (self.probe)() else { return Ok(()) };
        let low = free < self.floor_bytes;
        if self.low.swap(low, Ordering::AcqRel) != low {
            self.report(free, low);
        }
        if low { Err(Error::Full { what: "taking new work" }) } else { Ok(()) }
    }
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.store.get(table, key)
    }
    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: Option<&[u8]>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<Entry>, Error> {
        self.store.scan(table, prefix, after, order, limit)
    }
    fn ready(&self) -> Result<(), Error> {
        self.store.ready()
    }
    fn commit(&self, batch: Batch, durability: Durability) -> Result<(), Error> {
        self.store.commit(batch, durability)
    }
    fn flush(&self) -> Result<(), Error> {
        self.store.flush()
    }
    fn rewrite(&self) -> Result<(), Error> {
        self.store.rewrite()
    }
    fn dump(&self, take: &mut dyn FnMut(Batch) -> Result<(), Error>) -> Result<u64, Error> {
        self.store.dump(take)
    }
    fn revision(&self) -> u64 {
        self.store.revision()
    }
    fn disk_bytes(&self) -> Result<u64, Error> {
        self.store.disk_bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use azera_memory::RamStore;

    use super::*;

    #[test]
    fn new_work_is_refused_below_the_floor_and_what_was_begun_goes_on() {
        let free = Arc::new(AtomicU64::new(0));
        let asked = free.clone();
        let probe: Probe = Box::new(move || Ok(asked.load(Ordering::Relaxed)));
        let store = RoomyStore::with_probe(Arc::new(RamStore::new()), Path::new("/data"), 100, probe);
        assert!(matches!(store.room(), Err(Error::Full { .. })));
        let mut batch = Batch::new();
        batch.put(Table::Meta, "key", "value");
        store.commit(batch, Durability::Flushed).unwrap();
        free.store(100, Ordering::Relaxed);
        store.room().unwrap();
    }

    #[test]
    fn a_disk_that_cannot_be_asked_is_not_full() {
        let probe: Probe = Box::new(|| Err(io::ErrorKind::Unsupported.into()));
        let store = RoomyStore::with_probe(Arc::new(RamStore::new()), Path::new("/data"), 100, probe);
        store.room().unwrap();
        assert!(free_bytes(Path::new("/")).unwrap() > 0);
    }
}
