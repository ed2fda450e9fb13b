//! The graph as an index over the memories: it is built for old records, mended, checked, and left out of backups.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use azera_memory::conformance::record;
use azera_memory::{
    Batch, Calendar, Durability, Entity, Forget, Label, Memory, NewChat, NewFact, Order, RamStore, ReadScope, Store,
    Table, relink, restore, same_names,
};
use azera_types::{
    Author, ChatId, PersonId, PersonaId, Place, PlaceKind, PlatformId, ReadableScopes, RealmId, Scope, Text, TimeZone,
    Timestamp,
};

const FACTS: [&str; 4] = [
    "My sister Miranda lives in Tallinn.",
    "Miranda works at Harbour Radio.",
    "Tallinn is cold, and Ben moved to Tallinn.",
    "we had soup",
];

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn realm() -> RealmId {
    RealmId::new("realm").unwrap()
}

fn chat() -> ChatId {
    ChatId::new("chat").unwrap()
}

fn calendar() -> Calendar {
    Calendar::new(at(1_000_000), TimeZone::UTC)
}

fn read_scope() -> ReadScope {
    read_scope_since(None)
}

fn read_scope_since(since: Option<Timestamp>) -> ReadScope {
    let place = Place { chat: chat(), kind: PlaceKind::Public(realm()), since };
    ReadScope::in_place(PersonaId::new("azera").unwrap(), &place, &ReadableScopes::default())
}

/// Stores a fact that Zoe said.
fn fact(memory: &Memory, second: i64, text: &str) -> azera_types::MemoryId {
    fact_of(memory, "Zoe", second, text)
}

/// Stores a fact that somebody said.
fn fact_of(memory: &Memory, who: &str, second: i64, text: &str) -> azera_types::MemoryId {
    let author = Author::Person { id: PersonId::new(who.to_lowercase()).unwrap(), name: who.to_owned() };
    let new = NewFact {
        persona: PersonaId::new("azera").unwrap(),
        chat: chat(),
        scope: Scope::Realm(realm()),
        author,
        text: Text::new(text),
        at: at(second),
    };
    memory.memories().store_fact(new).unwrap()
}

fn empty(store: &RamStore) -> Memory {
    let memory = record(Arc::new(store.clone()));
    let (platform, persona) = (PlatformId::new("test").unwrap(), PersonaId::new("azera").unwrap());
    memory.chats().open(NewChat { id: chat(), platform, title: None, persona }, at(0)).unwrap();
    memory
}

fn filled(store: &RamStore) -> Memory {
    let memory = empty(store);
    (1..).zip(FACTS).for_each(|(second, text)| {
        fact(&memory, second, text);
    });
    memory
}

fn rows(store: &RamStore) -> Vec<(Vec<u8>, Vec<u8>)> {
    store.scan(Table::Graph, b"", None, Order::Ascending, usize::MAX).unwrap()
}

fn remove_rows(store: &RamStore) {
    let mut batch = Batch::new();
    rows(store).into_iter().for_each(|(key, _)| {
        batch.remove(Table::Graph, key);
    });
    store.commit(batch, Durability::Flushed).unwrap();
}

/// Puts rows of many names into the index, all said in one second.
fn crowd(store: &RamStore, count: u64, second: i64) {
    let mut batch = Batch::new();
    for number in 0..count {
        let mut key = format!("azera\0realm:realm\0aab{number:06}\0\0").into_bytes();
        key.extend_from_slice(&(1_000_000 + number).to_be_bytes());
        batch.put(Table::Graph, key, (second * 1_000).to_be_bytes().to_vec());
    }
    store.commit(batch, Durability::Flushed).unwrap();
}

/// Returns the relations of a name in words.
fn about(memory: &Memory, name: &str) -> Vec<String> {
    phrases(&memory.graph().about(&read_scope(), name, &calendar()).unwrap())
}

fn phrases(entities: &[Entity]) -> Vec<String> {
    let links = entities.iter().flat_map(|entity| &entity.links);
    links.map(|link| link.label.phrase(&link.subject, &link.object)).collect()
}

#[test]
fn what_people_said_is_put_together() {
    let store = RamStore::new();
    let memory = filled(&store);
    let said = about(&memory, "miranda");
    for phrase in ["Zoe's sister is Miranda", "Miranda lives in Tallinn", "Miranda works at Harbour Radio"] {
        assert!(said.iter().any(|said| said == phrase), "{phrase} is not in {said:?}");
    }
    let entities = memory.graph().about(&read_scope(), "Miranda", &calendar()).unwrap();
    let link = entities[0].links.iter().find(|link| link.label == Label::Verb("lives in")).unwrap();
    assert_eq!((link.words.as_str(), link.said.0), ("Miranda lives in Tallinn", at(1)));
    let source = memory.memories().get(&read_scope(), link.sources[0]).unwrap().unwrap();
    assert_eq!(source.text.as_str(), FACTS[0]);
}

#[test]
fn spreading_reaches_what_shares_no_word_with_the_question() {
    let store = RamStore::new();
    let memory = filled(&store);
    let texts = |question: &str, until: i64| {
        let reached = memory.graph().reach(&read_scope(), question, at(until)).unwrap();
        let text =
            |(id, _): (azera_types::MemoryId, f32)| memory.memories().get(&read_scope(), id).unwrap().unwrap().text;
        reached.into_iter().map(|found| text(found).as_str().to_owned()).collect::<Vec<_>>()
    };
    assert!(texts("where does the sister of zoe work?", 9).contains(&FACTS[1].to_owned()));
    assert!(!texts("where does the sister of zoe work?", 1).contains(&FACTS[1].to_owned()));
    assert!(texts("where is nobody?", 9).is_empty());
}

#[test]
fn a_record_without_a_graph_gets_it_step_by_step() {
    let store = RamStore::new();
    filled(&store);
    let whole = rows(&store);
    assert!(!whole.is_empty());
    remove_rows(&store);
    let mut batch = Batch::new();
    batch.remove(Table::Meta, b"graph");
    store.commit(batch, Durability::Flushed).unwrap();
    let memory = record(Arc::new(store.clone()));
    assert_eq!(rows(&store), []);
    assert!(memory.check().unwrap().is_sound(), "what is not read yet is not missing");
    // A crash between two steps costs nothing.
    assert!(memory.graph().build(2).unwrap());
    let memory = record(Arc::new(store.clone()));
    while memory.graph().build(2).unwrap() {}
    assert_eq!(rows(&store), whole);
    assert!(!memory.graph().build(2).unwrap());
}

/// Version 1 did not yet depend on the word lists.
#[test]
fn rows_of_another_version_are_removed_at_once() {
    for version in [0, 1] {
        let store = RamStore::new();
        filled(&store);
        let whole = rows(&store);
        let mut batch = Batch::new();
        let key = b"azera\0realm:realm\0miranda the first\0\0\0\0\0\0\0\0\0\x01";
        batch.put(Table::Graph, key.to_vec(), b"odd".to_vec());
        batch.put(Table::Meta, b"graph", format!(r#"{{"version":{version},"after":null}}"#).into_bytes());
        store.commit(batch, Durability::Flushed).unwrap();
        let memory = record(Arc::new(store.clone()));
        while memory.graph().build(100).unwrap() {}
        assert_eq!(rows(&store), whole, "version {version}");
    }
}

/// A few messages can state a thousand names of one person. The work must not grow with the product of both.
#[test]
fn long_chains_of_names_for_one_person_are_put_together() {
    const MESSAGES: usize = 16;
    const NAMES: usize = 60;
    let memory = empty(&RamStore::new());
    let letter = |number: usize| char::from(b'a' + u8::try_from(number % 26).unwrap());
    let name =
        |number: usize| format!("Xq{}{}", letter(number / 26), letter(number)) + &letter(number / 676).to_string();
    for message in 0..MESSAGES {
        let first = message * NAMES;
        let chain: Vec<String> = (first + 1..first + NAMES).map(name).collect();
        let (begin, end) = (name(first), name(first + NAMES));
        let text = format!("I met Ann {begin} aka {} aka Ann {end}", chain.join(" aka "));
        fact(&memory, i64::try_from(message).unwrap(), &text);
    }
    let entities = memory.graph().about(&read_scope(), "Ann", &calendar()).unwrap();
    let [ann] = entities.as_slice() else { panic!("{entities:?}") };
    assert_eq!(ann.mentions, MESSAGES);
    assert_eq!(ann.other_names.len(), MESSAGES * NAMES);
}

#[test]
fn a_relation_stays_however_often_its_names_are_said() {
    let memory = filled(&RamStore::new());
    for second in 10..50 {
        fact(&memory, second, "Miranda likes soup.");
    }
    let entities = memory.graph().about(&read_scope(), "Miranda", &calendar()).unwrap();
    let said = phrases(&entities);
    assert!(said.contains(&"Zoe's sister is Miranda".to_owned()), "{said:?}");
    assert_eq!((entities[0].mentions, entities[0].named, entities[0].is_cut), (42, (at(1), at(49)), false));
    assert!(memory.graph().names(&read_scope()).unwrap().most.contains(&("Miranda".to_owned(), 42)));
    // Of a name in too many memories the newest are read, and the answer says so.
    for second in 50..500 {
        fact(&memory, second, "Miranda likes soup.");
    }
    let entities = memory.graph().about(&read_scope(), "Miranda", &calendar()).unwrap();
    assert_eq!((entities[0].mentions, entities[0].named.1, entities[0].is_cut), (400, at(499), true));
}

#[test]
fn a_name_said_once_is_found_beside_a_shorter_one_said_often() {
    let memory = filled(&RamStore::new());
    fact(&memory, 10, "Miranda Lee moved to Oslo.");
    for second in 11..500 {
        fact(&memory, second, "Miranda likes soup.");
    }
    assert!(about(&memory, "Miranda Lee").contains(&"Miranda Lee moved to Oslo".to_owned()));
}

#[test]
fn what_was_said_before_a_horizon_changes_no_answer() {
    let answers = |hidden: &dyn Fn(&RamStore, &Memory)| {
        let store = RamStore::new();
        let memory = empty(&store);
        (101..).zip(FACTS).for_each(|(second, text)| {
            fact(&memory, second, text);
        });
        hidden(&store, &memory);
        let read_scope = read_scope_since(Some(at(100)));
        let names = memory.graph().names(&read_scope).unwrap();
        let about =
            ["Miranda", "Tallinn", "Zoe"].map(|name| memory.graph().about(&read_scope, name, &calendar()).unwrap());
        let reached = memory.graph().reach(&read_scope, "where does the sister of zoe work?", at(900)).unwrap();
        (names, about, reached)
    };
    let with = answers(&|store, memory| {
        for second in 1..60 {
            fact(memory, second, &format!("Miranda knows Rosalind, and \"Miranda {second}\" too."));
        }
        crowd(store, 21_000, 50);
    });
    let without = answers(&|_, memory| {
        for second in 1..60 {
            fact(memory, second, "we had soup");
        }
    });
    assert!(without.1.iter().all(|entities| !entities.is_empty()) && !without.2.is_empty());
    assert_eq!(with.0.most, without.0.most);
    assert_eq!(with, without);
}

#[test]
fn a_name_late_in_the_alphabet_is_found_among_too_many_to_count() {
    let store = RamStore::new();
    let memory = filled(&store);
    assert!(!memory.graph().names(&read_scope()).unwrap().is_cut);
    fact(&memory, 9, &same_names("Randy", "Miranda"));
    fact(&memory, 9, "Robert Lee works at the harbour with Carl.");
    crowd(&store, 21_000, 50);
    for name in ["Miranda", "Randy"] {
        assert!(about(&memory, name).contains(&"Miranda lives in Tallinn".to_owned()), "{name}");
    }
    for name in ["Robert", "Bob"] {
        assert!(!about(&memory, name).is_empty(), "{name}");
    }
    assert!(memory.graph().about(&read_scope(), "Miranda", &calendar()).unwrap()[0].is_cut);
    assert!(memory.graph().names(&read_scope()).unwrap().is_cut);
    let new = memory.graph().new_names(&read_scope(), at(0), 5).unwrap();
    assert!(new.is_cut && new.names.is_empty(), "nobody can tell which are new: {new:?}");
}

#[test]
fn who_speaks_under_a_name_hides_nobody_else_of_that_name() {
    let memory = empty(&RamStore::new());
    fact_of(&memory, "Ben", 1, "I think Zoe lives in Riga.");
    let cold = fact_of(&memory, "Ben", 2, "Riga is cold.");
    for second in 3..30 {
        fact(&memory, second, "I met Carl today.");
    }
    let reached = memory.graph().reach(&read_scope(), "where is zoe?", at(90)).unwrap();
    assert!(reached.iter().any(|(id, _)| *id == cold), "{reached:?}");
}

#[test]
fn damage_is_found_and_mended() {
    let store = RamStore::new();
    let memory = filled(&store);
    while memory.graph().build(100).unwrap() {}
    let whole = rows(&store);
    assert!(memory.check().unwrap().is_sound());
    remove_rows(&store);
    let found = memory.check().unwrap();
    assert_eq!(found.broken.get("names missing from the graph"), Some(&whole.len()), "{found:?}");
    relink(&store).unwrap();
    assert_eq!(rows(&store), whole);
    assert!(record(Arc::new(store.clone())).check().unwrap().is_sound());
}

#[test]
fn a_restored_record_has_its_graph_again() {
    let store = RamStore::new();
    let memory = filled(&store);
    let mut batches = Vec::new();
    memory
        .record()
        .dump(&mut |batch| {
            batches.push(batch);
            Ok(())
        })
        .unwrap();
    let restored = RamStore::new();
    restore::<azera_memory::Error>(&restored, |take| batches.into_iter().try_for_each(take)).unwrap();
    assert_eq!(rows(&restored), [], "a backup holds no graph");
    let memory = record(Arc::new(restored.clone()));
    assert_eq!(rows(&restored).len(), rows(&store).len());
    assert!(about(&memory, "Miranda").contains(&"Miranda lives in Tallinn".to_owned()));
}

#[test]
fn a_forgotten_memory_takes_its_rows_along() {
    let store = RamStore::new();
    let memory = filled(&store);
    let id = fact(&memory, 9, "Rosalind knows Miranda.");
    assert!(about(&memory, "Rosalind").contains(&"Rosalind knows Miranda".to_owned()));
    memory.forgetting().forget(&Forget::Memory(id), false).unwrap();
    assert!(memory.graph().about(&read_scope(), "Rosalind", &calendar()).unwrap().is_empty());
    let left = rows(&store).into_iter().filter(|(key, value)| {
        let holds = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains("rosalind");
        holds(key) || holds(value)
    });
    assert_eq!(left.count(), 0);
}

/// Returns the relations of a name in words, each with the day until which it held.
fn ends(memory: &Memory, name: &str) -> Vec<(String, Option<i64>)> {
    let entities = memory.graph().about(&read_scope(), name, &calendar()).unwrap();
    let links = entities.into_iter().flat_map(|entity| entity.links);
    links
        .map(|link| (link.label.phrase(&link.subject, &link.object), link.until.map(|(from, _)| from.as_second())))
        .collect()
}

#[test]
fn a_relation_ends_once_all_who_said_it_said_something_else_instead() {
    let store = RamStore::new();
    let memory = empty(&store);
    fact(&memory, 1, "I live in Tallinn.");
    let older = fact(&memory, 2, "I live in Tallinn.");
    let newer = fact(&memory, 3, "I moved to Riga.");
    let zoe = PersonId::new("zoe").unwrap();
    let lives = "Zoe lives in Tallinn".to_owned();
    let of = |links: &[(String, Option<i64>)]| links.iter().find(|(said, _)| *said == lives).unwrap().1;
    assert_eq!(of(&ends(&memory, "Zoe")), None);
    memory.memories().replace(&read_scope(), &zoe, older, Some(newer)).unwrap().unwrap();
    let ended = ends(&memory, "Zoe");
    assert_eq!(of(&ended), Some(3), "what she said in the same way before ended, too");
    assert_eq!(ended.last().unwrap().0, lives, "what holds comes first: {ended:?}");
    // Somebody else says that it still holds.
    let ben = fact_of(&memory, "Ben", 4, "Zoe lives in Tallinn.");
    assert_eq!(of(&ends(&memory, "Zoe")), None);
    memory.forgetting().forget(&Forget::Memory(ben), true).unwrap();
    assert_eq!(of(&ends(&memory, "Zoe")), Some(3));
    // She moved back.
    let again = fact(&memory, 5, "I live in Tallinn.");
    assert_eq!(of(&ends(&memory, "Zoe")), None);
    memory.forgetting().forget(&Forget::Memory(again), true).unwrap();
    memory.forgetting().forget(&Forget::Memory(newer), true).unwrap();
    assert_eq!(of(&ends(&memory, "Zoe")), None, "without the newer statement it holds again");
}

/// With a newer statement a person takes back only what it does not say again.
#[test]
fn a_relation_that_the_newer_statement_repeats_holds_on() {
    let store = RamStore::new();
    let memory = empty(&store);
    let older = fact(&memory, 1, "I live in Tallinn. I work at Lidl.");
    let new = NewFact {
        persona: PersonaId::new("azera").unwrap(),
        chat: chat(),
        scope: Scope::Realm(realm()),
        author: Author::Person { id: PersonId::new("zoe").unwrap(), name: "Zoe".to_owned() },
        text: Text::new("I live in Tallinn. I work at Tesco."),
        at: at(2),
    };
    let zoe = PersonId::new("zoe").unwrap();
    memory.memories().update(&read_scope(), &zoe, older, new).unwrap().unwrap();
    let ended = ends(&memory, "Zoe");
    let of = |said: &str| ended.iter().find(|(known, _)| known == said).map(|(_, until)| *until);
    assert_eq!(of("Zoe lives in Tallinn"), Some(None), "{ended:?}");
    assert_eq!(of("Zoe works at Lidl"), Some(Some(2)), "{ended:?}");
    assert_eq!(of("Zoe works at Tesco"), Some(None), "{ended:?}");
}
