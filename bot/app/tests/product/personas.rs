//! Persona files, and the limits that a persona sets itself.

use serde_json::{Value, json};

use crate::{at, azera, of, replay};

/// Personas are added and removed by file, and invalid files are refused with the line number.
#[test]
fn personas_are_added_and_removed_by_file() {
    let scratch = tempfile::tempdir().expect("a folder");
    let data = scratch.path().join("data");
    let data = data.to_str().expect("a path");
    let run = |arguments: &[&str]| {
        let mut all = vec!["persona", "--data", data];
        all.extend(arguments);
        azera(scratch.path(), &all, "")
    };
    let template = run(&["template", "Mira"]);
    let file = scratch.path().join("mira.md");
    std::fs::write(&file, &template.stdout).expect("a file");
    let path = file.to_str().expect("a path");
    assert!(run(&["add", path]).status.success());
    let list = String::from_utf8(run(&["list"]).stdout).expect("UTF-8");
    for id in ["areza", "azera", "mira", "protag"] {
        assert!(list.contains(id), "{list}");
    }
    std::fs::write(&file, "---\nid: Mira!\nname: Mira\n---\n## Intent\nx\n").expect("a file");
    let refused = run(&["add", path]);
    assert!(!refused.status.success());
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(why.contains("line 2"), "{why}");
    // The record restores a deleted file.
    let restored = scratch.path().join("data/personas/areza.md");
    std::fs::remove_file(&restored).expect("the file was there");
    run(&["list"]);
    assert!(restored.exists());
    assert!(run(&["remove", "mira"]).status.success());
    assert!(!String::from_utf8(run(&["list"]).stdout).expect("UTF-8").contains("mira"));
}

/// A persona's own limits: memories in a prompt, and memories kept.
#[test]
fn a_persona_keeps_its_own_limits() {
    let scratch = tempfile::tempdir().expect("a folder");
    let personas = scratch.path().join("data/personas");
    std::fs::create_dir_all(&personas).expect("a folder");
    let plain = azera(scratch.path(), &["persona", "template", "Mira"], "");
    let plain = String::from_utf8(plain.stdout).expect("UTF-8");
    let bounded = plain.replacen("---\n", "---\nmemory: {top_k: 2, prune_keep: 10}\n", 1);
    let file = scratch.path().join("mira.md");
    std::fs::write(&file, bounded).expect("a file");
    let (data, file) = (scratch.path().join("data"), file.to_str().expect("a plain path").to_owned());
    let data = data.to_str().expect("a plain path").to_owned();
    let added = azera(scratch.path(), &["persona", "add", &file, "--data", &data], "");
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    let mut world = vec![
        json!({"type": "chat", "at": at(0), "chat": "talk", "kind": "dm", "members": ["ann"], "persona": "mira"}),
        json!({"type": "chat", "at": at(0), "chat": "other", "kind": "dm", "members": ["ann"], "persona": "mira"}),
    ];
    for number in 0..30 {
        let text = format!("my shelf number {number} holds jar {} and tin {}", number * 7 + 3, number * 11 + 5);
        world.push(json!({"type": "message", "at": at(1 + number), "id": format!("told-{number}"), "chat": "talk",
            "person": "ann", "text": text}));
    }
    world.push(json!({"type": "message", "at": at(100), "id": "asked", "chat": "other", "person": "ann",
        "text": "what does my shelf hold, jar or tin?"}));
    world.push(
        json!({"type": "probe", "at": at(110), "chat": "other", "person": "ann", "query": "shelf number holds jar tin",
        "limit": 50}),
    );
    let replayed = replay(&world, scratch.path(), "scripted");
    let reply = of(&replayed, "reply").into_iter().find(|reply| reply["to"] == "asked").expect("a reply");
    assert_eq!(reply["recalled"].as_array().map(Vec::len), Some(2));
    let hits = of(&replayed, "probe")[0]["hits"].as_array().expect("hits").clone();
    assert!(!hits.is_empty() && hits.len() <= 10, "{} hits", hits.len());
    // The newest memories stay.
    assert!(hits.iter().any(|hit| hit["sources"][0] == "told-29"), "{hits:?}");
    let stats = azera(scratch.path(), &["memory", "stats", "--json", "--data", &data], "");
    let stats: Value = serde_json::from_slice(&stats.stdout).expect("JSON");
    assert!(stats["memories"].as_u64().is_some_and(|memories| (1..=10).contains(&memories)), "{stats}");
    for field in ["queued", "missing_vectors", "stray_vectors", "missing_text", "stray_text"] {
        assert_eq!(stats[field], 0, "{field}");
    }
}
