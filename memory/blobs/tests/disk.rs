//! The blob store on disk, through its contract.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use azera_memory::{BlobStore, Error, blob_id};
use azera_memory_blobs::DiskBlobs;
use azera_types::BlobId;
use proptest::prelude::*;

/// Returns all paths under a folder, files and folders.
fn paths(dir: &std::path::Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(paths(&entry));
        }
        found.push(entry);
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever is stored and removed, in any order and over restarts, the folder holds exactly what is left.
    #[test]
    fn the_store_is_a_map_from_digests_to_bytes(
        script in prop::collection::vec((0_u8..4, prop::collection::vec(any::<u8>(), 0..3)), 0..40),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut store = DiskBlobs::open(dir.path().join("blobs")).unwrap();
        let mut model: BTreeMap<BlobId, Vec<u8>> = BTreeMap::new();
        for (act, bytes) in script {
            let id = blob_id(&bytes).unwrap();
            match act {
                0 | 1 => {
                    store.put(&id, &bytes).unwrap();
                    model.insert(id, bytes);
                }
                2 => {
                    let gone = model.remove(&id).map_or(0, |bytes| bytes.len() as u64);
                    prop_assert_eq!(store.remove(&id).unwrap(), gone);
                }
                _ => store = DiskBlobs::open(dir.path().join("blobs")).unwrap(),
            }
        }
        for (id, bytes) in &model {
            let stored = store.get(id).unwrap();
            prop_assert_eq!(stored.as_ref(), Some(bytes));
        }
        let listed: BTreeMap<BlobId, u64> = store.list().unwrap().into_iter().collect();
        let sizes: BTreeMap<BlobId, u64> = model.into_iter().map(|(id, bytes)| (id, bytes.len() as u64)).collect();
        prop_assert_eq!(listed, sizes);
    }
}

#[test]
fn only_the_owner_can_read_a_file_and_its_folders() {
    let dir = tempfile::tempdir().unwrap();
    let store = DiskBlobs::open(dir.path().join("blobs")).unwrap();
    store.put(&blob_id(b"secret").unwrap(), b"secret").unwrap();
    for path in paths(dir.path()) {
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
    }
}

#[test]
fn changed_bytes_are_an_error_and_can_be_stored_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = DiskBlobs::open(dir.path()).unwrap();
    let id = blob_id(b"the right bytes").unwrap();
    for wrong in [b"the wrong bytes".as_slice(), b"the right", b""] {
        store.put(&id, b"the right bytes").unwrap();
        let file = paths(dir.path()).into_iter().find(|path| path.is_file()).unwrap();
        fs::write(&file, wrong).unwrap();
        assert!(matches!(store.get(&id), Err(Error::Damaged { .. })));
    }
    store.put(&id, b"the right bytes").unwrap();
    assert_eq!(store.get(&id).unwrap().unwrap(), b"the right bytes");
}

#[test]
fn half_written_and_foreign_files_are_nobodys_bytes() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(".new-abc"), "half").unwrap();
    fs::create_dir(dir.path().join("zz")).unwrap();
    fs::write(dir.path().join("zz/notes.txt"), "x").unwrap();
    fs::write(dir.path().join("notes.txt"), "x").unwrap();
    let store = DiskBlobs::open(dir.path()).unwrap();
    assert!(!dir.path().join(".new-abc").exists(), "the next start removes what a crash interrupted");
    assert!(dir.path().join("zz/notes.txt").exists() && dir.path().join("notes.txt").exists());
    assert!(store.list().unwrap().is_empty());
}

#[test]
fn a_store_that_cannot_be_written_fails_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "not a folder").unwrap();
    let store = DiskBlobs::open(file.join("blobs")).unwrap();
    let id = blob_id(b"x").unwrap();
    assert!(store.put(&id, b"x").is_err());
    assert_eq!(fs::read_to_string(&file).unwrap(), "not a folder");
}
