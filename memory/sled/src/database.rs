use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use azera_memory::{Entry, Error};

use crate::generation::sync_dir;

/// How often sled writes changes that nobody flushes, in milliseconds. A crash undoes at most this much.
const FLUSH_EVERY_MS: u64 = 1_000;

/// Attempts to open a locked store.
const LOCK_ATTEMPTS: u32 = 60;

/// Wait between these attempts.
const LOCK_WAIT: Duration = Duration::from_millis(50);

/// Prefix of the names of sled's snapshots.
pub(crate) const SNAPSHOT: &str = "snap.";

/// Suffix of a snapshot that is being written.
const TORN: &str = ".generating";

/// Bytes of keys and values that a copy writes at a time.
pub(crate) const COPY_BYTES: usize = 64 * 1024;

/// An open sled database in a directory of its own.
pub(crate) struct Database {
    /// Taken only by [`Database::close`].
    db: Option<sled::Db>,
    dir: PathBuf,
    /// A separate handle to sled's log for fsync. sled calls `sync_file_range`, which does not cover the file's length
    /// and the disk's own cache.
    log: File,
}

impl Database {
    /// Opens the database in `dir`, or creates it.
    pub(crate) fn open(dir: &Path, cache_bytes: u64) -> Result<Self, Error> {
        let open = || {
            guarded("opening the store", || {
                sled::Config::new()
                    .path(dir)
                    .cache_capacity(cache_bytes)
                    .flush_every_ms(Some(FLUSH_EVERY_MS))
                    .use_compression(false)
                    .open()
            })
        };
        let mut opened = open();
        // sled releases its lock in a background thread some time after the last handle is dropped. So a store that was
        // just closed by this process may still be locked.
        for _ in 0..LOCK_ATTEMPTS {
            match opened {
                Err(ref error) if is_locked(error) => std::thread::sleep(LOCK_WAIT),
                // Only after a failure: another process that holds the lock may be writing a snapshot.
                Err(_) if remove_torn_snapshots(dir)? => {}
                _ => break,
            }
            opened = open();
        }
        let db = opened?;
        let log = File::open(dir.join("db")).map_err(Error::io("opening the log of the store"))?;
        Ok(Self { db: Some(db), dir: dir.to_owned(), log })
    }

    /// Runs `work` on the database. sled answers some damage with a panic; this turns it into an error.
    pub(crate) fn run<T>(
        &self,
        what: &'static str,
        work: impl FnOnce(&sled::Db) -> Result<T, sled::Error>,
    ) -> Result<T, Error> {
        let Some(db) = &self.db else {
            // The store is about to be opened again (`reopening`).
            return Err(Error::Backend { what, why: "the store is closed".into(), transient: true });
        };
        guarded(what, || work(db))
    }

    /// Makes everything applied so far durable. `synced` lists the overflow files that are durable already.
    pub(crate) fn flush(&self, synced: &mut HashSet<OsString>) -> Result<(), Error> {
        self.run("flushing the store", |db| db.flush())?;
        self.flush_overflow(synced)?;
        self.log.sync_data().map_err(Error::io("flushing the log of the store"))
    }

    /// Flushes overflow files: sled puts pages too large for its log into separate files, and never flushes them.
    fn flush_overflow(&self, synced: &mut HashSet<OsString>) -> Result<(), Error> {
        let what = "flushing large values of the store";
        let dir = self.dir.join("blobs");
        let (mut there, mut new) = (HashSet::new(), false);
        for entry in fs::read_dir(&dir).map_err(Error::io(what))? {
            let entry = entry.map_err(Error::io(what))?;
            let name = entry.file_name();
            if !synced.contains(&name) {
                match File::open(entry.path()).and_then(|file| file.sync_all()) {
                    // sled removes the file of a page that was rewritten.
                    Err(source) if source.kind() == std::io::ErrorKind::NotFound => continue,
                    answer => answer.map_err(Error::io(what))?,
                }
                new = true;
            }
            there.insert(name);
        }
        *synced = there;
        if new { sync_dir(&dir) } else { Ok(()) }
    }

    /// Passes all rows to `take` in pages, in key order.
    pub(crate) fn for_each_page(&self, mut take: impl FnMut(Vec<Row>) -> Result<(), Error>) -> Result<(), Error> {
        let mut rows = self.run("reading the store", |db| Ok(db.iter()))?;
        loop {
            let (mut page, mut bytes) = (Vec::new(), 0);
            while bytes < COPY_BYTES {
                let next = self.run("reading the store", |_| rows.next().transpose())?;
                let Some((key, value)) = next else { break };
                bytes += key.len() + value.len();
                page.push((key, value));
            }
            if page.is_empty() {
                return Ok(());
            }
            take(page)?;
        }
    }

    /// Returns true if it was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.db.is_none()
    }

    /// Closes sled and its files. Later calls fail.
    pub(crate) fn close(&mut self) {
        let Some(db) = self.db.take() else { return };
        if catch_unwind(AssertUnwindSafe(|| drop(db))).is_err() {
            tracing::error!(dir = %self.dir.display(), "sled panicked while it closed");
        }
    }

    /// Returns the size of the files in bytes.
    pub(crate) fn disk_bytes(&self) -> Result<u64, Error> {
        let what = "measuring the store";
        let mut bytes = 0;
        for dir in [&self.dir, &self.dir.join("blobs")] {
            for entry in fs::read_dir(dir).map_err(Error::io(what))? {
                match entry.and_then(|entry| entry.metadata()) {
                    Ok(metadata) if metadata.is_file() => bytes += metadata.len(),
                    Ok(_) => {}
                    Err(source) if source.kind() == std::io::ErrorKind::NotFound => {}
                    Err(source) => return Err(Error::Io { what, source }),
                }
            }
        }
        Ok(bytes)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.close();
    }
}

/// A key and its value as sled returns them.
pub(crate) type Row = (sled::IVec, sled::IVec);

/// Copies a row, without the first `skip` bytes of its key.
pub(crate) fn owned((key, value): Row, skip: usize) -> Entry {
    (key.get(skip..).unwrap_or_default().to_vec(), value.to_vec())
}

/// Returns true if another process holds the store's lock. sled reports this only in its message.
fn is_locked(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.to_string().contains("could not acquire lock"))
}

/// Removes incomplete snapshots of the page table; returns true if there were any. sled takes them for the latest ones,
/// and the store for damaged. A snapshot has this name only until it is complete, so nothing is lost.
fn remove_torn_snapshots(dir: &Path) -> Result<bool, Error> {
    let what = "removing what an interrupted start left";
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        entries => entries.map_err(Error::io(what))?,
    };
    let mut removed = false;
    for entry in entries {
        let entry = entry.map_err(Error::io(what))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(SNAPSHOT) && name.ends_with(TORN) {
            fs::remove_file(entry.path()).map_err(Error::io(what))?;
            removed = true;
        }
    }
    Ok(removed)
}

fn guarded<T>(what: &'static str, work: impl FnOnce() -> Result<T, sled::Error>) -> Result<T, Error> {
    let why = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(sled::Error::Io(source))) => return Err(Error::io(what)(source)),
        Ok(Err(sled::Error::Corruption { .. })) => "its files are damaged".to_owned(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "its files are damaged or the disk failed: sled gave up".to_owned(),
    };
    Err(Error::Backend { what, why, transient: false })
}
