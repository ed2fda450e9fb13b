//! Chats with thousands of messages.

use azera_memory::ReadScope;
use azera_types::{MessageId, Place, PlaceKind, ReadableScopes, Timestamp};

use crate::{Line, World, all, chat, guild, in_hall, persona, recalled};

/// Returns small talk of two people, one line in so many minutes.
fn chatter(chat: &str, from: &str, minutes: i64, count: usize) -> Vec<Line> {
    let mut at: Timestamp = from.parse().unwrap();
    let line = |number: usize| {
        at += azera_types::Span::new().minutes(minutes);
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
    lines.extend(chatter("hall", "2026-03-02T00:00:00Z", 5, 3_400));
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

#[test]
fn an_episode_keeps_its_id_while_new_messages_come() {
    for minutes in [1, 9] {
        // Nobody pauses; or a day has a pause at noon and one at night.
        let mut lines = chatter("hall", "2026-01-02T08:00:00Z", minutes, 2_900);
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
