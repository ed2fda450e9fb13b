//! Pictures that people ask for: queued within limits, finished in one transaction, and gone with what they are built on.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use azera_memory::conformance::{self, record_with_files, settings};
use azera_memory::{
    Asked, BackupCleaner, BlobStore, DataSubject, DrawnPicture, Forget, Memory, MemoryConfig, NewChat, NewPicture,
    NewReply, PictureOutcome, PictureQuota, PictureRow, Pinned, RamBlobs, RamStore, ReadScope, Store, Table, blob_id,
    relink,
};
use azera_types::{
    ChatId, Inbound, MessageId, PersonId, PersonaId, Place, PlaceKind, PlatformId, ReadableScopes, RealmId, Scope,
    Text, Timestamp,
};

/// Ten of everything.
fn ten() -> PictureQuota {
    PictureQuota {
        day: "2026-03-01".into(),
        by_person: 10,
        in_place: 10,
        waiting: 10,
        waiting_by_person: 10,
        waiting_in_place: 10,
    }
}

struct Room {
    memory: Memory,
    store: RamStore,
    blobs: RamBlobs,
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_750_000_000 + second).unwrap()
}

fn person(name: &str) -> PersonId {
    PersonId::new(name).unwrap()
}

fn hall() -> ChatId {
    ChatId::new("hall").unwrap()
}

fn guild() -> RealmId {
    RealmId::new("guild").unwrap()
}

fn azera() -> PersonaId {
    PersonaId::new("azera").unwrap()
}

/// The right of those who read the hall.
fn in_hall() -> ReadScope {
    let place = Place { chat: hall(), kind: PlaceKind::Public(guild()), since: None };
    ReadScope::in_place(azera(), &place, &ReadableScopes::default())
}

impl Room {
    fn open() -> Self {
        Self::with(settings())
    }

    fn with(config: MemoryConfig) -> Self {
        let (store, blobs) = (RamStore::new(), RamBlobs::default());
        let memory = record_with_files(Arc::new(store.clone()), Arc::new(blobs.clone()), config).unwrap();
        let platform = PlatformId::new("p").unwrap();
        memory.chats().open(NewChat { id: hall(), platform, title: None, persona: azera() }, at(0)).unwrap();
        Self { memory, store, blobs }
    }

    fn ask_as(&self, who: &str, change: impl FnOnce(&mut NewPicture)) -> Asked {
        let row = PictureRow {
            number: 0,
            message: MessageId::new("post~0").unwrap(),
            platform: PlatformId::new("p").unwrap(),
            chat: hall(),
            persona: azera(),
            persona_name: "Azera".into(),
            scope: Scope::Realm(guild()),
            source_scopes: Vec::new(),
            from: at(1),
            sources: Vec::new(),
            person: person(who),
            by: None,
            prompt: Text::new(format!("a heliotrope lighthouse of {who}")),
            name: None,
            settings: serde_json::json!({"seed": 7}),
            starts_from: None,
            start: None,
            asked_at: at(1),
            day: String::new(),
            tries: 0,
            drawn_at: None,
            model: None,
            is_pinned: false,
        };
        let quota = ten();
        let mut new = NewPicture { row, quota, start: None };
        change(&mut new);
        self.memory.pictures().ask(new).unwrap()
    }

    fn ask(&self, who: &str) -> PictureRow {
        match self.ask_as(who, |_| {}) {
            Asked::Waits(row) => *row,
            other => panic!("{other:?}"),
        }
    }

    fn finish(&self, row: &PictureRow, png: &[u8]) -> Option<MessageId> {
        let picture = DrawnPicture {
            png: png.to_vec(),
            name: "x.png".into(),
            alt: row.prompt.as_str().to_owned(),
            model: "grey".into(),
            settings: row.settings.clone(),
        };
        let outcome =
            PictureOutcome { text: Text::new("here"), picture: Some(picture), at: at(9), is_given_back: false };
        self.memory.pictures().finish(&row.message, outcome).unwrap().map(|message| message.id)
    }

    /// Answers a message with a reply whose tags ask for these pictures, and withdraws it.
    fn withdraw_reply_with(&self, pictures: Vec<NewPicture>) {
        let id = |id: &str| MessageId::new(id).unwrap();
        let inbound = Inbound {
            id: id("m"),
            chat: hall(),
            person: person("ann"),
            name: "Ann".into(),
            text: Text::new("show me"),
            parts: Vec::new(),
            at: at(2),
            mentions_bot: true,
            mentions: Vec::new(),
            reply_to: None,
        };
        let turns = self.memory.turns();
        turns.receive(&PlatformId::new("p").unwrap(), &inbound, Scope::Realm(guild()), at(2)).unwrap();
        let platform = PlatformId::new("p").unwrap();
        let reply = conformance::reply(&id("m~r0"), &id("m"), &person("ann"), "Look.", at(3));
        let reply = NewReply { platform, from: at(2), ..reply };
        let (reply, asked) = turns.reply_with_pictures(reply, pictures).unwrap();
        assert!(asked.iter().all(|asked| matches!(asked, Asked::Waits(_))), "{asked:?}");
        let (_, row) = self.memory.outbox().pending().unwrap().pop().unwrap();
        self.memory.outbox().withdraw(&reply, &row).unwrap();
    }

    fn stored(&self) -> usize {
        self.blobs.list().unwrap().len()
    }

    fn rows(&self) -> usize {
        self.store.scan(Table::Pictures, b"", None, azera_memory::Order::Ascending, 100).unwrap().len()
    }
}

#[test]
fn a_picture_waits_and_becomes_a_message_with_a_file() {
    let room = Room::open();
    let row = room.ask("ann");
    assert_eq!(room.memory.pictures().waiting().unwrap().len(), 1);
    assert!(room.memory.pictures().page(&in_hall(), (0, 100), |_| true).unwrap().rows.is_empty());
    assert_eq!(room.memory.pictures().tried(&row.message).unwrap(), Some(1));
    assert_eq!(room.finish(&row, b"png"), Some(row.message.clone()));
    assert_eq!(room.finish(&row, b"png"), None, "it is finished once");
    assert_eq!(room.memory.pictures().tried(&row.message).unwrap(), None);
    assert!(room.memory.pictures().waiting().unwrap().is_empty());
    let pending = room.memory.outbox().pending().unwrap();
    assert_eq!((pending.len(), pending[0].1.asker.clone()), (1, Some(person("ann"))));
    assert_eq!(room.memory.outbox().files(&pending[0].0).unwrap()[0].1, b"png");
    room.memory.outbox().delivered(&pending[0].0).unwrap();
    assert!(room.memory.outbox().files(&pending[0].0).unwrap().is_empty(), "only what waits is given out");
    assert_eq!(room.memory.pictures().file(&in_hall(), &row.message).unwrap().unwrap().1, b"png");
    assert!(room.memory.check().unwrap().is_sound());
}

#[test]
fn every_limit_is_told_apart() {
    let room = Room::open();
    for _ in 0..2 {
        room.ask("ann");
    }
    assert_eq!(room.ask_as("ann", |new| new.quota.waiting = 2), Asked::QueueFull);
    assert_eq!(room.ask_as("ann", |new| new.quota.waiting_by_person = 2), Asked::PersonWaits);
    assert_eq!(room.ask_as("ann", |new| new.quota.by_person = 2), Asked::PersonHadEnough);
    assert_eq!(room.ask_as("bob", |new| new.quota.in_place = 2), Asked::PlaceHadEnough);
    assert_eq!(room.ask_as("bob", |new| new.quota.waiting_in_place = 2), Asked::PlaceWaits);
    for row in room.memory.pictures().waiting().unwrap() {
        room.finish(&row, b"png").unwrap();
    }
    assert_eq!(room.ask_as("ann", |new| new.quota.by_person = 2), Asked::PersonHadEnough);
    let tomorrow = room.ask_as("ann", |new| (new.quota.by_person, new.quota.day) = (2, "2026-03-02".into()));
    assert!(matches!(tomorrow, Asked::Waits(_)));
}

#[test]
fn a_picture_that_is_not_drawn_is_given_back_to_the_day() {
    let room = Room::open();
    let (taken_back, failed, told) = (room.ask("ann"), room.ask("ann"), room.ask("ann"));
    let full = |who: &str| {
        let in_place = room.ask_as("bob", |new| new.quota.in_place = 1) == Asked::PlaceHadEnough;
        (room.ask_as(who, |new| new.quota.by_person = 1) == Asked::PersonHadEnough, in_place)
    };
    assert_eq!(full("ann"), (true, true));
    let pictures = room.memory.pictures();
    assert!(pictures.cancel(&taken_back.message).unwrap().is_some());
    assert!(pictures.cancel(&taken_back.message).unwrap().is_none(), "once");
    let outcome =
        PictureOutcome { text: Text::new("I could not draw that."), picture: None, at: at(2), is_given_back: true };
    assert!(pictures.finish(&failed.message, outcome).unwrap().is_some());
    assert_eq!(full("ann"), (true, true), "one is left");
    assert!(pictures.tell(told, Text::new("It is not drawn.")).unwrap().is_some());
    let limit = |quota: PictureQuota| {
        let (platform, scope) = (PlatformId::new("p").unwrap(), Scope::Realm(guild()));
        pictures.limit(&person("ann"), (&platform, &scope), &quota).unwrap()
    };
    assert_eq!(limit(PictureQuota { by_person: 1, in_place: 1, ..ten() }), None);
    let begun = [room.ask("ann"), room.ask("ann"), room.ask("ann")];
    begun.iter().for_each(|row| assert_eq!(pictures.tried(&row.message).unwrap(), Some(1)));
    assert!(pictures.cancel(&begun[0].message).unwrap().is_some());
    assert!(pictures.tell(begun[1].clone(), Text::new("It is not drawn.")).unwrap().is_some());
    let text = Text::new("The server refused it.");
    let refused = PictureOutcome { text, picture: None, at: at(2), is_given_back: false };
    assert!(pictures.finish(&begun[2].message, refused).unwrap().is_some());
    let count = |by_person| limit(PictureQuota { by_person, ..ten() });
    assert_eq!((count(3), count(4)), (Some(Asked::PersonHadEnough), None), "what was begun counts");
}

#[test]
fn a_withdrawn_reply_takes_its_waiting_pictures_back() {
    let room = Room::open();
    let kept = room.ask("ann");
    let tag = || {
        let mut row = kept.clone();
        row.sources.push(MessageId::new("m~r0").unwrap());
        NewPicture { row, quota: ten(), start: None }
    };
    room.withdraw_reply_with(vec![tag(), tag()]);
    assert_eq!(room.memory.pictures().waiting().unwrap(), [kept]);
    let limit = |by_person| {
        let (platform, scope) = (PlatformId::new("p").unwrap(), Scope::Realm(guild()));
        let quota = PictureQuota { by_person, in_place: by_person, ..ten() };
        room.memory.pictures().limit(&person("ann"), (&platform, &scope), &quota).unwrap()
    };
    assert_eq!((limit(1), limit(2)), (Some(Asked::PersonHadEnough), None), "both are given back");
    assert!(room.memory.turns().open(&MessageId::new("m").unwrap()).unwrap().is_some(), "it is answered again");
    assert!(room.memory.check().unwrap().is_sound());
}

#[test]
fn only_so_many_pictures_are_kept_the_oldest_go_first_and_pinned_ones_last() {
    let room = Room::open();
    let rows = [room.ask("ann"), room.ask("ann"), room.ask("bob"), room.ask("bob")];
    for (row, png) in rows.iter().zip([b"one", b"two", b"thr", b"fou"]) {
        room.finish(row, png).unwrap();
    }
    let pictures = room.memory.pictures();
    assert_eq!(pictures.pin(&rows[0].message, true, 9).unwrap(), Pinned::Done);
    let kept = || rows.each_ref().map(|row| pictures.file(&in_hall(), &row.message).unwrap().is_some());
    pictures.keep_at_most(4, rows[3].number).unwrap();
    assert_eq!(kept(), [true; 4]);
    pictures.keep_at_most(2, rows[3].number).unwrap();
    assert_eq!(kept(), [true, false, false, true]);
    pictures.keep_at_most(1, rows[3].number).unwrap();
    assert_eq!(kept(), [false, false, false, true], "the picture just drawn stays, whatever is pinned");
    assert!(pictures.get(&in_hall(), &rows[0].message).unwrap().is_some());
    assert!(room.memory.check().unwrap().is_sound());
}

#[test]
fn a_forgotten_person_leaves_neither_pictures_nor_waiting_ones() {
    let room = Room::open();
    let (anns, waiting, bobs) = (room.ask("ann"), room.ask("ann"), room.ask("bob"));
    room.finish(&anns, b"ann's").unwrap();
    room.finish(&bobs, b"bob's").unwrap();
    let mine = room.memory.export(&DataSubject(person("ann")), u64::MAX).unwrap();
    assert_eq!(mine["pictures"].as_array().unwrap().len(), 2);
    assert!(mine["pictures"][0]["files"][0]["content"].is_string());
    let receipt = room.memory.forgetting().forget(&Forget::Person(person("ann")), true).unwrap();
    assert!(receipt.retract.iter().any(|(_, message, _)| *message == anns.message));
    assert_eq!((room.stored(), room.rows()), (1, 1));
    assert_eq!(room.finish(&waiting, b"late"), None);
    assert_eq!(room.memory.pictures().page(&in_hall(), (0, 100), |_| true).unwrap().rows[0].message, bobs.message);
    assert!(room.memory.check().unwrap().is_sound());
    room.memory.forgetting().forget(&Forget::Chat(hall()), true).unwrap();
    assert_eq!((room.stored(), room.rows()), (0, 0));
}

#[test]
fn a_damaged_start_is_left_out_of_an_export_and_costs_nothing_else() {
    let room = Room::open();
    room.ask_as("ann", |new| new.start = Some(b"given".to_vec()));
    room.blobs.put(&blob_id(b"given").unwrap(), b"other").unwrap();
    let export = room.memory.export(&DataSubject(person("ann")), u64::MAX).unwrap();
    assert_eq!(export["pictures"][0]["starts_from"]["left_out"], true);
}

#[test]
fn what_came_with_a_request_is_kept_until_it_ends_and_is_gone_then() {
    let ends: [fn(&Room, &PictureRow); 5] = [
        |room, row| room.memory.pictures().let_start_go(&row.message).unwrap(),
        |room, row| drop(room.finish(row, b"drawn")),
        |room, row| drop(room.memory.pictures().cancel(&row.message).unwrap()),
        |room, row| drop(room.memory.pictures().tell(row.clone(), Text::new("no")).unwrap()),
        |room, row| drop(room.memory.forgetting().forget(&Forget::Person(row.person.clone()), true).unwrap()),
    ];
    for (number, end) in ends.iter().enumerate() {
        let room = Room::open();
        let Asked::Waits(row) = room.ask_as("ann", |new| new.start = Some(b"given".to_vec())) else {
            panic!("it waits")
        };
        relink(&room.store).unwrap();
        let given = room.memory.pictures().start_of(&row.message).unwrap();
        assert_eq!(given.as_deref(), Some(b"given".as_slice()), "a repair keeps it");
        assert!(room.memory.check().unwrap().is_sound());
        end(&room, &row);
        assert_eq!(room.blobs.get(&blob_id(b"given").unwrap()).unwrap(), None, "{number}");
        assert_eq!(room.memory.pictures().start_of(&row.message).unwrap(), None, "{number}");
        assert!(room.memory.check().unwrap().is_sound(), "{number}");
    }
}

#[test]
fn a_backup_forgets_the_rows_too() {
    let room = Room::open();
    let row = room.ask("ann");
    let mut rows = Vec::new();
    room.store
        .dump(&mut |batch| {
            rows.push(batch);
            Ok(())
        })
        .unwrap();
    room.memory.forgetting().forget(&Forget::Person(person("ann")), true).unwrap();
    let pending = azera_memory::Record::of(&room.store).unwrap().pending_backup_forgets().unwrap();
    let mut cleaner: BackupCleaner<'_> = pending.what.cleaning();
    for batch in rows {
        let (cleaned, _) = cleaner.clean(&batch).unwrap();
        let held = format!("{:?}", cleaned.changes().iter().map(azera_row).collect::<Vec<_>>());
        assert!(!held.contains("heliotrope") && !held.contains(row.message.as_str()), "{held}");
    }
}

fn azera_row(change: &azera_memory::Change) -> String {
    match change {
        azera_memory::Change::Put(table, _, value) if *table == Table::Pictures => {
            String::from_utf8_lossy(value).into_owned()
        }
        _ => String::new(),
    }
}

#[test]
fn a_picture_goes_with_what_it_is_built_on_and_a_repair_keeps_the_rest() {
    let room = Room::open();
    let first = room.ask("ann");
    room.finish(&first, b"one").unwrap();
    let built = match room.ask_as("bob", |new| new.row.sources.push(first.message.clone())) {
        Asked::Waits(row) => *row,
        other => panic!("{other:?}"),
    };
    room.finish(&built, b"two").unwrap();
    let late = match room.ask_as("bob", |new| new.row.sources.push(first.message.clone())) {
        Asked::Waits(row) => *row,
        other => panic!("{other:?}"),
    };
    let kept = room.ask("cid");
    room.memory.forgetting().forget(&Forget::Message(first.message.clone()), true).unwrap();
    assert_eq!(room.finish(&late, b"three"), None);
    assert_eq!(room.stored(), 0);
    assert_eq!(room.memory.pictures().waiting().unwrap(), [kept]);
    let report = relink(&room.store).unwrap();
    assert_eq!(report.rows_kept["pictures"], 1);
}

#[test]
fn a_page_shows_the_newest_that_may_be_shown_and_says_whether_more_follow() {
    let room = Room::open();
    let rows: Vec<PictureRow> = ["ann", "bob", "cid", "dan", "eve"].map(|who| room.ask(who)).into();
    for row in &rows {
        room.finish(row, row.person.as_str().as_bytes()).unwrap();
    }
    let page = |skip, limit| {
        let page = room.memory.pictures().page(&in_hall(), (skip, limit), |row| row.person != person("cid")).unwrap();
        assert!(!page.is_cut);
        (page.rows.iter().map(|row| row.person.as_str().to_owned()).collect::<Vec<_>>(), page.has_more)
    };
    assert_eq!(page(0, 2), (vec!["eve".into(), "dan".into()], true));
    assert_eq!(page(2, 2), (vec!["bob".into(), "ann".into()], false));
    assert_eq!(page(4, 2), (Vec::new(), false));
    room.memory.forgetting().forget(&Forget::Message(rows[4].message.clone()), true).unwrap();
    assert_eq!(page(0, 1), (vec!["dan".into()], true));
    // Who opens the record later finds the same.
    let memory = record_with_files(Arc::new(room.store.clone()), Arc::new(room.blobs.clone()), settings()).unwrap();
    let found = memory.pictures().page(&in_hall(), (0, 1), |_| true).unwrap();
    assert_eq!((found.rows[0].person.as_str(), found.has_more), ("dan", true));
    let elsewhere = Place { chat: hall(), kind: PlaceKind::Public(RealmId::new("other").unwrap()), since: None };
    let elsewhere = ReadScope::in_place(azera(), &elsewhere, &ReadableScopes::default());
    assert!(memory.pictures().page(&elsewhere, (0, 9), |_| true).unwrap().rows.is_empty());
}

#[test]
fn a_pinned_picture_goes_after_the_others_and_a_place_pins_so_many() {
    let limits = MemoryConfig { blob_max_bytes: 40, blobs_max_bytes: 100, ..settings() };
    let room = Room::with(limits);
    let draw = |who: &str| {
        let row = room.ask(who);
        room.finish(&row, format!("{who:*<30}").as_bytes()).unwrap();
        row
    };
    let pin = |row: &PictureRow, pins| room.memory.pictures().pin(&row.message, pins, 1).unwrap();
    let oldest = draw("ann");
    assert_eq!(pin(&oldest, true), Pinned::Done);
    let next = draw("bob");
    assert_eq!(pin(&next, true), Pinned::Full);
    draw("cid");
    draw("dan");
    let kept = |row: &PictureRow| room.memory.pictures().file(&in_hall(), &row.message).unwrap().is_some();
    assert!(kept(&oldest) && !kept(&next), "the pinned one is older, and stays");
    assert_eq!(pin(&oldest, false), Pinned::Done);
    draw("eve");
    assert!(!kept(&oldest), "it is the oldest again");
    assert_eq!(pin(&oldest, true), Pinned::Gone);
    assert_eq!(pin(&room.ask("fay"), true), Pinned::NoSuch, "it is not drawn yet");
}

#[test]
fn a_place_full_of_pins_makes_room_at_its_own_expense() {
    let limits = MemoryConfig { blob_max_bytes: 40, blobs_max_bytes: 100, ..settings() };
    let room = Room::with(limits);
    let elsewhere = Place { chat: hall(), kind: PlaceKind::Public(RealmId::new("other").unwrap()), since: None };
    let Asked::Waits(other) = room.ask_as("eve", |new| new.row.scope = elsewhere.scope()) else { panic!("it waits") };
    room.finish(&other, &[b'e'; 30]).unwrap();
    let pinned = ["ann", "bob"].map(|who| {
        let row = room.ask(who);
        room.finish(&row, format!("{who:*<30}").as_bytes()).unwrap();
        assert_eq!(room.memory.pictures().pin(&row.message, true, 9).unwrap(), Pinned::Done);
        row
    });
    let next = room.ask("cid");
    room.finish(&next, &[b'c'; 30]).unwrap();
    let kept = |read_scope: &ReadScope, row: &PictureRow| {
        room.memory.pictures().file(read_scope, &row.message).unwrap().is_some()
    };
    let there = ReadScope::in_place(azera(), &elsewhere, &ReadableScopes::default());
    assert!(kept(&there, &other) && kept(&in_hall(), &next));
    assert_eq!(pinned.map(|row| kept(&in_hall(), &row)), [false, true]);
}

#[test]
fn the_limits_are_known_before_anything_is_asked_for() {
    let room = Room::open();
    room.ask("ann");
    let limit = |who: &str, change: fn(&mut PictureQuota)| {
        let mut quota = ten();
        change(&mut quota);
        let (platform, scope) = (PlatformId::new("p").unwrap(), Scope::Realm(guild()));
        room.memory.pictures().limit(&person(who), (&platform, &scope), &quota).unwrap()
    };
    assert_eq!(limit("ann", |_| {}), None);
    assert_eq!(limit("ann", |quota| quota.waiting = 1), Some(Asked::QueueFull));
    assert_eq!(limit("ann", |quota| quota.waiting_by_person = 1), Some(Asked::PersonWaits));
    assert_eq!(limit("bob", |quota| quota.waiting_in_place = 1), Some(Asked::PlaceWaits));
    assert_eq!(limit("ann", |quota| quota.by_person = 1), Some(Asked::PersonHadEnough));
    assert_eq!(limit("bob", |quota| (quota.by_person, quota.waiting_by_person) = (1, 1)), None);
    assert_eq!(limit("bob", |quota| quota.in_place = 1), Some(Asked::PlaceHadEnough));
}
