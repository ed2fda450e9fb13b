//! The embedded vector index, through its contract.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod files;
mod killed;
mod model;

use std::path::Path;

use azera_memory::conformance::{self, DIMENSION};
use azera_memory::{Error, Facet, IndexMetadata, Point, PointSource, ReadScope, VectorIndex};
use azera_memory_vector::{EmbeddedVectors, VectorConfig};
use azera_types::{ChatId, MemoryId, PersonaId, Place, PlaceKind, ReadableScopes, RealmId, Scope, Timestamp};
use tempfile::TempDir;

fn open(dir: &Path) -> EmbeddedVectors {
    EmbeddedVectors::open(dir, VectorConfig::new(DIMENSION)).unwrap()
}

fn refused(dir: &Path) -> Error {
    EmbeddedVectors::open(dir, VectorConfig::new(DIMENSION)).err().unwrap()
}

fn label(realm: &str, second: i64) -> IndexMetadata {
    IndexMetadata {
        persona: PersonaId::new("azera").unwrap(),
        scope: Scope::Realm(RealmId::new(realm).unwrap()),
        at: Timestamp::from_second(second).unwrap(),
    }
}

fn axis(axis: usize) -> Vec<f32> {
    let mut vector = vec![0.0; DIMENSION];
    vector[axis] = 1.0;
    vector
}

fn point(id: u64, realm: &str, direction: usize) -> Point {
    Point { id: MemoryId(id), label: label(realm, 0), own: axis(direction), window: None }
}

fn ids(index: &EmbeddedVectors) -> Vec<u64> {
    index.ids().unwrap().into_iter().map(|id| id.0).collect()
}

fn right(realm: &str) -> ReadScope {
    let kind = PlaceKind::Public(RealmId::new(realm).unwrap());
    let place = Place { chat: ChatId::new("hall").unwrap(), kind, since: None };
    ReadScope::in_place(PersonaId::new("azera").unwrap(), &place, &ReadableScopes::default())
}

fn nearest(index: &EmbeddedVectors, realm: &str, vector: &[f32]) -> MemoryId {
    index.search(&right(realm), Facet::Own, vector, Timestamp::MAX, 1).unwrap()[0].id
}

#[test]
fn the_index_keeps_the_contract() {
    conformance::vector(|| {
        let dir = TempDir::new().unwrap();
        move || open(dir.path())
    });
}

#[test]
fn points_come_back_as_they_were_given() {
    let (dir, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let index = open(dir.path());
    let mut given = vec![point(1, "guild:1", 0), point(u64::MAX, "guild", 3)];
    given[0].window = Some(axis(5));
    given[1].label.scope = Scope::Global;
    given[1].label.at = Timestamp::new(-1_700_000_000, -123_456_789).unwrap();
    index.upsert(given.clone()).unwrap();
    let back = index.points(&[MemoryId(u64::MAX), MemoryId(5), MemoryId(1)]).unwrap();
    let find = |id: MemoryId| back.iter().find(|point| point.id == id).cloned();
    assert_eq!((back.len(), find(given[0].id), find(given[1].id)), (2, Some(given[0].clone()), Some(given[1].clone())));
    let copy = open(other.path());
    copy.upsert(back).unwrap();
    assert_eq!(nearest(&copy, "guild:1", &given[0].own), MemoryId(1));
}

#[test]
fn a_vector_of_another_length_counts_by_its_direction() {
    let dir = TempDir::new().unwrap();
    let index = open(dir.path());
    let mut long = point(1, "guild", 0);
    long.own.iter_mut().for_each(|number| *number *= 1e30);
    index.upsert(vec![long, point(2, "guild", 1)]).unwrap();
    let mut question = axis(0);
    question[1] = 1.0;
    let found = index.search(&right("guild"), Facet::Own, &question, Timestamp::MAX, 2).unwrap();
    assert_eq!(found.iter().map(|found| found.id.0).collect::<Vec<_>>(), [1, 2]);
    assert!(found.iter().all(|found| (found.score - 0.5_f32.sqrt()).abs() < 1e-6), "{found:?}");
}

#[test]
fn searches_go_on_while_points_change_and_the_file_is_rewritten() {
    let dir = TempDir::new().unwrap();
    let index = open(dir.path());
    index.upsert((0..2_000).map(|id| point(id, "guild", 0)).collect()).unwrap();
    std::thread::scope(|scope| {
        let changing = scope.spawn(|| {
            for round in 0..20 {
                index.upsert((2_000..2_200).map(|id| point(id, "guild", 1)).collect()).unwrap();
                index.remove(&(2_000..2_200).map(MemoryId).collect::<Vec<_>>()).unwrap();
                if round % 4 == 0 {
                    index.rewrite().unwrap();
                }
                index.flush().unwrap();
            }
        });
        while !changing.is_finished() {
            let found = index.search(&right("guild"), Facet::Own, &axis(0), Timestamp::MAX, 10).unwrap();
            let first: Vec<u64> = found.iter().map(|found| found.id.0).collect();
            assert_eq!(first, (0..10).collect::<Vec<_>>());
            assert!(found.iter().all(|found| (found.score - 1.0).abs() < 1e-6), "a vector of another point was read");
        }
        changing.join().unwrap();
    });
    assert_eq!(ids(&index), (0..2_000).collect::<Vec<_>>());
}

#[test]
fn the_file_does_not_grow_for_ever() {
    let dir = TempDir::new().unwrap();
    let index = open(dir.path());
    let bytes = || std::fs::metadata(dir.path().join("points.log")).unwrap().len();
    for _ in 0..12 {
        index.upsert((0..20_000).map(|id| point(id, "guild", 0)).collect()).unwrap();
        index.flush().unwrap();
    }
    let grown = bytes();
    assert!(grown > 16_000_000, "{grown} bytes");
    index.optimize().unwrap();
    assert!(bytes() < grown / 10, "{} of {grown} bytes are left", bytes());
    index.upsert(vec![point(5, "guild", 1)]).unwrap();
    index.optimize().unwrap();
    assert_eq!(nearest(&index, "guild", &axis(1)), MemoryId(5));
    assert_eq!(ids(&index).len(), 20_000);
}
