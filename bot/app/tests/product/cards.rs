//! Character cards from a file to an answer: names, ids and lorebooks.

use std::path::Path;

use serde_json::{Value, json};

use crate::{at, azera, lines};

fn card(name: &str, description: &str) -> Value {
    json!({"spec": "chara_card_v2", "spec_version": "2.0", "data": {"name": name, "description": description}})
}

/// Runs `azera persona` with a data folder, and returns whether it succeeded and what it printed.
fn persona(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let data = folder.join("data");
    let mut all = vec!["persona", "--data", data.to_str().expect("a plain path")];
    all.extend(arguments);
    let output = azera(folder, &all, "");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

fn add(folder: &Path, card: &Value, more: &[&str]) -> (bool, String) {
    let file = folder.join("card.json");
    std::fs::write(&file, card.to_string()).expect("a file");
    persona(folder, &[&["add", file.to_str().expect("a plain path")], more].concat())
}

#[test]
fn a_card_replaces_another_persona_only_on_purpose() {
    let scratch = tempfile::tempdir().expect("a folder");
    let folder = scratch.path();
    let built_in = persona(folder, &["show", "azera"]).1;
    for (card, id) in [
        (card("Noël", "A baker."), "noel"),
        (card("Noel", "A pilot."), "noel-2"),
        (card("Azera!", "A parking meter."), "azera-2"),
        (card("Protag", "A stage actor."), "protag-2"),
        (card("Noël", "A baker."), "noel"),
    ] {
        let (added, said) = add(folder, &card, &[]);
        assert!(added && said.contains(&format!("is here as `{id}`, version 1")), "{said}");
    }
    assert_eq!(persona(folder, &["show", "azera"]).1, built_in);
    assert!(persona(folder, &["show", "noel"]).1.contains("A baker."));

    let (added, said) = add(folder, &card("Noël", "A diver."), &["--replace", "noel", "--keep-memories"]);
    assert!(added && said.contains("`noel`, version 2") && said.contains("has the memories"), "{said}");
    let (added, said) = add(folder, &card("Noël", "A sailor."), &["--replace", "noel"]);
    assert!(added && said.contains("`noel-3`, version 1") && said.contains("noel is removed"), "{said}");
    let (added, said) = add(folder, &card("Other", "x"), &["--replace", "azera"]);
    assert!(!added && said.contains("built in"), "{said}");
    let (added, said) = add(folder, &card("Other", "x"), &["--replace", "protag", "--keep-memories"]);
    assert!(!added && said.contains("kind: user"), "{said}");
    assert!(!add(folder, &card("Other", "x"), &["--keep-memories"]).0);

    let file = folder.join("noel.md");
    std::fs::write(&file, "---\nid: noel-2\nname: Ida\n---\n## Intent\nx\n## Core Identity\ny\n").expect("a file");
    let (added, said) = persona(folder, &["add", file.to_str().expect("a plain path")]);
    assert!(!added && said.contains("`noel-2` is Noel already") && said.contains("--replace noel-2"), "{said}");
}

/// A chat that used a replaced persona goes on with the new one, which knows nothing of what the other was told.
#[test]
fn a_replacement_starts_without_the_memories_of_the_other() {
    let scratch = tempfile::tempdir().expect("a folder");
    let folder = scratch.path();
    assert!(add(folder, &card("Vega 🌟", "Watches the sky."), &[]).0);
    let data = folder.join("data");
    let data = data.to_str().expect("a plain path");
    let replay = |world: &[Value]| {
        let text: String = world.iter().map(|line| format!("{line}\n")).collect();
        lines(&azera(folder, &["replay", "-", "--data", data, "--model", "scripted"], &text))
    };
    let message = |minute: usize, id: &str, text: &str| json!({"type": "message", "at": at(minute), "id": id, "chat": "deck", "person": "ann", "text": text});
    let chat =
        json!({"type": "chat", "at": at(0), "chat": "deck", "kind": "dm", "members": ["ann"], "persona": "vega"});
    let probe = |minute: usize| {
        json!({"type": "probe", "at": at(minute), "chat": "deck", "person": "ann",
        "query": "the locker", "limit": 10})
    };
    let found = replay(&[chat.clone(), message(1, "told", "the locker holds a copper kettle"), probe(9)]);
    assert!(found.iter().any(|event| event["type"] == "probe" && event.to_string().contains("copper")), "{found:?}");

    let (added, said) = add(folder, &card("Vega!", "Sells kites."), &["--replace", "vega"]);
    assert!(added && said.contains("`vega-2`, version 1"), "{said}");
    let mut chat = chat;
    chat["at"] = json!(at(20));
    chat["persona"] = Value::Null;
    let found = replay(&[chat, message(21, "asked", "what is in the locker?"), probe(29)]);
    assert!(found.iter().any(|event| event["type"] == "reply"), "{found:?}");
    assert!(!found.iter().any(|event| event["type"] == "probe" && event.to_string().contains("copper")), "{found:?}");
}

#[test]
fn a_persona_hears_its_decorated_name_and_no_common_word() {
    let scratch = tempfile::tempdir().expect("a folder");
    let folder = scratch.path();
    assert!(add(folder, &card("Dr. Will ✨", "Answers briefly."), &[]).0);
    let said = add(folder, &card("Hope", "Answers briefly."), &[]).1;
    assert!(said.contains("people can call it by: Hope"), "{said}");
    let data = folder.join("data");
    let calls = [
        ("dr-will", "Dr. Will, is it late?", true),
        ("dr-will", "hello dr will ✨", true),
        ("dr-will", "Is it late, Will?", true),
        ("dr-will", "Will it rain?", false),
        ("dr-will", "Dr. Willow is late.", false),
        ("hope", "Good evening hope 😊", true),
        ("hope", "> it rains\nHope, does it?", true),
        ("hope", "Hope it rains.", false),
    ];
    let mut world =
        vec![json!({"type": "realm", "at": at(0), "realm": "house", "members": ["ann"], "admins": ["ann"]})];
    for id in ["dr-will", "hope"] {
        world.push(json!({"type": "chat", "at": at(0), "realm": "house", "chat": id, "kind": "public", "persona": id}));
    }
    for (number, (chat, text, _)) in calls.iter().enumerate() {
        world.push(json!({"type": "message", "at": at(number + 1), "id": format!("m{number}"), "chat": chat,
            "person": "ann", "name": "Ann", "text": text}));
    }
    let text: String = world.iter().map(|line| format!("{line}\n")).collect();
    let data = data.to_str().expect("a plain path");
    let events = lines(&azera(folder, &["replay", "-", "--data", data, "--model", "scripted"], &text));
    for (number, (_, text, answered)) in calls.iter().enumerate() {
        let id = json!(format!("m{number}"));
        let event = events.iter().find(|event| {
            matches!(event["type"].as_str(), Some("reply" | "silent"))
                && event.as_object().is_some_and(|fields| fields.values().any(|value| *value == id))
        });
        let event = event.unwrap_or_else(|| panic!("nothing about {text}: {events:?}"));
        assert_eq!(event["type"] == "reply", *answered, "{text}: {event}");
    }
}
