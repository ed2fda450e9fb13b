//! The store and working memory on sled, through their traits.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use azera_memory::{Batch, Change, Durability, Entry, Error, Order, Store, Table, Working, conformance};
use azera_memory_sled::{SledStore, SledWorking};
use azera_types::Timestamp;
use proptest::prelude::*;
use tempfile::TempDir;

fn fresh() -> impl FnMut() -> SledStore {
    let dir = TempDir::new().unwrap();
    move || SledStore::open(dir.path()).unwrap()
}

fn put(store: &SledStore, key: &[u8], value: &[u8]) {
    let mut batch = Batch::new();
    batch.put(Table::Messages, key, value);
    store.commit(batch, Durability::Flushed).unwrap();
}

fn rows(store: &SledStore) -> Vec<Entry> {
    store.scan(Table::Messages, b"", None, Order::Ascending, 1_000_000).unwrap()
}

#[test]
fn the_store_passes_the_conformance_suite() {
    conformance::store(fresh);
}

#[test]
fn working_memory_passes_the_conformance_suite() {
    conformance::working(|| {
        let dir = TempDir::new().unwrap();
        move || SledWorking::open(dir.path()).unwrap()
    });
    let dir = TempDir::new().unwrap();
    conformance::sweeping(&SledWorking::open(dir.path()).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn the_store_answers_like_a_map(script in prop::collection::vec(any::<u8>(), 0..1_500)) {
        conformance::store_against_map(&script, fresh());
    }
}

#[test]
fn flushed_changes_are_on_disk_while_the_store_is_open() {
    let (dir, crashed) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let store = SledStore::open(dir.path()).unwrap();
    for number in 0..200_u32 {
        put(&store, &number.to_be_bytes(), &vec![number as u8; 1_000]);
    }
    put(&store, b"large", &vec![1; 1_000_000]);
    conformance::copy_dir(dir.path(), crashed.path());
    assert_eq!(rows(&SledStore::open(crashed.path()).unwrap()), rows(&store));
}

#[test]
fn many_writers_at_once_lose_nothing() {
    let dir = TempDir::new().unwrap();
    let store = SledStore::open(dir.path()).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..8_u8 {
            let store = &store;
            scope.spawn(move || (0..25_u8).for_each(|number| put(store, &[writer, number], &[writer, number])));
        }
    });
    drop(store);
    let rows = rows(&SledStore::open(dir.path()).unwrap());
    assert_eq!(rows.len(), 200);
    assert!(rows.iter().all(|(key, value)| key == value));
}

#[test]
fn a_rewrite_leaves_no_byte_of_removed_values() {
    let dir = TempDir::new().unwrap();
    let store = SledStore::open(dir.path()).unwrap();
    let secret = b"the passphrase is quokka-7731";
    let mut large = vec![b'.'; 300_000];
    large.extend_from_slice(secret);
    put(&store, b"gone", secret);
    put(&store, b"gone and large", &large);
    put(&store, b"replaced", secret);
    put(&store, b"kept", b"the passphrase is wombat-1234");
    let mut batch = Batch::new();
    batch.remove(Table::Messages, b"gone").remove(Table::Messages, b"gone and large");
    batch.put(Table::Messages, b"replaced", b"-");
    store.commit(batch, Durability::Flushed).unwrap();
    let before = rows(&store);
    store.rewrite().unwrap();
    conformance::assert_no_bytes(dir.path(), secret);
    assert_eq!(rows(&store), before);
    let retained = std::panic::catch_unwind(|| conformance::assert_no_bytes(dir.path(), b"wombat-1234"));
    assert!(retained.is_err(), "the check finds bytes that are present");
}

#[test]
fn changes_during_a_rewrite_are_there_after_it() {
    let dir = TempDir::new().unwrap();
    let store = SledStore::open(dir.path()).unwrap();
    for number in 0..2_000_u32 {
        let mut batch = Batch::new();
        batch.put(Table::Messages, number.to_be_bytes(), vec![1; 500]);
        store.commit(batch, Durability::Soon).unwrap();
    }
    let written = std::thread::scope(|scope| {
        let rewriting = scope.spawn(|| store.rewrite().unwrap());
        let mut written = 0_u32;
        while !rewriting.is_finished() || written < 10 {
            let mut batch = Batch::new();
            batch.put(Table::Messages, written.to_be_bytes(), b"later").put(
                Table::Chats,
                written.to_be_bytes(),
                b"new",
            );
            store.commit(batch, Durability::Soon).unwrap();
            written += 1;
        }
        written
    });
    drop(store);
    let store = SledStore::open(dir.path()).unwrap();
    for number in 0..written {
        assert_eq!(
            store.get(Table::Messages, &number.to_be_bytes()).unwrap().as_deref(),
            Some(&b"later"[..]),
            "{number}"
        );
        assert_eq!(store.get(Table::Chats, &number.to_be_bytes()).unwrap().as_deref(), Some(&b"new"[..]), "{number}");
    }
    assert_eq!(rows(&store).len(), 2_000.max(written as usize));
}

#[test]
fn a_cleared_working_memory_leaves_no_byte() {
    let dir = TempDir::new().unwrap();
    let working = SledWorking::open(dir.path()).unwrap();
    let day = Duration::from_secs(86_400);
    working.put("session", b"quokka-7731", day, Timestamp::UNIX_EPOCH).unwrap();
    working.clear().unwrap();
    conformance::assert_no_bytes(dir.path(), b"quokka-7731");
    drop(working);
    conformance::assert_no_bytes(dir.path(), b"quokka-7731");
}

#[test]
fn a_directory_in_use_is_refused_with_the_reason() {
    let dir = TempDir::new().unwrap();
    let _store = SledStore::open(dir.path()).unwrap();
    let refused = SledStore::open(dir.path()).err().unwrap();
    assert!(refused.to_string().contains("in use by another Azera"), "{refused}");
}

#[test]
fn an_interrupted_rewrite_leaves_the_old_or_the_new_store() {
    let dir = TempDir::new().unwrap();
    let store = SledStore::open(dir.path()).unwrap();
    put(&store, b"key", b"value");
    store.rewrite().unwrap();
    drop(store);
    let check = |moment: &str| {
        let store = SledStore::open(dir.path()).unwrap();
        assert_eq!(rows(&store), [(b"key".to_vec(), b"value".to_vec())], "{moment}");
        let generations = fs::read_dir(dir.path()).unwrap().filter(|it| it.as_ref().unwrap().path().is_dir()).count();
        assert_eq!(generations, 1, "{moment}");
    };
    fs::create_dir(dir.path().join("g3")).unwrap();
    fs::write(dir.path().join("g3").join("db"), b"half a copy").unwrap();
    check("while the copy was written");
    conformance::copy_dir(&dir.path().join("g2"), &dir.path().join("g3"));
    fs::write(dir.path().join("current.new"), b"g3").unwrap();
    check("before the copy was put in use");
    conformance::copy_dir(&dir.path().join("g2"), &dir.path().join("g3"));
    fs::write(dir.path().join("current"), b"g3").unwrap();
    check("before the old one was removed");
}

#[test]
fn damage_is_reported_and_nothing_is_removed() {
    let check = |moment: &str, damage: fn(&Path)| {
        let dir = TempDir::new().unwrap();
        let store = SledStore::open(dir.path()).unwrap();
        (0..500_u32).for_each(|number| put(&store, &number.to_be_bytes(), &[7; 2_000]));
        drop(store);
        damage(dir.path());
        let there = fs::read_dir(dir.path().join("g1")).is_ok_and(|mut inside| inside.next().is_some());
        let read = SledStore::open(dir.path()).and_then(|store| {
            let all = store.scan(Table::Messages, b"", None, Order::Ascending, 1_000)?;
            assert_eq!(all.len(), 500, "{moment}: rows are missing without an error");
            Ok(())
        });
        let error = read.expect_err(moment);
        assert!(matches!(error, Error::Backend { .. } | Error::Io { .. }), "{moment}: {error}");
        assert!(!error.is_transient(), "{moment}: {error}");
        let still = fs::read_dir(dir.path().join("g1")).is_ok_and(|mut inside| inside.next().is_some());
        assert_eq!(still, there, "{moment}: files were removed");
    };
    check("no `current`", |dir| fs::remove_file(dir.join("current")).unwrap());
    check("an empty `current`", |dir| fs::write(dir.join("current"), b"").unwrap());
    check("no generation", |dir| fs::remove_dir_all(dir.join("g1")).unwrap());
    check("nothing but zeros in the log", |dir| {
        let log = dir.join("g1").join("db");
        fs::write(&log, vec![0; fs::metadata(&log).unwrap().len() as usize]).unwrap();
    });
}

/// The effect of damage depends on how sled used that part of the log. It may contain only outdated pages; then nothing
/// is lost.
#[test]
fn a_damaged_part_of_the_log_is_an_error_or_costs_nothing() {
    let value = |number: u32| [number as u8; 2_000];
    let mut refused = 0;
    for part in 0..=8 {
        let dir = TempDir::new().unwrap();
        let store = SledStore::open(dir.path()).unwrap();
        (0..500_u32).for_each(|number| put(&store, &number.to_be_bytes(), &value(number)));
        drop(store);
        let log = dir.path().join("g1").join("db");
        let mut bytes = fs::read(&log).unwrap();
        let eighth = bytes.len() / 8;
        match part {
            8 => bytes.truncate(4 * eighth),
            _ => bytes[part * eighth..(part + 1) * eighth].fill(0),
        }
        fs::write(&log, bytes).unwrap();
        match SledStore::open(dir.path())
            .and_then(|store| store.scan(Table::Messages, b"", None, Order::Ascending, 1_000))
        {
            Ok(all) => {
                let written = (0..500_u32).map(|number| (number.to_be_bytes().to_vec(), value(number).to_vec()));
                assert!(all.into_iter().eq(written), "part {part}: rows are missing without an error");
            }
            Err(error) => {
                assert!(matches!(error, Error::Backend { .. } | Error::Io { .. }), "part {part}: {error}");
                assert!(!error.is_transient(), "part {part}: {error}");
                refused += 1;
            }
        }
    }
    // The eight parts together contain all live data, so at least one must matter.
    assert!(refused > 0);
}

#[test]
fn a_damaged_working_memory_starts_empty() {
    let dir = TempDir::new().unwrap();
    let day = Duration::from_secs(86_400);
    let working = SledWorking::open(dir.path()).unwrap();
    working.put("key", b"value", day, Timestamp::UNIX_EPOCH).unwrap();
    drop(working);
    fs::write(dir.path().join("g1").join("conf"), b"no configuration").unwrap();
    let working = SledWorking::open(dir.path()).unwrap();
    assert_eq!(working.get("key", Timestamp::UNIX_EPOCH).unwrap(), None);
    working.put("key", b"again", day, Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(working.get("key", Timestamp::UNIX_EPOCH).unwrap(), Some(b"again".to_vec()));
}

/// sled writes a snapshot of its page table at every start; if it is killed then, a part of one remains.
#[test]
fn a_start_killed_while_it_writes_its_snapshot_costs_nothing() {
    let dir = TempDir::new().unwrap();
    let store = SledStore::open(dir.path()).unwrap();
    let mut batch = Batch::new();
    batch.put(Table::Messages, b"key", *b"value");
    store.commit(batch, Durability::Flushed).unwrap();
    drop(store);
    for bytes in [&b""[..], b"half of a snapshot, and no checksum"] {
        fs::write(dir.path().join("g1").join("snap.00000000FFFFFFFF.generating"), bytes).unwrap();
        let store = SledStore::open(dir.path()).unwrap();
        assert_eq!(store.get(Table::Messages, b"key").unwrap(), Some(b"value".to_vec()));
    }
}

/// Returns the rows that can be salvaged from a store in `dir`, and the number of unreadable places.
fn salvaged(dir: &Path) -> (BTreeMap<Vec<u8>, Vec<u8>>, usize) {
    let mut found = BTreeMap::new();
    let all = SledStore::salvage(dir, &mut |batch| {
        for change in batch.changes() {
            let Change::Put(Table::Messages, key, value) = change else {
                panic!("only rows of one table were written")
            };
            assert!(found.insert(key.clone(), value.clone()).is_none(), "a row was returned twice");
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(all.rows, found.len());
    (found, all.gaps)
}

/// Rows of the damaged store.
const ROWS: usize = 4_000;

/// Number of damaged places.
const PARTS: usize = 48;

/// Bytes overwritten at each.
const DAMAGE: usize = 2_000;

/// Most rows that this many bytes can cost. A page has at least 8 rows here, and thus as many bytes as the damage; at
/// most three pages lie there, and sled splits pages with more than 16 rows.
const COST: usize = 3 * 17;

/// Creates a store with many rows, rewritten into a second generation as a scrub does.
fn large_store(dir: &Path) -> Vec<String> {
    let store = SledStore::open(dir).unwrap();
    let mut keys: Vec<String> =
        (0..ROWS as u64).map(|number| format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    for key in &keys {
        let mut batch = Batch::new();
        batch.put(Table::Messages, key.as_bytes(), vec![b'.'; 200]);
        store.commit(batch, Durability::Soon).unwrap();
    }
    store.rewrite().unwrap();
    drop(store);
    // A start writes the snapshot that locates the pages.
    drop(SledStore::open(dir).unwrap());
    keys.sort();
    keys
}

/// Wherever a few pages are overwritten, all others come back. This includes damage to index pages, to the first page
/// in key order, and to the last pages written.
#[test]
fn damage_in_the_middle_costs_only_the_damaged_pages() {
    let dir = TempDir::new().unwrap();
    let keys = large_store(dir.path());
    let bytes = fs::read(dir.path().join("g2/db")).unwrap();
    let first: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(&keys[0].as_bytes()[..10])).collect();
    assert!(!first.is_empty());
    let places = (0..PARTS).map(|part| (vec![(bytes.len() - DAMAGE) / (PARTS - 1) * part], DAMAGE));
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let mut struck = 0;
    for (places, length) in places.chain([(first, 10), (vec![end - DAMAGE], DAMAGE)]) {
        let damaged = TempDir::new().unwrap();
        conformance::copy_dir(dir.path(), damaged.path());
        let mut bytes = bytes.clone();
        places.iter().for_each(|at| bytes[*at..at + length].fill(0xA5));
        fs::write(damaged.path().join("g2/db"), bytes).unwrap();
        let (found, gaps) = salvaged(damaged.path());
        let lost = ROWS - found.len();
        assert!(lost <= COST, "damage at {places:?} cost {lost} rows");
        assert!(lost == 0 || gaps > 0, "damage at {places:?} was not reported");
        struck += usize::from(lost > 0);
    }
    // A third of the log is current data.
    assert!(struck > PARTS / 16, "only {struck} damages cost rows");
}

/// Salvaging does not need the data with which sled locates its pages.
#[test]
fn a_store_that_sled_cannot_open_is_salvaged() {
    let dir = TempDir::new().unwrap();
    large_store(dir.path());
    let store = SledStore::open(dir.path()).unwrap();
    let large = |number: u8| (format!("{number}0 large").into_bytes(), vec![number; 1_000_000]);
    (0..3).map(large).for_each(|(key, value)| put(&store, &key, &value));
    let all: BTreeMap<_, _> = rows(&store).into_iter().collect();
    drop(store);
    let check = |what: &str, cost: usize, damage: &dyn Fn(&Path)| {
        let damaged = TempDir::new().unwrap();
        conformance::copy_dir(dir.path(), damaged.path());
        damage(&damaged.path().join("g2"));
        let (found, _) = salvaged(damaged.path());
        assert!(found.iter().all(|(key, value)| all.get(key) == Some(value)), "{what}");
        let lost = all.len() - found.len();
        assert!(lost <= cost, "{what}: {lost} rows lost");
    };
    let with_log = |dir: &Path, change: &dyn Fn(&mut Vec<u8>)| {
        let mut log = fs::read(dir.join("db")).unwrap();
        change(&mut log);
        fs::write(dir.join("db"), log).unwrap();
    };
    let files = |dir: &Path| -> Vec<_> { fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect() };
    check("nothing", 0, &|_| {});
    check("no file but the log and large values", 0, &|dir| {
        let others = files(dir).into_iter().filter(|path| path.is_file() && !path.ends_with("db"));
        others.for_each(|path| fs::remove_file(path).unwrap());
    });
    check("other files are nonsense", 0, &|dir| {
        let others = files(dir).into_iter().filter(|path| path.is_file() && !path.ends_with("db"));
        others.for_each(|path| fs::write(path, b"nonsense, and that at some length").unwrap());
    });
    check("no header of a segment", 0, &|dir| {
        with_log(dir, &|log| log.chunks_mut(512 * 1024).for_each(|segment| segment[..20].fill(0)));
    });
    check("the beginning of the log", COST, &|dir| with_log(dir, &|log| log[..DAMAGE].fill(0)));
    check("a large value", 17, &|dir| fs::remove_file(&files(&dir.join("blobs"))[0]).unwrap());
    check("a part of a large value", 17, &|dir| fs::write(&files(&dir.join("blobs"))[0], [7; 5_000]).unwrap());
    check("many places", 8 * COST, &|dir| {
        with_log(dir, &|log| {
            let step = log.len() / 8;
            log.chunks_exact_mut(step).for_each(|part| part[..DAMAGE].fill(0xA5));
        });
    });
    check("a third of the log", ROWS * 2 / 3, &|dir| {
        with_log(dir, &|log| log.truncate(log.len() / 3 * 2));
    });
}

/// If it is unknown which generation is in use, the fuller one is used, because the last may be half a copy.
#[test]
fn the_fuller_generation_is_salvaged() {
    let (dir, half) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let store = SledStore::open(dir.path()).unwrap();
    (0..20_u8).for_each(|number| put(&store, &[number], b"whole"));
    drop(store);
    let store = SledStore::open(half.path()).unwrap();
    put(&store, b"half", b"of a copy");
    drop(store);
    conformance::copy_dir(&half.path().join("g1"), &dir.path().join("g2"));
    fs::remove_file(dir.path().join("current")).unwrap();
    assert_eq!(salvaged(dir.path()).0.len(), 20);
}

#[test]
fn salvaging_an_empty_folder_reports_that_nothing_is_left() {
    let dir = TempDir::new().unwrap();
    let store = SledStore::open(dir.path()).unwrap();
    put(&store, b"key", b"value");
    drop(store);
    let refused = |why: &str| {
        let error = SledStore::salvage(dir.path(), &mut |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("nothing of it can be read"), "{why}: {error}");
    };
    fs::write(dir.path().join("g1/db"), vec![0xA5; 100_000]).unwrap();
    refused("overwritten");
    fs::write(dir.path().join("g1/db"), b"").unwrap();
    refused("empty");
    fs::remove_dir_all(dir.path().join("g1")).unwrap();
    refused("no generation");
}
