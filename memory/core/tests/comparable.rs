//! The statements that a new one is compared with are the same as those that a walk over all marks finds, whatever was
//! imported, marked, replaced or forgotten, and in whichever order.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use azera_memory::conformance::record;
use azera_memory::{
    Forget, Import, Memory, MemoryRow, MessageRow, NewImported, NotReplaced, RamStore, ReadScope, Salience, Superseded,
    project_realm,
};
use azera_types::{
    ChatId, MemoryId, MessageId, PersonId, PersonaId, Place, PlaceKind, ReadableScopes, Scope, Text, Timestamp,
};
use proptest::prelude::*;

/// Messages of one made-up import.
const MESSAGES: usize = 40;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn ann() -> PersonId {
    PersonId::new("ann").unwrap()
}

/// Returns one of two scopes: Ann's direct messages, and a project of hers.
fn scope(number: usize) -> Scope {
    match number % 2 {
        0 => Scope::Dm(ann()),
        _ => Scope::Realm(project_realm(&ann(), "gate").unwrap()),
    }
}

fn id(number: usize) -> MessageId {
    MessageId::new(format!("m{number}")).unwrap()
}

/// Returns what Ann may read in her direct messages: with her project, or without.
fn read_scope(memory: &Memory, with_project: bool) -> ReadScope {
    let place = Place { chat: ChatId::new("c0").unwrap(), kind: PlaceKind::Dm(ann()), since: None };
    let projects = if with_project { memory.imports().projects_of(&ann()).unwrap() } else { Vec::new() };
    let reach = ReadableScopes {
        realms: projects.into_iter().map(|realm| (realm, None)).collect(),
        ..ReadableScopes::default()
    };
    ReadScope::in_place(PersonaId::new("azera").unwrap(), &place, &reach)
}

/// Adds a message of Ann to one of four chats; two of them are in her project.
fn add(memory: &Memory, number: usize, chat: usize, said_at: i64) {
    add_for("azera", memory, number, chat, said_at);
}

fn add_for(persona: &str, memory: &Memory, number: usize, chat: usize, said_at: i64) {
    let import = Import {
        id: format!("i{chat}"),
        by: ann(),
        persona: PersonaId::new(persona).unwrap(),
        scope: scope(chat),
        file: "talks.json".into(),
        format: "chatgpt".into(),
        learns: true,
    };
    let new = NewImported {
        id: id(number),
        chat: ChatId::new(format!("c{chat}")).unwrap(),
        title: None,
        after: None,
        person: ann(),
        name: "Ann".into(),
        text: Text::new(format!("statement number {number}")),
        at: at(said_at),
    };
    memory.imports().add(&import, new, at(10_000)).unwrap();
}

fn mark(memory: &Memory, number: usize, superseded: Option<Superseded>) {
    let (kind, with) = ("fact".to_owned(), Vec::new());
    let salience = Salience { kind, importance: 0.5, from: 0, to: 9, with, superseded, used: None };
    memory.memories().mark(&id(number), &salience).unwrap();
}

/// Returns what a walk over all marks finds.
fn walked(memory: &Memory, read_scope: &ReadScope, row: &MessageRow, most: usize) -> Vec<MemoryId> {
    let fits = |one: &MemoryRow| one.scope == row.scope && !one.sources.contains(&row.id);
    let mut found = memory.memories().salient(read_scope, &ann(), most).unwrap();
    let is_old = found.iter().any(|one| one.at > row.at);
    found.retain(fits);
    if is_old {
        let mut before = memory.memories().salient(read_scope, &ann(), usize::MAX).unwrap();
        before.retain(|one| fits(one) && one.at < row.at && found.iter().all(|known| known.id != one.id));
        before.sort_by_key(|one| std::cmp::Reverse((one.at, one.id)));
        found.extend(before.into_iter().take(most));
    }
    found.into_iter().map(|memory| memory.id).collect()
}

/// What happens to a message.
#[derive(Debug, Clone)]
enum Act {
    Mark(usize),
    /// The second message replaces the first one, or repeats it in more words.
    Replace(usize, usize, bool),
    Forget(usize),
    Undo(usize),
    /// A statement is compared.
    Compare(usize),
}

fn act() -> impl Strategy<Value = Act> {
    let number = 0..MESSAGES;
    prop_oneof![
        8 => number.clone().prop_map(Act::Mark),
        3 => (number.clone(), number.clone(), any::<bool>()).prop_map(|(one, other, same)| Act::Replace(one, other, same)),
        1 => number.clone().prop_map(Act::Forget),
        1 => (0..4_usize).prop_map(Act::Undo),
        8 => number.prop_map(Act::Compare),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn the_same_statements_are_compared_as_a_walk_over_all_marks_finds(
        said in prop::collection::vec((0..4_usize, 0..60_i64), MESSAGES),
        acts in prop::collection::vec(act(), 1..120),
        most in 1..12_usize,
    ) {
        let memory = record(Arc::new(RamStore::new()));
        for (number, (chat, said_at)) in said.iter().enumerate() {
            add(&memory, number, *chat, *said_at);
        }
        for act in acts {
            match act {
                Act::Mark(number) => mark(&memory, number, None),
                Act::Replace(one, by, same) => {
                    let (by, at) = (id(by), at(said[by].1));
                    mark(&memory, one, Some(Superseded { by, at, worded_at: None, same, undone: false }));
                }
                Act::Forget(number) => {
                    memory.forgetting().forget(&Forget::Message(id(number)), false).unwrap();
                }
                Act::Undo(chat) => {
                    memory.forgetting().forget(&Forget::Import(format!("i{chat}")), false).unwrap();
                }
                Act::Compare(number) => {
                    for with_project in [false, true] {
                        let read_scope = read_scope(&memory, with_project);
                        let Some(row) = memory.messages().get(&read_scope, &id(number)).unwrap() else { continue };
                        let found = memory.memories().comparable(&read_scope, &ann(), &row, most).unwrap();
                        let found: Vec<MemoryId> = found.into_iter().map(|memory| memory.id).collect();
                        prop_assert_eq!(found, walked(&memory, &read_scope, &row, most));
                    }
                }
            }
        }
    }
}

/// Repetitions hide no more than a bounded number of statements, and cost no more than that.
#[test]
fn a_statement_behind_a_thousand_repetitions_may_be_left_out() {
    const REPEATED: usize = 1_024;
    let memory = record(Arc::new(RamStore::new()));
    for number in 0..=REPEATED {
        add(&memory, number, 0, number as i64);
        let repeated = Superseded { by: id(0), at: at(0), worded_at: None, same: true, undone: false };
        mark(&memory, number, (number > 0).then_some(repeated));
    }
    let read_scope = read_scope(&memory, false);
    let row = memory.messages().get(&read_scope, &id(REPEATED)).unwrap().unwrap();
    assert_eq!(memory.memories().comparable(&read_scope, &ann(), &row, 64).unwrap(), []);
    let last = Superseded { by: id(0), at: at(0), worded_at: None, same: false, undone: false };
    mark(&memory, REPEATED, Some(last));
    add(&memory, REPEATED + 1, 0, 1);
    let row = memory.messages().get(&read_scope, &id(REPEATED + 1)).unwrap().unwrap();
    let found = memory.memories().comparable(&read_scope, &ann(), &row, 64).unwrap();
    let found: Vec<&MessageId> = found.iter().flat_map(|memory| &memory.sources).collect();
    assert_eq!(found, [&id(REPEATED), &id(0)], "an old statement is compared with what was said before it");
}

/// After an edit the newer message may no longer say what replaced or repeated the older one.
#[test]
fn an_edit_of_the_newer_message_lets_the_older_statement_stand() {
    let memory = record(Arc::new(RamStore::new()));
    (0..2).for_each(|number| add(&memory, number, 0, 1));
    let read_scope = read_scope(&memory, false);
    // Returns whether the older statement is shown as replaced, and how many statements are listed.
    let noted = |worded_at, same| {
        mark(&memory, 0, Some(Superseded { by: id(1), at: at(1), worded_at, same, undone: false }));
        let listed = memory.memories().salient(&read_scope, &ann(), 9).unwrap().len();
        let older = memory.messages().memory_of(&read_scope, &id(0)).unwrap().unwrap();
        let older = memory.memories().get(&read_scope, older).unwrap().unwrap();
        (memory.memories().replaced(&read_scope, &older).unwrap().is_some(), listed)
    };
    let sent = memory.messages().get(&read_scope, &id(1)).unwrap().unwrap().at;
    assert_eq!((noted(Some(sent), false), noted(Some(sent), true)), ((true, 1), (false, 0)));
    memory.turns().edit(&id(1), Text::new("something else"), at(20)).unwrap().unwrap();
    assert_eq!((noted(Some(sent), false), noted(Some(sent), true)), ((false, 1), (false, 1)));
    assert_eq!(noted(None, false), (true, 1), "an older version did not note when");
    assert_eq!(noted(Some(at(20)), false), (true, 1), "what it says now may replace it, too");
}

/// A repetition holds already, so to say that it holds changes nothing.
#[test]
fn a_repetition_stays_hidden_after_its_person_lets_it_hold() {
    let memory = record(Arc::new(RamStore::new()));
    (0..2).for_each(|number| add(&memory, number, 0, 1));
    let read_scope = read_scope(&memory, false);
    let older = memory.messages().memory_of(&read_scope, &id(0)).unwrap().unwrap();
    // Returns the answer to the wish that the older statement holds, and how many statements are listed.
    let held = |same| {
        mark(&memory, 0, Some(Superseded { by: id(1), at: at(1), worded_at: Some(at(1)), same, undone: false }));
        let answer = memory.memories().replace(&read_scope, &ann(), older, None).unwrap();
        (answer, memory.memories().salient(&read_scope, &ann(), 9).unwrap().len())
    };
    let newer = memory.messages().memory_of(&read_scope, &id(1)).unwrap();
    assert_eq!(held(true), (Err(NotReplaced::Repeated { older, by: newer }), 0));
    assert_eq!(held(false), (Ok(()), 1), "one that was replaced holds again");
}

/// Otherwise the answer would name a statement that lists leave out, or one that may not be read.
#[test]
fn a_repetition_is_known_by_the_newest_statement_that_says_the_same_and_may_be_read() {
    let memory = record(Arc::new(RamStore::new()));
    // The newest one is said in the project.
    for (number, chat) in [(0, 0), (1, 0), (2, 1)] {
        add(&memory, number, chat, 1);
    }
    for number in 0..2 {
        let (by, worded_at) = (id(number + 1), Some(at(1)));
        mark(&memory, number, Some(Superseded { by, at: at(1), worded_at, same: true, undone: false }));
    }
    let everywhere = read_scope(&memory, true);
    let [oldest, middle, newest] =
        [0, 1, 2].map(|number| memory.messages().memory_of(&everywhere, &id(number)).unwrap().unwrap());
    let held = |read_scope: &ReadScope, older| memory.memories().replace(read_scope, &ann(), older, None).unwrap();
    for older in [oldest, middle] {
        assert_eq!(held(&everywhere, older), Err(NotReplaced::Repeated { older, by: Some(newest) }));
    }
    let here = read_scope(&memory, false);
    assert_eq!(held(&here, oldest), Err(NotReplaced::Repeated { older: oldest, by: Some(middle) }));
    assert_eq!(held(&here, middle), Err(NotReplaced::Holds(middle)));
    // Something else replaces the newest one.
    add(&memory, 3, 1, 1);
    mark(&memory, 2, Some(Superseded { by: id(3), at: at(1), worded_at: Some(at(1)), same: false, undone: false }));
    let by = memory.messages().memory_of(&everywhere, &id(3)).unwrap();
    assert_eq!(held(&everywhere, oldest), Err(NotReplaced::Already { older: newest, by }));
}

/// One persona got an import of more statements than are read. Another one finds the statements that it marked.
#[test]
fn marks_of_another_persona_hide_nothing() {
    const OF_ANOTHER: usize = 1_025;
    let memory = record(Arc::new(RamStore::new()));
    add(&memory, 0, 0, 1);
    add(&memory, 1, 0, 3);
    (0..2).for_each(|number| mark(&memory, number, None));
    for number in 2..2 + OF_ANOTHER {
        add_for("areza", &memory, number, 4, 2);
        mark(&memory, number, None);
    }
    let read_scope = read_scope(&memory, false);
    let found = |number: usize| {
        let row = memory.messages().get(&read_scope, &id(number)).unwrap().unwrap();
        let found = memory.memories().comparable(&read_scope, &ann(), &row, 1).unwrap();
        found.into_iter().flat_map(|memory| memory.sources).collect::<Vec<_>>()
    };
    let (new, old) = (2 + OF_ANOTHER, 3 + OF_ANOTHER);
    add(&memory, new, 0, 4);
    assert_eq!(found(new), [id(1)], "it is compared with the newest one");
    add(&memory, old, 0, 2);
    assert_eq!(found(old), [id(1), id(0)], "and an old one with the last one before it, too");
    // What is marked after a list was read is found as well.
    mark(&memory, new, None);
    assert_eq!(found(old), [id(new), id(0)]);
}

/// A statement is forgotten while its vector is made. The vector is not cached after that.
#[test]
fn the_vector_of_a_forgotten_statement_is_not_cached() {
    let memory = record(Arc::new(RamStore::new()));
    (0..2).for_each(|number| add(&memory, number, 0, 1));
    let (cache, texts) = (memory.embeddings(), ["statement number 0".to_owned()]);
    let is_cached = || cache.get(&texts[0], at(1)).unwrap().is_some();
    let before = cache.forgettings();
    memory.forgetting().forget(&Forget::Message(id(0)), false).unwrap();
    cache.put_known(&texts, &[vec![1.0]], before, at(1)).unwrap();
    assert!(!is_cached());
    cache.put_known(&texts, &[vec![1.0]], cache.forgettings(), at(1)).unwrap();
    assert!(is_cached());
}
