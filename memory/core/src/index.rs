//! The contracts of the two search indexes. Both hold ids and what is needed to find and filter; the text itself and
//! the last word on who may see it stay with the record. Both can be rebuilt from it at any time.
//!
//! Every search takes a [`ReadScope`]. An index must return nothing outside it: the record checks again, but an index that
//! relied on that would lose the hits behind the forbidden ones.

use azera_types::{MemoryId, PersonaId, Scope, Timestamp};

use crate::{Error, ReadScope};

/// Hits one search may be asked for.
pub const MAX_SEARCH_LIMIT: usize = 1_000;

/// What an index knows of a memory besides what is searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexMetadata {
    /// Whose memory it is.
    pub persona: PersonaId,
    /// Where it comes from.
    pub scope: Scope,
    /// When it was said.
    pub at: Timestamp,
}

/// A memory found, with the score of the signal that found it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// Which.
    pub id: MemoryId,
    /// Cosine similarity or BM25 score; larger is better.
    pub score: f32,
}

/// Which text of a memory a vector or a query is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Facet {
    /// What was said.
    Own,
    /// What was said, with the turns around it.
    Window,
}

/// A memory in the vector index.
#[derive(Clone, PartialEq)]
pub struct Point {
    /// Which memory.
    pub id: MemoryId,
    /// For the filter.
    pub label: IndexMetadata,
    /// Vector of [`Facet::Own`], of length 1.
    pub own: Vec<f32>,
    /// Vector of [`Facet::Window`], of length 1, if the memory has turns around it.
    pub window: Option<Vec<f32>>,
}

impl std::fmt::Debug for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Point").field("id", &self.id).field("label", &self.label).finish_non_exhaustive()
    }
}

/// Nearest vectors under a filter. Calls block.
pub trait VectorIndex: Send + Sync {
    /// Adds points, replacing those of the same id. Durable after [`VectorIndex::flush`].
    fn upsert(&self, points: Vec<Point>) -> Result<(), Error>;

    /// The nearest points by cosine similarity within `read_scope` and not younger than `until`, best first, at most
    /// `limit` (at most [`MAX_SEARCH_LIMIT`]).
    fn search(
        &self,
        read_scope: &ReadScope,
        facet: Facet,
        vector: &[f32],
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<Found>, Error>;

    /// The stored vectors of those ids that are there. Not a read path of its own: the ids come from a search under a
    /// right.
    fn vectors(&self, ids: &[MemoryId]) -> Result<Vec<Stored>, Error>;

    /// Removes points; unknown ids are passed over.
    fn remove(&self, ids: &[MemoryId]) -> Result<(), Error>;

    /// Makes everything before this call durable.
    fn flush(&self) -> Result<(), Error>;

    /// Reorganises for fast search, if enough has changed to pay. Searches go on meanwhile.
    fn optimize(&self) -> Result<(), Error>;

    /// Removes everything, and every byte of it from disk.
    fn clear(&self) -> Result<(), Error>;

    /// Rewrites what is on disk so that nothing of removed points is left.
    fn rewrite(&self) -> Result<(), Error>;

    /// Ids held, ascending; for comparing with the record.
    fn ids(&self) -> Result<Vec<MemoryId>, Error>;
}

/// A vector index that gives back what it was given, so that another can be filled from it.
pub trait PointSource: VectorIndex {
    /// Those of these points that are there, as they are stored. Not a read path of its own: they go to another index of
    /// the same house.
    fn points(&self, ids: &[MemoryId]) -> Result<Vec<Point>, Error>;
}

/// The vectors of a point as they are stored.
#[derive(Clone, PartialEq)]
pub struct Stored {
    /// Which memory.
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
    /// In [`Facet::Own`].
    pub own: f32,
    /// In [`Facet::Window`].
    pub window: f32,
}

/// What a search by words found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LexicalHits {
    /// Best first; the score is the weighted sum of BM25 over both texts.
    pub found: Vec<Found>,
    /// Sum over the query's words, those no document holds included, of their idf in [`Facet::Own`].
    pub idf: f32,
}

/// Which of the two text indexes.
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
    /// Which memory.
    pub id: MemoryId,
    /// Which index it belongs to.
    pub text_index: TextIndexKind,
    /// For the filter.
    pub label: IndexMetadata,
    /// Searched as [`Facet::Own`].
    pub own: String,
    /// Searched as [`Facet::Window`].
    pub window: String,
}

impl std::fmt::Debug for TextDocument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextDocument").field("id", &self.id).field("shelf", &self.text_index).finish_non_exhaustive()
    }
}

/// BM25 under a filter, with English stemming and stop words. Calls block.
pub trait TextIndex: Send + Sync {
    /// Adds documents, replacing those of the same id. Searchable and durable after [`TextIndex::commit`].
    fn upsert(&self, docs: Vec<TextDocument>) -> Result<(), Error>;

    /// The best documents for any of the words of `query` within `read_scope` and not younger than `until`, best first,
    /// at most `limit` (at most [`MAX_SEARCH_LIMIT`]). The query is words, never syntax.
    fn search(
        &self,
        read_scope: &ReadScope,
        text_index: TextIndexKind,
        query: &str,
        weights: FacetWeights,
        until: Timestamp,
        limit: usize,
    ) -> Result<LexicalHits, Error>;

    /// Removes documents; unknown ids are passed over.
    fn remove(&self, ids: &[MemoryId]) -> Result<(), Error>;

    /// Makes everything before this call searchable and durable.
    fn commit(&self) -> Result<(), Error>;

    /// Removes everything, and every byte of it from disk.
    fn clear(&self) -> Result<(), Error>;

    /// Rewrites what is on disk so that nothing of removed documents is left.
    fn rewrite(&self) -> Result<(), Error>;

    /// Ids held, ascending; for comparing with the record.
    fn ids(&self) -> Result<Vec<MemoryId>, Error>;
}
