//! The traits of the two search indexes. Both hold ids, search data and filter data. The record keeps the texts, and it
//! decides finally who may see a memory. Both indexes can be rebuilt from the record at any time.
//!
//! Every search takes a [`ReadScope`], and an index must return nothing outside it. The record checks again. But an
//! index that relied on this check would lose good hits that rank behind forbidden ones.

use azera_types::{MemoryId, PersonaId, Scope, Timestamp};

use crate::{Error, ReadScope};

/// Most hits that one search may ask for.
pub const MAX_SEARCH_LIMIT: usize = 1_000;

/// Most hits of a search that goes deeper because few of the first ones count. It reads that many rows of the record.
pub const DEEPEST_SEARCH: usize = 16_000;

/// Characters from which a word of [`TextIndex::containing`] may be the beginning of a longer word. Shorter ones begin too
/// many.
pub const MIN_BEGINNING_CHARS: usize = 3;

/// Data of a memory that an index filters by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexMetadata {
    /// The persona that remembers it.
    pub persona: PersonaId,
    /// The scope it comes from.
    pub scope: Scope,
    /// The time at which it was said.
    pub at: Timestamp,
}

/// A memory that a search found, with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// The memory.
    pub id: MemoryId,
    /// Cosine similarity or BM25 score; larger is better.
    pub score: f32,
}

/// The text of a memory that a vector or a query is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Facet {
    /// The memory's own text.
    Own,
    /// The memory's own text together with the turns before it.
    Window,
}

/// A memory in the vector index.
#[derive(Clone, PartialEq)]
pub struct Point {
    /// The memory's id.
    pub id: MemoryId,
    /// Data for the filter.
    pub label: IndexMetadata,
    /// Unit vector of [`Facet::Own`].
    pub own: Vec<f32>,
    /// Unit vector of [`Facet::Window`], if there are turns before the memory.
    pub window: Option<Vec<f32>>,
}

impl std::fmt::Debug for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Point").field("id", &self.id).field("label", &self.label).finish_non_exhaustive()
    }
}

/// Search for the nearest vectors under a filter. All calls block.
pub trait VectorIndex: Send + Sync {
    /// Adds points and replaces those with the same id. They are durable after [`VectorIndex::flush`].
    fn upsert(&self, points: Vec<Point>) -> Result<(), Error>;

    /// Returns the nearest points by cosine similarity, best first, at most `limit` (at most [`DEEPEST_SEARCH`]). All
    /// are within `read_scope` and not newer than `until`.
    fn search(
        &self,
        read_scope: &ReadScope,
        facet: Facet,
        vector: &[f32],
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<Found>, Error>;

    /// Returns the stored vectors of the given ids, without those it does not hold. This takes no read scope: the ids
    /// must come from a search that took one.
    fn vectors(&self, ids: &[MemoryId]) -> Result<Vec<Stored>, Error>;

    /// Removes points; ignores unknown ids.
    fn remove(&self, ids: &[MemoryId]) -> Result<(), Error>;

    /// Makes all earlier changes durable.
    fn flush(&self) -> Result<(), Error>;

    /// Reorganises the index for fast search, if enough has changed. Searches continue meanwhile.
    fn optimize(&self) -> Result<(), Error>;

    /// Removes all points, and every byte of them from disk.
    fn clear(&self) -> Result<(), Error>;

    /// Rewrites the files on disk so that nothing of removed points is left.
    fn rewrite(&self) -> Result<(), Error>;

    /// Returns all ids in ascending order, for comparison with the record.
    fn ids(&self) -> Result<Vec<MemoryId>, Error>;
}

/// A vector index that returns its stored points, so that another index can be filled from it.
pub trait PointSource: VectorIndex {
    /// Returns the given points as they are stored, without those it does not hold. This takes no read scope: the
    /// points go only to another index of the same installation.
    fn points(&self, ids: &[MemoryId]) -> Result<Vec<Point>, Error>;
}

/// The vectors of a point, as the index stores them.
#[derive(Clone, PartialEq)]
pub struct Stored {
    /// The memory's id.
    pub id: MemoryId,
    /// Vector of [`Facet::Own`].
    pub own: Vec<f32>,
    /// Vector of [`Facet::Window`], if it has one.
    pub window: Option<Vec<f32>>,
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stored({})", self.id)
    }
}

/// How much a word counts in each text of a document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FacetWeights {
    /// Weight in [`Facet::Own`].
    pub own: f32,
    /// Weight in [`Facet::Window`].
    pub window: f32,
}

/// The hits of a lexical search.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LexicalHits {
    /// Best first; the score is the weighted sum of BM25 over both texts.
    pub found: Vec<Found>,
    /// Sum of the idf of the query's words in [`Facet::Own`], including words that no document contains.
    pub idf: f32,
}

/// One of the two text indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextIndexKind {
    /// Messages.
    Chats,
    /// Facts, dreams, journal, diary, notes.
    Memories,
}

/// A memory in the text index.
#[derive(Clone, PartialEq, Eq)]
pub struct TextDocument {
    /// The memory's id.
    pub id: MemoryId,
    /// The index that it belongs to.
    pub text_index: TextIndexKind,
    /// Data for the filter.
    pub label: IndexMetadata,
    /// The text searched as [`Facet::Own`].
    pub own: String,
    /// The text searched as [`Facet::Window`].
    pub window: String,
}

impl std::fmt::Debug for TextDocument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextDocument").field("id", &self.id).field("shelf", &self.text_index).finish_non_exhaustive()
    }
}

/// BM25 search under a filter, with English stemming and stop words. All calls block.
pub trait TextIndex: Send + Sync {
    /// Adds documents and replaces those with the same id. They are searchable and durable after [`TextIndex::commit`].
    fn upsert(&self, docs: Vec<TextDocument>) -> Result<(), Error>;

    /// Returns the best documents for any word of `query`, best first, at most `limit` (at most [`DEEPEST_SEARCH`]).
    /// All are within `read_scope` and not newer than `until`. The query is plain words; nothing in it is syntax.
    fn search(
        &self,
        read_scope: &ReadScope,
        text_index: TextIndexKind,
        query: &str,
        weights: FacetWeights,
        until: Timestamp,
        limit: usize,
    ) -> Result<LexicalHits, Error>;

    /// Returns the newest documents whose own text contains every word of `query`, newest first, at most `limit` (at most
    /// [`MAX_SEARCH_LIMIT`]). A word of at least [`MIN_BEGINNING_CHARS`] characters may be the beginning of a longer one,
    /// as people search while they type. All are within `read_scope` and not newer than `until`.
    fn containing(
        &self,
        read_scope: &ReadScope,
        text_index: TextIndexKind,
        query: &str,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<MemoryId>, Error>;

    /// Removes documents; ignores unknown ids.
    fn remove(&self, ids: &[MemoryId]) -> Result<(), Error>;

    /// Makes all earlier changes searchable and durable.
    fn commit(&self) -> Result<(), Error>;

    /// Removes all documents, and every byte of them from disk.
    fn clear(&self) -> Result<(), Error>;

    /// Rewrites the files on disk so that nothing of removed documents is left.
    fn rewrite(&self) -> Result<(), Error>;

    /// Returns all ids in ascending order, for comparison with the record.
    fn ids(&self) -> Result<Vec<MemoryId>, Error>;
}
