//! Ratings of memories are bounded, and go with their memory, their person and their place.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use azera_memory::conformance::record;
use azera_memory::{
    DataSubject, Forget, Memory, NewChat, NewFact, NewReply, Order, RamStore, ReadScope, Store, Table, WhyHit, WhyRow,
};
use azera_types::{
    Author, ChatId, Inbound, MemoryId, MessageId, PersonId, PersonaId, Place, PlaceKind, PlatformId, ReadableScopes,
    RealmId, Scope, Text, Timestamp,
};

fn person(name: &str) -> PersonId {
    PersonId::new(name).unwrap()
}

fn persona() -> PersonaId {
    PersonaId::new("azera").unwrap()
}

fn in_dm(name: &str, realm: &RealmId) -> ReadScope {
    let place = Place { chat: ChatId::new("dm").unwrap(), kind: PlaceKind::Dm(person(name)), since: None };
    ReadScope::in_place(
        persona(),
        &place,
        &ReadableScopes { realms: vec![(realm.clone(), None)], ..ReadableScopes::default() },
    )
}

fn fact(memory: &Memory, who: &str, scope: Scope) -> MemoryId {
    let chat = ChatId::new("chat").unwrap();
    let platform = PlatformId::new("test").unwrap();
    let new = NewChat { id: chat.clone(), platform, title: None, persona: persona() };
    memory.chats().open(new, Timestamp::UNIX_EPOCH).unwrap();
    let author = Author::Person { id: person(who), name: who.into() };
    let fact =
        NewFact { persona: persona(), chat, scope, author, text: Text::new("A boat."), at: Timestamp::UNIX_EPOCH };
    memory.memories().store_fact(fact).unwrap()
}

/// Lets Ann ask something in a channel of a realm. Returns the answer, which rests on a memory.
fn answered(memory: &Memory, realm: &RealmId, chat: &str, recalled: MemoryId) -> MessageId {
    let (now, platform) = (Timestamp::UNIX_EPOCH, PlatformId::new("test").unwrap());
    let (id, chat) = (MessageId::new(format!("q-{chat}")).unwrap(), ChatId::new(chat).unwrap());
    let new = NewChat { id: chat.clone(), platform: platform.clone(), title: None, persona: persona() };
    memory.chats().open(new, now).unwrap();
    let inbound = Inbound {
        id: id.clone(),
        chat,
        person: person("ann"),
        name: "ann".into(),
        text: "what floats?".into(),
        at: now,
        parts: Vec::new(),
        mentions_bot: true,
        mentions: Vec::new(),
        reply_to: None,
    };
    memory.turns().receive(&platform, &inbound, Scope::Realm(realm.clone()), now).unwrap();
    let reply = MessageId::new(format!("{id}~r0")).unwrap();
    let hit = WhyHit { memory: recalled, score: 1.0, signals: Vec::new(), shown: Vec::new(), same: Vec::new() };
    let new = NewReply {
        id: reply.clone(),
        to: id,
        platform,
        asker: person("ann"),
        persona: persona(),
        persona_name: "Azera".into(),
        text: "A boat.".into(),
        at: now,
        from: now,
        source_scopes: Vec::new(),
        built_on: Vec::new(),
        built_on_facts: Vec::new(),
        memorable: false,
        state: serde_json::Value::Null,
        help: String::new(),
        why: WhyRow {
            reply: reply.clone(),
            recalled: vec![hit],
            missing: Vec::new(),
            fragments: Vec::new(),
            model: "none".into(),
            seed: 0,
            usage: serde_json::Value::Null,
            recall_ms: 0.0,
            shown: None,
        },
        replaces: None,
    };
    memory.turns().reply(new).unwrap();
    reply
}

/// Open channels of a server are one place, so one rating holds the thumbs of all of them.
#[test]
fn a_forgotten_channel_takes_its_thumbs_along_and_no_others() {
    let memory = record(Arc::new(RamStore::new()));
    let realm = RealmId::new("realm").unwrap();
    let recalled = fact(&memory, "ann", Scope::Realm(realm.clone()));
    let now = Timestamp::UNIX_EPOCH;
    let thumbs = || {
        let export = memory.export(&DataSubject(person("ann")), 0).unwrap();
        let ratings = export["ratings"].as_array().unwrap().clone();
        let thumbs = ratings.into_iter().flat_map(|rating| rating["thumbs"].as_array().unwrap().clone());
        thumbs.map(|thumb| thumb["about"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let helpful = || memory.export(&DataSubject(person("ann")), 0).unwrap()["ratings"][0]["helpful"].clone();
    let place = |chat: &ChatId| {
        let place = Place { chat: chat.clone(), kind: PlaceKind::Public(realm.clone()), since: None };
        ReadScope::in_place(persona(), &place, &ReadableScopes::default())
    };
    let forget = |chat: &str| {
        memory.forgetting().forget(&Forget::Chat(ChatId::new(chat).unwrap()), true).unwrap();
        assert!(memory.check().unwrap().is_sound());
    };
    for (chat, is_up) in [("square", true), ("market", false), ("garden", false)] {
        let reply = answered(&memory, &realm, chat, recalled);
        let chat = ChatId::new(chat).unwrap();
        let rated = memory.memories().rate_reply(&place(&chat), &chat, &reply, &person("ann"), is_up, now).unwrap();
        assert_eq!(rated, Some(1));
    }
    // What she says of the memory itself, in a third channel, keeps the thumbs.
    let garden = ChatId::new("garden").unwrap();
    memory.memories().rate(&place(&garden), &garden, recalled, &person("ann"), Some(false), now).unwrap().unwrap();
    assert_eq!((thumbs(), helpful()), (vec!["q-square".into(), "q-market".into(), "q-garden".into()], false.into()));
    forget("market");
    assert_eq!((thumbs(), helpful()), (vec!["q-square".into(), "q-garden".into()], false.into()));
    forget("garden");
    assert_eq!((thumbs(), helpful()), (vec!["q-square".to_owned()], true.into()), "the thumb in the square counts");
    forget("square");
    assert_eq!(thumbs(), [""; 0]);
}

#[test]
fn a_rating_goes_with_its_memory_and_its_person() {
    let store = RamStore::new();
    let memory = record(Arc::new(store.clone()));
    let realm = RealmId::new("realm").unwrap();
    let ratings = || store.scan(Table::Ratings, b"", None, Order::Ascending, 99).unwrap().len() / 2;
    let now = Timestamp::UNIX_EPOCH;
    let dm = ChatId::new("dm").unwrap();
    let rate = |who: &str, id, helpful| {
        memory.memories().rate(&in_dm(who, &realm), &dm, id, &person(who), helpful, now).unwrap().is_some()
    };
    let shared = fact(&memory, "ann", Scope::Realm(realm.clone()));
    let own = fact(&memory, "ann", Scope::Dm(person("ann")));
    assert!(rate("ann", shared, Some(true)) && rate("ann", own, Some(false)) && rate("ben", shared, Some(true)));
    assert!(!rate("ben", own, Some(true)), "Ben may not read it");
    assert!(rate("ann", shared, Some(false)), "the last word counts");
    assert_eq!(ratings(), 3);
    let export = memory.export(&DataSubject(person("ann")), 0).unwrap();
    assert_eq!(export["ratings"].as_array().unwrap().len(), 2, "{export}");
    assert!(rate("ann", own, None));
    assert_eq!(ratings(), 2);
    assert!(memory.check().unwrap().is_sound());
    memory.forgetting().forget(&Forget::Person(person("ben")), true).unwrap();
    assert_eq!(ratings(), 1, "Ben's is gone, in the memory of Ann");
    memory.forgetting().forget(&Forget::Memory(shared), true).unwrap();
    assert_eq!(ratings(), 0);
    assert!(memory.check().unwrap().is_sound());
}

/// A correction is undone by forgetting the newer statement, and nothing of that remains.
#[test]
fn a_correction_goes_with_the_newer_statement() {
    let store = RamStore::new();
    let memory = record(Arc::new(store.clone()));
    let realm = RealmId::new("realm").unwrap();
    let older = fact(&memory, "ann", Scope::Realm(realm.clone()));
    let here = in_dm("ann", &realm);
    let said = |text: &str, at: i64| NewFact {
        persona: persona(),
        chat: ChatId::new("chat").unwrap(),
        scope: Scope::Realm(realm.clone()),
        author: Author::Person { id: person("ann"), name: "ann".into() },
        text: Text::new(text),
        at: Timestamp::from_second(at).unwrap(),
    };
    let early = memory.memories().update(&here, &person("ann"), older, said("A ship.", -1)).unwrap();
    assert!(early.is_err(), "{early:?}");
    let other = memory.memories().update(&in_dm("ben", &realm), &person("ben"), older, said("A raft.", 1)).unwrap();
    assert!(other.is_err(), "{other:?}");
    let memories = || store.scan(Table::Memories, b"", None, Order::Ascending, 99).unwrap();
    assert_eq!(memories().len(), 1, "what replaces nothing is not stored");
    let newer = memory.memories().update(&here, &person("ann"), older, said("A ship.", 1)).unwrap().unwrap();
    let replaced = || {
        let export = memory.export(&DataSubject(person("ann")), 0).unwrap();
        let all = export["memories"].as_array().unwrap().clone();
        all.into_iter().find(|memory| memory["id"] == older.to_string()).unwrap()["replaced"].clone()
    };
    assert_eq!(replaced()["by"], newer.to_string());
    memory.forgetting().forget(&Forget::Memory(newer), true).unwrap();
    assert!(replaced().is_null(), "{}", replaced());
    let work = memory.indexing().work(99).unwrap().into_iter();
    let embedded = work.filter_map(|work| work.with_vectors(&mut std::iter::repeat(vec![1.0]))).collect();
    memory.indexing().index(embedded).unwrap();
    assert!(memory.forgetting().scrub().unwrap());
    let bytes = memories().into_iter().flat_map(|(_, value)| value).collect::<Vec<u8>>();
    assert!(!String::from_utf8(bytes).unwrap().contains("replaced"));
}
