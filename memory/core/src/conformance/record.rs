use std::sync::Arc;
use std::time::Duration;

use azera_types::{MemoryId, Timestamp};

use crate::{
    BlobStore, Error, Facet, FacetWeights, Found, Layers, LexicalHits, Memory, MemoryConfig, Point, RamBlobs,
    RamWorking, ReadScope, Store, Stored, TextDocument, TextIndex, TextIndexKind, VectorIndex,
};

/// Indexes that are always empty.
struct NoIndex;

impl VectorIndex for NoIndex {
    fn upsert(&self, _: Vec<Point>) -> Result<(), Error> {
        Ok(())
    }
    fn search(&self, _: &ReadScope, _: Facet, _: &[f32], _: Timestamp, _: usize) -> Result<Vec<Found>, Error> {
        Ok(Vec::new())
    }
    fn vectors(&self, _: &[MemoryId]) -> Result<Vec<Stored>, Error> {
        Ok(Vec::new())
    }
    fn remove(&self, _: &[MemoryId]) -> Result<(), Error> {
        Ok(())
    }
    fn flush(&self) -> Result<(), Error> {
        Ok(())
    }
    fn optimize(&self) -> Result<(), Error> {
        Ok(())
    }
    fn clear(&self) -> Result<(), Error> {
        Ok(())
    }
    fn rewrite(&self) -> Result<(), Error> {
        Ok(())
    }
    fn ids(&self) -> Result<Vec<MemoryId>, Error> {
        Ok(Vec::new())
    }
}

impl TextIndex for NoIndex {
    fn upsert(&self, _: Vec<TextDocument>) -> Result<(), Error> {
        Ok(())
    }
    fn search(
        &self,
        _: &ReadScope,
        _: TextIndexKind,
        _: &str,
        _: FacetWeights,
        _: Timestamp,
        _: usize,
    ) -> Result<LexicalHits, Error> {
        Ok(LexicalHits::default())
    }
    fn containing(
        &self,
        _: &ReadScope,
        _: TextIndexKind,
        _: &str,
        _: Timestamp,
        _: usize,
    ) -> Result<Vec<MemoryId>, Error> {
        Ok(Vec::new())
    }
    fn remove(&self, _: &[MemoryId]) -> Result<(), Error> {
        Ok(())
    }
    fn commit(&self) -> Result<(), Error> {
        Ok(())
    }
    fn clear(&self) -> Result<(), Error> {
        Ok(())
    }
    fn rewrite(&self) -> Result<(), Error> {
        Ok(())
    }
    fn ids(&self) -> Result<Vec<MemoryId>, Error> {
        Ok(Vec::new())
    }
}

/// Returns a memory whose record is `store` and whose indexes are empty.
///
/// # Panics
///
/// Panics if the record cannot be opened.
pub fn record(store: Arc<dyn Store>) -> Memory {
    record_with_files(store, Arc::new(RamBlobs::default()), settings()).expect("the record can be opened")
}

/// Returns a memory like [`record`] with this vector index.
///
/// # Panics
///
/// Panics if the record cannot be opened.
pub fn record_with_vectors(store: Arc<dyn Store>, vectors: Arc<dyn VectorIndex>) -> Memory {
    let layers = Layers { vectors, ..layers(store, Arc::new(RamBlobs::default())) };
    Memory::open(layers, settings()).expect("the record can be opened")
}

/// Returns a memory like [`record`] with this blob store and these settings.
pub fn record_with_files(
    store: Arc<dyn Store>,
    blobs: Arc<dyn BlobStore>,
    settings: MemoryConfig,
) -> Result<Memory, Error> {
    Memory::open(layers(store, blobs), settings)
}

fn layers(store: Arc<dyn Store>, blobs: Arc<dyn BlobStore>) -> Layers {
    let (vectors, text, working) = (Arc::new(NoIndex), Arc::new(NoIndex), Arc::new(RamWorking::default()));
    Layers { store, vectors, text, working, blobs }
}

/// Returns settings for tests that embed nothing.
pub fn settings() -> MemoryConfig {
    MemoryConfig {
        session_gap: Duration::from_secs(3_600),
        min_age: Duration::ZERO,
        snippet_chars: 400,
        similarity_floor: 0.1,
        near_duplicate: 0.95,
        embedder: "none".into(),
        blob_max_bytes: 1 << 20,
        blobs_max_bytes: 8 << 20,
    }
}
