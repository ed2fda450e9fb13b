//! The key file and the operator's file.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use azera_memory_vault::{Error, KeyFile, MasterKeys, VaultFile};

use crate::{at, name, secret, value};

struct Place {
    _scratch: tempfile::TempDir,
    keys: KeyFile,
    vault: VaultFile,
    folder: std::path::PathBuf,
}

fn place() -> Place {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("data").join("vault");
    let keys = KeyFile::new(scratch.path().join("keys").join("vault.key"), &folder);
    Place { keys, vault: VaultFile::new(&folder), folder, _scratch: scratch }
}

impl Place {
    fn set(&self, entry: &str, to: &str) -> Result<bool, Error> {
        self.vault.change(&self.keys, false, |vault| vault.set(name(entry), &secret(to), at(0)))
    }

    fn get(&self, entry: &str) -> Result<Option<String>, Error> {
        Ok(self.vault.read(&self.keys)?.and_then(|vault| value(&vault, entry)))
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_first_entry_makes_key_and_vault_for_their_owner_alone() {
    let place = place();
    assert!(place.vault.read(&place.keys).unwrap().is_none() && !place.keys.path().exists(), "reading makes nothing");
    assert!(!place.set("discord", "heliotrope").unwrap());
    assert_eq!(place.get("discord").unwrap().as_deref(), Some("heliotrope"));
    assert_eq!(mode(place.keys.path()), 0o600);
    assert_eq!(mode(&place.folder.join("operator.vault")), 0o600);
    assert_eq!(mode(&place.folder), 0o700);
    place.vault.change(&place.keys, false, |vault| Ok(vault.remove(&name("discord")))).unwrap();
    assert!(!place.folder.join("operator.vault").exists(), "an empty vault leaves no file");
}

#[test]
fn a_key_that_others_may_read_is_refused() {
    let place = place();
    place.set("discord", "heliotrope").unwrap();
    for bits in [0o640, 0o604, 0o660, 0o644, 0o610, 0o777] {
        fs::set_permissions(place.keys.path(), Permissions::from_mode(bits)).unwrap();
        let says = place.get("discord").unwrap_err().to_string();
        assert!(says.contains("chmod 600") && says.contains(&format!("{bits:03o}")), "{says}");
        assert!(matches!(place.set("other", "x"), Err(Error::KeyAccess { .. })), "{bits:o}");
    }
    for bits in [0o600, 0o400] {
        fs::set_permissions(place.keys.path(), Permissions::from_mode(bits)).unwrap();
        assert!(place.get("discord").is_ok(), "{bits:o}");
    }
}

#[test]
fn a_lost_or_foreign_key_is_an_error_that_changes_nothing() {
    let (here, other) = (place(), place());
    here.set("discord", "heliotrope").unwrap();
    other.set("discord", "quagmire").unwrap();
    let kept = here.folder.with_file_name("kept.key");
    let sealed = fs::read(here.folder.join("operator.vault")).unwrap();
    fs::rename(here.keys.path(), &kept).unwrap();
    for failed in [here.get("discord").unwrap_err(), here.set("more", "x").unwrap_err()] {
        assert!(matches!(&failed, Error::KeyMissing { .. }), "{failed}");
        assert!(failed.to_string().contains("vault.key"), "{failed}");
    }
    assert!(!here.keys.path().exists(), "no other key is made");
    fs::copy(other.keys.path(), here.keys.path()).unwrap();
    for failed in [here.get("discord").unwrap_err(), here.set("more", "x").unwrap_err()] {
        assert!(matches!(failed, Error::WrongMaster(_)), "{failed}");
    }
    assert_eq!(fs::read(here.folder.join("operator.vault")).unwrap(), sealed);
    fs::rename(&kept, here.keys.path()).unwrap();
    assert_eq!(here.get("discord").unwrap().as_deref(), Some("heliotrope"));
    // Vaults elsewhere need a key as well, even if nothing here says so.
    let bare = place();
    let failed = bare.vault.change(&bare.keys, true, |vault| vault.set(name("a"), &secret("b"), at(0)));
    assert!(matches!(failed, Err(Error::KeyMissing { .. })) && !bare.keys.path().exists());
}

#[test]
fn a_damaged_key_file_is_never_read_as_another_key() {
    let place = place();
    place.set("discord", "heliotrope").unwrap();
    let whole = fs::read(place.keys.path()).unwrap();
    let first = place.keys.masters().unwrap().current_id();
    let mut refused = 0;
    for byte in 0..whole.len() {
        for bit in 0..8 {
            let mut changed = whole.clone();
            changed[byte] ^= 1 << bit;
            fs::write(place.keys.path(), &changed).unwrap();
            match place.keys.masters() {
                // A changed letter of the comment does no harm.
                Ok(masters) => assert_eq!(masters.current_id(), first, "bit {bit} of byte {byte}"),
                Err(Error::KeyDamaged { .. } | Error::Newer) => refused += 1,
                Err(other) => panic!("bit {bit} of byte {byte}: {other}"),
            }
        }
    }
    assert!(refused > 60 * 8, "the key and its head: {refused}");
    for length in 0..whole.len() {
        fs::write(place.keys.path(), &whole[..length]).unwrap();
        let read = place.keys.masters();
        assert!(read.is_err() || length == whole.len() - 1, "{length} bytes: {read:?}");
    }
}

#[test]
fn what_a_crash_left_half_written_goes_and_harms_nothing() {
    let place = place();
    place.set("discord", "heliotrope").unwrap();
    fs::write(place.folder.join(".new-abc"), b"half of a vault").unwrap();
    assert_eq!(place.get("discord").unwrap().as_deref(), Some("heliotrope"));
    place.set("matrix", "quagmire").unwrap();
    assert_eq!(files(&place.folder), ["lock", "master", "operator.vault"]);
    let failed = place.vault.change(&place.keys, false, |vault| {
        vault.set(name("web"), &secret("zeppelin"), at(0))?;
        Err::<(), _>(Error::Full)
    });
    assert!(failed.is_err());
    assert_eq!(place.get("web").unwrap(), None, "a change that fails is not written");
}

#[test]
fn a_key_that_would_lie_with_the_data_is_refused_once_it_is_needed_however_its_path_is_written() {
    let scratch = tempfile::tempdir().unwrap();
    let (data, backups) = (scratch.path().join("data"), scratch.path().join("copies"));
    for folder in [&data, &backups] {
        fs::create_dir(folder).unwrap();
    }
    let link = scratch.path().join("link");
    std::os::unix::fs::symlink(&backups, &link).unwrap();
    let linked_key = scratch.path().join("linked.key");
    fs::write(data.join("real.key"), "").unwrap();
    std::os::unix::fs::symlink(data.join("real.key"), &linked_key).unwrap();
    let vault = VaultFile::new(data.join("vault"));
    let set = |path: &Path| {
        let keys = KeyFile::new(path, data.join("vault")).kept_out_of([data.clone(), link.clone()]);
        assert!(vault.read(&keys).unwrap().is_none(), "nothing needs a key yet");
        vault.change(&keys, false, |vault| vault.set(name("a"), &secret("b"), at(0)))
    };
    let around = scratch.path().join("data/../copies/more/../vault.key");
    for inside in [data.join("vault.key"), backups.join("vault.key"), link.join("vault.key"), around, linked_key] {
        let refused = set(&inside).unwrap_err();
        assert!(matches!(refused, Error::KeyPlace { .. }), "{}: {refused}", inside.display());
        assert!(!inside.exists() || inside.is_symlink(), "{}", inside.display());
    }
    set(&data.join("../keys/vault.key")).unwrap();
    assert!(scratch.path().join("keys/vault.key").exists());
}

#[test]
fn vaults_that_came_without_their_key_let_no_other_key_be_made() {
    let (old, new) = (place(), place());
    old.set("discord", "heliotrope").unwrap();
    let sealed = fs::read(old.folder.join("operator.vault")).unwrap();
    new.keys.note_for(&sealed).unwrap();
    assert_eq!(new.keys.noted().unwrap(), Some(old.keys.masters().unwrap().current_id()));
    assert!(matches!(new.set("matrix", "quagmire"), Err(Error::KeyMissing { .. })));
    assert!(!new.keys.path().exists());
    // What is noted stays: the vaults of this folder need it.
    let third = place();
    third.set("web", "zeppelin").unwrap();
    new.keys.note_for(&fs::read(third.folder.join("operator.vault")).unwrap()).unwrap();
    fs::create_dir_all(new.keys.path().parent().unwrap()).unwrap();
    fs::copy(old.keys.path(), new.keys.path()).unwrap();
    new.set("matrix", "quagmire").unwrap();
    assert!(matches!(place().keys.note_for(b"no vault"), Err(Error::Damaged(_))));
}

#[test]
fn one_key_file_takes_the_keys_of_another() {
    let (here, other) = (place(), place());
    here.set("discord", "heliotrope").unwrap();
    other.set("discord", "quagmire").unwrap();
    let mut joined = fs::read_to_string(here.keys.path()).unwrap();
    let theirs = fs::read_to_string(other.keys.path()).unwrap();
    joined.push_str(theirs.lines().last().unwrap());
    fs::write(here.keys.path(), joined).unwrap();
    fs::copy(other.folder.join("operator.vault"), here.folder.join("operator.vault")).unwrap();
    assert_eq!(here.get("discord").unwrap().as_deref(), Some("quagmire"));
}
