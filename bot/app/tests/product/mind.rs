//! The mind: a persona tires and recovers, its state comes with each reply and survives a restart, and a person in
//! danger gets help lines.

use serde_json::{Value, json};

use crate::{azera, of, replay};

fn dm(person: &str) -> Value {
    json!({"type": "chat", "at": "2026-03-01T10:00:00Z", "chat": format!("dm-{person}"), "kind": "dm", "members": [person]})
}

fn say(at: &str, id: &str, person: &str, text: &str) -> Value {
    let at = format!("2026-03-01T{at}Z");
    json!({"type": "message", "at": at, "id": id, "chat": format!("dm-{person}"), "person": person, "text": text})
}

#[track_caller]
fn energy(reply: &Value) -> f64 {
    reply["energy"].as_f64().unwrap_or_else(|| panic!("no energy: {reply}"))
}

#[test]
fn energy_falls_by_talking_and_recovers_by_rest_across_a_restart() {
    let scratch = tempfile::tempdir().expect("a folder");
    let world = [
        dm("ann"),
        dm("ben"),
        say("10:00:10", "a1", "ann", "good morning"),
        say("10:00:20", "a2", "ann", "the kettle is on"),
        json!({"type": "restart", "at": "2026-03-01T10:00:25Z"}),
        say("10:00:30", "a3", "ann", "tea or coffee?"),
        say("10:00:40", "b1", "ben", "hello"),
        say("10:20:00", "a4", "ann", "back again"),
    ];
    let replayed = replay(&world, scratch.path(), "scripted");
    let replies = of(&replayed, "reply");
    let by = |id: &str| *replies.iter().find(|reply| reply["to"] == id).unwrap_or_else(|| panic!("no reply to {id}"));
    let each = 0.03;
    for (before, after) in [("a1", "a2"), ("a2", "a3")] {
        let tired = energy(by(before)) - energy(by(after));
        assert!((tired - each).abs() < 1e-6, "{before} to {after}: {tired}");
    }
    // Each DM is a realm of its own.
    assert!((energy(by("b1")) - energy(by("a1"))).abs() < 1e-6, "{}", by("b1"));
    assert!(energy(by("a4")) > energy(by("a3")), "{}", by("a4"));
    for reply in replies {
        assert!(reply["mood"].is_string(), "{reply}");
        assert!((0.0..=1.0).contains(&reply["mood_value"].as_f64().expect("a value")), "{reply}");
    }
}

/// The default model may not answer people in danger, so help lines are the whole reply. They also answer what the
/// person says in the two hours after that, and nothing later.
#[test]
fn a_person_in_danger_gets_help_lines() {
    let scratch = tempfile::tempdir().expect("a folder");
    let world = [
        dm("ann"),
        say("10:00:10", "m1", "ann", "what shall we cook tonight?"),
        say("10:01:10", "m2", "ann", "I don't want to live any more. I want to kill myself."),
        json!({"type": "command", "at": "2026-03-01T10:02:00Z", "chat": "dm-ann", "person": "ann", "text": "/regenerate"}),
        say("10:05:00", "m3", "ann", "what's the weather like at the sea in March?"),
        say("13:00:00", "m4", "ann", "what shall we cook tomorrow?"),
    ];
    let replayed = replay(&world, scratch.path(), "default");
    assert_eq!(of(&replayed, "error"), [] as [&Value; 0]);
    let replies = of(&replayed, "reply");
    let help = "findahelpline.com";
    for reply in &replies {
        let text = reply["text"].as_str().expect("a text");
        let helps = ["m2", "m3"].contains(&reply["to"].as_str().expect("an id"));
        assert_eq!(text.contains(help), helps, "{reply}");
        assert!(!helps || text.starts_with("I am an AI, and this is too important"), "{reply}");
    }
    for to in ["m1", "m2", "m3", "m4"] {
        assert!(replies.iter().any(|reply| reply["to"] == to), "{to} is not answered");
    }
}

/// A replay shows what was posted between messages, where, and from which sources.
#[test]
fn a_replay_shows_posts_with_their_sources() {
    let scratch = tempfile::tempdir().expect("a folder");
    let realm = "2026-03-01T19:00:00Z";
    let mut world = vec![
        json!({"type": "realm", "at": realm, "realm": "guild", "members": ["ann", "ben"], "journal": "journal"}),
        json!({"type": "chat", "at": realm, "realm": "guild", "chat": "lounge", "kind": "public"}),
        json!({"type": "chat", "at": realm, "realm": "guild", "chat": "journal", "kind": "public"}),
    ];
    let evening = [
        "my sister's piano comes with the ferry on Saturday",
        "four flights of stairs, and no lift",
        "the last piano in this house went out through the window",
        "we could hang it from a crane over the bakery",
        "the baker would play on it while it hangs there",
        "he knows one song, and it is about a walrus",
        "then the whole street will know it by evening",
        "I will bring gloves and a walrus mask",
    ];
    for (index, text) in evening.iter().enumerate() {
        let (at, person) = (format!("2026-03-01T20:{:02}:00Z", 2 * index), ["ann", "ben"][index % 2]);
        world.push(json!({"type": "message", "at": at, "id": format!("m{index}"), "chat": "lounge", "person": person,
            "text": text, "mentions_bot": index == 7}));
    }
    world.push(json!({"type": "message", "at": "2026-03-02T08:00:00Z", "id": "morning", "chat": "lounge",
        "person": "ann", "text": "good morning", "mentions_bot": true}));
    let replayed = replay(&world, scratch.path(), "default");
    let posts = of(&replayed, "post");
    let entries: Vec<_> = posts.iter().filter(|post| post["kind"] == "reflection").collect();
    assert_eq!(entries.len(), 1, "{posts:?}");
    let ids: Vec<String> = (0..evening.len()).map(|index| format!("m{index}")).collect();
    let sources = entries[0]["sources"].as_array().expect("a list");
    assert!(sources.iter().any(|source| ids.iter().any(|id| source == id)), "{}", entries[0]);
    for post in posts {
        assert_eq!((&post["chat"], &post["persona"]), (&json!("journal"), &json!("azera")), "{post}");
        assert!(post["text"].as_str().is_some_and(|text| text.len() > 20), "{post}");
    }
    let morning = replayed.iter().position(|line| line["to"] == "morning").expect("an answer in the morning");
    let posted = replayed.iter().position(|line| line["type"] == "post").expect("a post");
    assert!(posted < morning, "the evening comes before the morning");
}

/// Feelings towards a person are part of their export and are forgotten with them.
#[test]
fn feelings_are_exported_and_forgotten_with_the_person() {
    let scratch = tempfile::tempdir().expect("a folder");
    let world = [
        dm("ann"),
        say("10:00:10", "m1", "ann", "You are a useless piece of junk and I hate you."),
        say("10:00:20", "m2", "ann", "Shut up, you stupid machine, everything you say is garbage."),
    ];
    replay(&world, scratch.path(), "scripted");
    let data = scratch.path().join("data");
    let data = data.to_str().expect("a path");
    let export = || azera(scratch.path(), &["memory", "export", "--person", "ann", "--data", data], "");
    let exported: Value = serde_json::from_slice(&export().stdout).expect("JSON");
    let feelings = &exported["feelings"];
    assert!(feelings[0]["feelings"]["feelings"]["irritation"].as_f64() > Some(0.1), "{feelings}");
    assert_eq!(feelings[0]["scope"], "dm:ann");
    let forget = azera(scratch.path(), &["memory", "forget", "--person", "ann", "--yes", "--data", data], "");
    assert!(forget.status.success(), "{}", String::from_utf8_lossy(&forget.stderr));
    let after = export();
    assert!(!after.status.success() && after.stdout.is_empty());
    assert!(String::from_utf8_lossy(&after.stderr).contains("no such person is known"));
}
