use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use azera_memory::{
    Error, Facet, Found, IndexMetadata, MAX_SEARCH_LIMIT, Point, PointSource, ReadScope, Stored, VectorIndex,
};
use azera_types::{MemoryId, Timestamp};
use qdrant_edge::{PointId, PointOperations, Record, UpdateOperation, WithPayloadInterface, WithVector};

use crate::config::{AT, KEY, VectorConfig, name, payload};
use crate::disk_space::{disk_bytes, ensure_disk_space};
use crate::filter::persona_and_scope;
use crate::search::{Search, number};
use crate::shard::{Shard, dense_vectors, point, remove, stored_point};

/// Points the engine takes at once.
const INSERT_POINTS: usize = 500;

/// Points written since the shard was opened that make reopening it worth the while, to shorten its log: about 200 MB
/// of it at 384 numbers a vector.
const REOPEN_POINTS: usize = 50_000;

/// How much threads that reorganise the index give way to others: a tenth of a core is left to them, if all cores are
/// wanted (nice(1)).
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// The directory in use.
const CURRENT: &str = "live";

/// A directory being made, to become [`CURRENT`].
const NEXT: &str = "next";

/// A directory that was [`CURRENT`], to be removed.
const OLD: &str = "old";

/// The vector index on qdrant-edge.
///
/// Locks are taken in the order of the fields.
pub struct EdgeVectors {
    dir: PathBuf,
    config: VectorConfig,
    /// Held while the shard is flushed, reorganised or replaced.
    maintaining: Mutex<()>,
    /// Held while points are changed: the engine cannot flush at the same time.
    changing: Mutex<()>,
    /// Written to only for as long as it takes to put another shard in its place.
    shard: RwLock<Option<Shard>>,
    /// Points written since the shard was opened.
    written: AtomicUsize,
}

impl EdgeVectors {
    /// Opens the index in `dir`, making it if there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if the index holds vectors of another dimension; [`Error::Backend`] if it is damaged. Either
    /// way it can be removed and built again from the record.
    pub fn open(dir: impl AsRef<Path>, config: VectorConfig) -> Result<Self, Error> {
        let dir = dir.as_ref().to_owned();
        fs::create_dir_all(&dir).map_err(Error::io("making the directory of the vector index"))?;
        // Between the two renames of `replace` there is no live directory, and the next one is whole.
        if !dir.join(CURRENT).exists() && dir.join(OLD).exists() && dir.join(NEXT).exists() {
            rename(&dir, NEXT, CURRENT)?;
        }
        remove(&dir.join(NEXT))?;
        remove(&dir.join(OLD))?;
        let shard = Shard::open(&dir.join(CURRENT), &config)?;
        Ok(Self {
            dir,
            config,
            maintaining: Mutex::new(()),
            changing: Mutex::new(()),
            shard: RwLock::new(Some(shard)),
            written: AtomicUsize::new(0),
        })
    }

    fn retrieve(&self, ids: &[MemoryId], whole: bool) -> Result<Vec<Record>, Error> {
        let ids = point_ids(ids);
        let (payload, vector) = (WithPayloadInterface::Bool(whole), WithVector::Bool(true));
        self.with(|shard| {
            shard.run("reading the vector index", |edge| edge.retrieve(&ids, Some(payload), Some(vector)))
        })
    }

    fn with<T>(&self, work: impl FnOnce(&Shard) -> Result<T, Error>) -> Result<T, Error> {
        let shard: RwLockReadGuard<'_, _> = self.shard.read().unwrap_or_else(PoisonError::into_inner);
        work(opened(&shard)?)
    }

    /// Puts what lies in [`NEXT`] in the place of what is live. Nobody maintains or changes the shard meanwhile.
    fn replace(&self) -> Result<(), Error> {
        let mut shard = self.closed();
        rename(&self.dir, CURRENT, OLD)?;
        rename(&self.dir, NEXT, CURRENT)?;
        *shard = Some(Shard::open(&self.dir.join(CURRENT), &self.config)?);
        drop(shard);
        self.written.store(0, Ordering::Relaxed);
        remove(&self.dir.join(OLD))
    }

    /// Closes the shard and keeps everybody out of its place.
    fn closed(&self) -> RwLockWriteGuard<'_, Option<Shard>> {
        let mut shard = self.shard.write().unwrap_or_else(PoisonError::into_inner);
        *shard = None;
        shard
    }
}

fn opened(shard: &Option<Shard>) -> Result<&Shard, Error> {
    shard.as_ref().ok_or_else(|| Error::Backend {
        what: "using the vector index",
        why: "it could not be opened again after it was reorganised".into(),
        transient: false,
    })
}

/// Runs `work` on a thread that gives way to others who want the processor, as do the threads it starts.
fn behind_others<T: Send>(what: &'static str, work: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    let yielding = || {
        // Elsewhere than on Linux this would slow down the whole process.
        #[cfg(target_os = "linux")]
        if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
            tracing::debug!(%error, "a thread cannot give way to others");
        }
        work()
    };
    std::thread::scope(|scope| scope.spawn(yielding).join())
        .unwrap_or_else(|_| Err(Error::Backend { what, why: "the engine gave up".into(), transient: false }))
}

fn hold(lock: &Mutex<()>) -> MutexGuard<'_, ()> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

fn rename(dir: &Path, from: &str, to: &str) -> Result<(), Error> {
    let renamed = fs::rename(dir.join(from), dir.join(to));
    renamed.and_then(|()| fs::File::open(dir)?.sync_all()).map_err(Error::io("replacing the vector index"))
}

fn point_ids(ids: &[MemoryId]) -> Vec<PointId> {
    ids.iter().map(|id| PointId::NumId(id.0)).collect()
}

/// The vectors of a record.
fn stored(record: Record) -> Option<Stored> {
    let id = number(record.id)?;
    let (mut own, mut window) = (None, None);
    for (facet, vector) in dense_vectors(record) {
        if facet == name(Facet::Own) { own = Some(vector) } else { window = Some(vector) }
    }
    Some(Stored { id, own: own?, window })
}

/// The point a record was made of.
fn whole(record: Record) -> Option<Point> {
    let payload = &record.payload.as_ref()?.0;
    let (persona, scope) = persona_and_scope(payload.get(KEY)?.as_str()?)?;
    let at = Timestamp::from_microsecond(payload.get(AT)?.as_i64()?).ok()?;
    let Stored { id, own, window } = stored(record)?;
    Some(Point { id, label: IndexMetadata { persona, scope, at }, own, window })
}

impl PointSource for EdgeVectors {
    fn points(&self, ids: &[MemoryId]) -> Result<Vec<Point>, Error> {
        Ok(self.retrieve(ids, true)?.into_iter().filter_map(whole).collect())
    }
}

impl VectorIndex for EdgeVectors {
    fn upsert(&self, points: Vec<Point>) -> Result<(), Error> {
        for point in &points {
            self.config.check(&point.own)?;
            point.window.as_deref().map_or(Ok(()), |window| self.config.check(window))?;
        }
        let mut points = points.into_iter().map(|from| {
            let own = Some((Facet::Own, from.own));
            let vectors = own.into_iter().chain(from.window.map(|window| (Facet::Window, window)));
            let vectors = vectors.map(|(facet, vector)| (name(facet).to_owned(), vector));
            point(PointId::NumId(from.id.0), vectors, payload(&from.label))
        });
        let _changing = hold(&self.changing);
        loop {
            let part: Vec<_> = points.by_ref().take(INSERT_POINTS).collect();
            if part.is_empty() {
                return Ok(());
            }
            ensure_disk_space("adding to the vector index", &self.dir, 0)?;
            self.written.fetch_add(part.len(), Ordering::Relaxed);
            self.with(|shard| shard.insert(part))?;
        }
    }

    fn search(
        &self,
        read_scope: &ReadScope,
        facet: Facet,
        vector: &[f32],
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<Found>, Error> {
        self.config.check(vector)?;
        let limit = limit.min(MAX_SEARCH_LIMIT);
        if limit == 0 {
            return Ok(Vec::new());
        }
        let search = Search { read_scope, facet, vector, until, limit };
        self.with(|shard| search.run(shard))
    }

    fn vectors(&self, ids: &[MemoryId]) -> Result<Vec<Stored>, Error> {
        Ok(self.retrieve(ids, false)?.into_iter().filter_map(stored).collect())
    }

    fn remove(&self, ids: &[MemoryId]) -> Result<(), Error> {
        if ids.is_empty() {
            return Ok(());
        }
        let remove = UpdateOperation::PointOperation(PointOperations::DeletePoints { ids: point_ids(ids) });
        let _changing = hold(&self.changing);
        ensure_disk_space("removing from the vector index", &self.dir, 0)?;
        self.written.fetch_add(1, Ordering::Relaxed);
        self.with(|shard| shard.run("removing from the vector index", |edge| edge.update(remove)))
    }

    /// Waits for an optimization to end.
    fn flush(&self) -> Result<(), Error> {
        let _maintaining = hold(&self.maintaining);
        let _changing = hold(&self.changing);
        self.with(Shard::flush)?;
        if self.written.load(Ordering::Relaxed) < REOPEN_POINTS {
            return Ok(());
        }
        let mut shard = self.closed();
        *shard = Some(Shard::open(&self.dir.join(CURRENT), &self.config)?);
        self.written.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Builds graphs over segments of more than 10,000 points without one and merges small segments; otherwise nothing.
    fn optimize(&self) -> Result<(), Error> {
        let what = "optimizing the vector index";
        let _maintaining = hold(&self.maintaining);
        ensure_disk_space(what, &self.dir, disk_bytes(&self.dir.join(CURRENT))?)?;
        let optimized = behind_others(what, || self.with(|shard| shard.run(what, |edge| edge.optimize())));
        let changed = optimized?;
        if changed {
            tracing::debug!("the vector index was optimized");
        }
        Ok(())
    }

    fn clear(&self) -> Result<(), Error> {
        let _maintaining = hold(&self.maintaining);
        let _changing = hold(&self.changing);
        Shard::open(&self.dir.join(NEXT), &self.config)?.flush()?;
        self.replace()
    }

    /// Copies all points into a new shard and puts it in the place of this one. Searches go on meanwhile, changes wait.
    fn rewrite(&self) -> Result<(), Error> {
        let _maintaining = hold(&self.maintaining);
        let _changing = hold(&self.changing);
        remove(&self.dir.join(NEXT))?;
        ensure_disk_space("rewriting the vector index", &self.dir, disk_bytes(&self.dir.join(CURRENT))?)?;
        let next = Shard::open(&self.dir.join(NEXT), &self.config)?;
        self.with(|shard| {
            shard.for_each_page(true, |records| {
                if records.is_empty() { Ok(()) } else { next.insert(records.into_iter().map(stored_point).collect()) }
            })
        })?;
        next.run("optimizing the vector index", |edge| edge.optimize())?;
        next.flush()?;
        drop(next);
        self.replace()
    }

    fn ids(&self) -> Result<Vec<MemoryId>, Error> {
        let mut ids = Vec::new();
        self.with(|shard| {
            shard.for_each_page(false, |records| {
                ids.extend(records.into_iter().filter_map(|record| number(record.id)));
                Ok(())
            })
        })?;
        Ok(ids)
    }
}
