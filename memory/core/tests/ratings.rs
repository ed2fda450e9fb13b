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
    let ratings = || store.scan(Table::Ratings, b"", None, Order::Ascending, 99).unwrap().len();
    let now = Timestamp::UNIX_EPOCH;
    let rate = |who: &str, id, helpful| {
        memory.memories().rate(&in_dm(who, &realm), id, &person(who), helpful, now).unwrap().is_some()
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
