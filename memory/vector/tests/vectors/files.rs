//! What lies on the disk: damage, crashes, other formats, forgetting.

use std::fs;
use std::path::Path;

use azera_memory::conformance::{self, DIMENSION};
use azera_memory::{Error, VectorIndex};
use azera_memory_vector::{EmbeddedVectors, VectorConfig};
use azera_types::MemoryId;
use tempfile::TempDir;

use super::{axis, ids, nearest, open, point, refused};

const FILE: &str = "points.log";

#[track_caller]
fn assert_names_the_remedy(error: &Error, moment: &str) {
    let named = matches!(error, Error::Backend { why, transient: false, .. } if why.contains("azera memory rebuild"));
    assert!(named, "{moment}: {error}");
}

/// A file of some points, some of them replaced or removed, in two flushes; and how long it was after each.
fn written(dir: &Path) -> (Vec<u8>, usize, usize) {
    let index = open(dir);
    let file = dir.join(FILE);
    index.upsert(vec![point(1, "guild", 0), point(2, "guild", 1), point(3, "guild", 2)]).unwrap();
    index.flush().unwrap();
    let first = fs::read(&file).unwrap().len();
    index.remove(&[MemoryId(2)]).unwrap();
    index.upsert(vec![point(3, "guild", 3)]).unwrap();
    index.flush().unwrap();
    let second = fs::read(&file).unwrap().len();
    index.upsert(vec![point(4, "guild", 4)]).unwrap();
    drop(index);
    (fs::read(&file).unwrap(), first, second)
}

#[test]
fn another_dimension_is_refused_with_the_remedy() {
    let dir = TempDir::new().unwrap();
    drop(open(dir.path()));
    let refused = EmbeddedVectors::open(dir.path(), VectorConfig::new(DIMENSION + 1)).err().unwrap();
    assert!(matches!(&refused, Error::Invalid(why) if why.contains("azera memory rebuild")), "{refused}");
    drop(open(dir.path()));
}

/// What the app then does: it removes the folder and fills a new index from the record.
#[test]
fn a_folder_of_the_earlier_format_is_refused_with_the_remedy() {
    for name in ["live", "old"] {
        let dir = TempDir::new().unwrap();
        let segment = dir.path().join(name).join("segments").join("0b2e7a");
        fs::create_dir_all(&segment).unwrap();
        fs::write(dir.path().join(name).join("edge_config.json"), b"{\"vectors\":{}}").unwrap();
        fs::write(segment.join("segment.json"), b"{}").unwrap();
        assert_names_the_remedy(&refused(dir.path()), name);
        assert!(segment.join("segment.json").exists(), "opening removes nothing");
        fs::remove_dir_all(dir.path()).unwrap();
        assert_eq!(ids(&open(dir.path())), [0_u64; 0]);
    }
}

#[test]
fn a_later_format_is_refused_with_the_remedy() {
    let dir = TempDir::new().unwrap();
    drop(open(dir.path()));
    let mut bytes = fs::read(dir.path().join(FILE)).unwrap();
    bytes[8] = 2;
    let checksum = crc32fast::hash(&bytes[..16]);
    bytes[16..20].copy_from_slice(&checksum.to_le_bytes());
    fs::write(dir.path().join(FILE), bytes).unwrap();
    let error = refused(dir.path());
    assert_names_the_remedy(&error, "version 2");
    assert!(error.to_string().contains("version 2"), "{error}");
}

#[test]
fn every_damaged_byte_of_what_was_flushed_is_noticed() {
    let dir = TempDir::new().unwrap();
    let (bytes, first, second) = written(dir.path());
    // The last record before the end of a flush is that of the flush itself: 8 bytes, the kind, and 16 bytes.
    let mark = second - 25;
    for place in 0..second {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x10;
        fs::write(dir.path().join(FILE), damaged).unwrap();
        match EmbeddedVectors::open(dir.path(), VectorConfig::new(DIMENSION)) {
            Err(Error::Invalid(_)) => panic!("byte {place} was taken for another dimension"),
            Err(error) => assert_names_the_remedy(&error, &format!("byte {place} of {second}, {first} in the first")),
            Ok(index) => {
                assert!(place >= mark, "byte {place} of {second} was not noticed");
                assert_eq!(ids(&index), [1, 3]);
            }
        }
    }
}

#[test]
fn whatever_a_crash_leaves_of_the_end_opens_as_it_was_before() {
    let dir = TempDir::new().unwrap();
    let (bytes, first, second) = written(dir.path());
    for length in first..=bytes.len() {
        let garbage: &[u8] = if length % 2 == 0 { &[] } else { &[0xaa; 700] };
        fs::write(dir.path().join(FILE), [&bytes[..length], garbage].concat()).unwrap();
        let index = open(dir.path());
        let want: &[&[u64]] = if length == bytes.len() {
            &[&[1, 3, 4]]
        } else if length >= second - 25 {
            &[&[1, 3]]
        } else {
            &[&[1, 2, 3], &[1, 3]]
        };
        let found = ids(&index);
        assert!(want.contains(&found.as_slice()), "{found:?} of {length} bytes");
        index.upsert(vec![point(9, "guild", 7)]).unwrap();
        index.flush().unwrap();
        drop(index);
        let index = open(dir.path());
        assert_eq!(ids(&index), [found, vec![9]].concat(), "changes after the crash are kept");
        assert_eq!(nearest(&index, "guild", &axis(7)), MemoryId(9));
    }
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
    assert_eq!(nearest(&again, "guild", &axis(1)), MemoryId(8));
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
    let holds = |needle: &[u8]| std::panic::catch_unwind(|| conformance::assert_no_bytes(dir.path(), needle)).is_err();
    assert!(holds(b"quokka-realm") && holds(&bytes), "the search for bytes finds what is there");
    index.remove(&[MemoryId(1)]).unwrap();
    index.flush().unwrap();
    index.rewrite().unwrap();
    conformance::assert_no_bytes(dir.path(), b"quokka-realm");
    conformance::assert_no_bytes(dir.path(), &bytes);
    assert!(holds(b"wombat-realm"));
    index.clear().unwrap();
    conformance::assert_no_bytes(dir.path(), b"wombat-realm");
}

#[test]
fn an_interrupted_rewrite_leaves_the_old_index() {
    let dir = TempDir::new().unwrap();
    let index = open(dir.path());
    index.upsert(vec![point(1, "guild", 0)]).unwrap();
    index.flush().unwrap();
    drop(index);
    let next = dir.path().join("points.log.next");
    fs::write(&next, b"AZERAVEC half of a file").unwrap();
    assert_eq!(ids(&open(dir.path())), [1]);
    assert!(!next.exists(), "something was left");
}

#[test]
fn damage_found_by_a_rewrite_is_an_error_and_loses_nothing() {
    let dir = TempDir::new().unwrap();
    let index = open(dir.path());
    index.upsert((0..10).map(|id| point(id, "guild", 0)).collect()).unwrap();
    index.flush().unwrap();
    let mut bytes = fs::read(dir.path().join(FILE)).unwrap();
    let place = bytes.len() / 2;
    bytes[place] ^= 1;
    fs::write(dir.path().join(FILE), &bytes).unwrap();
    assert_names_the_remedy(&index.rewrite().unwrap_err(), "rewriting");
    assert_eq!(fs::read(dir.path().join(FILE)).unwrap(), bytes);
    assert!(!dir.path().join("points.log.next").exists(), "an unfinished file was left");
}
