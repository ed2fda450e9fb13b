//! What people asked to keep is found by its person and its label, without the memories of others.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use azera_memory::conformance::record;
use azera_memory::{
    Batch, Durability, Forget, KeptPage, Memory, NewChat, NewFact, Order, RamStore, ReadScope, Store, Table,
};
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

fn realm() -> RealmId {
    RealmId::new("realm").unwrap()
}

fn reading(kind: PlaceKind) -> ReadScope {
    let place = Place { chat: ChatId::new("hall").unwrap(), kind, since: None };
    ReadScope::in_place(persona(), &place, &ReadableScopes::default())
}

struct World {
    store: RamStore,
    memory: Memory,
}

impl World {
    fn new() -> Self {
        let store = RamStore::new();
        let memory = record(Arc::new(store.clone()));
        let platform = PlatformId::new("test").unwrap();
        let chat = NewChat { id: ChatId::new("hall").unwrap(), platform, title: None, persona: persona() };
        memory.chats().open(chat, Timestamp::UNIX_EPOCH).unwrap();
        Self { store, memory }
    }

    fn keep(&self, who: &str, scope: Scope, text: &str) -> MemoryId {
        let author = Author::Person { id: person(who), name: who.into() };
        let chat = ChatId::new("hall").unwrap();
        let fact =
            NewFact { persona: persona(), chat, scope, author, text: Text::new(text), at: Timestamp::UNIX_EPOCH };
        self.memory.memories().store_fact(fact).unwrap()
    }

    fn page(&self, who: &str, label: Option<&str>, before: Option<MemoryId>, most: (usize, usize)) -> KeptPage {
        let read_scope = reading(PlaceKind::Public(realm()));
        self.memory.memories().kept_within(&read_scope, &person(who), label, before, most).unwrap()
    }

    fn rows(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.store.scan(Table::Kept, b"", None, Order::Ascending, usize::MAX).unwrap()
    }
}

fn texts(page: &KeptPage) -> Vec<&str> {
    page.facts.iter().map(|fact| fact.text.as_str()).collect()
}

#[test]
fn facts_are_looked_for_among_those_of_their_person_and_label() {
    let world = World::new();
    let here = Scope::Realm(realm());
    let first = world.keep("zoe", here.clone(), "Checkpoint \"Paint\"\nthe hull");
    for number in 0..30 {
        world.keep("ann", here.clone(), &format!("Checkpoint \"of Ann\" {number}"));
        world.keep("zoe", here.clone(), &format!("a boat has the number {number}"));
    }
    world.keep("zoe", here.clone(), "Checkpoint \"Row\"\nthe oars");
    world.keep("zoe", Scope::Dm(person("zoe")), "Checkpoint \"secret\"");
    let all = world.page("zoe", Some("Checkpoint"), None, (9, 99));
    assert_eq!(texts(&all), ["Checkpoint \"Row\"\nthe oars", "Checkpoint \"Paint\"\nthe hull"]);
    assert_eq!((all.looked, all.rest), (3, None), "one may not be read here");
    let own = reading(PlaceKind::Dm(person("zoe")));
    let own = world.memory.memories().kept_within(&own, &person("zoe"), Some("Checkpoint"), None, (9, 99)).unwrap();
    assert_eq!(texts(&own), ["Checkpoint \"secret\""], "the others may not be read there now");
    // The bounds are told.
    let one = world.page("zoe", Some("Checkpoint"), None, (1, 99));
    assert_eq!((texts(&one), one.looked), (vec!["Checkpoint \"Row\"\nthe oars"], 2));
    let next = world.page("zoe", Some("Checkpoint"), one.rest, (9, 99));
    assert_eq!((next.facts.len(), next.facts[0].id, next.rest), (1, first, None));
    let few = world.page("zoe", None, None, (99, 10));
    assert_eq!((few.facts.len(), few.looked, few.rest.is_some()), (9, 10, true));
    assert_eq!(world.page("zoe", None, None, (99, 99)).facts.len(), 32);
    assert!(world.page("zoe", Some("Check"), None, (9, 99)).facts.is_empty(), "a label is a whole word");
    assert!(world.page("ben", Some("Checkpoint"), None, (9, 99)).facts.is_empty());
}

#[test]
fn forgetting_leaves_no_row() {
    let world = World::new();
    let kept = world.keep("zoe", Scope::Realm(realm()), "Heliotrope \"Paint\"");
    let other = world.keep("zoe", Scope::Realm(realm()), "a boat");
    world.keep("ann", Scope::Realm(realm()), "Heliotrope \"Row\"");
    assert_eq!(world.rows().len(), 5);
    world.memory.forgetting().forget(&Forget::Memory(kept), false).unwrap();
    assert_eq!(world.rows().len(), 3);
    world.memory.forgetting().forget(&Forget::Person(person("ann")), false).unwrap();
    let left = world.rows();
    assert!(!left.iter().any(|(key, _)| String::from_utf8_lossy(key).contains("Heliotrope")), "no label stays");
    assert_eq!(left.len(), 1);
    world.memory.forgetting().forget(&Forget::Memory(other), false).unwrap();
    assert!(world.rows().is_empty() && world.memory.check().unwrap().is_sound());
}

/// Layout 8 has no index of kept facts.
#[test]
fn a_record_of_layout_8_gets_its_rows_when_it_is_opened() {
    let world = World::new();
    world.keep("zoe", Scope::Realm(realm()), "Checkpoint \"Paint\"");
    world.keep("ann", Scope::Realm(realm()), "a boat");
    let before = world.rows();
    assert_eq!(before.len(), 3);
    let mut old = Batch::new();
    before.iter().for_each(|(key, _)| {
        old.remove(Table::Kept, key.clone());
    });
    old.remove(Table::Meta, b"kept".to_vec());
    old.put(Table::Meta, b"schema".to_vec(), br#"{"schema":8}"#.to_vec());
    world.store.commit(old, Durability::Flushed).unwrap();
    assert!(!world.memory.check().unwrap().is_sound(), "the check finds what is missing");
    let opened = record(Arc::new(world.store.clone()));
    assert_eq!(world.rows(), before);
    assert!(opened.check().unwrap().is_sound());
}
