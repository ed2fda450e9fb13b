//! The index against a model that compares everything with everything.

use std::collections::BTreeMap;

use azera_memory::conformance::DIMENSION;
use azera_memory::{Facet, IndexMetadata, Point, PointSource, ReadScope, VectorIndex};
use azera_types::{ChatId, MemoryId, PersonId, PersonaId, Place, PlaceKind, ReadableScopes, RealmId, Scope, Timestamp};
use proptest::prelude::*;
use tempfile::TempDir;

use super::open;

#[derive(Debug, Clone)]
enum Step {
    Upsert(Vec<Given>),
    Remove(Vec<u64>),
    Flush,
    Reopen,
    Rewrite,
    Optimize,
    Clear,
    Search { persona: u8, realm: u8, since: Option<i64>, until: i64, window: bool, seed: u64, limit: usize },
}

#[derive(Debug, Clone)]
struct Given {
    id: u64,
    persona: u8,
    scope: u8,
    second: i64,
    own: u64,
    window: Option<u64>,
}

/// Few different vectors, so that many points are equally near; the others lie anywhere.
fn vector(seed: u64) -> Vec<f32> {
    let mut random = fastrand::Rng::with_seed(seed);
    let numbers: Vec<f32> = (0..DIMENSION).map(|_| random.f32() - 0.5).collect();
    let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt();
    numbers.into_iter().map(|number| number / length).collect()
}

fn persona(number: u8) -> PersonaId {
    PersonaId::new(format!("persona-{number}")).unwrap()
}

fn scope(number: u8) -> Scope {
    match number {
        0 => Scope::Global,
        1 => Scope::Dm(PersonId::new("ann").unwrap()),
        2 => Scope::Chat(ChatId::new("realm-1").unwrap()),
        number => Scope::Realm(RealmId::new(format!("realm-{number}")).unwrap()),
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn point(given: &Given) -> Point {
    let label = IndexMetadata { persona: persona(given.persona), scope: scope(given.scope), at: at(given.second) };
    Point { id: MemoryId(given.id), label, own: vector(given.own), window: given.window.map(vector) }
}

fn given() -> impl Strategy<Value = Given> {
    let seed = prop_oneof![0..4_u64, any::<u64>()];
    (0..40_u64, 0..2_u8, 0..5_u8, 0..6_i64, seed.clone(), proptest::option::of(seed))
        .prop_map(|(id, persona, scope, second, own, window)| Given { id, persona, scope, second, own, window })
}

fn step() -> impl Strategy<Value = Step> {
    let search = (
        0..2_u8,
        3..6_u8,
        proptest::option::of(0..6_i64),
        0..6_i64,
        any::<bool>(),
        prop_oneof![0..4_u64, any::<u64>()],
        1..12_usize,
    )
        .prop_map(|(persona, realm, since, until, window, seed, limit)| Step::Search {
            persona,
            realm,
            since,
            until,
            window,
            seed,
            limit,
        });
    prop_oneof![
        6 => proptest::collection::vec(given(), 0..12).prop_map(Step::Upsert),
        3 => proptest::collection::vec(0..40_u64, 0..8).prop_map(Step::Remove),
        1 => Just(Step::Flush),
        2 => Just(Step::Reopen),
        1 => Just(Step::Rewrite),
        1 => Just(Step::Optimize),
        1 => proptest::bool::weighted(0.2).prop_map(|clear| if clear { Step::Clear } else { Step::Flush }),
        8 => search,
    ]
}

fn exact(
    model: &BTreeMap<MemoryId, Point>,
    read_scope: &ReadScope,
    window: bool,
    query: &[f32],
    until: Timestamp,
) -> Vec<(MemoryId, f32)> {
    let mut found: Vec<(MemoryId, f32)> = model
        .values()
        .filter(|point| point.label.at <= until)
        .filter(|point| read_scope.allows(&point.label.persona, &point.label.scope, &[], point.label.at))
        .filter_map(|point| {
            let vector = if window { point.window.as_ref()? } else { &point.own };
            Some((point.id, vector.iter().zip(query).map(|(one, two)| one * two).sum()))
        })
        .collect();
    found.sort_by(|one, two| two.1.total_cmp(&one.1).then(one.0.cmp(&two.0)));
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn the_index_finds_what_an_exact_scan_finds(steps in proptest::collection::vec(step(), 1..40)) {
        let dir = TempDir::new().unwrap();
        let mut index = open(dir.path());
        let mut model: BTreeMap<MemoryId, Point> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Upsert(given) => {
                    let points: Vec<Point> = given.iter().map(point).collect();
                    model.extend(points.iter().map(|point| (point.id, point.clone())));
                    index.upsert(points).unwrap();
                }
                Step::Remove(ids) => {
                    let ids: Vec<MemoryId> = ids.into_iter().map(MemoryId).collect();
                    ids.iter().for_each(|id| drop(model.remove(id)));
                    index.remove(&ids).unwrap();
                }
                Step::Flush => index.flush().unwrap(),
                Step::Reopen => {
                    index.flush().unwrap();
                    drop(index);
                    index = open(dir.path());
                }
                Step::Rewrite => index.rewrite().unwrap(),
                Step::Optimize => index.optimize().unwrap(),
                Step::Clear => {
                    model.clear();
                    index.clear().unwrap();
                }
                Step::Search { persona: who, realm, since, until, window, seed, limit } => {
                    let kind = PlaceKind::Public(RealmId::new(format!("realm-{realm}")).unwrap());
                    let place = Place { chat: ChatId::new("hall").unwrap(), kind, since: since.map(at) };
                    let read_scope = ReadScope::in_place(persona(who), &place, &ReadableScopes::default());
                    let facet = if window { Facet::Window } else { Facet::Own };
                    let query = vector(seed);
                    let found = index.search(&read_scope, facet, &query, at(until), limit).unwrap();
                    let all = exact(&model, &read_scope, window, &query, at(until));
                    prop_assert_eq!(found.len(), all.len().min(limit));
                    for (found, (_, score)) in found.iter().zip(&all) {
                        // Points that differ by less than a float's rounding may change places.
                        prop_assert!((found.score - score).abs() < 1e-6, "{} instead of {}", found.score, score);
                        let itself = all.iter().find(|(id, _)| *id == found.id);
                        prop_assert!(itself.is_some_and(|(_, score)| (score - found.score).abs() < 1e-6));
                    }
                    let ordered = found.is_sorted_by(|one, two| {
                        one.score > two.score || (one.score == two.score && one.id < two.id)
                    });
                    prop_assert!(ordered, "out of order: {:?}", found);
                }
            }
        }
        let ids: Vec<MemoryId> = model.keys().copied().collect();
        prop_assert_eq!(index.ids().unwrap(), ids.clone());
        prop_assert_eq!(index.points(&ids).unwrap(), model.into_values().collect::<Vec<_>>());
    }
}

/// Where so many points are visible that the sketches choose among them, hits are still nearly exact, and hidden ones stay
/// hidden.
#[test]
fn a_very_large_group_is_searched_nearly_exactly() {
    const DIMENSION: usize = 128;
    const MANY: u64 = 140_000;
    const QUESTIONS: u64 = 20;
    const LIMIT: usize = 10;
    // Points lie around centers, questions near points, as those of people do.
    let near = |center: &[f32], seed: u64, spread: f32| {
        let mut random = fastrand::Rng::with_seed(seed);
        let numbers: Vec<f32> = center.iter().map(|number| number + (random.f32() - 0.5) * spread).collect();
        let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt();
        numbers.into_iter().map(|number| number / length).collect::<Vec<f32>>()
    };
    let centers: Vec<Vec<f32>> = (0..500).map(|seed| near(&[0.0; DIMENSION], seed, 1.0)).collect();
    let own = |id: u64| near(&centers[(id * id % 499) as usize], 1_000 + id, 0.3);
    let dir = TempDir::new().unwrap();
    let index =
        azera_memory_vector::EmbeddedVectors::open(dir.path(), azera_memory_vector::VectorConfig::new(DIMENSION))
            .unwrap();
    let points = (0..MANY).map(|id| {
        let label = IndexMetadata { persona: persona(0), scope: scope(3), at: at((id % 70).cast_signed()) };
        Point { id: MemoryId(id), label, own: own(id), window: None }
    });
    let points: Vec<Point> = points.collect();
    index.upsert(points.clone()).unwrap();
    let place = Place {
        chat: ChatId::new("hall").unwrap(),
        kind: PlaceKind::Public(RealmId::new("realm-3").unwrap()),
        since: Some(at(1)),
    };
    let read_scope = ReadScope::in_place(persona(0), &place, &ReadableScopes::default());
    let mut right_ones = 0;
    for question in 0..QUESTIONS {
        let query = near(&own(question * 6_999), 7 + question, 0.2);
        let score = |point: &Point| point.own.iter().zip(&query).map(|(one, two)| one * two).sum::<f32>();
        let seen = |point: &&Point| (1..=68).contains(&point.label.at.as_second());
        let mut all: Vec<f32> = points.iter().filter(seen).map(score).collect();
        all.sort_unstable_by(|one, two| two.total_cmp(one));
        let found = index.search(&read_scope, Facet::Own, &query, at(68), LIMIT).unwrap();
        assert_eq!(found.len(), LIMIT);
        for found in &found {
            assert!((1..=68).contains(&(found.id.0 % 70)), "{} is hidden", found.id);
            assert!((found.score - score(&points[found.id.0 as usize])).abs() < 1e-5, "the score of {}", found.id);
        }
        right_ones += found.iter().filter(|found| found.score >= all[LIMIT - 1] - 1e-5).count();
    }
    let all = QUESTIONS as usize * LIMIT;
    assert!(right_ones * 100 >= all * 98, "{right_ones} of {all} hits are among the nearest");
}
