//! Sealed vaults of people: what stays, and what leaves the record and the backups.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use azera_memory::conformance::record;
use azera_memory::{Batch, Durability, Error, Forget, Memory, RamStore, Record, Store, Table, VaultChange, relink};
use azera_types::PersonId;

fn person(name: &str) -> PersonId {
    PersonId::new(name).unwrap()
}

fn filled() -> (Memory, Arc<RamStore>) {
    let store = Arc::new(RamStore::new());
    let memory = record(store.clone());
    for name in ["ann", "an", "bob"] {
        change(&memory, name, VaultChange::Put(name.as_bytes().to_vec()));
    }
    (memory, store)
}

fn change(memory: &Memory, name: &str, to: VaultChange) {
    memory.vaults().change::<(), Error>(&person(name), |_| Ok((to, ()))).unwrap();
}

fn sealed(memory: &Memory, name: &str) -> Option<Vec<u8>> {
    memory.vaults().sealed(&person(name)).unwrap()
}

fn owners(memory: &Memory) -> Vec<String> {
    let owners: Vec<String> =
        ["an", "ann", "bob"].into_iter().filter(|name| sealed(memory, name).is_some()).map(str::to_owned).collect();
    assert_eq!(memory.vaults().any().unwrap(), !owners.is_empty());
    let any = memory.record().any_vault().unwrap();
    assert_eq!(any, owners.first().and_then(|name| sealed(memory, name)));
    owners
}

fn backup(store: &RamStore) -> Vec<Batch> {
    let mut batches = Vec::new();
    let mut take = |batch| {
        batches.push(batch);
        Ok(())
    };
    Record::of(store).unwrap().dump(&mut take).unwrap();
    batches
}

/// Returns the owners in a backup after everything pending was forgotten in it.
fn cleaned(store: &RamStore, backup: &[Batch]) -> Vec<String> {
    let pending = Record::of(store).unwrap().pending_backup_forgets().unwrap();
    let (mut cleaner, restored) = (pending.what.cleaning(), Arc::new(RamStore::new()));
    for batch in backup {
        restored.commit(cleaner.clean(batch).unwrap().0, Durability::Flushed).unwrap();
    }
    owners(&record(restored))
}

#[test]
fn a_vault_is_replaced_or_stays_when_the_change_fails() {
    let (memory, _) = filled();
    let failed = memory.vaults().change::<(), Error>(&person("ann"), |sealed| {
        assert_eq!(sealed.as_deref(), Some(&b"ann"[..]));
        Err(Error::Invalid("no".into()))
    });
    assert!(failed.is_err());
    change(&memory, "ann", VaultChange::Nothing);
    assert_eq!(sealed(&memory, "ann").as_deref(), Some(&b"ann"[..]));
    change(&memory, "ann", VaultChange::Put(vec![0, 255]));
    assert_eq!(sealed(&memory, "ann"), Some(vec![0, 255]));
    assert_eq!(owners(&memory), ["an", "ann", "bob"]);
    assert!(memory.knows_person(&person("ann")).unwrap(), "so that it can be exported and forgotten");
}

#[test]
fn a_forgotten_person_has_no_vault_here_or_in_backups() {
    let (memory, store) = filled();
    let before = backup(&store);
    memory.forgetting().forget(&Forget::Person(person("ann")), true).unwrap();
    assert_eq!(owners(&memory), ["an", "bob"]);
    assert_eq!(cleaned(&store, &before), ["an", "bob"]);
    assert!(memory.forgetting().scrub_due().unwrap(), "the bytes leave the disk");
    // Somebody who comes back may have a vault again.
    change(&memory, "ann", VaultChange::Put(b"new".to_vec()));
    assert_eq!(cleaned(&store, &backup(&store)), ["an", "ann", "bob"]);
    assert_eq!(cleaned(&store, &before), ["an", "bob"]);
}

#[test]
fn a_vault_without_a_deleted_entry_takes_the_place_of_older_ones_in_backups() {
    let (memory, store) = filled();
    let before = backup(&store);
    change(&memory, "ann", VaultChange::PutWithout(b"less".to_vec()));
    assert_eq!(sealed(&memory, "ann").as_deref(), Some(&b"less"[..]));
    assert_eq!(cleaned(&store, &before), ["an", "bob"], "the older one held the entry");
    assert_eq!(cleaned(&store, &backup(&store)), ["an", "ann", "bob"]);
    change(&memory, "ann", VaultChange::Remove);
    assert_eq!(owners(&memory), ["an", "bob"]);
    assert!(memory.forgetting().scrub_due().unwrap());
}

#[test]
fn resealing_replaces_every_vault_and_stops_at_the_first_error() {
    let (memory, store) = filled();
    let mut seen = 0;
    let failed = memory.record().reseal_vaults::<Error>(&mut |person, sealed| {
        seen += 1;
        assert_eq!(person.as_str().as_bytes(), sealed);
        if seen == 2 { Err(Error::Invalid("no".into())) } else { Ok(Some([b"new ", sealed.as_slice()].concat())) }
    });
    assert!(failed.is_err());
    assert_eq!(sealed(&memory, "an").as_deref(), Some(&b"new an"[..]));
    assert_eq!(sealed(&memory, "ann").as_deref(), Some(&b"ann"[..]));
    assert!(memory.forgetting().scrub_due().unwrap(), "the bytes before leave the disk");
    let replaced = memory
        .record()
        .reseal_vaults::<Error>(&mut |person, _| Ok((person.as_str() != "bob").then(|| b"again".to_vec())));
    assert_eq!(replaced.unwrap(), 2);
    assert_eq!(sealed(&memory, "bob").as_deref(), Some(&b"bob"[..]));
    drop(memory);
    assert_eq!(store.scan(Table::Vaults, b"", None, azera_memory::Order::Ascending, 9).unwrap().len(), 3);
}

#[test]
fn a_salvaged_record_keeps_readable_vaults() {
    let (memory, store) = filled();
    drop(memory);
    let mut damage = Batch::new();
    damage.put(Table::Vaults, b"ann\0".to_vec(), b"{\"person\":\"ann\",\"seq\":".to_vec());
    store.commit(damage, Durability::Flushed).unwrap();
    relink(store.as_ref()).unwrap();
    assert_eq!(owners(&record(store)), ["an", "bob"]);
}
