//! Searching by meaning among 20,000 turns, and reading the vectors of what was found.

use std::hint::black_box;

use azera_memory::{Facet, IndexMetadata, Point, ReadScope, VectorIndex};
use azera_memory_vector::{EmbeddedVectors, VectorConfig};
use azera_types::{ChatId, MemoryId, PersonaId, Place, PlaceKind, ReadableScopes, RealmId, Scope, Timestamp};
use criterion::{Criterion, criterion_group, criterion_main};

const TURNS: u64 = 20_000;

/// Numbers in a vector of MiniLM.
const DIMENSION: usize = 384;

/// A vector of length 1 that follows from a number (xorshift, Marsaglia 2003).
fn vector(seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let numbers: Vec<f32> = (0..DIMENSION)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
        })
        .collect();
    let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt();
    numbers.into_iter().map(|number| number / length).collect()
}

fn searching(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a folder");
    let index = EmbeddedVectors::open(dir.path(), VectorConfig::new(DIMENSION)).expect("an index");
    let (persona, realm) = (PersonaId::new("azera").expect("an id"), RealmId::new("guild").expect("an id"));
    let points = (0..TURNS).map(|turn| {
        let label = IndexMetadata {
            persona: persona.clone(),
            scope: Scope::Realm(realm.clone()),
            at: Timestamp::from_second(turn.cast_signed()).expect("a time"),
        };
        Point { id: MemoryId(turn), label, own: vector(turn), window: Some(vector(turn + TURNS)) }
    });
    index.upsert(points.collect()).expect("an insertion");
    index.flush().expect("a flush");
    index.optimize().expect("an optimization");
    let place = Place { chat: ChatId::new("hall").expect("an id"), kind: PlaceKind::Public(realm), since: None };
    let read_scope = ReadScope::in_place(persona, &place, &ReadableScopes::default());
    let question = vector(7 * TURNS);
    criterion.bench_function("search/one facet", |bench| {
        bench.iter(|| {
            index.search(&read_scope, Facet::Own, black_box(&question), Timestamp::MAX, 100).expect("a search")
        });
    });
    let ids: Vec<MemoryId> = (0..250).map(|number| MemoryId(number * 79)).collect();
    criterion.bench_function("vectors/250 memories", |bench| {
        bench.iter(|| index.vectors(black_box(&ids)).expect("vectors"));
    });
}

criterion_group!(benches, searching);
criterion_main!(benches);
