use azera_memory::{Error, Facet, Found, Grant, ReadScope};
use azera_types::{MemoryId, PersonaId, Timestamp};
use qdrant_edge::{NamedQuery, PointId, QueryEnum, ScoredPoint, SearchParams, SearchRequest, VectorInternal};

use crate::config::{GRAPH_SEARCH_CANDIDATES, name};
use crate::filter::filter;
use crate::shard::Shard;

/// One search. Each place of the right is searched on its own: its points lie side by side and have a graph of their
/// own, while a graph over many places, filtered, loses every tenth hit and more.
pub(crate) struct Search<'a> {
    pub(crate) read_scope: &'a ReadScope,
    pub(crate) facet: Facet,
    pub(crate) vector: &'a [f32],
    pub(crate) until: Timestamp,
    pub(crate) limit: usize,
}

impl Search<'_> {
    /// The nearest points, nearest first; of equally near ones the oldest memory first.
    pub(crate) fn run(&self, shard: &Shard) -> Result<Vec<Found>, Error> {
        let mut found = Vec::new();
        for grant in self.read_scope.grants() {
            found.extend(self.place(shard, self.read_scope.persona(), grant)?);
        }
        found.sort_unstable_by(|one, two| two.score.total_cmp(&one.score).then(one.id.cmp(&two.id)));
        found.dedup_by_key(|found| found.id);
        found.truncate(self.limit);
        Ok(found)
    }

    /// The nearest points of one place.
    fn place(&self, shard: &Shard, persona: &PersonaId, grant: &Grant) -> Result<Vec<Found>, Error> {
        let hits = shard.run("searching the vector index", |edge| edge.search(self.request(persona, grant)))?;
        let found = |hit: ScoredPoint| Some(Found { id: number(hit.id)?, score: hit.score });
        Ok(hits.into_iter().filter_map(found).collect())
    }

    fn request(&self, persona: &PersonaId, grant: &Grant) -> SearchRequest {
        let (query, using) = (VectorInternal::Dense(self.vector.to_vec()), Some(name(self.facet).to_owned()));
        let candidates = GRAPH_SEARCH_CANDIDATES.max(self.limit);
        SearchRequest {
            query: QueryEnum::Nearest(NamedQuery { query, using }),
            filter: Some(filter(persona, grant, self.until)),
            params: Some(SearchParams { hnsw_ef: Some(candidates), ..SearchParams::default() }),
            limit: self.limit,
            offset: 0,
            with_payload: None,
            with_vector: None,
            score_threshold: None,
        }
    }
}

/// The memory a point stands for.
pub(crate) fn number(id: PointId) -> Option<MemoryId> {
    match id {
        PointId::NumId(id) => Some(MemoryId(id)),
        PointId::Uuid(_) => None,
    }
}
