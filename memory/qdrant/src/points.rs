use std::collections::HashMap;

use azera_memory::{Facet, Found, Grant, Point, Stored};
use azera_types::{MemoryId, Timestamp};
use qdrant_client::qdrant::point_id::PointIdOptions;
use qdrant_client::qdrant::vector_output::Vector;
use qdrant_client::qdrant::vectors_output::VectorsOptions;
use qdrant_client::qdrant::{
    Condition, Filter, PointId, PointStruct, Query, QueryPoints, QueryPointsBuilder, Range, RetrievedPoint,
    ScoredPoint, SearchParamsBuilder, VectorsOutput,
};

use crate::config::QdrantConfig;

/// Payload field with the token of persona and scope.
pub(crate) const PLACE: &str = "place";

/// Payload field with the time, in microseconds since 1970.
pub(crate) const AT: &str = "at";

/// Candidates in a search (HNSW's ef), unless more hits are asked for; as in the local index.
const SEARCH_CANDIDATES: usize = 64;

/// Returns microseconds since 1970, rounded down. The server compares them as f64, which is exact until the year 2255.
fn micros(at: Timestamp) -> i64 {
    at.as_nanosecond().div_euclid(1_000).try_into().unwrap_or(i64::MAX)
}

/// Returns the server's name of a vector.
pub(crate) fn name(facet: Facet) -> &'static str {
    match facet {
        Facet::Own => "own",
        Facet::Window => "window",
    }
}

/// Converts a memory to the server's format.
pub(crate) fn to_server(config: &QdrantConfig, point: Point) -> PointStruct {
    let own = Some((Facet::Own, point.own));
    let vectors = own.into_iter().chain(point.window.map(|window| (Facet::Window, window)));
    let vectors: HashMap<String, Vec<f32>> = vectors.map(|(facet, vector)| (name(facet).to_owned(), vector)).collect();
    let payload = [(PLACE, config.token_of(&point.label).into()), (AT, micros(point.label.at).into())];
    PointStruct::new(point.id.0, vectors, payload)
}

/// Returns the query for the nearest points of one scope, as far back as the grant allows.
pub(crate) fn query(
    config: &QdrantConfig,
    persona: &azera_types::PersonaId,
    grant: &Grant,
    facet: Facet,
    vector: &[f32],
    until: Timestamp,
    limit: usize,
) -> QueryPoints {
    // A time in the same microsecond as the horizon counts as before it, so that nothing outside the read scope is
    // shown.
    let horizon = |since: Timestamp| micros(since) + i64::from(since.as_nanosecond().rem_euclid(1_000) != 0);
    let time = Range {
        gte: grant.since.map(|since| horizon(since) as f64),
        lte: Some(micros(until) as f64),
        ..Range::default()
    };
    let place = Condition::matches(PLACE, config.token(persona, &grant.scope));
    QueryPointsBuilder::new(&config.collection)
        .query(Query::new_nearest(vector.to_vec()))
        .using(name(facet))
        .filter(Filter::must([place, Condition::range(AT, time)]))
        .params(SearchParamsBuilder::default().hnsw_ef(SEARCH_CANDIDATES.max(limit) as u64))
        .limit(limit as u64)
        .with_payload(false)
        .with_vectors(false)
        .build()
}

/// Returns the memory of a point.
pub(crate) fn number(id: Option<PointId>) -> Option<MemoryId> {
    match id?.point_id_options? {
        PointIdOptions::Num(number) => Some(MemoryId(number)),
        PointIdOptions::Uuid(_) => None,
    }
}

pub(crate) fn found(point: ScoredPoint) -> Option<Found> {
    Some(Found { id: number(point.id)?, score: point.score })
}

/// Returns the stored vectors of a point.
pub(crate) fn stored(point: RetrievedPoint) -> Option<Stored> {
    let (mut own, mut window) = (None, None);
    for (facet, vector) in dense_vectors(point.vectors) {
        if facet == name(Facet::Own) { own = Some(vector) } else { window = Some(vector) }
    }
    Some(Stored { id: number(point.id)?, own: own?, window })
}

/// Converts a stored point for insertion.
pub(crate) fn again(point: RetrievedPoint) -> PointStruct {
    let vectors: HashMap<String, Vec<f32>> = dense_vectors(point.vectors).collect();
    PointStruct { id: point.id, payload: point.payload, vectors: Some(vectors.into()) }
}

fn dense_vectors(vectors: Option<VectorsOutput>) -> impl Iterator<Item = (String, Vec<f32>)> {
    let named = match vectors.and_then(|vectors| vectors.vectors_options) {
        Some(VectorsOptions::Vectors(named)) => named.vectors,
        _ => HashMap::new(),
    };
    named.into_iter().filter_map(|(name, vector)| match vector.into_vector() {
        Vector::Dense(dense) => Some((name, dense.data)),
        _ => None,
    })
}
