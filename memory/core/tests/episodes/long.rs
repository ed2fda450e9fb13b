//! Chats with thousands of messages.

use std::sync::Arc;

use azera_memory::conformance::record;
use azera_memory::{Import, NewImported, RamStore, ReadScope};
use azera_types::{MessageId, Place, PlaceKind, ReadableScopes, Span, Text, Timestamp};

use crate::{Line, World, all, chat, guild, in_dm, in_hall, person, persona, recalled, scope_of};

/// Returns small talk of two people, one line in so many seconds.
fn chatter(chat: &str, from: &str, seconds: i64, count: usize) -> Vec<Line> {
    let mut at: Timestamp = from.parse().unwrap();
    let line = |number: usize| {
        at += Span::new().seconds(seconds);
        let text = format!("soup number {number} was hot");
        Line { at, chat: chat.into(), who: ["ann", "ben"][number % 2].into(), text }
    };
    (0..count).map(line).collect()
}

#[test]
fn a_conversation_is_found_by_its_time_behind_thousands_of_newer_messages() {
    let mut lines: Vec<Line> =
        ["02-10 10:00 hall ann: We sold the lighthouse.", "02-10 10:01 hall ben: The whale bought it."]
            .map(Line::parse)
            .into();
    lines.extend(chatter("hall", "2026-03-02T00:00:00Z", 5 * 60, 3_400));
    let world = World::of(&lines);
    let ask = |question: &str| recalled(&world, &in_hall(), question, &[]);
    assert_eq!(ask("What did we talk about last month?"), ["m0", "m1"]);
    // Somebody who may not read so far back is shown nothing of it.
    let since = "2026-03-01T00:00:00Z".parse().ok();
    let place = Place { chat: chat("hall"), kind: PlaceKind::Public(guild()), since };
    let newcomer = ReadScope::in_place(persona(), &place, &ReadableScopes::default());
    assert_eq!(recalled(&world, &newcomer, "What did we talk about last month?", &[]), [""; 0]);
    // On a branch, too, where the order of the log tells less.
    let from = MessageId::new("m3000").unwrap();
    world.memory.chats().branch_from(&in_hall(), &chat("hall"), &from, "other", world.now).unwrap();
    assert_eq!(ask("What did we talk about last month?"), ["m0", "m1"]);
}

/// More is said in the day behind the wanted time than one question reads.
#[test]
fn a_conversation_is_found_by_its_time_in_a_busy_chat() {
    let mut lines: Vec<Line> =
        ["02-28 23:50 hall ann: We sold the lighthouse.", "02-28 23:51 hall ben: The whale bought it."]
            .map(Line::parse)
            .into();
    lines.extend(chatter("hall", "2026-03-01T00:00:00Z", 30, 3_400));
    let world = World::of(&lines);
    assert_eq!(recalled(&world, &in_hall(), "What did we talk about last month?", &[]), ["m0", "m1"]);
}

/// The later half of a conversation may be imported before the earlier one.
#[test]
fn an_imported_conversation_is_found_by_its_time_in_whatever_order_its_files_came() {
    let memory = record(Arc::new(RamStore::new()));
    let (by, file, format) = (person("ann"), "plum.json".into(), "chatgpt".into());
    let import = Import { id: "i1".into(), by, persona: persona(), scope: scope_of("dm"), file, format, learns: true };
    for day in ["2026-06-10", "2026-05-10"] {
        for (number, line) in chatter("old", &format!("{day}T10:00:00Z"), 30, 100).into_iter().enumerate() {
            let new = NewImported {
                id: MessageId::new(format!("{day}-{number}")).unwrap(),
                chat: chat("old"),
                title: None,
                after: None,
                person: person("ann"),
                name: "Ann".into(),
                text: Text::new(&line.text),
                at: line.at,
            };
            memory.imports().add(&import, new, "2026-06-30T10:00:00Z".parse().unwrap()).unwrap();
        }
    }
    let mut world = World { memory, now: "2026-06-30T12:00:00Z".parse().unwrap() };
    let begins: Vec<Timestamp> = world.list(&in_dm(), &all()).iter().map(|one| one.occasion.span.0).collect();
    let first = |day: &str| format!("{day}T10:00:30Z").parse::<Timestamp>().unwrap();
    assert_eq!(begins, [first("2026-06-10"), first("2026-05-10")]);
    for (now, month) in [("2026-06-30T12:00:00Z", "2026-05"), ("2026-07-01T12:00:00Z", "2026-06")] {
        world.now = now.parse().unwrap();
        let found = recalled(&world, &in_dm(), "What did we talk about last month?", &[]);
        assert!(!found.is_empty() && found.iter().all(|id| id.starts_with(month)), "{now}: {found:?}");
    }
}

#[test]
fn an_episode_keeps_its_id_while_new_messages_come() {
    for minutes in [1, 9] {
        // Nobody pauses; or a day has a pause at noon and one at night.
        let mut lines = chatter("hall", "2026-01-02T08:00:00Z", minutes * 60, 2_900);
        if minutes > 1 {
            let day = |line: &Line| line.at.as_second() / (12 * 3_600);
            let begin = day(&lines[0]);
            lines.retain(|line| line.at.as_second() % (12 * 3_600) < 8 * 3_600);
            assert!(day(lines.last().unwrap()) - begin > 20);
        }
        let ids = |count: usize| {
            let episodes = World::of(&lines[..count]).list(&in_hall(), &all());
            episodes.into_iter().map(|one| (one.occasion.span.0, one.id)).collect::<Vec<_>>()
        };
        let all_of = lines.len();
        let (before, after) = (ids(all_of - 97), ids(all_of));
        let newest = before[0].0;
        let oldest = after.last().unwrap().0;
        let kept: Vec<_> = before.iter().filter(|(at, _)| *at >= oldest).collect();
        let known: Vec<_> = after.iter().filter(|(at, _)| *at <= newest).collect();
        assert_eq!(kept, known, "{minutes}");
        assert!(kept.len() > 3, "{minutes}: {kept:?}");
    }
}
