use std::path::Path;

use azera_memory::{
    DEEPEST_SEARCH, Error, FacetWeights, LexicalHits, MAX_SEARCH_LIMIT, ReadScope, TextDocument, TextIndex,
    TextIndexKind,
};
use azera_types::{MemoryId, Timestamp};

use crate::containing::Containing;
use crate::schema::ID;
use crate::search::Search;
use crate::segments::Segments;

/// The text indexes on tantivy.
pub struct TantivyText {
    chats: Segments,
    memories: Segments,
}

impl TantivyText {
    /// Opens both indexes in `dir`, or creates them.
    ///
    /// # Errors
    ///
    /// [`Error::Backend`] if one is damaged; remove it and rebuild it from the record.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, Error> {
        let dir = dir.as_ref();
        Ok(Self { chats: Segments::open(&dir.join("chats"))?, memories: Segments::open(&dir.join("memories"))? })
    }

    /// Reads every file and compares it with its checksum.
    ///
    /// # Errors
    ///
    /// [`Error::Backend`] if one is damaged; remove the index and rebuild it from the record.
    pub fn verified(self) -> Result<Self, Error> {
        self.both(Segments::verify)?;
        Ok(self)
    }

    fn text_index(&self, text_index: TextIndexKind) -> &Segments {
        match text_index {
            TextIndexKind::Chats => &self.chats,
            TextIndexKind::Memories => &self.memories,
        }
    }

    fn both(&self, work: impl Fn(&Segments) -> Result<(), Error>) -> Result<(), Error> {
        work(&self.chats).and(work(&self.memories))
    }
}

impl TextIndex for TantivyText {
    fn upsert(&self, docs: Vec<TextDocument>) -> Result<(), Error> {
        for doc in docs {
            let other = match doc.text_index {
                TextIndexKind::Chats => TextIndexKind::Memories,
                TextIndexKind::Memories => TextIndexKind::Chats,
            };
            self.text_index(other).remove(&[doc.id])?;
            self.text_index(doc.text_index).add(&doc)?;
        }
        Ok(())
    }

    fn search(
        &self,
        read_scope: &ReadScope,
        text_index: TextIndexKind,
        query: &str,
        weights: FacetWeights,
        until: Timestamp,
        limit: usize,
    ) -> Result<LexicalHits, Error> {
        let segments = self.text_index(text_index);
        let limit = limit.min(DEEPEST_SEARCH);
        let search = Search { fields: &segments.fields, read_scope, query, weights, until, limit };
        segments.read(|searcher| search.run(searcher))
    }

    fn containing(
        &self,
        read_scope: &ReadScope,
        text_index: TextIndexKind,
        query: &str,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<MemoryId>, Error> {
        let segments = self.text_index(text_index);
        let limit = limit.min(MAX_SEARCH_LIMIT);
        let search = Containing { fields: &segments.fields, read_scope, query, until, limit };
        segments.read(|searcher| search.run(searcher))
    }

    fn remove(&self, ids: &[MemoryId]) -> Result<(), Error> {
        self.both(|segments| segments.remove(ids))
    }

    fn commit(&self) -> Result<(), Error> {
        self.both(Segments::commit)
    }

    fn clear(&self) -> Result<(), Error> {
        self.both(Segments::clear)
    }

    /// Searches continue meanwhile; changes wait.
    fn rewrite(&self) -> Result<(), Error> {
        self.both(Segments::rewrite)
    }

    fn ids(&self) -> Result<Vec<MemoryId>, Error> {
        let mut ids = Vec::new();
        for text_index in [&self.chats, &self.memories] {
            text_index.read(|searcher| {
                for reader in searcher.segment_readers() {
                    let column = reader.fast_fields().u64(ID)?;
                    ids.extend(reader.doc_ids_alive().filter_map(|doc| column.first(doc)).map(MemoryId));
                }
                Ok(())
            })?;
        }
        ids.sort_unstable();
        Ok(ids)
    }
}
