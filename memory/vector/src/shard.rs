use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use azera_memory::Error;
use qdrant_edge::external::serde_json::Value;
use qdrant_edge::{
    CreateIndex, EdgeConfig, EdgeShard, FieldIndexOperations, OperationError, OperationResult, Payload,
    PayloadFieldSchema, PointId, PointInsertOperations, PointOperations, PointStructPersisted, Record, ScrollRequest,
    UpdateOperation, VectorInternal, VectorPersisted, VectorStructInternal, VectorStructPersisted,
    WithPayloadInterface, WithVector,
};

use crate::config::{VectorConfig, indexed_fields, name};
use crate::filter::path;

/// Points read at once while all are gone through.
const PAGE_POINTS: usize = 1_000;

/// One open shard of the engine, in which a panic is an error.
pub(crate) struct Shard {
    /// Taken only when this is dropped.
    edge: Option<EdgeShard>,
}

impl Shard {
    /// Opens the shard in `dir`, making it if there is none.
    pub(crate) fn open(dir: &Path, config: &VectorConfig) -> Result<Self, Error> {
        let made = match guarded("opening the vector index", || EdgeConfig::load(dir).transpose()) {
            Ok(Some(found)) => {
                check_dimension(&found, config)?;
                prune_log(&dir.join("wal"))?;
                guarded("opening the vector index", || EdgeShard::load(dir, Some(config.edge())))
            }
            Ok(None) => {
                // Without a configuration nothing was ever stored: the making was interrupted.
                remove(dir)?;
                fs::create_dir_all(dir).map_err(Error::io("making the vector index"))?;
                guarded("making the vector index", || EdgeShard::new(dir, config.edge()))
            }
            Err(error) => Err(error),
        };
        let shard = Self { edge: Some(made.map_err(rebuildable)?) };
        shard.index_fields()?;
        Ok(shard)
    }

    fn index_fields(&self) -> Result<(), Error> {
        self.run("indexing fields of the vector index", |edge| {
            let there = edge.info().payload_schema;
            let change = |operation| edge.update(UpdateOperation::FieldIndexOperation(operation));
            for (field, params) in indexed_fields() {
                let field_name = path(field);
                let found = there.get(&field_name);
                if found.is_some_and(|found| found.params.as_ref() == Some(&params)) {
                    continue;
                }
                // One of another kind is of an older version of Azera.
                if found.is_some() {
                    change(FieldIndexOperations::DeleteIndex(field_name.clone()))?;
                }
                let field_schema = Some(PayloadFieldSchema::FieldParams(params));
                change(FieldIndexOperations::CreateIndex(CreateIndex { field_name, field_schema }))?;
            }
            Ok(())
        })
    }

    pub(crate) fn run<T>(
        &self,
        what: &'static str,
        work: impl FnOnce(&EdgeShard) -> OperationResult<T>,
    ) -> Result<T, Error> {
        let Some(edge) = &self.edge else {
            return Err(Error::Backend { what, why: "the index is closed".into(), transient: false });
        };
        guarded(what, || work(edge))
    }

    pub(crate) fn insert(&self, points: Vec<PointStructPersisted>) -> Result<(), Error> {
        let insert = PointOperations::UpsertPoints(PointInsertOperations::PointsList(points));
        self.run("adding to the vector index", |edge| edge.update(UpdateOperation::PointOperation(insert)))
    }

    /// Everything before this is durable after it. Nothing may change the shard meanwhile.
    pub(crate) fn flush(&self) -> Result<(), Error> {
        self.run("flushing the vector index", |edge| {
            edge.flush();
            Ok(())
        })
    }

    /// Hands all points to `take` in pages, by ascending id.
    pub(crate) fn for_each_page(
        &self,
        whole: bool,
        mut take: impl FnMut(Vec<Record>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut offset = None;
        loop {
            let request = ScrollRequest {
                offset,
                limit: Some(PAGE_POINTS),
                with_payload: Some(WithPayloadInterface::Bool(whole)),
                with_vector: WithVector::Bool(whole),
                ..ScrollRequest::default()
            };
            let (records, next) = self.run("reading the vector index", |edge| edge.scroll(request))?;
            take(records)?;
            if next.is_none() {
                return Ok(());
            }
            offset = next;
        }
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        let Some(edge) = self.edge.take() else { return };
        // The engine flushes when it is dropped, and panics if it cannot.
        if catch_unwind(AssertUnwindSafe(|| drop(edge))).is_err() {
            tracing::error!("the vector index could not be flushed when it was closed");
        }
    }
}

/// A point as it is inserted.
pub(crate) fn point(
    id: PointId,
    vectors: impl IntoIterator<Item = (String, Vec<f32>)>,
    payload: qdrant_edge::external::serde_json::Map<String, Value>,
) -> PointStructPersisted {
    let vectors = vectors.into_iter().map(|(name, vector)| (name, VectorPersisted::Dense(vector))).collect();
    PointStructPersisted { id, vector: VectorStructPersisted::Named(vectors), payload: Some(Payload(payload)) }
}

/// A stored point as it is inserted.
pub(crate) fn stored_point(mut record: Record) -> PointStructPersisted {
    let (id, payload) = (record.id, record.payload.take().map(|payload| payload.0).unwrap_or_default());
    point(id, dense_vectors(record), payload)
}

/// The vectors of a stored point by name.
pub(crate) fn dense_vectors(record: Record) -> impl Iterator<Item = (String, Vec<f32>)> {
    let named = match record.vector {
        Some(VectorStructInternal::Named(named)) => named,
        _ => Default::default(),
    };
    named.into_iter().filter_map(|(name, vector)| match vector {
        VectorInternal::Dense(vector) => Some((name, vector)),
        _ => None,
    })
}

fn check_dimension(found: &EdgeConfig, config: &VectorConfig) -> Result<(), Error> {
    let own = name(azera_memory::Facet::Own);
    let (got, want) = (found.vectors.get(own).map_or(0, |vector| vector.size), config.dimension);
    if got == want {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "the vector index holds vectors of {got} numbers and the embedding model makes {want}; run `azera memory rebuild`"
    )))
}

/// Removes the parts of the engine's log that are full. It is never read again, but the numbers of its operations go
/// on from its last full part, so that one stays.
fn prune_log(dir: &Path) -> Result<(), Error> {
    let what = "shortening the log of the vector index";
    if !dir.is_dir() {
        return Ok(());
    }
    let mut full: Vec<(u64, PathBuf)> = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::io(what))? {
        let entry = entry.map_err(Error::io(what))?;
        let name = entry.file_name();
        let start = name.to_str().and_then(|name| name.strip_prefix("closed-")).and_then(|start| start.parse().ok());
        full.extend(start.map(|start| (start, entry.path())));
    }
    full.sort_unstable();
    full.pop();
    // The oldest first: what a crash leaves is still without gaps.
    full.into_iter().try_for_each(|(_, path)| fs::remove_file(path)).map_err(Error::io(what))
}

/// Removes a directory, if it is there.
pub(crate) fn remove(dir: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(dir) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::Io { what: "removing files of the vector index", source })
        }
        _ => Ok(()),
    }
}

fn rebuildable(error: Error) -> Error {
    match error {
        Error::Backend { what, why, transient } => Error::Backend {
            what,
            why: format!("{why}; `azera memory rebuild` makes it anew from the record"),
            transient,
        },
        other => other,
    }
}

fn guarded<T>(what: &'static str, work: impl FnOnce() -> OperationResult<T>) -> Result<T, Error> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => {
            let transient = matches!(error, OperationError::Timeout { .. } | OperationError::OutOfMemory { .. });
            Err(Error::Backend { what, why: error.to_string(), transient })
        }
        Err(_) => {
            let why = "its files are damaged or the disk failed: the engine gave up".to_owned();
            Err(Error::Backend { what, why, transient: false })
        }
    }
}
