use std::path::Path;
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use azera_memory::{Error, MAX_KEY_BYTES, MAX_VALUE_BYTES, Working};
use azera_types::Timestamp;

use crate::database::Database;
use crate::generation::Generations;
use crate::reopening::{ROOM_BYTES, WAIT, ensure_disk_space};

/// Bytes of pages that sled caches for working memory: a few sessions, and the embeddings of an hour.
const CACHE_BYTES: u64 = 8 * 1024 * 1024;

/// Values that a sweep removes at a time.
const SWEEP_BATCH: usize = 1_000;

/// Bytes of the expiry time before a value: microseconds since 1970, big-endian.
const END_BYTES: usize = 8;

/// Working memory on sled. Its values may be lost. So nothing is flushed explicitly, and files that cannot be opened or
/// written are replaced by empty ones.
pub struct SledWorking {
    open: RwLock<Open>,
    /// Time of the last failed write, or of the last attempt to start empty after it. After a failed write, sled
    /// refuses all others.
    failed: Mutex<Option<Instant>>,
}

struct Open {
    generations: Generations,
    database: Database,
}

impl Open {
    /// Creates an empty generation and switches to it; returns the old one.
    fn start_anew(generations: &mut Generations) -> Result<(Database, u64), Error> {
        let (next, path) = generations.next()?;
        let database = Database::open(&path, CACHE_BYTES)?;
        let old = generations.adopt(next)?;
        Ok((database, old))
    }
}

impl SledWorking {
    /// Opens working memory in `dir`, or creates it. Fails if another process uses it.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, Error> {
        let mut generations = Generations::open(dir.as_ref())?;
        let database = match Database::open(&generations.path(), CACHE_BYTES) {
            Ok(database) => database,
            Err(why) => {
                tracing::warn!(%why, "cannot open working memory; starting with an empty one");
                let (database, old) = Open::start_anew(&mut generations)?;
                generations.remove(old)?;
                database
            }
        };
        Ok(Self { open: RwLock::new(Open { generations, database }), failed: Mutex::default() })
    }

    /// Runs a write. After a failed write, starts empty once there is space.
    fn write(&self, work: impl FnOnce(&sled::Db) -> Result<(), sled::Error>) -> Result<(), Error> {
        let what = "writing to working memory";
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = *failed {
            if at.elapsed() < WAIT {
                return Err(Error::Backend { what, why: "an earlier write failed".into(), transient: true });
            }
            *failed = Some(Instant::now());
            let path = self.open.read().unwrap_or_else(PoisonError::into_inner).generations.path();
            ensure_disk_space(&path, ROOM_BYTES)?;
            self.clear()?;
            *failed = None;
        }
        self.run(what, work).inspect_err(|_| *failed = Some(Instant::now()))
    }

    fn run<T>(&self, what: &'static str, work: impl FnOnce(&sled::Db) -> Result<T, sled::Error>) -> Result<T, Error> {
        self.open.read().unwrap_or_else(PoisonError::into_inner).database.run(what, work)
    }
}

impl Working for SledWorking {
    fn get(&self, key: &str, now: Timestamp) -> Result<Option<Vec<u8>>, Error> {
        let row = self.run("reading working memory", |db| db.get(key))?;
        let living = row.as_deref().and_then(split).filter(|(end, _)| now.as_microsecond() < *end);
        Ok(living.map(|(_, value)| value.to_vec()))
    }

    fn put(&self, key: &str, value: &[u8], ttl: Duration, now: Timestamp) -> Result<(), Error> {
        if key.len() > MAX_KEY_BYTES || value.len() > MAX_VALUE_BYTES {
            let (key, value) = (key.len(), value.len());
            return Err(Error::Invalid(format!("a key of {key} bytes with a value of {value} in working memory")));
        }
        let end = now.saturating_add(ttl).map_err(|why| Error::Invalid(why.to_string()))?.as_microsecond();
        let mut row = Vec::with_capacity(END_BYTES + value.len());
        row.extend_from_slice(&end.to_be_bytes());
        row.extend_from_slice(value);
        self.write(|db| db.insert(key, row).map(drop))
    }

    fn remove(&self, key: &str) -> Result<(), Error> {
        self.write(|db| db.remove(key).map(drop))
    }

    fn sweep(&self, now: Timestamp) -> Result<usize, Error> {
        let ended = |row: &[u8]| split(row).is_none_or(|(end, _)| end <= now.as_microsecond());
        self.run("sweeping working memory", |db| {
            let (mut batch, mut waiting, mut swept) = (sled::Batch::default(), 0, 0);
            for row in db.iter() {
                let (key, value) = row?;
                if !ended(&value) {
                    continue;
                }
                batch.remove(key);
                (waiting, swept) = (waiting + 1, swept + 1);
                if waiting == SWEEP_BATCH {
                    db.apply_batch(std::mem::take(&mut batch))?;
                    waiting = 0;
                }
            }
            db.apply_batch(batch)?;
            Ok(swept)
        })
    }

    fn clear(&self) -> Result<(), Error> {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        let (database, old) = Open::start_anew(&mut open.generations)?;
        drop(std::mem::replace(&mut open.database, database));
        open.generations.remove(old)
    }
}

/// Splits a stored value into expiry time and content.
fn split(row: &[u8]) -> Option<(i64, &[u8])> {
    let (end, value) = row.split_first_chunk::<END_BYTES>()?;
    Some((i64::from_be_bytes(*end), value))
}
