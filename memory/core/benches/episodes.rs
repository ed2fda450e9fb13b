//! "What is still open?" among 3,000 messages of two people, one of whom has 150 plans and problems.

use std::collections::HashSet;
use std::hint::black_box;
use std::sync::Arc;

use azera_memory::conformance::record;
use azera_memory::{Calendar, Limits, Memory, NewChat, Query, RamStore, ReadScope};
use azera_types::{
    ChatId, Inbound, MessageId, PersonId, PersonaId, Place, PlaceKind, PlatformId, ReadableScopes, Span, Text,
    TimeZone, Timestamp,
};
use criterion::{Criterion, criterion_group, criterion_main};

const MESSAGES: usize = 3_000;

const SAYINGS: [&str; 10] = [
    "the soup was hot and the bread was fresh, we ate all of it",
    "good morning! the harbour is full of ships again today",
    "I think the violin of my neighbour sounds better in winter",
    "the train to the orchard was late, so we walked through the gravel",
    "that letter from the ladder shop made me laugh the whole evening",
    "copper is cheaper than it was when my grandfather built the bridge",
    "it went well, the kitchen smells of walnut now",
    "we looked at the lanterns by the tide until it was dark",
    "what a window! you can see the garden and both towers from there",
    "thanks, that was a good idea with the curtain",
];

fn said(number: usize) -> String {
    match number % 40 {
        0 => format!("I'm going to paint fence {number} in the garden next week."),
        20 => format!("My bike number {number} is broken."),
        _ => SAYINGS[number * 7 % SAYINGS.len()].to_owned(),
    }
}

fn world(ann: &PersonId, now: Timestamp) -> (Memory, ReadScope) {
    let memory = record(Arc::new(RamStore::new()));
    let platform = PlatformId::new("test").expect("an id");
    let persona = PersonaId::new("azera").expect("an id");
    let chat = ChatId::new("dm").expect("an id");
    let new = NewChat { id: chat.clone(), platform: platform.clone(), title: None, persona: persona.clone() };
    memory.chats().open(new, Timestamp::UNIX_EPOCH).expect("a chat");
    let place = Place { chat: chat.clone(), kind: PlaceKind::Dm(ann.clone()), since: None };
    for number in 0..MESSAGES {
        let minutes = i64::try_from((MESSAGES - number) * 13).expect("a number");
        let at = now - Span::new().minutes(minutes);
        let id = MessageId::new(format!("m{number}")).expect("an id");
        let inbound = Inbound {
            id: id.clone(),
            chat: chat.clone(),
            person: if number % 4 == 1 { PersonId::new("ben").expect("an id") } else { ann.clone() },
            name: "Ann".into(),
            text: Text::new(said(number)),
            at,
            parts: Vec::new(),
            mentions_bot: false,
            mentions: Vec::new(),
            reply_to: None,
        };
        memory.turns().receive(&platform, &inbound, place.scope(), at).expect("it is recorded");
        memory.turns().leave(&id).expect("it is recorded");
    }
    (memory, ReadScope::in_place(persona, &place, &ReadableScopes::default()))
}

fn asking(criterion: &mut Criterion) {
    let ann = PersonId::new("ann").expect("an id");
    let now: Timestamp = "2026-03-20T10:00:00Z".parse().expect("a time");
    let (memory, read_scope) = world(&ann, now);
    let calendar = Calendar::new(now, TimeZone::UTC);
    criterion.bench_function("what is still open", |bench| {
        bench.iter(|| {
            let text = Text::new("what is still open?");
            let question = memory.recall().question(&read_scope, &text, &ann, "Azera", &calendar).expect("a question");
            let query = Query {
                question,
                vector: None,
                event_vector: None,
                asker: None,
                now,
                include_latest: true,
                exclude: HashSet::new(),
                limits: Limits::default(),
                results: 10,
            };
            let hits = memory.recall().find(&read_scope, &query).expect("hits").hits;
            assert!(!hits.is_empty());
            black_box(hits)
        });
    });
}

criterion_group!(benches, asking);
criterion_main!(benches);
