use std::sync::Arc;
use std::time::Duration;

use azera_types::{MemoryId, Timestamp};

use crate::{
    Error, Facet, FacetWeights, Found, Layers, LexicalHits, Memory, MemoryConfig, Point, RamWorking, ReadScope, Store,
    Stored, TextDocument, TextIndex, TextIndexKind, VectorIndex,
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
    let layers =
        Layers { store, vectors: Arc::new(NoIndex), text: Arc::new(NoIndex), working: Arc::new(RamWorking::default()) };
    Memory::open(layers, settings()).expect("the record can be opened")
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
    }
}
