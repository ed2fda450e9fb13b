//! Backups of real histories, through the crate's door.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod history;
mod relinking;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use azera_memory::{
    Account, Change, ChatChange, Durability, Forget, NewChat, NewFact, Order, RamStore, ReadScope, Store, Table,
    restore,
};
use azera_memory_backup::{Backup, Error, Folder, RetentionRule};
use azera_types::{MessageId, PersonId, PersonaId, Place, PlaceKind, PlatformId, ReadableScopes, RealmId, Scope};
use history::{History, SECRET, account, at, author, chat, leave_all, open, persona};
use proptest::prelude::*;

type Row = (Table, String, String);

/// Everything a store holds, a table after the other, those apart that speak of indexes, of what is under way and of
/// backups.
fn rows(store: &RamStore) -> Vec<Row> {
    let apart = [Table::Meta, Table::IndexQueue, Table::Inbox, Table::Outbox, Table::Forgotten];
    let tables = Table::ALL.into_iter().filter(|table| !apart.contains(table));
    let rows = |table| {
        let rows = store.scan(table, b"", None, Order::Ascending, usize::MAX).unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        rows.into_iter().map(move |(key, value)| (table, text(key), text(value)))
    };
    tables.flat_map(rows).collect()
}

/// The same without the numbers of memories, which each record gives out by itself.
fn unnumbered(store: &RamStore) -> Vec<Row> {
    let numbered = [Table::Memories, Table::MemoryByMessage, Table::MemoryByChat, Table::Names];
    let mut all: Vec<Row> = rows(store).into_iter().filter(|(table, ..)| !numbered.contains(table)).collect();
    for table in numbered {
        for (mut key, value) in store.scan(table, b"", None, Order::Ascending, usize::MAX).unwrap() {
            key.truncate(key.len() - 8);
            let mut value: serde_json::Value = serde_json::from_slice(&value).unwrap_or_default();
            value.as_object_mut().map(|memory| memory.remove("id"));
            all.push((table, String::from_utf8(key).unwrap(), value.to_string()));
        }
    }
    all.sort();
    all
}

/// Rows that are not the same on both sides.
fn only_in_one(left: &[Row], read_scope: &[Row]) -> Vec<Row> {
    let (left, read_scope): (BTreeSet<Row>, BTreeSet<Row>) =
        (left.iter().cloned().collect(), read_scope.iter().cloned().collect());
    left.symmetric_difference(&read_scope).cloned().collect()
}

fn folder(dir: &Path) -> Folder {
    Folder::new(dir.join("backups"), "0.0.0")
}

/// The record that a backup holds, as it is after its first start.
fn restored(backup: &Backup) -> RamStore {
    let store = RamStore::new();
    restore(&store, |take| backup.read(&mut |_| {}, &mut |batch| Ok(take(batch)?))).unwrap();
    open(&store);
    store
}

/// What a file holds, unpacked.
fn unpacked(path: &Path) -> Vec<u8> {
    let mut all = fs::read(path).unwrap();
    let backup = Backup::open(path).unwrap();
    backup
        .read(&mut |_| {}, &mut |batch| {
            for change in batch.changes() {
                if let Change::Put(_, key, value) = change {
                    all.extend(key);
                    all.extend(value);
                }
            }
            Ok(())
        })
        .unwrap();
    all
}

fn holds(path: &Path, needle: &str) -> bool {
    unpacked(path).windows(needle.len()).any(|part| part == needle.as_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_restored_record_is_the_record_of_that_moment(script in prop::collection::vec(any::<u8>(), 0..400)) {
        let dir = tempfile::tempdir().unwrap();
        let (store, folder) = (RamStore::new(), folder(dir.path()));
        let mut history = History::of(&store);
        history.play(&script);
        let backup = folder.make(&history.memory.record(), at(1_000_000), &mut |_| {}).unwrap();
        // What was under way is over in a restored record, as if the next start had left it.
        let started = open(&store);
        leave_all(&started);
        let restored = restored(&backup);
        prop_assert_eq!(unnumbered(&restored), unnumbered(&store));
        let again = open(&restored);
        let sound = again.check().unwrap();
        prop_assert!(sound.is_sound(), "{:?}", sound);
        prop_assert!(again.open_turns().unwrap().is_empty() && again.outbox().unwrap().is_empty());
        let (again, started) = (again.record(), started.record());
        prop_assert_eq!(again.identity(), started.identity());
        prop_assert_eq!(folder.of(again.identity()).unwrap(), vec![backup]);
    }

    /// A backup that is gone through holds what it would hold if it had been forgotten before the backup was made.
    #[test]
    fn a_backup_forgets_as_the_record_does(
        before in prop::collection::vec(any::<u8>(), 60..400),
        after in prop::collection::vec(any::<u8>(), 0..200),
        what in 0_u8..6,
        which in any::<u8>(),
        quotes: bool,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let (store, folder) = (RamStore::new(), folder(dir.path()));
        let mut history = History::of(&store);
        history.play(&before);
        // What is under way would be left by the first start, under other numbers if some of it was forgotten.
        leave_all(&history.memory);
        let what = history.target(what, which);
        let backup = folder.make(&history.memory.record(), at(1_000_000), &mut |_| {}).unwrap();
        folder.forget(&history.memory.record()).unwrap();
        history.forgot.clear();
        // A memory may leave the record by itself meanwhile, as that of an answer that was made anew; then there is
        // nothing of that number to forget.
        if !matches!(what, Forget::Memory(_)) {
            history.play(&after);
        }
        history.forget(what.clone(), quotes);
        let expected = restored(&backup);
        let early = open(&expected);
        history.forgot.iter().for_each(|(what, quotes)| drop(early.forget(what, *quotes).unwrap()));
        folder.forget(&history.memory.record()).unwrap();
        let cleaned = restored(&Backup::open(&backup.path).unwrap());
        prop_assert_eq!(only_in_one(&rows(&cleaned), &rows(&expected)), vec![], "{:?}", what);
        prop_assert_eq!(open(&cleaned).check().unwrap().broken, Default::default());
        prop_assert!(history.memory.record().pending_backup_forgets().unwrap().what.is_empty(), "it is not gone through twice");
        let names = folder.of(history.memory.record().identity()).unwrap();
        prop_assert_eq!(names.len(), 1);
        prop_assert_eq!(names[0].manifest.made_at, backup.manifest.made_at, "it is a backup of the same moment");
    }

    #[test]
    fn a_damaged_backup_is_no_backup(at_byte: prop::sample::Index, bit in 0_u8..8, cut: bool) {
        let dir = tempfile::tempdir().unwrap();
        let store = RamStore::new();
        let mut history = History::of(&store);
        history.play(&(0..120_u8).map(|step| step.wrapping_mul(37)).collect::<Vec<_>>());
        let whole = folder(dir.path()).make(&history.memory.record(), at(1_000_000), &mut |_| {}).unwrap();
        let mut bytes = fs::read(&whole.path).unwrap();
        let place = at_byte.index(bytes.len());
        if cut {
            bytes.truncate(place);
        } else {
            bytes[place] ^= 1 << bit;
        }
        fs::write(&whole.path, bytes).unwrap();
        match Backup::open(&whole.path).and_then(|backup| backup.verify(&mut |_| {}).map(|()| backup)) {
            Err(error) => prop_assert!(!error.is_transient(), "{error}"),
            // Some bits of an archive say nothing about its content.
            Ok(backup) => prop_assert_eq!(backup.manifest, whole.manifest),
        }
    }
}

#[test]
fn what_was_forgotten_is_in_no_backup() {
    #[track_caller]
    fn check(what: Forget) {
        let dir = tempfile::tempdir().unwrap();
        let folder = folder(dir.path());
        let mut history = History::of(&RamStore::new());
        history.tell_secret();
        let old = folder.make(&history.memory.record(), at(1_000_000), &mut |_| {}).unwrap();
        // The record holds something else by now, the backups still the secret.
        let second = folder.make(&history.memory.record(), at(1_000_100), &mut |_| {}).unwrap();
        history.memory.edit(&MessageId::new("secret").unwrap(), "nothing".into(), at(20)).unwrap();
        folder.make(&history.memory.record(), at(1_000_200), &mut |_| {}).unwrap();
        assert!(holds(&old.path, SECRET) && holds(&second.path, SECRET), "{what:?}");
        history.memory.forget(&what, true).unwrap();
        // One that nobody can read goes.
        fs::write(second.path.with_file_name(format!("azera-x-{}.zip", history.memory.record().identity())), b"PK")
            .unwrap();
        let gone = folder.forget(&history.memory.record()).unwrap();
        assert!(gone.rewritten == 3 && gone.removed == 1, "{what:?}: {gone:?}");
        let left = folder.list().unwrap();
        assert_eq!((left.backups.len(), left.unreadable.len()), (3, 0), "{what:?}");
        for backup in left.backups {
            backup.verify(&mut |_| {}).unwrap();
            assert!(!holds(&backup.path, SECRET), "{what:?}: {}", backup.path.display());
        }
        assert_eq!(folder.forget(&history.memory.record()).unwrap(), Default::default(), "{what:?}");
    }
    check(Forget::Message(MessageId::new("secret").unwrap()));
    check(Forget::Person(PersonId::new("ann").unwrap()));
    check(Forget::Chat(chat(0)));
    check(Forget::Realm(RealmId::new("guild").unwrap(), vec![chat(0)]));
    check(Forget::Span { chat: chat(0), from: at(0), to: at(1_000) });
}

/// A file of the record's that cannot be read, or not yet, keeps no other from forgetting, and is come back to.
#[test]
fn one_backup_that_cannot_be_read_keeps_no_other_from_forgetting() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    let mut history = History::of(&RamStore::new());
    history.tell_secret();
    let record = history.memory.record();
    let whole = folder.make(&record, at(1_000_000), &mut |_| {}).unwrap();
    let short: String = record.identity().chars().take(8).collect();
    // What cannot be read as a file: a folder of that name.
    let unreadable = dir.path().join("backups").join(format!("azera-20000101T000000Z-{short}.zip"));
    fs::create_dir(&unreadable).unwrap();
    fs::create_dir(dir.path().join("backups").join("holiday.zip")).unwrap();
    history.memory.forget(&Forget::Person(PersonId::new("ann").unwrap()), true).unwrap();
    assert!(matches!(folder.forget(&record), Err(Error::Io { .. })));
    assert!(!holds(&whole.path, SECRET), "the others forgot");
    assert!(!record.pending_backup_forgets().unwrap().what.is_empty(), "it is tried again");
    fs::remove_dir(&unreadable).unwrap();
    // A newer version's is nobody's to remove.
    let mut archive = zip::ZipWriter::new(fs::File::create(&unreadable).unwrap());
    archive.start_file("manifest.json", zip::write::SimpleFileOptions::default()).unwrap();
    std::io::Write::write_all(&mut archive, br#"{"format": 99}"#).unwrap();
    archive.finish().unwrap();
    assert!(matches!(folder.forget(&record), Err(Error::Newer { .. })));
    assert!(unreadable.exists() && !record.pending_backup_forgets().unwrap().what.is_empty());
    fs::remove_file(&unreadable).unwrap();
    folder.forget(&record).unwrap();
    assert!(record.pending_backup_forgets().unwrap().what.is_empty(), "a foreign file is no matter");
}

/// What damage or a crash brought back of what is still to be forgotten goes again.
#[test]
fn a_record_forgets_again_what_came_back() {
    let dir = tempfile::tempdir().unwrap();
    let (store, folder) = (RamStore::new(), folder(dir.path()));
    let mut history = History::of(&store);
    history.tell_secret();
    let record = history.memory.record();
    let before = folder.make(&record, at(1_000_000), &mut |_| {}).unwrap();
    history.memory.forget(&Forget::Person(PersonId::new("ann").unwrap()), true).unwrap();
    let after = rows(&store);
    before.read(&mut |_| {}, &mut |batch| Ok(store.commit(batch, Durability::Soon)?)).unwrap();
    assert!(rows(&store).iter().any(|(_, _, value)| value.contains(SECRET)));
    record.forget_again().unwrap();
    assert!(!rows(&store).iter().any(|(_, _, value)| value.contains(SECRET)));
    let lost: BTreeSet<Row> = after.into_iter().filter(|row| !rows(&store).contains(row)).collect();
    assert_eq!(lost, BTreeSet::new(), "nothing else went");
}

/// After an older backup was restored, newer ones hold what that record never knew. It is forgotten there too, and
/// nothing else is taken for it.
#[test]
fn what_a_restore_left_out_is_forgotten_in_newer_backups() {
    #[track_caller]
    fn check(what: Forget) {
        let dir = tempfile::tempdir().unwrap();
        let (store, folder) = (RamStore::new(), folder(dir.path()));
        let mut history = History::of(&store);
        let old = folder.make(&history.memory.record(), at(1_000_000), &mut |_| {}).unwrap();
        history.memory = open(&store);
        history.tell_secret();
        let new = folder.make(&history.memory.record(), at(1_000_100), &mut |_| {}).unwrap();
        let restored = open(&self::restored(&old));
        for number in 0..8 {
            let text = format!("fact {number}").as_str().into();
            let scope = Scope::Chat(chat(0));
            let fact = NewFact { persona: persona(), chat: chat(0), scope, author: author(1), text, at: at(30) };
            let id = restored.store_fact(fact).unwrap();
            restored.forget(&Forget::Memory(id), true).unwrap();
        }
        assert_eq!(folder.forget(&restored.record()).unwrap(), Default::default(), "{what:?}: another one's number");
        restored.forget(&what, true).unwrap();
        assert_eq!(folder.forget(&restored.record()).unwrap().rewritten, 1, "{what:?}");
        assert!(!holds(&new.path, SECRET), "{what:?}");
        let cleaned = open(&self::restored(&Backup::open(&new.path).unwrap()));
        assert_eq!(cleaned.check().unwrap().broken, Default::default(), "{what:?}");
    }
    check(Forget::Person(PersonId::new("ann").unwrap()));
    check(Forget::Chat(chat(0)));
    check(Forget::Realm(RealmId::new("guild").unwrap(), vec![chat(0)]));
}

/// What is still to be forgotten in backups is for the record to know, and does not reach what came after it.
#[test]
fn what_came_after_a_forgetting_stays_in_backups() {
    let dir = tempfile::tempdir().unwrap();
    let (store, folder) = (RamStore::new(), folder(dir.path()));
    let mut history = History::of(&store);
    history.tell_secret();
    history.memory.forget(&Forget::Chat(chat(0)), true).unwrap();
    history.say(0, "later", "and on it goes", true);
    let place = Place {
        chat: chat(0),
        kind: PlaceKind::Private { realm: None, all_in_realm: false, realm_since: None },
        since: None,
    };
    let read_scope = ReadScope::in_place(persona(), &place, &ReadableScopes::default());
    let later = MessageId::new("later").unwrap();
    history.memory.branch_from(&read_scope, &chat(0), &later, "side", at(50)).unwrap();
    let backup = folder.make(&history.memory.record(), at(1_000_000), &mut |_| {}).unwrap();
    assert!(restored(&backup).scan(Table::Forgotten, b"", None, Order::Ascending, 1).unwrap().is_empty());
    folder.forget(&history.memory.record()).unwrap();
    let cleaned = open(&restored(&Backup::open(&backup.path).unwrap()));
    let names: Vec<String> =
        cleaned.branches(&read_scope, &chat(0)).unwrap().into_iter().map(|branch| branch.name).collect();
    assert_eq!(names, ["main", "side"]);
    assert_eq!(cleaned.chat(&chat(0)).unwrap(), history.memory.chat(&chat(0)).unwrap());
}

/// What somebody took apart comes back with no backup; what was linked anew since stays in those that hold it.
#[test]
fn what_was_taken_apart_is_linked_in_no_backup() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    let memory = History::of(&RamStore::new()).memory;
    let [ann, ben, cid] = [0, 1, 2].map(account);
    memory.link(&Account { name: SECRET.into(), ..ann.clone() }, &ben).unwrap();
    memory.link(&ben, &cid).unwrap();
    let before = folder.make(&memory.record(), at(1_000_000), &mut |_| {}).unwrap();
    assert!(holds(&before.path, SECRET));
    assert_eq!(memory.unlink(&ann.person).unwrap(), 2);
    memory.link(&cid, &ann).unwrap();
    let after = folder.make(&memory.record(), at(1_000_100), &mut |_| {}).unwrap();
    folder.forget(&memory.record()).unwrap();
    let linked = |backup: &Backup, of: &Account| {
        let restored = open(&restored(&Backup::open(&backup.path).unwrap()));
        restored.linked(&of.person).unwrap()
    };
    assert!(!holds(&before.path, SECRET));
    assert_eq!((linked(&before, &ann), linked(&before, &ben)), (vec![], vec![cid.clone()]));
    assert_eq!((linked(&after, &ann), linked(&after, &ben)), (vec![ben, cid.clone()], vec![ann, cid]));
    // Somebody who is forgotten takes their links along everywhere.
    memory.forget(&Forget::Person(account(2).person), false).unwrap();
    folder.forget(&memory.record()).unwrap();
    assert_eq!((linked(&before, &account(1)), linked(&after, &account(1))), (vec![], vec![account(0)]));
}

/// What people say that a chat is about goes with what was said in it, here and in backups; what it is called and who was invited to
/// it, with its realm.
#[test]
fn the_names_of_a_chat_go_with_it() {
    #[track_caller]
    fn check(what: Forget, left: (Option<&str>, bool)) {
        let dir = tempfile::tempdir().unwrap();
        let folder = folder(dir.path());
        let mut history = History::of(&RamStore::new());
        history.tell_secret();
        let platform = PlatformId::new("test").unwrap();
        let den = NewChat { id: chat(0), platform, title: Some("den".into()), persona: persona() };
        history.memory.open_chat(den, at(0)).unwrap();
        let nix = PersonaId::new("nix").unwrap();
        for change in [
            ChatChange::Tag("affair".into(), true),
            ChatChange::Group(Some("affairs".into())),
            ChatChange::Invited(nix.clone(), true),
        ] {
            assert!(history.memory.change_chat(&chat(0), change).unwrap());
        }
        let backup = folder.make(&history.memory.record(), at(1_000_000), &mut |_| {}).unwrap();
        history.memory.forget(&what, true).unwrap();
        folder.forget(&history.memory.record()).unwrap();
        let cleaned = open(&restored(&Backup::open(&backup.path).unwrap()));
        for memory in [&history.memory, &cleaned] {
            let row = memory.chat(&chat(0)).unwrap().unwrap();
            assert!(row.tags.is_empty() && row.group.is_none(), "{what:?}: {row:?}");
            assert_eq!((row.title.as_deref(), row.invited.contains(&nix)), left, "{what:?}");
        }
    }
    check(Forget::Chat(chat(0)), (Some("den"), true));
    check(Forget::Realm(RealmId::new("guild").unwrap(), vec![chat(0)]), (None, false));
}

/// A folder whose disk is not there is not taken for one without backups; one that was left for another still forgets.
#[test]
fn every_folder_that_backups_were_made_into_forgets() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (folder(&dir.path().join("first")), folder(&dir.path().join("second")));
    let mut history = History::of(&RamStore::new());
    history.tell_secret();
    let record = history.memory.record();
    let left = first.make(&record, at(1_000_000), &mut |_| {}).unwrap();
    let missing = second.make(&record, at(1_000_100), &mut |_| {}).unwrap();
    let other_place = dir.path().join("unmounted");
    fs::rename(second.dir(), &other_place).unwrap();
    // What a mount point is without its disk.
    fs::create_dir(second.dir()).unwrap();
    assert_eq!(second.missing_folders(&record).unwrap(), [second.dir()]);
    history.memory.forget(&Forget::Person(PersonId::new("ann").unwrap()), true).unwrap();
    assert!(matches!(second.forget(&record), Err(Error::FolderMissing { .. })));
    assert!(!holds(&left.path, SECRET), "the folder that is there forgot");
    assert!(!record.pending_backup_forgets().unwrap().what.is_empty());
    fs::remove_dir(second.dir()).unwrap();
    fs::rename(&other_place, second.dir()).unwrap();
    assert_eq!(second.forget(&record).unwrap().rewritten, 1);
    assert!(!holds(&missing.path, SECRET) && record.pending_backup_forgets().unwrap().what.is_empty());
    // Gone for good.
    fs::remove_dir_all(second.dir()).unwrap();
    history.memory.forget(&Forget::Chat(chat(1)), true).unwrap();
    assert!(matches!(first.forget(&record), Err(Error::FolderMissing { .. })));
    assert_eq!(record.give_up_backup_folders(second.dir()).unwrap(), 1);
    first.forget(&record).unwrap();
    assert!(record.pending_backup_forgets().unwrap().what.is_empty());
}

#[test]
fn backups_of_another_record_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    let (mut one, mut other) = (History::of(&RamStore::new()), History::of(&RamStore::new()));
    one.tell_secret();
    other.tell_secret();
    folder.make(&one.memory.record(), at(1_000_000), &mut |_| {}).unwrap();
    let others = folder.make(&other.memory.record(), at(1_000_000), &mut |_| {}).unwrap();
    one.memory.forget(&Forget::Person(PersonId::new("ann").unwrap()), true).unwrap();
    assert_eq!(folder.forget(&one.memory.record()).unwrap().rewritten, 1);
    assert!(holds(&others.path, SECRET));
    let nothing = RetentionRule {
        all: Duration::ZERO,
        hourly: Duration::ZERO,
        daily: Duration::ZERO,
        max_count: 0,
        max_bytes: 0,
    };
    folder.make(&one.memory.record(), at(1_000_000), &mut |_| {}).unwrap();
    assert_eq!(folder.prune(one.memory.record().identity(), &nothing, at(2_000_000)).unwrap(), 1, "the newest stays");
    assert_eq!(folder.of(other.memory.record().identity()).unwrap(), vec![others]);
}

#[test]
fn an_interrupted_backup_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    let mut history = History::of(&RamStore::new());
    history.tell_secret();
    let whole = folder.make(&history.memory.record(), at(1_000_000), &mut |_| {}).unwrap();
    // What a killed process leaves.
    let short: String = history.memory.record().identity().chars().take(8).collect();
    let half = dir.path().join("backups").join(format!(".azera-{short}-x.partial"));
    fs::write(&half, b"half").unwrap();
    assert_eq!(folder.list().unwrap().backups, vec![whole.clone()]);
    folder.make(&history.memory.record(), at(1_000_000), &mut |_| {}).unwrap();
    assert!(!half.exists());
    assert_eq!(folder.list().unwrap().backups.len(), 2, "two of one second have names of their own");
}

#[test]
fn a_backup_of_a_newer_version_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("newer.zip");
    let mut archive = zip::ZipWriter::new(fs::File::create(&path).unwrap());
    archive.start_file("manifest.json", zip::write::SimpleFileOptions::default()).unwrap();
    std::io::Write::write_all(&mut archive, br#"{"format": 99, "unheard": "of"}"#).unwrap();
    archive.finish().unwrap();
    assert!(matches!(Backup::open(&path), Err(Error::Newer { format: 99, .. })));
}
