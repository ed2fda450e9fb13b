//! A search finds what was said last, before it is indexed, and only for those who may see it.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::HashSet;
use std::sync::Arc;

use azera_memory::conformance::record;
use azera_memory::{Calendar, Limits, Memory, NewFact, Query, RamStore, ReadScope};
use azera_types::{Author, ChatId, PersonId, PersonaId, Place, PlaceKind, ReadableScopes, Text, TimeZone, Timestamp};

const NOW: i64 = 1_000;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Returns a private chat of a few people.
fn place(name: &str) -> Place {
    let kind = PlaceKind::Private { realm: None, all_in_realm: false, realm_since: None };
    Place { chat: ChatId::new(name).unwrap(), kind, since: None }
}

/// Stores a fact that Ann has kept in a chat.
fn keep(memory: &Memory, chat: &str, text: &str, second: i64) {
    let place = place(chat);
    let fact = NewFact {
        persona: PersonaId::new("azera").unwrap(),
        scope: place.scope(),
        chat: place.chat,
        author: Author::Person { id: PersonId::new("ann").unwrap(), name: "Ann".into() },
        text: text.into(),
        at: at(second),
    };
    memory.memories().store_fact(fact).unwrap();
}

/// Returns what a search finds in a chat, although nothing is indexed.
fn search(memory: &Memory, chat: &str, words: &str, results: usize) -> Vec<String> {
    let read_scope = ReadScope::in_place(PersonaId::new("azera").unwrap(), &place(chat), &ReadableScopes::default());
    let calendar = Calendar::new(at(NOW), TimeZone::UTC);
    let ann = PersonId::new("ann").unwrap();
    let question = memory.recall().question(&read_scope, &Text::new(words), &ann, "Azera", &calendar).unwrap();
    let query = Query {
        question,
        vector: None,
        event_vector: None,
        asker: Some(ann),
        now: at(NOW),
        include_latest: true,
        exclude: HashSet::new(),
        limits: Limits::default(),
        results,
    };
    let hits = memory.recall().find_unindexed(&read_scope, &query).unwrap();
    hits.into_iter().map(|hit| hit.snippet.as_str().to_owned()).collect()
}

#[test]
fn what_waits_to_be_indexed_is_found_by_its_words() {
    let memory = record(Arc::new(RamStore::new()));
    keep(&memory, "porch", "the spare key is under the blue pot", 10);
    keep(&memory, "porch", "the key of the boathouse hangs by the spare oars", 20);
    keep(&memory, "porch", "lunch is at noon", 30);
    let pot = "the spare key is under the blue pot";
    let oars = "the key of the boathouse hangs by the spare oars";
    assert_eq!(search(&memory, "porch", "where is the spare key?", 10), [oars, pot], "the newest first");
    assert_eq!(search(&memory, "porch", "blue pot key", 10), [pot], "at least half of the words");
    assert_eq!(search(&memory, "porch", "spare keys", 1), [oars]);
    assert_eq!(search(&memory, "porch", "where is it?", 10), [""; 0], "no word tells what is wanted");
}

#[test]
fn what_waits_to_be_indexed_is_found_only_where_it_may_be_shown() {
    let memory = record(Arc::new(RamStore::new()));
    keep(&memory, "den", "the spare key is under the blue pot", 10);
    assert_eq!(search(&memory, "den", "spare key", 10).len(), 1);
    assert_eq!(search(&memory, "porch", "spare key", 10), [""; 0]);
}
