use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering as Atomic};

use crate::{Batch, Durability, Error, MAX_KEY_BYTES, MAX_VALUE_BYTES, Order, Store, Table};

/// Checks every requirement of [`Store`].
///
/// # Panics
///
/// Panics if the store breaks one.
pub fn store<S: Store, O: FnMut() -> S>(mut fresh: impl FnMut() -> O) {
    reads_what_was_written(fresh()());
    scans_in_order(fresh()());
    refuses_what_is_too_large(fresh()());
    shows_batches_whole(fresh()());
    survives_reopening(fresh());
    survives_rewriting(fresh());
    hands_out_everything(fresh);
}

fn put(store: &impl Store, table: Table, key: &[u8], value: &[u8]) {
    let mut batch = Batch::new();
    batch.put(table, key, value);
    store.commit(batch, Durability::Flushed).expect("a write");
}

fn get(store: &impl Store, table: Table, key: &[u8]) -> Option<Vec<u8>> {
    store.get(table, key).expect("a read")
}

fn reads_what_was_written(store: impl Store) {
    put(&store, Table::Messages, b"a", b"1");
    put(&store, Table::Chats, b"a", b"2");
    assert_eq!(get(&store, Table::Messages, b"a"), Some(b"1".to_vec()), "a table sees only its own rows");
    assert_eq!(get(&store, Table::Chats, b"a"), Some(b"2".to_vec()), "a table sees only its own rows");
    assert_eq!(get(&store, Table::Meta, b"a"), None, "a key of another table");
    assert_eq!(get(&store, Table::Messages, b""), None, "an empty key that was never written");

    let mut batch = Batch::new();
    batch.put(Table::Messages, b"a", b"3").remove(Table::Messages, b"a").put(Table::Messages, b"", b"empty");
    batch.put(Table::Messages, b"b", b"4").put(Table::Messages, b"b", b"5").put(Table::Chats, b"b", b"");
    batch.remove(Table::Chats, b"b").put(Table::Chats, b"b", b"").remove(Table::Chats, b"unknown");
    store.commit(batch, Durability::Soon).expect("a batch");
    assert_eq!(get(&store, Table::Messages, b"a"), None, "a removal after a write wins");
    assert_eq!(get(&store, Table::Messages, b"b"), Some(b"5".to_vec()), "the later write wins");
    assert_eq!(
        get(&store, Table::Chats, b"b"),
        Some(Vec::new()),
        "a write after a removal wins, and an empty value is a value"
    );
    assert_eq!(get(&store, Table::Messages, b""), Some(b"empty".to_vec()), "an empty key is a key");
    store.commit(Batch::new(), Durability::Flushed).expect("an empty batch");
}

fn scans_in_order(store: impl Store) {
    let keys: [&[u8]; 8] = [b"", b"a", b"a\0", b"aa", b"ab", b"b", b"\xff", b"\xff\xff"];
    for table in [Table::Meta, Table::Inbox, Table::Derived] {
        for (number, key) in keys.iter().enumerate().rev() {
            put(&store, table, key, &[table as u8, number as u8]);
        }
    }
    let check = |prefix: &[u8], after: Option<&[u8]>, order: Order, limit: usize, want: &[&[u8]]| {
        for table in [Table::Meta, Table::Inbox, Table::Derived] {
            let found = store.scan(table, prefix, after, order, limit).expect("a scan");
            let found_keys: Vec<&[u8]> = found.iter().map(|(key, _)| key.as_slice()).collect();
            assert_eq!(found_keys, want, "{} {prefix:?} after {after:?} {order:?} {limit}", table.name());
            for (key, value) in &found {
                let number = keys.iter().position(|other| other == key).expect("a key that was written");
                assert_eq!(value, &[table as u8, number as u8], "the value of {key:?} in {}", table.name());
            }
        }
    };
    use Order::{Ascending, Descending};
    check(b"", None, Ascending, 100, &keys);
    let reversed: Vec<&[u8]> = keys.iter().rev().copied().collect();
    check(b"", None, Descending, 100, &reversed);
    check(b"", None, Ascending, 0, &[]);
    check(b"", None, Descending, 2, &[b"\xff\xff", b"\xff"]);
    check(b"a", None, Ascending, 100, &[b"a", b"a\0", b"aa", b"ab"]);
    check(b"a", None, Descending, 3, &[b"ab", b"aa", b"a\0"]);
    check(b"a", Some(b"a"), Ascending, 2, &[b"a\0", b"aa"]);
    check(b"a", Some(b"aaa"), Ascending, 100, &[b"ab"]);
    check(b"a", Some(b"ab"), Ascending, 100, &[]);
    check(b"a", Some(b"zz"), Ascending, 100, &[]);
    check(b"a", Some(b""), Ascending, 1, &[b"a"]);
    check(b"a", Some(b"aa"), Descending, 100, &[b"a\0", b"a"]);
    check(b"a", Some(b"zz"), Descending, 1, &[b"ab"]);
    check(b"a", Some(b""), Descending, 100, &[]);
    check(b"\xff", None, Ascending, 100, &[b"\xff", b"\xff\xff"]);
    check(b"\xff", Some(b"\xff\xff"), Descending, 100, &[b"\xff"]);
    check(b"c", None, Ascending, 100, &[]);
    check(b"c", None, Descending, 100, &[]);
    let unused = store.scan(Table::Outbox, b"", None, Ascending, 100).expect("a scan");
    assert!(unused.is_empty(), "an empty table returned {} rows", unused.len());
}

fn refuses_what_is_too_large(store: impl Store) {
    let (key, value) = (vec![7; MAX_KEY_BYTES], vec![7; MAX_VALUE_BYTES]);
    put(&store, Table::Messages, &key, &value);
    assert_eq!(get(&store, Table::Messages, &key), Some(value), "the largest row");

    let refused = |key: Vec<u8>, value: Vec<u8>| {
        let mut batch = Batch::new();
        batch.put(Table::Messages, b"beside", b"x").put(Table::Messages, key, value);
        let answer = store.commit(batch, Durability::Flushed);
        assert!(matches!(answer, Err(Error::Invalid(_))), "a row that is too large was accepted: {answer:?}");
        assert_eq!(get(&store, Table::Messages, b"beside"), None, "half of a refused batch was written");
    };
    refused(vec![7; MAX_KEY_BYTES + 1], Vec::new());
    refused(Vec::new(), vec![7; MAX_VALUE_BYTES + 1]);
}

fn shows_batches_whole(store: impl Store) {
    const ROUNDS: u32 = 200;
    let write = |round: u32| {
        let mut batch = Batch::new();
        for key in 0..20_u8 {
            batch.put(Table::Chats, [key], round.to_be_bytes());
        }
        store.commit(batch, Durability::Soon).expect("a batch");
    };
    write(0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                write(round);
            }
            done.store(true, Atomic::Release);
        });
        loop {
            let last = done.load(Atomic::Acquire);
            let rows = store.scan(Table::Chats, b"", None, Order::Ascending, 100).expect("a scan");
            assert_eq!(rows.len(), 20, "rows of a batch are missing");
            assert!(rows.windows(2).all(|pair| pair[0].1 == pair[1].1), "a scan saw half of a batch");
            if last {
                break;
            }
        }
    });
}

fn survives_reopening<S: Store>(mut open: impl FnMut() -> S) {
    let first = open();
    for number in 0..500_u32 {
        put(&first, Table::Messages, &number.to_be_bytes(), &number.to_le_bytes());
    }
    put(&first, Table::Messages, &7_u32.to_be_bytes(), b"replaced");
    let mut batch = Batch::new();
    batch.remove(Table::Messages, 8_u32.to_be_bytes());
    first.commit(batch, Durability::Flushed).expect("a removal");
    drop(first);

    let again = open();
    let rows = again.scan(Table::Messages, b"", None, Order::Ascending, 1_000).expect("a scan");
    assert_eq!(rows.len(), 499, "rows after reopening");
    assert_eq!(get(&again, Table::Messages, &7_u32.to_be_bytes()), Some(b"replaced".to_vec()));
    assert_eq!(get(&again, Table::Messages, &8_u32.to_be_bytes()), None, "a removed row came back");
}

fn survives_rewriting<S: Store>(mut open: impl FnMut() -> S) {
    let first = open();
    let large = vec![9; 200_000];
    for number in 0..300_u32 {
        put(&first, Table::ALL[number as usize % Table::ALL.len()], &number.to_be_bytes(), &number.to_le_bytes());
    }
    put(&first, Table::Why, b"large", &large);
    let all = |store: &S| {
        let scan = |table| store.scan(table, b"", None, Order::Ascending, 1_000).expect("a scan");
        Table::ALL.map(scan)
    };
    let before = all(&first);
    first.rewrite().expect("a rewrite");
    assert!(all(&first) == before, "a rewrite changed rows");
    put(&first, Table::Meta, b"later", b"1");
    first.rewrite().expect("a second rewrite");
    drop(first);

    let again = open();
    assert_eq!(get(&again, Table::Meta, b"later"), Some(b"1".to_vec()), "a write after a rewrite was lost");
    let mut batch = Batch::new();
    batch.remove(Table::Meta, b"later");
    again.commit(batch, Durability::Flushed).expect("a removal");
    assert!(all(&again) == before, "rows after a rewrite and reopening");
}

fn hands_out_everything<S: Store, O: FnMut() -> S>(mut fresh: impl FnMut() -> O) {
    let all =
        |store: &S| Table::ALL.map(|table| store.scan(table, b"", None, Order::Ascending, 10_000).expect("a scan"));
    let fill = |to: &S, from: &S| {
        let mut take = |batch| to.commit(batch, Durability::Soon);
        from.dump(&mut take).expect("everything is handed out")
    };
    // A store's place exists as long as the closure that opens it.
    let (mut place, mut empty_place, mut copy_place) = (fresh(), fresh(), fresh());
    let store = place();
    assert_eq!(store.revision(), 0, "the revision before the first write");
    let empty = empty_place();
    assert_eq!(fill(&empty, &store), 0, "the revision of an empty store");
    assert!(all(&empty) == all(&store), "the dump of an empty store has rows");
    for number in 0..300_u32 {
        put(&store, Table::ALL[number as usize % Table::ALL.len()], &number.to_be_bytes(), &number.to_le_bytes());
    }
    put(&store, Table::Why, b"large", &vec![9; 200_000]);
    let mut batch = Batch::new();
    batch.remove(Table::ALL[0], 0_u32.to_be_bytes());
    store.commit(batch, Durability::Soon).expect("a removal");
    assert_eq!(store.revision(), 302, "the revision counts batches");
    let copy = copy_place();
    assert_eq!(fill(&copy, &store), 302, "the revision of the dump");
    assert!(all(&copy) == all(&store), "the dump differs from the store");

    let refused = store.dump(&mut |_| Err(Error::Invalid("enough".into())));
    assert!(matches!(refused, Err(Error::Invalid(_))), "the taker's refusal: {refused:?}");
    put(&store, Table::Meta, b"later", b"1");
    assert_eq!(store.revision(), 303, "a write after an interrupted dump");

    // Writers continue during the dump. The dump must hold whole batches, in order and without gaps. The other rows lie
    // between the two that are checked, so that reading from one to the other takes time.
    let mut between = Batch::new();
    for number in 0..4_000_u32 {
        between.put(Table::Inbox, number.to_be_bytes(), [7; 300]);
    }
    store.commit(between, Durability::Soon).expect("a batch");
    let write = |round: u64| {
        let mut batch = Batch::new();
        batch.put(Table::Chats, b"left", round.to_be_bytes()).put(Table::Outbox, b"right", round.to_be_bytes());
        store.commit(batch, Durability::Soon).expect("a batch");
    };
    write(0);
    let before = store.revision();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| (1..50_000).take_while(|_| !done.load(Atomic::Acquire)).for_each(write));
        for _ in 0..3 {
            let mut place = fresh();
            let copy = place();
            let revision = fill(&copy, &store);
            let round = |table, key| {
                let bytes = get(&copy, table, key).expect("both are written from the start");
                u64::from_be_bytes(bytes.try_into().expect("a number of eight bytes"))
            };
            let (left, right) = (round(Table::Chats, b"left"), round(Table::Outbox, b"right"));
            assert_eq!(left, right, "the dump holds half of a batch");
            assert_eq!(left, revision - before, "the dump is not the state at its revision");
        }
        done.store(true, Atomic::Release);
    });
}

/// Applies `script` to a store and to a map, with reopening and rewriting in between, and compares every answer. Any
/// bytes are a valid script.
///
/// # Panics
///
/// Panics if the store answers differently from the map.
pub fn store_against_map<S: Store>(script: &[u8], mut open: impl FnMut() -> S) {
    let mut map: BTreeMap<(Table, Vec<u8>), Vec<u8>> = BTreeMap::new();
    let mut store = open();
    let mut batch = Batch::new();
    let mut pending = map.clone();
    // Few and short keys, so that the script often hits the same one.
    let key = |byte: u8| vec![byte % 3; usize::from(byte / 3 % 4)];
    for [what, which, length] in script.as_chunks::<3>().0 {
        let (table, key) = (Table::ALL[usize::from(*which) % 3], key(which / 3));
        match what % 16 {
            0..=5 => {
                let value = vec![*what; usize::from(*length) * usize::from(*length)];
                batch.put(table, key.clone(), value.clone());
                pending.insert((table, key), value);
            }
            6..=8 => {
                batch.remove(table, key.clone());
                pending.remove(&(table, key));
            }
            9..=10 => {
                let durability = if *what < 128 { Durability::Flushed } else { Durability::Soon };
                store.commit(std::mem::take(&mut batch), durability).expect("a batch");
                map = pending.clone();
            }
            11 => {
                drop(store);
                store = open();
            }
            12 if *length < 32 => store.rewrite().expect("a rewrite"),
            12..=13 => {
                let want = map.get(&(table, key.clone())).cloned();
                assert!(get(&store, table, &key) == want, "{} {key:?}", table.name());
            }
            _ => {
                let (order, limit) =
                    (if length % 2 == 0 { Order::Ascending } else { Order::Descending }, usize::from(length / 2 % 16));
                let after = (length / 32 > 0).then(|| vec![length % 3; usize::from(length / 32)]);
                let found = store.scan(table, &key, after.as_deref(), order, limit).expect("a scan");
                let want = scan_map(&map, table, &key, after.as_deref(), order, limit);
                assert!(found == want, "{} {key:?} after {after:?} {order:?} {limit}", table.name());
            }
        }
    }
}

fn scan_map(
    map: &BTreeMap<(Table, Vec<u8>), Vec<u8>>,
    table: Table,
    prefix: &[u8],
    after: Option<&[u8]>,
    order: Order,
    limit: usize,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rows: Vec<_> = map
        .iter()
        .filter(|((row, key), _)| *row == table && key.starts_with(prefix))
        .map(|((_, key), value)| (key.clone(), value.clone()))
        .collect();
    if order == Order::Descending {
        rows.reverse();
    }
    rows.retain(|(key, _)| match (after, order) {
        (None, _) => true,
        (Some(after), Order::Ascending) => key.as_slice() > after,
        (Some(after), Order::Descending) => key.as_slice() < after,
    });
    rows.truncate(limit);
    rows
}
