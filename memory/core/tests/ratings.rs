//! Ratings of memories are bounded, and go with their memory, their person and their place.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use azera_memory::conformance::record;
use azera_memory::{DataSubject, Forget, Memory, NewChat, NewFact, Order, RamStore, ReadScope, Store, Table};
use azera_types::{
    Author, ChatId, MemoryId, PersonId, PersonaId, Place, PlaceKind, PlatformId, ReadableScopes, RealmId, Scope, Text,
    Timestamp,
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
