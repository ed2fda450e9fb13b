//! A search finds what was said last, before it is indexed, and only for those who may see it.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::HashSet;
use std::sync::Arc;

use azera_memory::conformance::record;
use azera_memory::{Calendar, Forget, Limits, Memory, NewFact, Query, RamStore, ReadScope};
use azera_types::{
    Author, ChatId, MemoryId, PersonId, PersonaId, Place, PlaceKind, ReadableScopes, Text, TimeZone, Timestamp,
};

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
    keep_at(memory, chat, text, at(second));
}

fn keep_at(memory: &Memory, chat: &str, text: &str, at: Timestamp) -> MemoryId {
    let place = place(chat);
    let fact = NewFact {
        persona: PersonaId::new("azera").unwrap(),
        scope: place.scope(),
        chat: place.chat,
        author: Author::Person { id: PersonId::new("ann").unwrap(), name: "Ann".into() },
        text: text.into(),
        at,
    };
    memory.memories().store_fact(fact).unwrap()
}

fn read_scope(chat: &str) -> ReadScope {
    ReadScope::in_place(PersonaId::new("azera").unwrap(), &place(chat), &ReadableScopes::default())
}

/// Returns what a search finds in a chat, although nothing is indexed.
fn search(memory: &Memory, chat: &str, words: &str, results: usize) -> Vec<String> {
    search_at(memory, chat, words, results, at(NOW))
}

fn search_at(memory: &Memory, chat: &str, words: &str, results: usize, now: Timestamp) -> Vec<String> {
    let read_scope = read_scope(chat);
    let calendar = Calendar::new(now, TimeZone::UTC);
    let ann = PersonId::new("ann").unwrap();
    let question = memory.recall().question(&read_scope, &Text::new(words), &ann, "Azera", &calendar).unwrap();
    let query = Query {
        question,
        vector: None,
        event_vector: None,
        asker: Some(ann),
        now,
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

#[test]
fn what_was_known_at_a_time_is_what_was_said_before_its_end() {
    let memory = record(Arc::new(RamStore::new()));
    let time = |text: &str| text.parse::<Timestamp>().unwrap();
    let (blue, red) = ("the spare key is under the blue pot", "the spare key is under the red pot");
    keep_at(&memory, "porch", blue, time("2026-05-10T10:00:00Z"));
    keep_at(&memory, "porch", red, time("2026-08-01T10:00:00Z"));
    let ask = |question: &str| search_at(&memory, "porch", question, 10, time("2026-09-01T10:00:00Z"));
    assert_eq!(ask("where is the spare key?"), [red, blue]);
    assert_eq!(ask("what did you know about the spare key in June?"), [blue]);
    assert_eq!(ask("what did you know about the spare key last month?"), [red, blue]);
    assert_eq!(ask("what did you know about the spare key in April?"), [""; 0]);
    // These are about a time in which something happened.
    for talk in ["we knew the spare key was under the pot in April", "the spare key was known in April"] {
        assert_eq!(ask(talk), [red, blue], "{talk}");
    }
    for known in ["what did we know", "what was known", "was wussten wir", "que savais-tu"] {
        assert_eq!(ask(&format!("{known} about the spare key under the blue pot in June 2026?")), [blue], "{known}");
    }
}

#[test]
fn a_statement_may_hold_since_before_it_was_known() {
    let memory = record(Arc::new(RamStore::new()));
    let said = "2026-08-03T10:00:00Z".parse::<Timestamp>().unwrap();
    let calendar = Calendar::new("2026-11-01T10:00:00Z".parse().unwrap(), TimeZone::UTC);
    for (text, want) in [
        ("I have lived in Hull since May", Some("2026-05-01")),
        ("Ich wohne seit Mai in Hull", Some("2026-05-01")),
        ("Since May I work as a welder", Some("2026-05-01")),
        ("Since May I play badminton twice a week", Some("2026-05-01")),
        ("Dr Weiss has been my dentist since May", Some("2026-05-01")),
        ("I have worked as a librarian since May", Some("2026-05-01")),
        ("I have studied nursing since May", Some("2026-05-01")),
        ("Since May I've been to Hull", None),
        ("I've been in Hull twice since May", None),
        ("I have had the boat since 2019", Some("2019-01-01")),
        ("I live in Hull now, and I've had a cold since May", None),
        ("My car is a Golf from 2012", None),
        ("From September I work at Lidl", None),
        ("I moved to Hull in May", None),
        ("I have a boat", None),
        ("Have I lived in Hull since May?", None),
    ] {
        let id = keep_at(&memory, "porch", text, said);
        let row = memory.memories().get(&read_scope("porch"), id).unwrap().unwrap();
        let from = row.valid_from(&calendar).map(|(from, _)| from.strftime("%F").to_string());
        assert_eq!(from.as_deref(), want, "{text}");
    }
}

/// Puts a newer statement of Ann in the place of an older one, in the same chat.
fn update(memory: &Memory, chat: &str, older: MemoryId, text: &str, at: Timestamp) -> MemoryId {
    let (place, ann) = (place(chat), PersonId::new("ann").unwrap());
    let fact = NewFact {
        persona: PersonaId::new("azera").unwrap(),
        scope: place.scope(),
        chat: place.chat,
        author: Author::Person { id: ann.clone(), name: "Ann".into() },
        text: text.into(),
        at,
    };
    memory.memories().update(&read_scope(chat), &ann, older, fact).unwrap().unwrap()
}

/// Returns since when and until when a memory holds, by days, and what replaced it.
fn validity(memory: &Memory, chat: &str, id: MemoryId) -> (Option<String>, Option<String>, Option<MemoryId>) {
    let calendar = Calendar::new("2026-11-01T10:00:00Z".parse().unwrap(), TimeZone::UTC);
    let row = memory.memories().get(&read_scope(chat), id).unwrap().unwrap();
    let found = memory.memories().validity(&read_scope(chat), &row, &calendar).unwrap();
    let day = |when: Option<(Timestamp, Timestamp)>| when.map(|(from, _)| from.strftime("%F").to_string());
    (day(found.since), day(found.until), found.replaced_by)
}

#[test]
fn a_statement_holds_until_another_replaces_it_and_again_once_that_is_forgotten() {
    let memory = record(Arc::new(RamStore::new()));
    let (june, august) = ("2026-06-10T10:00:00Z".parse().unwrap(), "2026-08-03T10:00:00Z".parse().unwrap());
    let older = keep_at(&memory, "porch", "the spare key has been under the blue pot since 2019", june);
    assert_eq!(validity(&memory, "porch", older), (Some("2019-01-01".into()), None, None));
    let newer = update(&memory, "porch", older, "the spare key is under the red pot", august);
    let ended = (Some("2019-01-01".into()), Some("2026-08-03".into()), Some(newer));
    assert_eq!(validity(&memory, "porch", older), ended);
    assert_eq!(validity(&memory, "porch", newer), (None, None, None));
    // What waits to be indexed tells it, too.
    let place = read_scope("porch");
    let calendar = Calendar::new(august, TimeZone::UTC);
    let ann = PersonId::new("ann").unwrap();
    let question = memory.recall().question(&place, &Text::new("spare key"), &ann, "Azera", &calendar).unwrap();
    let query = Query {
        question,
        vector: None,
        event_vector: None,
        asker: Some(ann),
        now: august,
        include_latest: true,
        exclude: HashSet::new(),
        limits: Limits::default(),
        results: 10,
    };
    let hits = memory.recall().find_unindexed(&place, &query).unwrap();
    let by = |id| hits.iter().find(|hit| hit.memory.id == id).unwrap().validity.replaced_by;
    assert_eq!((by(older), by(newer)), (Some(newer), None));
    memory.forgetting().forget(&Forget::Memory(newer), true).unwrap();
    assert_eq!(validity(&memory, "porch", older), (Some("2019-01-01".into()), None, None));
}

/// What "since" is about decides: closing an older statement too early is worse than closing it when the newer one was
/// made.
#[test]
fn a_statement_ends_when_the_newer_one_says_that_it_began() {
    let memory = record(Arc::new(RamStore::new()));
    let time = |text: &str| text.parse::<Timestamp>().unwrap();
    let (january, june, august) =
        (time("2026-01-10T10:00:00Z"), time("2026-06-10T10:00:00Z"), time("2026-08-03T10:00:00Z"));
    let (may_20, may, today) = (time("2026-05-20T10:00:00Z"), "2026-05-01", "2026-08-03");
    for (said, older, newer, want) in [
        (january, "I live in Oslo", "I have lived in Hull since May", may),
        (january, "I live in Oslo", "I've lived in Hull, up north, since May.", today),
        (january, "I live in Oslo", "I've lived in Hull since May, and it rains a lot", today),
        (january, "I live in Oslo", "I live in Hull now though I've had a cold since May", today),
        (january, "I live in Oslo", "I live in Hull (had a cold since May)", today),
        (january, "I live in Oslo", "I live in Hull - ill since May", today),
        (january, "I live in Oslo", "I live in Hull with Ben who has been ill since May", today),
        (january, "My car is a Fiat", "My car is a Golf from 2012", today),
        (january, "I work at Tesco", "From September I work at Lidl", today),
        (may_20, "I live in Oslo", "I have lived in Hull since May", "2026-05-20"),
        (january, "I live in Oslo", "Been in Hull since May", may),
        (january, "Ich wohne in Oslo", "Ich wohne seit Mai in Hull", may),
        (january, "I live in Oslo", "I live in Hull now", today),
        (january, "I live in Oslo", "I moved to Hull in May", today),
        (january, "I live in Oslo", "I live in Hull now, and I've had a cold since May", today),
        (january, "I live in Oslo", "I live in Hull. I haven't slept well since May.", today),
        (january, "I live in Oslo", "I live in Hull since today", today),
        // It held at least when it was said.
        (june, "I live in Oslo", "I have lived in Hull since May", "2026-06-10"),
        (january, "I live in Oslo", "I have lived in Hull since 2019", "2026-01-10"),
    ] {
        let older = keep_at(&memory, "porch", older, said);
        let by = update(&memory, "porch", older, newer, august);
        assert_eq!(validity(&memory, "porch", older).1.as_deref(), Some(want), "{newer}");
        memory.forgetting().forget(&Forget::Memory(by), true).unwrap();
        assert_eq!(validity(&memory, "porch", older).1, None, "{newer}");
    }
}
