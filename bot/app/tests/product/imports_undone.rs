//! `azera import --undo`: what may be imported again, and what stays forgotten.

use std::path::Path;

use serde_json::{Value, json};

use crate::imports::{SAID, chatgpt, import, memory, run, search, transcript};

#[track_caller]
fn undo(home: &Path, report: &Value) {
    run(home, &["import", "--undo", report["import"].as_str().expect("an id"), "--yes", "--as", "Ann"]);
}

/// Returns what a report counted: added, known before, forgotten before.
fn counts(report: &Value) -> [u64; 3] {
    ["added", "known", "forgotten"].map(|field| report[field].as_u64().expect("a count"))
}

/// Returns what a search of Ann finds with this word in it.
fn hits(home: &Path, query: &str, word: &str) -> Vec<String> {
    search(home, query, &["--as", "Ann"]).into_iter().filter(|hit| hit.contains(word)).collect()
}

#[test]
fn a_message_that_was_forgotten_does_not_come_back_after_an_undo() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    std::fs::write(home.join("chat.json"), chatgpt(&SAID)).expect("a file");
    let ann = ["--as", "Ann"];
    let query = "What is my boat called?";
    let report = import(home, "chat.json", &ann);
    let hit = hits(home, query, "heliotrope").pop().expect("it is found");
    let id = hit.split(' ').next().expect("an id");
    run(home, &["memory", "forget", "--memory", id, "--yes"]);
    // However often it is undone.
    for _ in 0..2 {
        undo(home, &report);
        assert_eq!(counts(&import(home, "chat.json", &["--as", "Ann", "--dry-run"])), [3, 0, 1]);
        assert_eq!(counts(&import(home, "chat.json", &ann)), [3, 0, 1]);
        assert_eq!(counts(&import(home, "chat.json", &ann)), [0, 3, 1]);
        assert_eq!(hits(home, query, "heliotrope"), [""; 0]);
        assert_eq!(hits(home, "Who sold the boat?", "Obsidian").len(), 1);
    }
}

#[test]
fn a_continued_session_neither_doubles_nor_brings_back_what_it_repeats() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let first = transcript("a", &SAID[..2]);
    let repeated = first.replace("\"sessionId\":\"a\"", "\"sessionId\":\"b\"");
    assert_ne!(first, repeated);
    let second = repeated + &transcript("b", &[("user", "The cormorant test passes.")]);
    std::fs::write(home.join("a.jsonl"), first).expect("a file");
    std::fs::write(home.join("b.jsonl"), second).expect("a file");
    let ann = ["--as", "Ann"];
    let query = "What is my boat called?";
    assert_eq!(counts(&import(home, "a.jsonl", &ann)), [2, 0, 0]);
    let report = import(home, "b.jsonl", &ann);
    assert_eq!(counts(&report), [1, 2, 0]);
    undo(home, &report);
    assert_eq!(counts(&import(home, "b.jsonl", &ann)), [1, 2, 0], "what the first session holds is not doubled");
    let found = hits(home, query, "heliotrope");
    assert_eq!(found.len(), 1, "{found:?}");
    undo(home, &report);
    let chat = memory(home, &found[0], "Ann")["chat"].clone();
    run(home, &["memory", "forget", "--chat", chat.as_str().expect("a chat"), "--yes"]);
    assert_eq!(counts(&import(home, "b.jsonl", &ann)), [1, 0, 2], "what was forgotten stays forgotten");
    assert_eq!(hits(home, query, "heliotrope"), [""; 0]);
    let check: Value = serde_json::from_str(&run(home, &["memory", "check", "--json"])).expect("JSON");
    assert_eq!(check["record"]["broken"], json!({}), "{check}");
}
