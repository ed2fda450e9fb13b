//! Files of messages in backups: each lies beside the backups once, and goes when no backup contains it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use azera_memory::conformance::{record_with_files, settings};
use azera_memory::{BlobStore, Forget, Memory, NewChat, RamBlobs, RamStore, Record, blob_id, restore};
use azera_memory_backup::{Backup, Folder, Inspection, RetentionRule};
use azera_types::{BlobId, Inbound, InboundPart, MessageId, Part, PersonId, PlatformId, Scope, Timestamp};

use crate::history::{at, chat, persona};
use crate::{folder, open};

/// Keeps every backup.
const ALL: RetentionRule = RetentionRule {
    all: std::time::Duration::MAX,
    hourly: std::time::Duration::MAX,
    daily: std::time::Duration::MAX,
    max_count: usize::MAX,
    max_bytes: u64::MAX,
};

struct Talk {
    dir: tempfile::TempDir,
    memory: Memory,
    blobs: RamBlobs,
    folder: Folder,
}

impl Talk {
    fn new() -> Self {
        let (dir, blobs) = (tempfile::tempdir().unwrap(), RamBlobs::default());
        let memory = record_with_files(Arc::new(RamStore::new()), Arc::new(blobs.clone()), settings()).unwrap();
        let new = NewChat { id: chat(1), platform: PlatformId::new("test").unwrap(), title: None, persona: persona() };
        memory.chats().open(new, at(0)).unwrap();
        let folder = folder(dir.path());
        Self { dir, memory, blobs, folder }
    }

    /// Ann sends a file.
    fn send(&self, id: &str, bytes: &[u8]) -> BlobId {
        let part = Part::new("notes.txt", Some("text/plain"), bytes.len() as u64);
        let inbound = Inbound {
            id: MessageId::new(id).unwrap(),
            chat: chat(1),
            person: PersonId::new("ann").unwrap(),
            name: "Ann".into(),
            text: "look".into(),
            at: at(10),
            parts: vec![InboundPart { part, source: Arc::new(Vec::new()) }],
            mentions_bot: false,
            mentions: Vec::new(),
            reply_to: None,
        };
        let scope = Scope::Dm(inbound.person.clone());
        self.memory.turns().receive(&PlatformId::new("test").unwrap(), &inbound, scope, at(10)).unwrap();
        assert!(self.memory.files().keep(&inbound.id, None, 0, bytes.to_vec()).unwrap());
        blob_id(bytes).unwrap()
    }

    fn forget(&self, id: &str) {
        self.memory.forgetting().forget(&Forget::Message(MessageId::new(id).unwrap()), true).unwrap();
        self.folder.forget(&self.memory.record()).unwrap();
    }

    fn back_up(&self, second: i64) -> Backup {
        self.folder.make(&self.memory.record(), at(second), &mut |_| {}).unwrap()
    }

    /// Returns the files beside the backups: path and content.
    fn beside(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        collect(&self.dir.path().join("backups"), &mut found);
        found.retain(|path, _| {
            path.parent().and_then(Path::parent).is_some_and(|folder| {
                folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("files-"))
            })
        });
        found
    }
}

fn collect(dir: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for path in std::fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            collect(&path, found);
        } else {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
}

/// Returns the bytes that a restored record finds in the backup, by file.
fn restored(backup: &Backup) -> BTreeMap<BlobId, Option<Vec<u8>>> {
    let store = RamStore::new();
    restore(&store, |take| backup.read(&mut |_| {}, &mut |batch| Ok(take(batch)?))).unwrap();
    drop(open(&store));
    let owned = Record::of(&store).unwrap().owned_blobs().unwrap();
    owned.into_iter().map(|id| (id.clone(), backup.file(&id).unwrap())).collect()
}

#[test]
fn a_file_is_copied_once_and_restored_from_every_backup() {
    let talk = Talk::new();
    let first = talk.send("a", b"the first file");
    let early = talk.back_up(100);
    let copied = talk.beside();
    assert_eq!(copied.values().collect::<Vec<_>>(), [b"the first file"]);
    let modified = |path: &Path| std::fs::metadata(path).unwrap().modified().unwrap();
    let written: Vec<_> = copied.keys().map(|path| modified(path)).collect();
    let second = talk.send("b", b"the second file");
    let late = talk.back_up(200);
    assert_eq!(talk.beside().len(), 2);
    assert_eq!(copied.keys().map(|path| modified(path)).collect::<Vec<_>>(), written, "it was written again");
    assert_eq!(restored(&early), [(first.clone(), Some(b"the first file".to_vec()))].into());
    let both = [(first, Some(b"the first file".to_vec())), (second, Some(b"the second file".to_vec()))];
    assert_eq!(restored(&late), both.into());
}

#[test]
fn a_backup_at_a_path_of_its_own_contains_its_files() {
    let talk = Talk::new();
    let id = talk.send("a", b"the first file");
    let elsewhere = talk.dir.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let path = elsewhere.join("whole.zip");
    talk.folder.make_as(&talk.memory.record(), at(100), &path, &mut |_| {}).unwrap();
    talk.blobs.remove(&id).unwrap();
    let backup = Backup::open(path).unwrap();
    assert_eq!(restored(&backup), [(id, Some(b"the first file".to_vec()))].into());
    assert_eq!(std::fs::read_dir(elsewhere).unwrap().count(), 1);
}

#[test]
fn a_forgotten_file_leaves_the_backups() {
    let talk = Talk::new();
    talk.send("a", b"a secret file");
    talk.send("b", b"another file");
    let kept = talk.back_up(100);
    let inside = talk.dir.path().join("backups/whole.zip");
    talk.folder.make_as(&talk.memory.record(), at(150), &inside, &mut |_| {}).unwrap();
    talk.forget("a");
    assert_eq!(talk.beside().values().collect::<Vec<_>>(), [b"another file"]);
    for path in [kept.path, inside] {
        let backup = Backup::open(path).unwrap();
        let files: Vec<_> = restored(&backup).into_values().collect();
        assert_eq!(files, [Some(b"another file".to_vec())]);
        assert_eq!(backup.file(&blob_id(b"a secret file").unwrap()).unwrap(), None);
    }
}

#[test]
fn files_go_with_the_last_backup_that_contains_them_and_count_for_the_limit() {
    let talk = Talk::new();
    let name = talk.memory.record().identity().to_owned();
    let now = |second: i64| -> Timestamp { at(second) };
    talk.send("a", &[b'a'; 50_000]);
    talk.back_up(100);
    talk.memory.forgetting().forget(&Forget::Message(MessageId::new("a").unwrap()), true).unwrap();
    talk.send("b", b"small");
    talk.back_up(200);
    // The backups were not cleaned of it yet.
    assert_eq!(talk.folder.prune(&name, &ALL, now(300)).unwrap(), 0);
    assert_eq!(talk.beside().len(), 2);
    let small = RetentionRule { max_bytes: 40_000, ..ALL };
    assert_eq!(talk.folder.prune(&name, &small, now(300)).unwrap(), 1);
    assert_eq!(talk.beside().values().collect::<Vec<_>>(), [b"small"]);
    assert_eq!(talk.folder.of(&name).unwrap().len(), 1);
}

#[test]
fn a_damaged_file_is_an_error_and_no_wrong_bytes() {
    let talk = Talk::new();
    let id = talk.send("a", b"the first file");
    let backup = talk.back_up(100);
    let path = talk.beside().into_keys().next().unwrap();
    std::fs::write(&path, b"the wrong file").unwrap();
    assert!(backup.file(&id).is_err());
    std::fs::remove_file(&path).unwrap();
    assert_eq!(backup.file(&id).unwrap(), None);
    backup.verify(&mut |_| {}).unwrap();
}

#[test]
fn the_next_backup_copies_damaged_and_missing_files_again() {
    let talk = Talk::new();
    talk.send("a", b"the first file");
    let early = talk.back_up(100);
    let path = talk.beside().into_keys().next().unwrap();
    let damages: [&dyn Fn(); 3] =
        [&|| std::fs::write(&path, b"the wrong file").unwrap(), &|| std::fs::write(&path, b"the").unwrap(), &|| {
            std::fs::remove_file(&path).unwrap()
        }];
    for (damage, second) in damages.into_iter().zip(200..) {
        damage();
        assert_eq!(early.inspect(&mut |_| {}).unwrap(), Inspection::FilesMissing(1));
        let late = talk.back_up(second);
        assert_eq!(talk.beside().into_values().collect::<Vec<_>>(), [b"the first file"]);
        for backup in [&early, &late] {
            assert_eq!(backup.inspect(&mut |_| {}).unwrap(), Inspection::Whole);
        }
    }
}

#[test]
fn a_reader_leaves_a_file_that_is_being_written() {
    let talk = Talk::new();
    let id = talk.send("a", b"the first file");
    let backup = talk.back_up(100);
    let files = talk.beside().into_keys().next().unwrap();
    let files = files.parent().and_then(Path::parent).unwrap();
    let partial = files.join(".new-abc123");
    std::fs::write(&partial, b"half").unwrap();
    assert_eq!(backup.inspect(&mut |_| {}).unwrap(), Inspection::Whole);
    assert_eq!(backup.file(&id).unwrap().unwrap(), b"the first file");
    assert!(talk.folder.list().unwrap().unreadable.is_empty());
    assert!(partial.exists(), "a reader removed what another process writes");
    talk.back_up(200);
    assert!(!partial.exists(), "the next backup removes what a crash left");
}

#[test]
fn what_changes_while_it_is_inspected_is_no_damage() {
    let talk = Talk::new();
    talk.send("a", b"a secret file");
    talk.send("b", b"another file");
    let rewritten = talk.back_up(100);
    let mut forgot = false;
    let inspected = rewritten.inspect(&mut |_| {
        if !std::mem::replace(&mut forgot, true) {
            talk.forget("a");
        }
    });
    assert_eq!((inspected.unwrap(), forgot), (Inspection::Whole, true));
    let removed = talk.back_up(200);
    let inspected = removed.inspect(&mut |_| {
        if removed.path.exists() {
            std::fs::remove_file(&removed.path).unwrap();
        }
    });
    assert_eq!(inspected.unwrap(), Inspection::Removed);
}
