use std::collections::HashMap;
use std::num::NonZeroUsize;

use qdrant_edge::external::serde_json::{Map, Value};
use qdrant_edge::{
    Distance, EdgeConfig, EdgeOptimizersConfig, EdgeVectorParams, HnswIndexConfig, IntegerIndexParams,
    KeywordIndexParams, PayloadSchemaParams, WalOptions,
};

use azera_memory::{Error, Facet, IndexMetadata};

use crate::filter::{key, micros};

/// Payload field of persona and scope.
pub(crate) const KEY: &str = "key";

/// Payload field of the time.
pub(crate) const AT: &str = "at";

/// Points that make a segment worth reorganising: its points are put together by place and graphs are built for large
/// places. Below it, a search compares with all points of the place.
pub(crate) const INDEX_POINTS: usize = 10_000;

/// Segments aimed at. Each is searched on its own, but merging two means linking the points of the smaller one again.
pub(crate) const SEGMENTS: usize = 2;

/// Points up to which segments are merged: 1,000,000 memories lie in a few segments, and no merge takes much longer
/// than linking these.
pub(crate) const MAX_SEGMENT_POINTS: usize = 500_000;

/// Links of each point in the graph of its place (HNSW's M; the engine's own default).
const GRAPH_LINKS: usize = 16;

/// Candidates looked at while a point is linked (HNSW's efConstruction; the engine's own default).
const GRAPH_BUILD_CANDIDATES: usize = 100;

/// Candidates looked at in a search (HNSW's ef), or as many as hits are asked for.
pub(crate) const GRAPH_SEARCH_CANDIDATES: usize = 64;

/// Points of a place up to which all of them are compared instead of walking a graph: well under a millisecond, and
/// exact.
const EXACT_POINTS: usize = 10_000;

/// Bytes of one file of the engine's log, made at this size in advance.
const LOG_FILE_BYTES: usize = 4 * 1024 * 1024;

/// What an index is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorConfig {
    /// Numbers in a vector.
    pub dimension: usize,
    /// Threads that build graphs in [`VectorIndex::optimize`](azera_memory::VectorIndex::optimize); 0 takes all cores.
    pub indexing_threads: usize,
}

impl VectorConfig {
    /// One indexing thread, so that a conversation has the other cores.
    pub fn new(dimension: usize) -> Self {
        Self { dimension, indexing_threads: 1 }
    }

    /// The engine's configuration: everything lies in mapped files, so that memory in use is the system's cache.
    pub(crate) fn edge(&self) -> EdgeConfig {
        let vector = EdgeVectorParams::builder(self.dimension, Distance::Cosine).on_disk(true).build();
        let vectors = [Facet::Own, Facet::Window].map(|facet| (name(facet).to_owned(), vector.clone()));
        let kilobytes = |points: usize| points.saturating_mul(self.dimension * size_of::<f32>()) / 1024;
        EdgeConfig::builder()
            .vectors(HashMap::from(vectors))
            .on_disk_payload(true)
            .hnsw_config(HnswIndexConfig {
                // No graph over all places together: no search may look at all of them.
                m: 0,
                payload_m: Some(GRAPH_LINKS),
                ef_construct: GRAPH_BUILD_CANDIDATES,
                full_scan_threshold: kilobytes(EXACT_POINTS),
                max_indexing_threads: self.indexing_threads,
                on_disk: Some(true),
                ..HnswIndexConfig::default()
            })
            .optimizers(EdgeOptimizersConfig {
                default_segment_number: Some(SEGMENTS),
                // 0 would turn indexing off.
                indexing_threshold: Some(kilobytes(INDEX_POINTS).max(1)),
                max_segment_size: Some(kilobytes(MAX_SEGMENT_POINTS)),
                ..EdgeOptimizersConfig::default()
            })
            .wal_options(WalOptions {
                segment_capacity: LOG_FILE_BYTES,
                segment_queue_len: 0,
                retain_closed: NonZeroUsize::MIN,
            })
            .build()
    }

    /// Refuses what is no vector of this index.
    pub(crate) fn check(&self, vector: &[f32]) -> Result<(), Error> {
        if vector.len() != self.dimension {
            let (got, want) = (vector.len(), self.dimension);
            return Err(Error::Invalid(format!("a vector of {got} numbers for an index of vectors of {want}")));
        }
        if vector.iter().any(|number| !number.is_finite()) {
            return Err(Error::Invalid("a vector holds numbers that are not finite".into()));
        }
        Ok(())
    }
}

/// The engine's name of a vector.
pub(crate) fn name(facet: Facet) -> &'static str {
    match facet {
        Facet::Own => "own",
        Facet::Window => "window",
    }
}

/// The payload fields that are indexed, and how. Only persona and scope get graphs of their own: almost every search
/// leaves almost every moment in.
pub(crate) fn indexed_fields() -> [(&'static str, PayloadSchemaParams); 2] {
    let key = KeywordIndexParams { is_tenant: Some(true), on_disk: Some(false), ..KeywordIndexParams::default() };
    let at = IntegerIndexParams {
        lookup: Some(false),
        range: Some(true),
        on_disk: Some(false),
        enable_hnsw: Some(false),
        ..IntegerIndexParams::default()
    };
    [(KEY, PayloadSchemaParams::Keyword(key)), (AT, PayloadSchemaParams::Integer(at))]
}

/// What is stored beside the vectors.
pub(crate) fn payload(label: &IndexMetadata) -> Map<String, Value> {
    let key = key(&label.persona, &label.scope);
    [(KEY.to_owned(), Value::from(key)), (AT.to_owned(), Value::from(micros(label.at)))].into_iter().collect()
}
