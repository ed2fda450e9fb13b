//! Accounts that a platform keeps: they stay when their person's words are forgotten, and leave backups when they are removed.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use azera_memory::conformance::record;
use azera_memory::{Batch, Forget, Memory, Order, RamStore, Record, Store, Table};
use azera_types::{PersonId, PlatformId};
use serde_json::json;

fn platform(name: &str) -> PlatformId {
    PlatformId::new(name).unwrap()
}

fn person(name: &str) -> PersonId {
    PersonId::new(name).unwrap()
}

fn names(memory: &Memory) -> Vec<String> {
    memory.accounts().list(&platform("web")).unwrap().into_iter().map(|(person, _)| person.to_string()).collect()
}

fn filled() -> (Memory, Arc<RamStore>) {
    let store = Arc::new(RamStore::new());
    let memory = record(store.clone());
    for name in ["web:ann", "web:bob"] {
        memory.accounts().put(&platform("web"), &person(name), &json!({"name": name})).unwrap();
    }
    memory.accounts().put(&platform("other"), &person("web:ann"), &json!({"name": "elsewhere"})).unwrap();
    (memory, store)
}

#[test]
fn an_account_is_replaced_and_listed_by_its_platform() {
    let (memory, _) = filled();
    memory.accounts().put(&platform("web"), &person("web:ann"), &json!({"name": "Ann"})).unwrap();
    let listed = memory.accounts().list(&platform("web")).unwrap();
    assert_eq!((&listed[0].0, listed[0].1.as_ref().unwrap()), (&person("web:ann"), &json!({"name": "Ann"})));
    assert_eq!(names(&memory), ["web:ann", "web:bob"]);
}

#[test]
fn a_damaged_account_hides_no_other() {
    let (memory, store) = filled();
    let mut damage = Batch::new();
    damage.put(Table::Settings, b"account\0web\0web:ann\0".to_vec(), b"{\"name\": ".to_vec());
    store.commit(damage, azera_memory::Durability::Flushed).unwrap();
    let listed = memory.accounts().list(&platform("web")).unwrap();
    let found: Vec<(&str, bool)> = listed.iter().map(|(person, account)| (person.as_str(), account.is_ok())).collect();
    assert_eq!(found, [("web:ann", false), ("web:bob", true)]);
}

#[test]
fn what_a_person_said_is_forgotten_without_the_account() {
    let (memory, _) = filled();
    memory.forgetting().forget(&Forget::Person(person("web:ann")), true).unwrap();
    assert_eq!(names(&memory), ["web:ann", "web:bob"]);
}

#[test]
fn a_removed_account_leaves_backups() {
    let (memory, store) = filled();
    let mut backup: Vec<Batch> = Vec::new();
    let mut take = |batch| {
        backup.push(batch);
        Ok(())
    };
    Record::of(store.as_ref()).unwrap().dump(&mut take).unwrap();
    memory.accounts().forget(&platform("web"), &person("web:ann")).unwrap();
    assert_eq!(names(&memory), ["web:bob"]);
    let pending = Record::of(store.as_ref()).unwrap().pending_backup_forgets().unwrap();
    let mut cleaner = pending.what.cleaning();
    let restored = RamStore::new();
    for batch in &backup {
        let (cleaned, _) = cleaner.clean(batch).unwrap();
        restored.commit(cleaned, azera_memory::Durability::Flushed).unwrap();
    }
    let rows = restored.scan(Table::Settings, b"account\0", None, Order::Ascending, usize::MAX).unwrap();
    let keys: Vec<String> =
        rows.iter().map(|(key, _)| String::from_utf8_lossy(key).trim_end_matches('\0').replace('\0', "/")).collect();
    assert_eq!(keys, ["account/other/web:ann", "account/web/web:bob"]);
}
