//! Files of messages: what is kept, who may read it, and what becomes of it when something fails or is forgotten.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use azera_memory::conformance::{StagedStore, record_with_files, settings};
use azera_memory::{
    Batch, BlobStore, DataSubject, Durability, Error, Forget, Memory, MemoryConfig, NewChat, RamBlobs, RamStore,
    ReadScope, RetentionPreference, Store, Table, blob_id,
};
use azera_types::{
    BlobId, ChatId, Inbound, InboundPart, MessageId, Part, PersonId, PersonaId, Place, PlaceKind, PlatformId,
    ReadableScopes, RealmId, Scope, Timestamp,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

/// A record and its files, of which each write fails while `broken` is set.
#[derive(Clone, Default)]
struct Disk {
    rows: RamStore,
    files: RamBlobs,
    /// Fails commits after the file was written.
    rows_broken: Arc<AtomicBool>,
    files_broken: Arc<AtomicBool>,
}

fn broken(flag: &AtomicBool) -> Result<(), Error> {
    match flag.load(Ordering::SeqCst) {
        true => Err(Error::Io { what: "writing", source: std::io::ErrorKind::BrokenPipe.into() }),
        false => Ok(()),
    }
}

impl BlobStore for Disk {
    fn put(&self, id: &BlobId, bytes: &[u8]) -> Result<(), Error> {
        broken(&self.files_broken)?;
        self.files.put(id, bytes)
    }
    fn get(&self, id: &BlobId) -> Result<Option<Vec<u8>>, Error> {
        self.files.get(id)
    }
    fn remove(&self, id: &BlobId) -> Result<u64, Error> {
        broken(&self.files_broken)?;
        self.files.remove(id)
    }
    fn list(&self) -> Result<Vec<(BlobId, u64)>, Error> {
        self.files.list()
    }
}

impl Disk {
    fn open(&self) -> Memory {
        self.open_with(settings())
    }

    fn open_with(&self, config: MemoryConfig) -> Memory {
        let rows_broken = Arc::clone(&self.rows_broken);
        let rows = StagedStore::new(self.rows.clone()).before_commit(move || broken(&rows_broken));
        record_with_files(Arc::new(rows), Arc::new(self.clone()), config).unwrap()
    }

    /// Returns the stored files.
    fn files(&self) -> Vec<Vec<u8>> {
        let files = self.files.list().unwrap().into_iter().map(|(id, _)| self.files.get(&id).unwrap().unwrap());
        files.collect()
    }
}

fn persona() -> PersonaId {
    PersonaId::new("azera").unwrap()
}

fn person(name: &str) -> PersonId {
    PersonId::new(name).unwrap()
}

fn id(name: &str) -> MessageId {
    MessageId::new(name).unwrap()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Returns the place of a chat: `square` is public, others are direct messages of the person of that name.
fn place(chat: &str) -> Place {
    let kind = match chat {
        "square" => PlaceKind::Public(RealmId::new("guild").unwrap()),
        name => PlaceKind::Dm(person(name)),
    };
    Place { chat: ChatId::new(chat).unwrap(), kind, since: None }
}

fn reading(chat: &str) -> ReadScope {
    ReadScope::in_place(persona(), &place(chat), &ReadableScopes::default())
}

/// Receives a message with files and keeps them.
fn say_with(memory: &Memory, name: &str, chat: &str, who: &str, files: &[(&str, &[u8])]) -> Result<usize, Error> {
    let (platform, place) = (PlatformId::new("test").unwrap(), place(chat));
    let new = NewChat { id: place.chat.clone(), platform: platform.clone(), title: None, persona: persona() };
    memory.chats().open(new, at(0))?;
    let parts = files.iter().map(|(name, bytes)| InboundPart {
        part: Part::new(name, Some("text/plain"), bytes.len() as u64),
        source: Arc::new(bytes.to_vec()),
    });
    let inbound = Inbound {
        id: id(name),
        chat: place.chat.clone(),
        person: person(who),
        name: who.to_owned(),
        text: "look".into(),
        at: at(10),
        parts: parts.collect(),
        mentions_bot: true,
        mentions: Vec::new(),
        reply_to: None,
    };
    memory.turns().receive(&platform, &inbound, place.scope(), at(10))?;
    let mut kept = 0;
    for (index, (_, bytes)) in files.iter().enumerate() {
        kept += usize::from(memory.files().keep(&id(name), None, index, bytes.to_vec())?);
    }
    Ok(kept)
}

/// Returns what a reader of a chat gets by a file's name or id.
fn read(memory: &Memory, chat: &str, which: &str) -> Option<Vec<u8>> {
    memory.files().get(&reading(chat), which).unwrap().map(|(_, bytes)| bytes)
}

#[test]
fn the_same_bytes_in_two_places_are_stored_once_and_read_in_each_alone() {
    let disk = Disk::default();
    let memory = disk.open();
    assert_eq!(say_with(&memory, "a", "ann", "ann", &[("plan.txt", b"the plan"), ("own.txt", b"own")]).unwrap(), 2);
    assert_eq!(say_with(&memory, "b", "ben", "ben", &[("ben.txt", b"the plan")]).unwrap(), 1);
    assert_eq!(disk.files().len(), 2);
    let (plan, own) = (blob_id(b"the plan").unwrap(), blob_id(b"own").unwrap());
    assert_eq!(read(&memory, "ann", plan.as_str()).as_deref(), Some(b"the plan".as_slice()));
    assert_eq!(read(&memory, "ben", plan.as_str()).as_deref(), Some(b"the plan".as_slice()));
    for (chat, which) in [("ben", own.as_str()), ("ben", "own.txt"), ("ben", "plan.txt"), ("square", plan.as_str())] {
        assert_eq!(read(&memory, chat, which), None, "{which} in {chat}");
    }
    assert_eq!(memory.files().list(&reading("ben")).unwrap().len(), 1);
    let other = ReadScope::in_place(PersonaId::new("luna").unwrap(), &place("ann"), &ReadableScopes::default());
    assert!(memory.files().list(&other).unwrap().is_empty(), "another persona reads nothing");
    // One owner lets go, and the other keeps the bytes.
    memory.forgetting().forget(&Forget::Message(id("a")), true).unwrap();
    assert_eq!(disk.files(), [b"the plan".to_vec()]);
    assert_eq!(read(&memory, "ben", "ben.txt").as_deref(), Some(b"the plan".as_slice()));
    memory.forgetting().forget(&Forget::Person(person("ben")), true).unwrap();
    assert!(disk.files().is_empty());
}

#[test]
fn every_way_to_forget_removes_the_bytes_at_once() {
    let realm = RealmId::new("guild").unwrap();
    let square = ChatId::new("square").unwrap();
    let ways = [
        Forget::Message(id("m")),
        Forget::Person(person("ann")),
        Forget::Chat(square.clone()),
        Forget::Realm(realm, Vec::new()),
        Forget::Span { chat: square, from: at(0), to: at(100) },
    ];
    for way in ways {
        let disk = Disk::default();
        let memory = disk.open();
        say_with(&memory, "m", "square", "ann", &[("a.txt", b"secret")]).unwrap();
        memory.forgetting().forget(&way, false).unwrap();
        assert!(disk.files().is_empty(), "{way:?}");
        assert!(memory.check().unwrap().is_sound(), "{way:?}");
        assert!(!memory.files().keep(&id("m"), None, 0, b"secret".to_vec()).unwrap(), "it comes back after {way:?}");
    }
}

#[test]
fn an_edit_lets_go_of_files_and_takes_only_its_own() {
    let disk = Disk::default();
    let memory = disk.open();
    say_with(&memory, "m", "ann", "ann", &[("old.txt", b"old")]).unwrap();
    let parts = vec![Part::new("new.txt", Some("text/plain"), 3)];
    memory.turns().edit_with_parts(&id("m"), "look again".into(), parts, at(20)).unwrap();
    assert!(disk.files().is_empty(), "the withdrawn file is still there");
    assert!(!memory.files().keep(&id("m"), None, 0, b"old".to_vec()).unwrap(), "a file from before the edit");
    assert!(memory.files().keep(&id("m"), Some(at(20)), 0, b"new".to_vec()).unwrap());
    assert_eq!(read(&memory, "ann", "new.txt").as_deref(), Some(b"new".as_slice()));
    assert_eq!(memory.files().list(&reading("ann")).unwrap().len(), 1);
}

#[test]
fn nothing_is_kept_of_an_undecided_message_of_somebody_who_wants_only_messages_to_the_bot_kept() {
    let disk = Disk::default();
    let memory = disk.open();
    memory.consent().set_retention(&person("ann"), RetentionPreference::Addressed).unwrap();
    assert_eq!(say_with(&memory, "m", "square", "ann", &[("a.txt", b"a")]).unwrap(), 0);
    assert!(memory.files().wanted(&id("m"), None).unwrap().is_empty());
    // Its turn ended, and it was not forgotten, so it was for the bot.
    memory.turns().leave(&id("m")).unwrap();
    assert_eq!(memory.files().wanted(&id("m"), None).unwrap(), [0]);
}

#[test]
fn sizes_and_kinds_are_limited_and_the_oldest_files_go_first() {
    let disk = Disk::default();
    let memory = disk.open_with(MemoryConfig { blob_max_bytes: 100, blobs_max_bytes: 250, ..settings() });
    assert_eq!(say_with(&memory, "large", "ann", "ann", &[("large.txt", &[b'x'; 101])]).unwrap(), 0);
    let film = vec![Part::new("film.mp4", Some("video/mp4"), 10)];
    memory.turns().edit_with_parts(&id("large"), "a film".into(), film, at(20)).unwrap();
    assert!(memory.files().wanted(&id("large"), Some(at(20))).unwrap().is_empty());
    for name in ["a", "b", "c", "d"] {
        let file = format!("{name}.txt");
        assert_eq!(say_with(&memory, name, "ann", "ann", &[(&file, name.repeat(90).as_bytes())]).unwrap(), 1);
        assert!(disk.files().iter().map(Vec::len).sum::<usize>() <= 250);
    }
    assert_eq!(read(&memory, "ann", "a.txt"), None);
    assert!(read(&memory, "ann", "d.txt").is_some());
    assert!(memory.check().unwrap().is_sound());
    let listed = memory.files().totals().unwrap();
    drop(memory);
    let none = disk.open_with(MemoryConfig { blobs_max_bytes: 0, ..settings() });
    assert_eq!(say_with(&none, "e", "ann", "ann", &[("e.txt", b"e")]).unwrap(), 0);
    assert_eq!(none.files().totals().unwrap(), listed);
}

#[test]
fn a_failure_at_any_step_leaves_no_wrong_bytes_and_no_stray_ones_after_a_start() {
    let disk = Disk::default();
    let memory = disk.open();
    // The file cannot be written.
    disk.files_broken.store(true, Ordering::SeqCst);
    assert!(say_with(&memory, "a", "ann", "ann", &[("a.txt", b"first")]).is_err());
    assert_eq!(read(&memory, "ann", "a.txt"), None);
    disk.files_broken.store(false, Ordering::SeqCst);
    // The file is written, and its row is not.
    disk.rows_broken.store(true, Ordering::SeqCst);
    assert!(memory.files().keep(&id("a"), None, 0, b"first".to_vec()).is_err());
    disk.rows_broken.store(false, Ordering::SeqCst);
    assert_eq!((disk.files().len(), read(&memory, "ann", "a.txt")), (1, None));
    drop(memory);
    let memory = disk.open();
    assert!(disk.files().is_empty(), "a start sweeps what belongs to no message");
    assert!(memory.files().keep(&id("a"), None, 0, b"first".to_vec()).unwrap(), "the same call succeeds later");
    // The row is removed, and the file is not.
    disk.files_broken.store(true, Ordering::SeqCst);
    memory.forgetting().forget(&Forget::Message(id("a")), true).unwrap();
    assert_eq!((disk.files().len(), read(&memory, "ann", "a.txt")), (1, None));
    disk.files_broken.store(false, Ordering::SeqCst);
    memory.forgetting().scrub().unwrap();
    assert!(disk.files().is_empty(), "the scrub that forgetting asks for sweeps, too");
    assert!(memory.check().unwrap().is_sound());
}

#[test]
fn a_check_finds_missing_and_stray_files() {
    let disk = Disk::default();
    let memory = disk.open();
    say_with(&memory, "a", "ann", "ann", &[("a.txt", b"first")]).unwrap();
    assert_eq!(memory.check().unwrap().files, 1);
    disk.files.remove(&blob_id(b"first").unwrap()).unwrap();
    disk.files.put(&blob_id(b"stray").unwrap(), b"stray").unwrap();
    let found = memory.check().unwrap().broken;
    assert_eq!((found["files that are missing"], found["files that belong to no message"]), (1, 1));
    assert_eq!(read(&memory, "ann", "a.txt"), None);
}

#[test]
fn an_export_has_the_files_of_its_person_within_a_limit() {
    let memory = Disk::default().open();
    say_with(&memory, "a", "ann", "ann", &[("old.txt", b"old words")]).unwrap();
    say_with(&memory, "b", "square", "ben", &[("ben.txt", b"not hers")]).unwrap();
    say_with(&memory, "c", "square", "ann", &[("new.txt", b"new words")]).unwrap();
    let export = memory.export(&DataSubject(person("ann")), u64::MAX).unwrap();
    let content = |bytes: &[u8]| STANDARD.encode(bytes);
    assert_eq!(export["messages"][0]["files"][0]["content"], content(b"old words"));
    assert_eq!(export["messages"][1]["files"][0]["content"], content(b"new words"));
    assert!(!export.to_string().contains("ben.txt") && !export.to_string().contains(&content(b"not hers")));
    let limited = memory.export(&DataSubject(person("ann")), 9).unwrap();
    assert_eq!(limited["messages"][1]["files"][0]["content"], content(b"new words"), "the newest come first");
    let left_out = &limited["messages"][0]["files"][0];
    assert_eq!((left_out["left_out"].as_bool(), left_out.get("content")), (Some(true), None));
}

#[test]
fn the_parts_of_an_export_count_only_files_that_are_kept() {
    let disk = Disk::default();
    let memory = disk.open_with(MemoryConfig { blobs_max_bytes: 20, ..settings() });
    let files: [(&str, &[u8]); 5] =
        [("a", b"file no 1"), ("b", b"file no 2"), ("c", b"file no 3"), ("d", b"file no 4"), ("e", b"file no 5")];
    for (name, bytes) in files {
        assert_eq!(say_with(&memory, name, "ann", "ann", &[(name, bytes)]).unwrap(), 1);
    }
    let kept = disk.files();
    assert!(!kept.is_empty() && kept.len() < files.len(), "older files made room");
    let part = |number: usize| memory.export_files(&DataSubject(person("ann")), number, (1, u64::MAX)).unwrap();
    let parts = part(1).parts;
    assert_eq!(parts, kept.len());
    let given: Vec<_> = (1..=parts).map(|number| part(number).files.len()).collect();
    assert_eq!(given, vec![1; parts], "no part is empty");
}

#[test]
fn a_message_from_before_files_reads_as_it_did() {
    let disk = Disk::default();
    let row = r#"{"id":"old","chat":"ann","seq":3,"parent":null,"depth":0,"author":{"person":{"id":"ann","name":"Ann"}},
        "text":"hello","at":"2026-03-01T12:00:00Z","reply_to":null,"answers":null,"persona":"azera","scope":"dm:ann",
        "memorable":true}"#;
    let mut batch = Batch::new();
    batch.put(Table::Messages, b"old".to_vec(), row.as_bytes());
    disk.rows.commit(batch, Durability::Flushed).unwrap();
    let memory = disk.open();
    let message = memory.messages().get(&reading("ann"), &id("old")).unwrap().unwrap();
    assert_eq!((message.text.as_str(), message.parts.len(), &message.scope), ("hello", 0, &Scope::Dm(person("ann"))));
    assert!(!serde_json::to_string(&message).unwrap().contains("parts"), "an older version reads it, too");
    assert!(memory.files().wanted(&id("old"), None).unwrap().is_empty());
}

/// A step of a random history of files.
#[derive(Debug, Clone)]
enum Step {
    Say { who: usize, content: u8, size: usize },
    Forget { nth: usize },
    Edit { nth: usize },
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_usize..3, 0_u8..6, 1_usize..60).prop_map(|(who, content, size)| Step::Say { who, content, size }),
        2 => any::<usize>().prop_map(|nth| Step::Forget { nth }),
        1 => any::<usize>().prop_map(|nth| Step::Edit { nth }),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever happens, the stored files are exactly those that belong to a message, within the bound; each person
    /// reads their own and nobody else's.
    #[test]
    fn stored_files_are_those_that_belong_to_a_message(steps in prop::collection::vec(step(), 1..40)) {
        const MOST: u64 = 200;
        let people = ["ann", "ben", "cid"];
        let disk = Disk::default();
        let config = || MemoryConfig { blob_max_bytes: 60, blobs_max_bytes: MOST, ..settings() };
        let mut memory = disk.open_with(config());
        let mut said: Vec<(MessageId, usize)> = Vec::new();
        for step in steps {
            match step {
                Step::Say { who, content, size } => {
                    let name = format!("m{}", said.len());
                    let bytes = vec![content; size];
                    say_with(&memory, &name, people[who], people[who], &[(&name, &bytes)]).unwrap();
                    said.push((id(&name), who));
                }
                Step::Forget { nth } if !said.is_empty() => {
                    memory.forgetting().forget(&Forget::Message(said[nth % said.len()].0.clone()), true).unwrap();
                }
                Step::Edit { nth } if !said.is_empty() => {
                    memory.turns().edit(&said[nth % said.len()].0, "never mind".into(), at(99)).unwrap();
                }
                Step::Restart => memory = disk.open_with(config()),
                Step::Forget { .. } | Step::Edit { .. } => {}
            }
            let report = memory.check().unwrap();
            prop_assert!(report.is_sound(), "{:?}", report);
            prop_assert!(memory.files().totals().unwrap().bytes <= MOST);
            for (reader, name) in people.iter().enumerate() {
                for (message, who) in &said {
                    let found = read(&memory, name, message.as_str());
                    prop_assert!(found.is_none() || *who == reader, "{name} reads {message}");
                }
            }
        }
    }
}
