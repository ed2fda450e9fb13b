use std::path::Path;

use azera_memory::{Doc, Error, FacetWeights, Lexical, MAX_SEARCH_LIMIT, Right, Shelf, TextIndex};
use azera_types::{MemoryId, Timestamp};

use crate::schema::ID;
use crate::search::Search;
use crate::segments::Segments;

/// The text indexes on tantivy.
pub struct TantivyText {
    chats: Segments,
    memories: Segments,
}

impl TantivyText {
    /// Opens both indexes in `dir`, making them if there are none.
    ///
    /// # Errors
    ///
    /// [`Error::Backend`] if one is damaged; it can be removed and built again from the record.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, Error> {
        let dir = dir.as_ref();
        Ok(Self { chats: Segments::open(&dir.join("chats"))?, memories: Segments::open(&dir.join("memories"))? })
    }

    /// Reads every file and compares it with its checksum.
    ///
    /// # Errors
    ///
    /// [`Error::Backend`] if one is damaged; the index can be removed and built again from the record.
    pub fn verified(self) -> Result<Self, Error> {
        self.both(Segments::verify)?;
        Ok(self)
    }

    fn shelf(&self, shelf: Shelf) -> &Segments {
        match shelf {
            Shelf::Chats => &self.chats,
            Shelf::Memories => &self.memories,
        }
    }

    fn both(&self, work: impl Fn(&Segments) -> Result<(), Error>) -> Result<(), Error> {
        work(&self.chats).and(work(&self.memories))
    }
}

impl TextIndex for TantivyText {
    fn upsert(&self, docs: Vec<Doc>) -> Result<(), Error> {
        for doc in docs {
            let other = match doc.shelf {
                Shelf::Chats => Shelf::Memories,
                Shelf::Memories => Shelf::Chats,
            };
            self.shelf(other).remove(&[doc.id])?;
            self.shelf(doc.shelf).add(&doc)?;
        }
        Ok(())
    }

    fn search(
        &self,
        right: &Right,
        shelf: Shelf,
        query: &str,
        weights: FacetWeights,
        until: Timestamp,
        limit: usize,
    ) -> Result<Lexical, Error> {
        let segments = self.shelf(shelf);
        let limit = limit.min(MAX_SEARCH_LIMIT);
        let search = Search { fields: &segments.fields, right, query, weights, until, limit };
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

    /// Searches go on meanwhile, changes wait.
    fn rewrite(&self) -> Result<(), Error> {
        self.both(Segments::rewrite)
    }

    fn ids(&self) -> Result<Vec<MemoryId>, Error> {
        let mut ids = Vec::new();
        for shelf in [&self.chats, &self.memories] {
            shelf.read(|searcher| {
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
