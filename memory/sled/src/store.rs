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

/// Bytes of pages sled keeps in memory. sled's own default is a gigabyte; a turn reads a few dozen rows written lately,
/// and a page that is not cached costs one read of a file that the system caches anyway.
pub(crate) const CACHE_BYTES: u64 = 64 * 1024 * 1024;

/// The key of the number of the last batch, outside of every table.
const LAST_BATCH: &[u8] = &[u8::MAX];

/// The record on sled.
///
/// Locks are taken in the order `copying`, `writing`, `flushed`, `open`.
pub struct SledStore {
    pub(crate) open: RwLock<Open>,
    /// The number of the last batch applied. Changed only while `open` is held for writing.
    pub(crate) applied: AtomicU64,
    pub(crate) flushed: Mutex<Flushed>,
    /// Held while a batch is applied. What is applied while a rewrite or a dump copies rows is recorded here, to be done
    /// again on the copy.
    pub(crate) writing: Mutex<Recording>,
    /// Held while the store is copied.
    pub(crate) copying: Mutex<()>,
    /// Something was not written, so sled takes in nothing more until it is opened again (`reopening`). A flush that
    /// failed may have lost pages that a second one would then report as written.
    pub(crate) failed: AtomicBool,
    /// How often it was opened again since. A batch applied before that and not flushed is gone, although one applied
    /// after it may have its number.
    pub(crate) reopenings: AtomicU64,
    /// Whether that was for want of room.
    pub(crate) full: AtomicBool,
    /// Whether since then not even reading works.
    pub(crate) unreadable: AtomicBool,
}

pub(crate) struct Open {
    pub(crate) generations: Generations,
    /// Shared with whoever flushes or copies it, so that others read and write meanwhile.
    pub(crate) database: Arc<Database>,
}

pub(crate) struct Flushed {
    /// The number of the last batch that is durable.
    pub(crate) batch: u64,
    pub(crate) watermark: Watermark,
    /// Overflow files that are durable.
    pub(crate) overflow: HashSet<OsString>,
    /// When opening the store again was last tried.
    pub(crate) reopened: Option<Instant>,
}

impl Flushed {
    pub(crate) fn new(batch: u64, watermark: Watermark) -> Self {
        Self { batch, watermark, overflow: HashSet::new(), reopened: None }
    }
}

impl SledStore {
    /// Opens the store in `dir`, making it if there is none. Fails if another process uses it.
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

    /// Remembers that something was not written.
    fn fail(&self, error: Error) -> Error {
        self.full.store(matches!(error, Error::Full { .. }), Atomic::Release);
        self.failed.store(true, Atomic::Release);
        error
    }

    /// Reads. sled ends here what a write left to be done, such as splitting a page, and refuses to once a write in the
    /// background has failed. Most of what is done begins with a read, so this is then where the store is opened again.
    fn reading<T>(&self, work: impl FnOnce(&sled::Db) -> Result<T, sled::Error>) -> Result<T, Error> {
        let what = "reading the store";
        if self.unreadable.load(Atomic::Acquire) {
            match self.reopen_if_failed() {
                // Whoever asks may have read what is gone now.
                Ok(()) => {
                    let why = "it was opened again after a failure to write: what was read before may be gone".into();
                    return Err(Error::Backend { what, why, transient: true });
                }
                Err(error) if self.read().database.is_closed() => return Err(error),
                // Some of it can still be read.
                Err(_) => {}
            }
        }
        // Held until the failure is remembered, so that it is not taken for one of the store opened again.
        let open = self.read();
        open.database.run(what, work).map_err(|error| match error {
            // A read may fail by itself, too; that is nothing that opening again would mend.
            Error::Full { .. } | Error::Io { .. } if open.database.run(what, |db| db.flush()).is_err() => {
                self.unreadable.store(true, Atomic::Release);
                self.fail(error)
            }
            _ => error,
        })
    }

    /// Why nothing is taken in while `failed` is set.
    pub(crate) fn not_written(&self) -> Error {
        let what = "writing to the store";
        if self.full.load(Atomic::Acquire) {
            return Error::Full { what };
        }
        Error::Backend { what, why: "an earlier write failed".into(), transient: true }
    }

    /// Makes everything up to `batch` durable, which was applied after so many `reopenings`. Who waits here while another
    /// flushes finds their own batch flushed along with it more often than not.
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
        // Not opened again here: what the batch was built on may be gone after that (`ready`).
        if self.failed.load(Atomic::Acquire) {
            return Err(self.not_written());
        }
        let (applied, reopenings) = {
            let mut recording = hold(&self.writing);
            let number = self.applied.load(Atomic::Acquire) + 1;
            let rows = rows(&batch, number);
            // sled's scans may see half of a batch: nobody reads while one is applied, which is microseconds.
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
        // What failed to be applied may be read in part.
        if self.failed.load(Atomic::Acquire) {
            return Err(self.not_written());
        }
        self.flush_batch(applied, reopenings)
    }

    /// Others read and write while the rows are copied, and wait only while the copy is put in use.
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
        // Before that is durable nothing may be acknowledged: it would be in a generation that a crash takes back.
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

/// The number of the last batch that is there, 0 before the first.
pub(crate) fn last_batch(database: &Database) -> Result<u64, Error> {
    let bytes = database.run("opening the store", |db| db.get(LAST_BATCH))?;
    Ok(bytes.and_then(|bytes| bytes.as_ref().try_into().ok()).map_or(0, u64::from_be_bytes))
}

/// The batch of this number as it is applied.
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

/// The key of a row in the one tree.
fn row(table: Table, key: &[u8]) -> Vec<u8> {
    let mut row = Vec::with_capacity(1 + key.len());
    row.push(table as u8);
    row.extend_from_slice(key);
    row
}

/// The smallest key above every key that starts with `prefix`.
fn behind(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut behind = prefix.get(..=last)?.to_vec();
    *behind.last_mut()? += 1;
    Some(behind)
}
