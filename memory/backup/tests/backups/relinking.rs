//! Records that lost rows and were repaired: the rest is sound, and can be forgotten.

use std::sync::Arc;

use azera_memory::conformance::{StagedStore, record};
use azera_memory::{Batch, Durability, Error, Forget, NewChat, Order, RamStore, Store, Table, relink};
use azera_types::{MessageId, PlatformId};
use proptest::prelude::*;

use crate::history::{History, SECRET, at, chat, open, persona};

/// Removes the rows of a table that `wanted` selects by key and value.
fn lose(store: &RamStore, table: Table, wanted: impl Fn(&str, &str) -> bool) {
    let mut batch = Batch::new();
    for (key, value) in store.scan(table, b"", None, Order::Ascending, usize::MAX).unwrap() {
        if wanted(&String::from_utf8_lossy(&key), &String::from_utf8_lossy(&value)) {
            batch.remove(table, key);
        }
    }
    assert!(!batch.changes().is_empty(), "no row was chosen for removal");
    store.commit(batch, Durability::Soon).unwrap();
}

fn holds(store: &RamStore, table: Table, word: &str) -> bool {
    let rows = store.scan(table, b"", None, Order::Ascending, usize::MAX).unwrap();
    rows.iter().any(|(_, value)| String::from_utf8_lossy(value).contains(word))
}

fn damaged_record() -> RamStore {
    let store = RamStore::new();
    History::of(&store).tell_secret();
    store
}

#[test]
fn a_memory_is_removed_with_its_message() {
    let store = damaged_record();
    lose(&store, Table::Messages, |key, _| key == "innocent");
    assert!(holds(&store, Table::Memories, "good morning"));
    relink(&store).unwrap();
    assert!(!holds(&store, Table::Memories, "good morning"));
    assert!(holds(&store, Table::Memories, "something else"), "a fact does not depend on a message");
}

/// The `/why` rows and the answered messages tell what a reply was built on.
#[test]
fn replies_are_forgotten_with_their_sources() {
    let store = damaged_record();
    lose(&store, Table::Derived, |_, _| true);
    relink(&store).unwrap();
    open(&store).forgetting().forget(&Forget::Message(MessageId::new("secret").unwrap()), true).unwrap();
    for table in Table::ALL {
        assert!(!holds(&store, table, SECRET), "{}", table.name());
    }
}

/// The sources of a reply without a `/why` row are unknown.
#[test]
fn a_reply_without_a_why_row_is_not_remembered() {
    let store = damaged_record();
    assert!(holds(&store, Table::Memories, &format!("you said {SECRET}")));
    lose(&store, Table::Why, |key, _| key == "secret~r0");
    relink(&store).unwrap();
    assert!(!holds(&store, Table::Memories, &format!("you said {SECRET}")));
}

#[test]
fn a_chat_whose_row_is_lost_goes_on_where_it_was() {
    let store = damaged_record();
    lose(&store, Table::Chats, |key, _| key == "chat0");
    relink(&store).unwrap();
    let memory = open(&store);
    let new = NewChat { id: chat(0), platform: PlatformId::new("test").unwrap(), title: None, persona: persona() };
    assert_eq!(memory.chats().open(new, at(99)).unwrap().head, MessageId::new("secret~r0").ok());
    assert!(memory.check().unwrap().is_sound());
}

/// Unreadable rows of every rebuilt table are removed.
#[test]
fn unreadable_rows_are_removed() {
    for table in [Table::Forgotten, Table::Derived, Table::Settings, Table::Why] {
        let store = damaged_record();
        let mut batch = Batch::new();
        batch.put(table, [0; 8], b"no row");
        store.commit(batch, Durability::Soon).unwrap();
        assert_eq!(open(&store).check().unwrap().unreadable[table.name()], 1);
        relink(&store).unwrap();
        let memory = open(&store);
        assert!(memory.check().unwrap().is_sound(), "{}", table.name());
        memory.record().pending_backup_forgets().unwrap();
    }
}

/// Returns a store whose memories cannot be read to the end.
fn torn(rows: RamStore) -> StagedStore {
    StagedStore::new(rows).before_scan(|table| match table {
        Table::Memories => {
            Err(Error::Backend { what: "reading the store", why: "a torn page".into(), transient: false })
        }
        _ => Ok(()),
    })
}

/// The check counts a table that cannot be read to the end, and goes on with the others.
#[test]
fn damage_in_one_table_does_not_hide_another() {
    let store = damaged_record();
    let mut batch = Batch::new();
    batch.put(Table::Personas, b"behind", b"no row");
    store.commit(batch, Durability::Soon).unwrap();
    let checked = record(Arc::new(torn(store))).check().unwrap();
    assert_eq!(checked.broken["tables that cannot be read to their end"], 1);
    assert_eq!((checked.messages, checked.unreadable["personas"]), (2, 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_rest_is_sound_after_any_loss(
        script in prop::collection::vec(any::<u8>(), 20..300),
        lost in prop::collection::vec(any::<prop::sample::Index>(), 1..20),
    ) {
        let store = RamStore::new();
        History::of(&store).play(&script);
        let mut all = Vec::new();
        for table in Table::ALL.into_iter().filter(|table| !matches!(table, Table::Meta | Table::Chats)) {
            let rows = store.scan(table, b"", None, Order::Ascending, usize::MAX).unwrap();
            all.extend(rows.into_iter().map(|(key, _)| (table, key)));
        }
        let mut batch = Batch::new();
        for (table, key) in lost.iter().filter(|_| !all.is_empty()).map(|which| which.get(&all)) {
            batch.remove(*table, key.clone());
        }
        store.commit(batch, Durability::Soon).unwrap();
        relink(&store).unwrap();
        let checked = open(&store).check().unwrap();
        prop_assert!(checked.is_sound(), "{:?}", checked);
    }
}
