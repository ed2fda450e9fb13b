//! The vector index on qdrant-edge, through its contract.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;

use azera_memory::conformance::{self, DIMENSION};
use azera_memory::{Error, Facet, IndexMetadata, Point, PointSource, ReadScope, VectorIndex};
use azera_memory_vector::{EdgeVectors, VectorConfig};
use azera_types::{ChatId, MemoryId, PersonaId, Place, PlaceKind, ReadableScopes, RealmId, Scope, Timestamp};
use tempfile::TempDir;

fn open(dir: &Path) -> EdgeVectors {
    EdgeVectors::open(dir, VectorConfig::new(DIMENSION)).unwrap()
}

fn point(id: u64, realm: &str, axis: usize) -> Point {
    let mut own = vec![0.0; DIMENSION];
    own[axis] = 1.0;
    let label = IndexMetadata {
        persona: PersonaId::new("azera").unwrap(),
        scope: Scope::Realm(RealmId::new(realm).unwrap()),
        at: Timestamp::UNIX_EPOCH,
    };
    Point { id: MemoryId(id), label, own, window: None }
}

fn ids(index: &EdgeVectors) -> Vec<u64> {
    index.ids().unwrap().into_iter().map(|id| id.0).collect()
}

fn right(realm: &str) -> ReadScope {
    let kind = PlaceKind::Public(RealmId::new(realm).unwrap());
    let place = Place { chat: ChatId::new("hall").unwrap(), kind, since: None };
    ReadScope::in_place(PersonaId::new("azera").unwrap(), &place, &ReadableScopes::default())
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
    given[0].window = Some(point(1, "guild", 5).own);
    given[1].label.scope = Scope::Global;
    given[1].label.at = Timestamp::from_microsecond(1_700_000_000_123_456).unwrap();
    index.upsert(given.clone()).unwrap();
    let back = index.points(&[MemoryId(u64::MAX), MemoryId(5), MemoryId(1)]).unwrap();
    let find = |id: MemoryId| back.iter().find(|point| point.id == id).cloned();
    assert_eq!((back.len(), find(given[0].id), find(given[1].id)), (2, Some(given[0].clone()), Some(given[1].clone())));
    let copy = open(other.path());
    copy.upsert(back).unwrap();
    let hits = copy.search(&right("guild:1"), Facet::Own, &given[0].own, Timestamp::MAX, 1).unwrap();
    assert_eq!(hits[0].id, MemoryId(1));
}

#[test]
fn another_dimension_is_refused_with_the_remedy() {
    let dir = TempDir::new().unwrap();
    drop(open(dir.path()));
    let refused = EdgeVectors::open(dir.path(), VectorConfig::new(DIMENSION + 1)).err().unwrap();
    assert!(matches!(&refused, Error::Invalid(why) if why.contains("azera memory rebuild")), "{refused}");
    drop(open(dir.path()));
}

#[test]
fn damage_is_an_error_that_names_the_remedy() {
    let check = |moment: &str, damage: fn(&Path)| {
        let dir = TempDir::new().unwrap();
        let index = open(dir.path());
        index.upsert((0..200).map(|id| point(id, "guild", 0)).collect()).unwrap();
        index.flush().unwrap();
        drop(index);
        for entry in fs::read_dir(dir.path().join("live").join("segments")).unwrap() {
            damage(&entry.unwrap().path());
        }
        let refused = EdgeVectors::open(dir.path(), VectorConfig::new(DIMENSION)).err().expect(moment);
        let named = matches!(&refused, Error::Backend { why, .. } if why.contains("azera memory rebuild"));
        assert!(named, "{moment}: {refused}");
    };
    check("a segment without its state", |segment| fs::write(segment.join("segment.json"), b"{").unwrap());
    check("a segment without vectors", |segment| {
        for entry in fs::read_dir(segment).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                fs::remove_dir_all(&path).unwrap();
                fs::write(&path, b"a file").unwrap();
            }
        }
    });
}

#[test]
fn what_was_flushed_survives_a_crash() {
    let (dir, crashed) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let index = open(dir.path());
    index.upsert((0..300).map(|id| point(id, "guild", 0)).collect()).unwrap();
    index.flush().unwrap();
    index.remove(&[MemoryId(7)]).unwrap();
    index.upsert(vec![point(8, "guild", 1)]).unwrap();
    index.flush().unwrap();
    conformance::copy_dir(dir.path(), crashed.path());
    let again = open(crashed.path());
    assert_eq!(ids(&again), (0..300).filter(|id| *id != 7).collect::<Vec<_>>());
    let hits = again.search(&right("guild"), Facet::Own, &point(0, "guild", 1).own, Timestamp::MAX, 1).unwrap();
    assert_eq!(hits[0].id, MemoryId(8));
    again.upsert(vec![point(7, "guild", 2)]).unwrap();
    assert_eq!(ids(&again).len(), 300, "changes after the crash are taken");
}

#[test]
fn a_rewrite_leaves_no_byte_of_what_was_removed() {
    let dir = TempDir::new().unwrap();
    let index = open(dir.path());
    let mut secret = point(1, "quokka-realm", 0);
    secret.own = (0..DIMENSION).map(|number| 0.25 + number as f32 / 16.0).collect();
    index.upsert(vec![secret, point(2, "wombat-realm", 0)]).unwrap();
    let stored = index.vectors(&[MemoryId(1)]).unwrap().remove(0).own;
    let bytes: Vec<u8> = stored.iter().take(4).flat_map(|number| number.to_le_bytes()).collect();
    index.remove(&[MemoryId(1)]).unwrap();
    index.flush().unwrap();
    index.rewrite().unwrap();
    conformance::assert_no_bytes(dir.path(), b"quokka-realm");
    conformance::assert_no_bytes(dir.path(), &bytes);
    let retained = std::panic::catch_unwind(|| conformance::assert_no_bytes(dir.path(), b"wombat-realm"));
    assert!(retained.is_err(), "the search for bytes finds what is there");
    index.clear().unwrap();
    conformance::assert_no_bytes(dir.path(), b"wombat-realm");
}

#[test]
fn an_interrupted_rewrite_leaves_the_old_or_the_new_index() {
    let dir = TempDir::new().unwrap();
    let index = open(dir.path());
    index.upsert(vec![point(1, "guild", 0)]).unwrap();
    index.flush().unwrap();
    drop(index);
    let path = |name: &str| dir.path().join(name);
    let check = |moment: &str| {
        assert_eq!(ids(&open(dir.path())), [1], "{moment}");
        assert!(!path("next").exists() && !path("old").exists(), "{moment}: something was left");
    };
    fs::create_dir(path("next")).unwrap();
    fs::write(path("next").join("edge_config.json"), b"{").unwrap();
    check("while the copy was written");
    conformance::copy_dir(&path("live"), &path("next"));
    fs::rename(path("live"), path("old")).unwrap();
    check("between the renames");
    conformance::copy_dir(&path("live"), &path("old"));
    check("before the old one was removed");
}

#[test]
fn the_log_of_the_engine_does_not_grow_for_ever() {
    let dir = TempDir::new().unwrap();
    let index = open(dir.path());
    for thousand in 0..60 {
        index.upsert((0..1_000).map(|id| point(thousand * 1_000 + id, "guild", 0)).collect()).unwrap();
    }
    index.flush().unwrap();
    let log = fs::read_dir(dir.path().join("live").join("wal")).unwrap();
    let bytes: u64 = log.map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes < 20_000_000, "the log has {bytes} bytes");
    index.upsert(vec![point(5, "guild", 1)]).unwrap();
    let hits = index.search(&right("guild"), Facet::Own, &point(0, "guild", 1).own, Timestamp::MAX, 1).unwrap();
    assert_eq!(hits[0].id, MemoryId(5), "a change behind a shortened log is not taken for an old one");
    assert_eq!(ids(&index).len(), 60_000);
}
