use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use azera_memory::{
    DEEPEST_SEARCH, Error, Facet, Found, IndexMetadata, Point, PointSource, ReadScope, Stored, VectorIndex,
};
use azera_types::{MemoryId, Timestamp};

use crate::code::Code;
use crate::config::VectorConfig;
use crate::load::{copy, load, unusable, vector_at};
use crate::log::Log;
use crate::points::{NewPoint, Points};
use crate::record::{key, vector_bytes};
use crate::search::Search;

/// Points written at once.
const WRITE_POINTS: usize = 1_000;

/// Bytes of records that are of no more use, from which on they are worth a rewriting, if they are half of the file.
const WASTED_BYTES: u64 = 16 * 1024 * 1024;

/// Directories in which earlier versions of Azera kept an index of another format.
const EARLIER_DIRS: [&str; 2] = ["live", "old"];

/// The embedded vector index. See the crate's documentation.
///
/// Locks are taken in the order of the fields.
pub struct EmbeddedVectors {
    config: VectorConfig,
    /// Held by whoever changes the file.
    log: Mutex<Log>,
    /// Written to only for as long as a change takes in memory.
    content: RwLock<Content>,
}

/// What is searched.
struct Content {
    points: Points,
    /// Holds the vectors of the points.
    file: Arc<File>,
}

/// A point whose vectors have length 1, with their codes.
struct Prepared {
    id: MemoryId,
    at: Timestamp,
    key: String,
    own: Vec<f32>,
    window: Option<Vec<f32>>,
}

impl EmbeddedVectors {
    /// Opens the index in `dir`, making it if there is none. Reads the whole file and checks every record.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if the index holds vectors of another dimension; [`Error::Backend`] if it is damaged or was made
    /// by a version of Azera with another format. In both cases it can be removed and built again from the record.
    pub fn open(dir: impl AsRef<Path>, config: VectorConfig) -> Result<Self, Error> {
        let dir = dir.as_ref();
        if EARLIER_DIRS.iter().any(|name| dir.join(name).is_dir()) {
            return Err(unusable("an earlier version of Azera made it, in another format".into()));
        }
        let mut log = Log::open(dir, config.dimension)?;
        let points = load(&mut log, config.dimension)?;
        let content = Content { points, file: log.file().clone() };
        Ok(Self { config, log: Mutex::new(log), content: RwLock::new(content) })
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn content(&self) -> RwLockReadGuard<'_, Content> {
        self.content.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn content_mut(&self) -> RwLockWriteGuard<'_, Content> {
        self.content.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn prepare(&self, point: &Point) -> Result<Prepared, Error> {
        let window = point.window.as_deref().map(|window| self.config.unit(window)).transpose()?;
        Ok(Prepared {
            id: point.id,
            at: point.label.at,
            key: key(&point.label.persona, &point.label.scope),
            own: self.config.unit(&point.own)?.into_owned(),
            window: window.map(std::borrow::Cow::into_owned),
        })
    }

    /// Writes points to the file, then to memory.
    fn write(&self, points: &[Prepared]) -> Result<(), Error> {
        let codes: Vec<_> =
            points.iter().map(|point| (Code::of(&point.own), point.window.as_deref().map(Code::of))).collect();
        let mut log = self.log();
        let mut records = log.records();
        let mut offsets = Vec::with_capacity(points.len());
        for point in points {
            offsets.push(records.point((point.id, point.at), &point.key, &point.own, point.window.as_deref())?);
        }
        log.append(&records)?;
        let mut content = self.content_mut();
        for ((point, (own, window)), offset) in points.iter().zip(codes).zip(offsets) {
            let new = NewPoint { id: point.id, at: point.at, key: &point.key, own, window, offset };
            content
                .points
                .insert(new)
                .ok_or_else(|| Error::Invalid("a persona or scope that cannot be stored".into()))?;
        }
        Ok(())
    }

    /// Puts another file in the place of the one in use. `moved` says where each point lies in it; other points go.
    fn replace(&self, log: &mut Log, mut next: Log, points: Option<Vec<(MemoryId, u64)>>) -> Result<(), Error> {
        let replaced = next.flush().and_then(|()| next.replace_live());
        if let Err(error) = replaced {
            Log::remove_next(next.dir());
            return Err(error);
        }
        let mut content = self.content_mut();
        match points {
            Some(moved) => moved.into_iter().for_each(|(id, offset)| content.points.relocate(id, offset)),
            None => content.points = Points::new(self.config.dimension),
        }
        content.file = next.file().clone();
        drop(content);
        *log = next;
        log.sync_names()
    }

    fn rewrite_file(&self, log: &mut Log) -> Result<(), Error> {
        let dimension = self.config.dimension;
        let mut next = Log::next(log.dir(), dimension)?;
        let copied = copy(log, &self.content().points, dimension, &mut next);
        match copied {
            Ok(moved) => self.replace(log, next, Some(moved)),
            Err(error) => {
                Log::remove_next(log.dir());
                Err(error)
            }
        }
    }

    /// Reads the vectors of those ids that are there.
    fn read<T>(
        &self,
        ids: &[MemoryId],
        mut make: impl FnMut(Stored, &Points, Timestamp) -> Option<T>,
    ) -> Result<Vec<T>, Error> {
        let content = self.content();
        let mut buffer = vec![0; vector_bytes(self.config.dimension)];
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            let Some((_, at, own, window)) = content.points.find(*id) else { continue };
            let own = vector_at(&content.file, own, &mut buffer)?;
            let window = window.map(|offset| vector_at(&content.file, offset, &mut buffer)).transpose()?;
            found.extend(make(Stored { id: *id, own, window }, &content.points, at));
        }
        Ok(found)
    }
}

impl PointSource for EmbeddedVectors {
    fn points(&self, ids: &[MemoryId]) -> Result<Vec<Point>, Error> {
        self.read(ids, |Stored { id, own, window }, points, at| {
            let (group, ..) = points.find(id)?;
            let label = IndexMetadata { persona: group.persona.clone(), scope: group.scope.clone(), at };
            Some(Point { id, label, own, window })
        })
    }
}

impl VectorIndex for EmbeddedVectors {
    fn upsert(&self, points: Vec<Point>) -> Result<(), Error> {
        let prepared = points.iter().map(|point| self.prepare(point)).collect::<Result<Vec<_>, Error>>()?;
        drop(points);
        prepared.chunks(WRITE_POINTS).try_for_each(|part| self.write(part))
    }

    fn search(
        &self,
        read_scope: &ReadScope,
        facet: Facet,
        vector: &[f32],
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<Found>, Error> {
        let vector = self.config.unit(vector)?;
        let limit = limit.min(DEEPEST_SEARCH);
        if limit == 0 {
            return Ok(Vec::new());
        }
        let content = self.content();
        Search { read_scope, facet, vector: &vector, until, limit }.run(&content.points, &content.file)
    }

    fn vectors(&self, ids: &[MemoryId]) -> Result<Vec<Stored>, Error> {
        self.read(ids, |stored, _, _| Some(stored))
    }

    fn remove(&self, ids: &[MemoryId]) -> Result<(), Error> {
        let mut log = self.log();
        let there: Vec<MemoryId> = {
            let content = self.content();
            ids.iter().copied().filter(|id| content.points.find(*id).is_some()).collect()
        };
        if there.is_empty() {
            return Ok(());
        }
        let mut records = log.records();
        records.removed(&there);
        log.append(&records)?;
        let mut content = self.content_mut();
        there.into_iter().for_each(|id| content.points.remove(id));
        Ok(())
    }

    fn flush(&self) -> Result<(), Error> {
        self.log().flush()
    }

    /// Rewrites the file if half of it, and at least 16 MB, is of no more use. Changes wait for that.
    fn optimize(&self) -> Result<(), Error> {
        let mut log = self.log();
        let wasted = log.end().saturating_sub(self.content().points.bytes());
        if wasted < WASTED_BYTES || wasted < log.end() / 2 {
            return Ok(());
        }
        self.rewrite_file(&mut log)?;
        tracing::debug!(bytes = wasted, "rewrote the vector index");
        Ok(())
    }

    fn clear(&self) -> Result<(), Error> {
        let mut log = self.log();
        let next = Log::next(log.dir(), self.config.dimension)?;
        self.replace(&mut log, next, None)
    }

    /// Copies all points to a new file and puts it in the place of this one. Searches go on meanwhile, changes wait.
    fn rewrite(&self) -> Result<(), Error> {
        self.rewrite_file(&mut self.log())
    }

    fn ids(&self) -> Result<Vec<MemoryId>, Error> {
        Ok(self.content().points.ids().collect())
    }
}
