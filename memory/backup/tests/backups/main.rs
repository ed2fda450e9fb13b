//! Backups of random histories, through the public interface of the crate.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod files;
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

/// Returns all rows of a store by table, without those about indexes, themes, open work and backups.
fn rows(store: &RamStore) -> Vec<Row> {
    let apart = [Table::Meta, Table::IndexQueue, Table::Inbox, Table::Outbox, Table::Forgotten, Table::Themes];
    let tables = Table::ALL.into_iter().filter(|table| !apart.contains(table));
    let rows = |table| {
        let rows = store.scan(table, b"", None, Order::Ascending, usize::MAX).unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        rows.into_iter().map(move |(key, value)| (table, text(key), text(value)))
    };
    tables.flat_map(rows).collect()
}

/// Returns all rows without the numbers of memories, which each record assigns itself.
fn unnumbered(store: &RamStore) -> Vec<Row> {
    let numbered =
        [Table::Memories, Table::MemoryByMessage, Table::MemoryByChat, Table::Names, Table::Graph, Table::Kept];
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

/// Returns the rows that only one of the two has.
fn only_in_one(left: &[Row], right: &[Row]) -> Vec<Row> {
    let (left, right): (BTreeSet<Row>, BTreeSet<Row>) =
        (left.iter().cloned().collect(), right.iter().cloned().collect());
    left.symmetric_difference(&right).cloned().collect()
}

fn folder(dir: &Path) -> Folder {
    Folder::new(dir.join("backups"), "0.0.0")
}

/// Returns the record of a backup after its first start.
fn restored(backup: &Backup) -> RamStore {
    let store = RamStore::new();
    restore(&store, |take| backup.read(&mut |_| {}, &mut |batch| Ok(take(batch)?))).unwrap();
    open(&store);
    store
}

/// Returns the uncompressed contents of a file.
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
        // A restored record closes open turns, as the next start of the original would.
        let started = open(&store);
        leave_all(&started);
        let restored = restored(&backup);
        prop_assert_eq!(unnumbered(&restored), unnumbered(&store));
        let again = open(&restored);
        let sound = again.check().unwrap();
        prop_assert!(sound.is_sound(), "{:?}", sound);
        prop_assert!(again.turns().all_open().unwrap().is_empty() && again.outbox().pending().unwrap().is_empty());
        let (again, started) = (again.record(), started.record());
        prop_assert_eq!(again.identity(), started.identity());
        prop_assert_eq!(folder.of(again.identity()).unwrap(), vec![backup]);
    }

    /// A cleaned backup equals a backup made after the same forgetting.
    #[test]
    fn a_cleaned_backup_equals_one_made_after_the_forgetting(
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
        // A start would close open turns. If some of them were forgotten, memories would get other numbers.
        leave_all(&history.memory);
        let what = history.target(what, which);
        let backup = folder.make(&history.memory.record(), at(1_000_000), &mut |_| {}).unwrap();
        folder.forget(&history.memory.record()).unwrap();
        history.forgot.clear();
        // A memory may leave the record by itself meanwhile, for example when its reply is regenerated. Then no memory
        // of that number is left to forget.
        if !matches!(what, Forget::Memory(_)) {
            history.play(&after);
        }
        history.forget(what.clone(), quotes);
        let expected = restored(&backup);
        let early = open(&expected);
        history.forgot.iter().for_each(|(what, quotes)| drop(early.forgetting().forget(what, *quotes).unwrap()));
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
            // Some bits of an archive do not affect its content.
            Ok(backup) => prop_assert_eq!(backup.manifest, whole.manifest),
        }
    }
}

#[test]
fn forgotten_items_are_in_no_backup() {
    #[track_caller]
    fn check(what: Forget) {
        let dir = tempfile::tempdir().unwrap();
        let folder = folder(dir.path());
        let mut history = History::of(&RamStore::new());
        history.tell_secret();
        let old = folder.make(&history.memory.record(), at(1_000_000), &mut |_| {}).unwrap();
        // The record no longer contains the secret; the backups do.
        let second = folder.make(&history.memory.record(), at(1_000_100), &mut |_| {}).unwrap();
        history.memory.turns().edit(&MessageId::new("secret").unwrap(), "nothing".into(), at(20)).unwrap();
        folder.make(&history.memory.record(), at(1_000_200), &mut |_| {}).unwrap();
        assert!(holds(&old.path, SECRET) && holds(&second.path, SECRET), "{what:?}");
        history.memory.forgetting().forget(&what, true).unwrap();
        // An unreadable backup is removed.
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

/// An unreadable file does not keep other backups from being cleaned, and is tried again later.
#[test]
fn an_unreadable_backup_does_not_keep_others_from_being_cleaned() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    let mut history = History::of(&RamStore::new());
    history.tell_secret();
    let record = history.memory.record();
    let whole = folder.make(&record, at(1_000_000), &mut |_| {}).unwrap();
    let short: String = record.identity().chars().take(8).collect();
    // A folder with the name of a backup cannot be read as a file.
    let unreadable = dir.path().join("backups").join(format!("azera-20000101T000000Z-{short}.zip"));
    fs::create_dir(&unreadable).unwrap();
    fs::create_dir(dir.path().join("backups").join("holiday.zip")).unwrap();
    history.memory.forgetting().forget(&Forget::Person(PersonId::new("ann").unwrap()), true).unwrap();
    assert!(matches!(folder.forget(&record), Err(Error::Io { .. })));
    assert!(!holds(&whole.path, SECRET), "the other backups were cleaned");
    assert!(!record.pending_backup_forgets().unwrap().what.is_empty(), "the removal stays pending");
    fs::remove_dir(&unreadable).unwrap();
    // A newer version's backup is never removed.
    let mut archive = zip::ZipWriter::new(fs::File::create(&unreadable).unwrap());
    archive.start_file("manifest.json", zip::write::SimpleFileOptions::default()).unwrap();
    std::io::Write::write_all(&mut archive, br#"{"format": 99}"#).unwrap();
    archive.finish().unwrap();
    assert!(matches!(folder.forget(&record), Err(Error::Newer { .. })));
    assert!(unreadable.exists() && !record.pending_backup_forgets().unwrap().what.is_empty());
    fs::remove_file(&unreadable).unwrap();
    folder.forget(&record).unwrap();
    assert!(record.pending_backup_forgets().unwrap().what.is_empty(), "a foreign file does not matter");
}

/// Rows that damage or a crash brought back are forgotten again.
#[test]
fn a_record_forgets_rows_that_came_back() {
    let dir = tempfile::tempdir().unwrap();
    let (store, folder) = (RamStore::new(), folder(dir.path()));
    let mut history = History::of(&store);
    history.tell_secret();
    let record = history.memory.record();
    let before = folder.make(&record, at(1_000_000), &mut |_| {}).unwrap();
    history.memory.forgetting().forget(&Forget::Person(PersonId::new("ann").unwrap()), true).unwrap();
    let after = rows(&store);
    before.read(&mut |_| {}, &mut |batch| Ok(store.commit(batch, Durability::Soon)?)).unwrap();
    assert!(rows(&store).iter().any(|(_, _, value)| value.contains(SECRET)));
    record.forget_again().unwrap();
    assert!(!rows(&store).iter().any(|(_, _, value)| value.contains(SECRET)));
    let lost: BTreeSet<Row> = after.into_iter().filter(|row| !rows(&store).contains(row)).collect();
    assert_eq!(lost, BTreeSet::new(), "no other row was lost");
}

/// After an older backup was restored, newer backups contain rows that the record never knew. They are cleaned, too,
/// and nothing else is removed from them.
#[test]
fn rows_unknown_after_a_restore_are_forgotten_in_newer_backups() {
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
            let id = restored.memories().store_fact(fact).unwrap();
            restored.forgetting().forget(&Forget::Memory(id), true).unwrap();
        }
        assert_eq!(folder.forget(&restored.record()).unwrap(), Default::default(), "{what:?}: another one's number");
        restored.forgetting().forget(&what, true).unwrap();
        assert_eq!(folder.forget(&restored.record()).unwrap().rewritten, 1, "{what:?}");
        assert!(!holds(&new.path, SECRET), "{what:?}");
        let cleaned = open(&self::restored(&Backup::open(&new.path).unwrap()));
        assert_eq!(cleaned.check().unwrap().broken, Default::default(), "{what:?}");
    }
    check(Forget::Person(PersonId::new("ann").unwrap()));
    check(Forget::Chat(chat(0)));
    check(Forget::Realm(RealmId::new("guild").unwrap(), vec![chat(0)]));
}

/// Pending forgets belong to the record, and do not affect newer rows.
#[test]
fn rows_after_a_forgetting_stay_in_backups() {
    let dir = tempfile::tempdir().unwrap();
    let (store, folder) = (RamStore::new(), folder(dir.path()));
    let mut history = History::of(&store);
    history.tell_secret();
    history.memory.forgetting().forget(&Forget::Chat(chat(0)), true).unwrap();
    history.say(0, "later", "and on it goes", true);
    let place = Place {
        chat: chat(0),
        kind: PlaceKind::Private { realm: None, all_in_realm: false, realm_since: None },
        since: None,
    };
    let read_scope = ReadScope::in_place(persona(), &place, &ReadableScopes::default());
    let later = MessageId::new("later").unwrap();
    history.memory.chats().branch_from(&read_scope, &chat(0), &later, "side", at(50)).unwrap();
    let backup = folder.make(&history.memory.record(), at(1_000_000), &mut |_| {}).unwrap();
    assert!(restored(&backup).scan(Table::Forgotten, b"", None, Order::Ascending, 1).unwrap().is_empty());
    folder.forget(&history.memory.record()).unwrap();
    let cleaned = open(&restored(&Backup::open(&backup.path).unwrap()));
    let names: Vec<String> =
        cleaned.chats().branches(&read_scope, &chat(0)).unwrap().into_iter().map(|branch| branch.name).collect();
    assert_eq!(names, ["main", "side"]);
    assert_eq!(cleaned.chats().get(&chat(0)).unwrap(), history.memory.chats().get(&chat(0)).unwrap());
}

/// A removed link returns with no backup; a link made again since stays in the backups that contain it.
#[test]
fn a_removed_link_is_in_no_backup() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    let memory = History::of(&RamStore::new()).memory;
    let [ann, ben, cid] = [0, 1, 2].map(account);
    memory.links().link(&Account { name: SECRET.into(), ..ann.clone() }, &ben).unwrap();
    memory.links().link(&ben, &cid).unwrap();
    let before = folder.make(&memory.record(), at(1_000_000), &mut |_| {}).unwrap();
    assert!(holds(&before.path, SECRET));
    assert_eq!(memory.links().unlink(&ann.person).unwrap(), 2);
    memory.links().link(&cid, &ann).unwrap();
    let after = folder.make(&memory.record(), at(1_000_100), &mut |_| {}).unwrap();
    folder.forget(&memory.record()).unwrap();
    let linked = |backup: &Backup, of: &Account| {
        let restored = open(&restored(&Backup::open(&backup.path).unwrap()));
        restored.links().of(&of.person).unwrap()
    };
    assert!(!holds(&before.path, SECRET));
    assert_eq!((linked(&before, &ann), linked(&before, &ben)), (vec![], vec![cid.clone()]));
    assert_eq!((linked(&after, &ann), linked(&after, &ben)), (vec![ben, cid.clone()], vec![ann, cid]));
    // Forgetting a person removes their links everywhere.
    memory.forgetting().forget(&Forget::Person(account(2).person), false).unwrap();
    folder.forget(&memory.record()).unwrap();
    assert_eq!((linked(&before, &account(1)), linked(&after, &account(1))), (vec![], vec![account(0)]));
}

/// Group and tags of a chat are removed with its messages, here and in backups. Its title and invitations are removed
/// with its realm.
#[test]
fn the_names_of_a_chat_are_forgotten_with_it() {
    #[track_caller]
    fn check(what: Forget, left: (Option<&str>, bool)) {
        let dir = tempfile::tempdir().unwrap();
        let folder = folder(dir.path());
        let mut history = History::of(&RamStore::new());
        history.tell_secret();
        let platform = PlatformId::new("test").unwrap();
        let den = NewChat { id: chat(0), platform, title: Some("den".into()), persona: persona() };
        history.memory.chats().open(den, at(0)).unwrap();
        let nix = PersonaId::new("nix").unwrap();
        for change in [
            ChatChange::Tag("affair".into(), true),
            ChatChange::Group(Some("affairs".into())),
            ChatChange::Invited(nix.clone(), true),
        ] {
            assert!(history.memory.chats().change(&chat(0), change).unwrap());
        }
        let backup = folder.make(&history.memory.record(), at(1_000_000), &mut |_| {}).unwrap();
        history.memory.forgetting().forget(&what, true).unwrap();
        folder.forget(&history.memory.record()).unwrap();
        let cleaned = open(&restored(&Backup::open(&backup.path).unwrap()));
        for memory in [&history.memory, &cleaned] {
            let row = memory.chats().get(&chat(0)).unwrap().unwrap();
            assert!(row.tags.is_empty() && row.group.is_none(), "{what:?}: {row:?}");
            assert_eq!((row.title.as_deref(), row.invited.contains(&nix)), left, "{what:?}");
        }
    }
    check(Forget::Chat(chat(0)), (Some("den"), true));
    check(Forget::Realm(RealmId::new("guild").unwrap(), vec![chat(0)]), (None, false));
}

/// A missing disk does not count as a folder without backups; a folder that was replaced by another is still cleaned.
#[test]
fn every_known_backup_folder_is_cleaned() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (folder(&dir.path().join("first")), folder(&dir.path().join("second")));
    let mut history = History::of(&RamStore::new());
    history.tell_secret();
    let record = history.memory.record();
    let left = first.make(&record, at(1_000_000), &mut |_| {}).unwrap();
    let missing = second.make(&record, at(1_000_100), &mut |_| {}).unwrap();
    let other_place = dir.path().join("unmounted");
    fs::rename(second.dir(), &other_place).unwrap();
    // A mount point without its disk is an empty folder.
    fs::create_dir(second.dir()).unwrap();
    assert_eq!(second.missing_folders(&record).unwrap(), [second.dir()]);
    history.memory.forgetting().forget(&Forget::Person(PersonId::new("ann").unwrap()), true).unwrap();
    assert!(matches!(second.forget(&record), Err(Error::FolderMissing { .. })));
    assert!(!holds(&left.path, SECRET), "the existing folder was cleaned");
    assert!(!record.pending_backup_forgets().unwrap().what.is_empty());
    fs::remove_dir(second.dir()).unwrap();
    fs::rename(&other_place, second.dir()).unwrap();
    assert_eq!(second.forget(&record).unwrap().rewritten, 1);
    assert!(!holds(&missing.path, SECRET) && record.pending_backup_forgets().unwrap().what.is_empty());
    // The folder is gone for good.
    fs::remove_dir_all(second.dir()).unwrap();
    history.memory.forgetting().forget(&Forget::Chat(chat(1)), true).unwrap();
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
    one.memory.forgetting().forget(&Forget::Person(PersonId::new("ann").unwrap()), true).unwrap();
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
    assert_eq!(
        folder.prune(one.memory.record().identity(), &nothing, at(2_000_000)).unwrap(),
        1,
        "the newest backup stays"
    );
    assert_eq!(folder.of(other.memory.record().identity()).unwrap(), vec![others]);
}

#[test]
fn an_interrupted_backup_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    let mut history = History::of(&RamStore::new());
    history.tell_secret();
    let whole = folder.make(&history.memory.record(), at(1_000_000), &mut |_| {}).unwrap();
    // A killed process leaves a partial file.
    let short: String = history.memory.record().identity().chars().take(8).collect();
    let half = dir.path().join("backups").join(format!(".azera-{short}-x.partial"));
    fs::write(&half, b"half").unwrap();
    assert_eq!(folder.list().unwrap().backups, vec![whole.clone()]);
    folder.make(&history.memory.record(), at(1_000_000), &mut |_| {}).unwrap();
    assert!(!half.exists());
    assert_eq!(folder.list().unwrap().backups.len(), 2, "two backups of the same second have different names");
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
