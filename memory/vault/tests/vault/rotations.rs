//! New masters and new data keys, also if they are interrupted.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs;

use azera_memory_vault::{
    Error, KeyFile, MasterKeys, Masters, Reseal, Rotation, SealedVaults, Vault, VaultFile, rotate,
};

use crate::{at, filled, name, person, secret, value};

/// Vaults of people in memory, of which only the first writes reach the disk.
struct People {
    sealed: RefCell<BTreeMap<String, Vec<u8>>>,
    writes_left: Cell<usize>,
}

impl SealedVaults for People {
    fn reseal_all(&self, reseal: &Reseal<'_>) -> Result<usize, Error> {
        let ids: Vec<String> = self.sealed.borrow().keys().cloned().collect();
        let mut done = 0;
        for id in ids {
            let bytes = self.sealed.borrow()[&id].clone();
            let Some(resealed) = reseal(&bytes, person(&id))? else { continue };
            if self.writes_left.get() == 0 {
                return Err(Error::Store("the process was killed".into()));
            }
            self.writes_left.set(self.writes_left.get() - 1);
            self.sealed.borrow_mut().insert(id, resealed);
            done += 1;
        }
        Ok(done)
    }
}

struct World {
    _scratch: tempfile::TempDir,
    keys: KeyFile,
    operator: VaultFile,
    people: People,
}

const PEOPLE: [&str; 3] = ["ann", "bob", "cid"];

impl World {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("vault");
        let (keys, operator) = (KeyFile::new(scratch.path().join("vault.key"), &folder), VaultFile::new(folder));
        operator.change(&keys, false, |vault| vault.set(name("discord"), &secret("heliotrope"), at(0))).unwrap();
        let masters = keys.masters().unwrap();
        let sealed = PEOPLE.map(|id| (id.to_owned(), filled(person(id), &[("code", id)]).seal(&masters).unwrap()));
        let people = People { sealed: RefCell::new(sealed.into()), writes_left: Cell::new(usize::MAX) };
        Self { _scratch: scratch, keys, operator, people }
    }

    fn rotate(&self, what: Rotation) -> Result<usize, Error> {
        Ok(rotate(&self.keys, &[&self.operator, &self.people], what)?.map_or(0, |report| report.vaults))
    }

    fn person(&self, id: &str, masters: &Masters) -> Result<Vault, Error> {
        Vault::open(&self.people.sealed.borrow()[id], person(id), masters)
    }

    #[track_caller]
    fn assert_all_open(&self) {
        let masters = self.keys.masters().unwrap();
        let operator = self.operator.read(&self.keys).unwrap().unwrap();
        assert_eq!(value(&operator, "discord").as_deref(), Some("heliotrope"));
        for id in PEOPLE {
            assert_eq!(value(&self.person(id, &masters).unwrap(), "code").as_deref(), Some(id));
        }
    }
}

#[test]
fn a_new_master_opens_everything_and_the_old_one_nothing() {
    let world = World::new();
    let old = world.keys.masters().unwrap();
    assert_eq!(world.rotate(Rotation::Master).unwrap(), 4);
    world.assert_all_open();
    for id in PEOPLE {
        assert!(matches!(world.person(id, &old), Err(Error::WrongMaster(_))), "{id}");
    }
}

#[test]
fn new_data_keys_change_every_sealed_value() {
    let world = World::new();
    let before = world.people.sealed.borrow().clone();
    assert_eq!(world.rotate(Rotation::DataKeys).unwrap(), 4);
    world.assert_all_open();
    for (id, bytes) in &before {
        let now = &world.people.sealed.borrow()[id];
        // The sealed value is the end: three bytes with a nonce and a tag.
        assert_ne!(bytes[bytes.len() - 31..], now[now.len() - 31..], "{id}");
    }
    let masters = world.keys.masters().unwrap();
    let listed = world.person("ann", &masters).unwrap().list();
    assert_eq!(listed[0].changed_at, at(0), "the time of the value stays");
}

#[test]
fn a_rotation_that_ends_anywhere_leaves_everything_open_and_the_next_one_finishes_it() {
    for what in [Rotation::Master, Rotation::DataKeys, Rotation::All] {
        for writes in 0..=PEOPLE.len() {
            let world = World::new();
            world.people.writes_left.set(writes);
            assert_eq!(world.rotate(what).is_ok(), writes == PEOPLE.len(), "{what:?} after {writes}");
            world.assert_all_open();
            // It is interrupted many times more. No old master that is still needed may go.
            for again in 0..20 {
                world.people.writes_left.set(again % PEOPLE.len());
                assert!(world.rotate(what).is_err());
                world.assert_all_open();
            }
            world.people.writes_left.set(usize::MAX);
            assert_eq!(world.rotate(what).unwrap(), 4);
            world.assert_all_open();
        }
    }
}

#[test]
fn a_vault_from_an_older_backup_opens_after_a_rotation() {
    let world = World::new();
    let backup = world.people.sealed.borrow().clone();
    for _ in 0..8 {
        world.rotate(Rotation::All).unwrap();
    }
    *world.people.sealed.borrow_mut() = backup.clone();
    world.assert_all_open();
    world.rotate(Rotation::All).unwrap();
    *world.people.sealed.borrow_mut() = backup;
    let masters = world.keys.masters().unwrap();
    assert!(matches!(world.person("ann", &masters), Err(Error::WrongMaster(_))), "only eight old masters are kept");
}

#[test]
fn a_vault_that_does_not_open_stops_a_rotation_before_anything_changes() {
    let world = World::new();
    let foreign = filled(person("bob"), &[("code", "x")]).seal(&Masters::generate().unwrap()).unwrap();
    world.people.sealed.borrow_mut().insert("bob".into(), foreign);
    let (key, people) = (fs::read(world.keys.path()).unwrap(), world.people.sealed.borrow().clone());
    assert!(matches!(world.rotate(Rotation::All), Err(Error::WrongMaster(_))));
    assert_eq!(fs::read(world.keys.path()).unwrap(), key);
    assert_eq!(*world.people.sealed.borrow(), people);
    let operator = world.operator.read(&world.keys).unwrap().unwrap();
    assert_eq!(value(&operator, "discord").as_deref(), Some("heliotrope"));
}

#[test]
fn without_any_vault_there_is_nothing_to_rotate_and_no_key_is_missed() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("vault");
    let (keys, operator) = (KeyFile::new(scratch.path().join("vault.key"), &folder), VaultFile::new(folder));
    assert_eq!(rotate(&keys, &[&operator], Rotation::All).unwrap(), None);
    assert!(!keys.path().exists(), "no key is made");
    // A vault of a person needs the key, even if nothing else tells of one.
    let world = World::new();
    assert!(matches!(rotate(&keys, &[&operator, &world.people], Rotation::All), Err(Error::KeyMissing { .. })));
}
