use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use azera_memory::{Entry, Error};

use crate::generation::sync_dir;

/// How often sled writes out what nobody asked to have flushed, and so what a crash may undo at most.
const FLUSH_EVERY_MS: u64 = 1_000;

/// How often a store that is locked is tried again.
const LOCK_ATTEMPTS: u32 = 60;

/// Wait before it is.
const LOCK_WAIT: Duration = Duration::from_millis(50);

/// What the names of sled's snapshots begin with.
pub(crate) const SNAPSHOT: &str = "snap.";

/// What the name of one that is being written ends with.
const TORN: &str = ".generating";

/// Bytes of keys and values written at once while copying.
pub(crate) const COPY_BYTES: usize = 64 * 1024;

/// One open sled database in a directory of its own.
pub(crate) struct Database {
    /// Taken only when this is dropped.
    db: Option<sled::Db>,
    dir: PathBuf,
    /// A handle of our own on sled's log, to fsync it: sled itself calls `sync_file_range`, which leaves out the
    /// file's length and the disk's own cache.
    log: File,
}

impl Database {
    /// Opens the database in `dir`, making it if there is none.
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
        // sled lets go of its lock from a thread of its own, some time after the last handle was dropped: a store that
        // was closed a moment ago may still be held by nobody but ourselves.
        for _ in 0..LOCK_ATTEMPTS {
            match opened {
                Err(ref error) if is_locked(error) => std::thread::sleep(LOCK_WAIT),
                // Not before it failed: whoever still holds the lock may be writing one.
                Err(_) if remove_torn_snapshots(dir)? => {}
                _ => break,
            }
            opened = open();
        }
        let db = opened?;
        let log = File::open(dir.join("db")).map_err(Error::io("opening the log of the store"))?;
        Ok(Self { db: Some(db), dir: dir.to_owned(), log })
    }

    /// Runs `work` on the database. sled answers some damage with a panic; here it is an error like any other.
    pub(crate) fn run<T>(
        &self,
        what: &'static str,
        work: impl FnOnce(&sled::Db) -> Result<T, sled::Error>,
    ) -> Result<T, Error> {
        let Some(db) = &self.db else {
            // It is on its way of being opened again (`reopening`).
            return Err(Error::Backend { what, why: "the store is closed".into(), transient: true });
        };
        guarded(what, || work(db))
    }

    /// Makes everything applied so far durable. `synced` holds the overflow files that already are.
    pub(crate) fn flush(&self, synced: &mut HashSet<OsString>) -> Result<(), Error> {
        self.run("flushing the store", |db| db.flush())?;
        self.flush_overflow(synced)?;
        self.log.sync_data().map_err(Error::io("flushing the log of the store"))
    }

    /// sled keeps pages that are too large for its log in files of their own, which it never flushes.
    fn flush_overflow(&self, synced: &mut HashSet<OsString>) -> Result<(), Error> {
        let what = "flushing large values of the store";
        let dir = self.dir.join("blobs");
        let (mut there, mut new) = (HashSet::new(), false);
        for entry in fs::read_dir(&dir).map_err(Error::io(what))? {
            let entry = entry.map_err(Error::io(what))?;
            let name = entry.file_name();
            if !synced.contains(&name) {
                match File::open(entry.path()).and_then(|file| file.sync_all()) {
                    // sled removes a file whose page was written anew.
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

    /// Hands all rows to `take` in pages, in the order of their keys.
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

    /// Whether it was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.db.is_none()
    }

    /// Lets go of sled and its files; what is asked of this database after that is refused.
    pub(crate) fn close(&mut self) {
        let Some(db) = self.db.take() else { return };
        if catch_unwind(AssertUnwindSafe(|| drop(db))).is_err() {
            tracing::error!(dir = %self.dir.display(), "sled panicked while it closed");
        }
    }

    /// Bytes of the files.
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

/// A key and its value as sled hands them out.
pub(crate) type Row = (sled::IVec, sled::IVec);

/// A row as owned bytes, without the first `skip` of the key's.
pub(crate) fn owned((key, value): Row, skip: usize) -> Entry {
    (key.get(skip..).unwrap_or_default().to_vec(), value.to_vec())
}

/// Whether somebody holds the store's lock. sled says so in words alone.
fn is_locked(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.to_string().contains("could not acquire lock"))
}

/// Removes snapshots of the page table whose writing was interrupted: sled takes them for its latest ones, and the store for
/// damaged. They lie under another name until they are whole, so that nothing is lost with them. Says whether there were any.
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
