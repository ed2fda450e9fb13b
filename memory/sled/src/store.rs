use std::collections::HashSet;
use std::ffi::OsString;
use std::ops::Bound::{Excluded, Included};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering as Atomic};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use azera_memory::{Batch, Change, Durability, Entry, Error, Order, Store, Table};

use crate::database::{Database, owned};
use crate::generation::Generations;
use crate::recording::Recording;
use crate::watermark::Watermark;

/// Bytes of pages that sled caches. sled's default is a gigabyte. A turn reads a few dozen recent rows, and an uncached
/// page costs one read of a file that the system caches anyway.
pub(crate) const CACHE_BYTES: u64 = 64 * 1024 * 1024;

/// Key of the number of the last batch, outside of all tables.
const LAST_BATCH: &[u8] = &[u8::MAX];

/// The record on sled.
///
/// Locks are taken in the order `copying`, `writing`, `flushed`, `open`.
pub struct SledStore {
    pub(crate) open: RwLock<Open>,
    /// Number of the last applied batch. It changes only while `open` is locked for writing.
    pub(crate) applied: AtomicU64,
    pub(crate) flushed: Mutex<Flushed>,
    /// Held while a batch is applied. Batches applied during a rewrite or a dump are recorded here, to be repeated on
    /// the copy.
    pub(crate) writing: Mutex<Recording>,
    /// Held while the store is copied.
    pub(crate) copying: Mutex<()>,
    /// True after a failed write: sled refuses all changes until the store is opened again (`reopening`). A failed
    /// flush may have lost pages that a second flush would report as written.
    pub(crate) failed: AtomicBool,
    /// How often it was opened again. A batch applied before and not flushed is then gone, although a later one may
    /// have its number.
    pub(crate) reopenings: AtomicU64,
    /// True if the failed write was due to a full disk.
    pub(crate) full: AtomicBool,
    /// True if reads fail, too, since then.
    pub(crate) unreadable: AtomicBool,
}

pub(crate) struct Open {
    pub(crate) generations: Generations,
    /// Shared with threads that flush or copy it, so that others read and write meanwhile.
    pub(crate) database: Arc<Database>,
}

pub(crate) struct Flushed {
    /// Number of the last durable batch.
    pub(crate) batch: u64,
    pub(crate) watermark: Watermark,
    /// Overflow files that are durable.
    pub(crate) overflow: HashSet<OsString>,
    /// Time of the last attempt to open the store again.
    pub(crate) reopened: Option<Instant>,
}

impl Flushed {
    pub(crate) fn new(batch: u64, watermark: Watermark) -> Self {
        Self { batch, watermark, overflow: HashSet::new(), reopened: None }
    }
}

impl SledStore {
    /// Opens the store in `dir`, or creates it. Fails if another process uses it.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, Error> {
        let generations = Generations::open(dir.as_ref())?;
        let database = Database::open(&generations.path(), CACHE_BYTES)?;
        let last = last_batch(&database)?;
        let flushed = Flushed::new(0, Watermark::open(&generations.path(), last)?);
        let open = RwLock::new(Open { generations, database: Arc::new(database) });
        Ok(Self {
            open,
            applied: AtomicU64::new(last),
            flushed: Mutex::new(flushed),
            writing: Mutex::default(),
            copying: Mutex::default(),
            failed: AtomicBool::new(false),
            reopenings: AtomicU64::new(0),
            full: AtomicBool::new(false),
            unreadable: AtomicBool::new(false),
        })
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Open> {
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Open> {
        self.open.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a failed write and returns its error.
    fn fail(&self, error: Error) -> Error {
        self.full.store(matches!(error, Error::Full { .. }), Atomic::Release);
        self.failed.store(true, Atomic::Release);
        error
    }

    /// Runs a read. A read in sled completes pending work such as splitting a page, and fails if a background write has
    /// failed. Most operations begin with a read, so this then opens the store again.
    fn reading<T>(&self, work: impl FnOnce(&sled::Db) -> Result<T, sled::Error>) -> Result<T, Error> {
        let what = "reading the store";
        if self.unreadable.load(Atomic::Acquire) {
            match self.reopen_if_failed() {
                // The caller may have read rows that are gone now.
                Ok(()) => {
                    let why = "it was opened again after a failure to write: what was read before may be gone".into();
                    return Err(Error::Backend { what, why, transient: true });
                }
                Err(error) if self.read().database.is_closed() => return Err(error),
                // Some rows can still be read.
                Err(_) => {}
            }
        }
        // Held until the failure is recorded, so that it does not count for the store opened again.
        let open = self.read();
        open.database.run(what, work).map_err(|error| match error {
            // A read may fail by itself, too; opening again would not help then.
            Error::Full { .. } | Error::Io { .. } if open.database.run(what, |db| db.flush()).is_err() => {
                self.unreadable.store(true, Atomic::Release);
                self.fail(error)
            }
            _ => error,
        })
    }

    /// Returns the error for changes while `failed` is set.
    pub(crate) fn not_written(&self) -> Error {
        let what = "writing to the store";
        if self.full.load(Atomic::Acquire) {
            return Error::Full { what };
        }
        Error::Backend { what, why: "an earlier write failed".into(), transient: true }
    }

    /// Makes everything up to `batch` durable; `reopenings` is the count when it was applied. A caller that waits for
    /// another flush usually finds its own batch flushed with it.
    fn flush_batch(&self, batch: u64, reopenings: u64) -> Result<(), Error> {
        let mut flushed = hold(&self.flushed);
        if self.reopenings.load(Atomic::Acquire) != reopenings {
            return Err(self.not_written());
        }
        if flushed.batch >= batch {
            return Ok(());
        }
        if self.failed.load(Atomic::Acquire) {
            return Err(self.not_written());
        }
        let database = Arc::clone(&self.read().database);
        let applied = self.applied.load(Atomic::Acquire);
        if let Err(error) = database.flush(&mut flushed.overflow) {
            return Err(self.fail(error));
        }
        flushed.batch = applied;
        flushed.watermark.raise(applied)
    }
}

impl Store for SledStore {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let value = self.reading(|db| db.get(row(table, key)))?;
        Ok(value.map(|value| value.to_vec()))
    }

    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: Option<&[u8]>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<Entry>, Error> {
        let first = row(table, prefix);
        let Some(behind) = behind(&first) else { return Ok(Vec::new()) };
        let after = after.map(|after| row(table, after));
        let range = match (order, after) {
            (Order::Ascending, Some(after)) if after >= behind => return Ok(Vec::new()),
            (Order::Ascending, Some(after)) if after >= first => (Excluded(after), Excluded(behind)),
            (Order::Descending, Some(after)) if after <= first => return Ok(Vec::new()),
            (Order::Descending, Some(after)) if after < behind => (Included(first), Excluded(after)),
            _ => (Included(first), Excluded(behind)),
        };
        self.reading(|db| {
            let rows = db.range::<Vec<u8>, _>(range);
            let own = |entry: Result<_, _>| entry.map(|entry| owned(entry, 1));
            match order {
                Order::Ascending => rows.take(limit).map(own).collect(),
                Order::Descending => rows.rev().take(limit).map(own).collect(),
            }
        })
    }

    fn ready(&self) -> Result<(), Error> {
        self.reopen_if_failed()
    }

    fn commit(&self, batch: Batch, durability: Durability) -> Result<(), Error> {
        batch.check()?;
        // This does not open the store again, because rows that the batch is based on may then be gone (`ready`).
        if self.failed.load(Atomic::Acquire) {
            return Err(self.not_written());
        }
        let (applied, reopenings) = {
            let mut recording = hold(&self.writing);
            let number = self.applied.load(Atomic::Acquire) + 1;
            let rows = rows(&batch, number);
            // sled's scans may see half a batch. So nobody reads while one is applied, which takes microseconds.
            let open = self.write();
            if let Err(error) = open.database.run("writing to the store", |db| db.apply_batch(rows)) {
                return Err(self.fail(error));
            }
            self.applied.store(number, Atomic::Release);
            recording.add(number, batch);
            (number, self.reopenings.load(Atomic::Acquire))
        };
        match durability {
            Durability::Flushed => self.flush_batch(applied, reopenings),
            Durability::Soon => Ok(()),
        }
    }

    fn flush(&self) -> Result<(), Error> {
        let (applied, reopenings) = {
            let _applying = self.read();
            (self.applied.load(Atomic::Acquire), self.reopenings.load(Atomic::Acquire))
        };
        // A batch that failed may be partly visible.
        if self.failed.load(Atomic::Acquire) {
            return Err(self.not_written());
        }
        self.flush_batch(applied, reopenings)
    }

    /// Others read and write during the copy, and wait only while it is put in use.
    fn rewrite(&self) -> Result<(), Error> {
        let _copying = hold(&self.copying);
        let (next, path) = self.read().generations.next()?;
        let fresh = Database::open(&path, CACHE_BYTES)?;
        let _writing = self.copy_to(&fresh)?;
        let last = last_batch(&fresh)?;
        let mut watermark = Watermark::open(&path, last)?;
        watermark.raise(last)?;
        let mut flushed = hold(&self.flushed);
        if self.failed.load(Atomic::Acquire) {
            return Err(self.not_written());
        }
        let mut open = self.write();
        let old = open.generations.adopt(next)?;
        open.database = Arc::new(fresh);
        *flushed = Flushed::new(last, watermark);
        // Nothing may be acknowledged before the switch is durable, because a crash would undo it together with the new
        // generation.
        if let Err(error) = open.generations.sync() {
            return Err(self.fail(error));
        }
        open.generations.remove(old)
    }

    fn dump(&self, take: &mut dyn FnMut(Batch) -> Result<(), Error>) -> Result<u64, Error> {
        self.hand_out(take)
    }

    fn revision(&self) -> u64 {
        self.applied.load(Atomic::Acquire)
    }

    fn disk_bytes(&self) -> Result<u64, Error> {
        self.read().database.disk_bytes()
    }
}

pub(crate) fn hold<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the number of the last batch; 0 before the first.
pub(crate) fn last_batch(database: &Database) -> Result<u64, Error> {
    let bytes = database.run("opening the store", |db| db.get(LAST_BATCH))?;
    Ok(bytes.and_then(|bytes| bytes.as_ref().try_into().ok()).map_or(0, u64::from_be_bytes))
}

/// Returns the sled batch for this batch and its number.
pub(crate) fn rows(batch: &Batch, number: u64) -> sled::Batch {
    let mut rows = sled::Batch::default();
    for change in batch.changes() {
        match change {
            Change::Put(table, key, value) => rows.insert(row(*table, key), value.as_slice()),
            Change::Remove(table, key) => rows.remove(row(*table, key)),
        }
    }
    rows.insert(LAST_BATCH, &number.to_be_bytes());
    rows
}

/// Returns the key of a row in the single tree.
fn row(table: Table, key: &[u8]) -> Vec<u8> {
    let mut row = Vec::with_capacity(1 + key.len());
    row.push(table as u8);
    row.extend_from_slice(key);
    row
}

/// Returns the smallest key above every key that starts with `prefix`.
fn behind(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut behind = prefix.get(..=last)?.to_vec();
    *behind.last_mut()? += 1;
    Some(behind)
}
