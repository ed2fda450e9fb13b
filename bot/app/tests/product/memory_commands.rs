//! `azera memory`: no form of it shows a person what others said.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::json;

use super::{at, azera, replay};

/// Each person's secret word.
const SECRETS: [(&str, &str); 3] = [("Ann", "heliotrope"), ("Bob", "quagmire"), ("a guild", "obsidian")];

/// Returns the commands that `azera memory --help` lists.
fn subcommands(data: &Path) -> BTreeSet<String> {
    let output = azera(data, &["memory", "--help"], "");
    let help = String::from_utf8(output.stdout).expect("UTF-8");
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.trim().is_empty());
    // The continuation of a line is indented further.
    let named = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = named.filter_map(|line| line.split_whitespace().next().map(str::to_owned));
    names.filter(|name| name != "help").collect()
}

#[test]
fn every_form_of_azera_memory_hides_what_others_said() {
    let scratch = tempfile::tempdir().expect("a folder");
    let folder = scratch.path().join("data");
    let data = folder.to_str().expect("a plain path");
    replay(
        &[
            json!({"type": "realm", "at": at(0), "realm": "guild", "members": ["console:ann", "cid"]}),
            json!({"type": "chat", "at": at(0), "realm": "guild", "chat": "den", "kind": "private", "members": ["cid"]}),
            json!({"type": "message", "at": at(1), "id": "m1", "chat": "den", "person": "cid", "text": "the word is obsidian"}),
        ],
        scratch.path(),
        "scripted",
    );
    for (name, secret) in &SECRETS[..2] {
        let chat = ["chat", "--data", data, "--model", "scripted", "--as", name];
        let output = azera(scratch.path(), &chat, &format!("the word is {secret}\n"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let mut tried = BTreeSet::new();
    let mut shown = |arguments: &[&str]| {
        tried.insert(arguments[0].to_owned());
        let output = azera(scratch.path(), &[&["memory"], arguments, &["--data", data]].concat(), "");
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &*String::from_utf8_lossy(&output.stderr);
        for (whose, secret) in &SECRETS[1..] {
            assert!(!text.contains(secret), "{arguments:?} showed Ann the word of {whose}: {text}");
        }
        (output.status.success(), text)
    };
    let (ok, found) = shown(&["search", "what is the word?", "--as", "Ann"]);
    assert!(ok, "{found}");
    shown(&["search", "heliotrope quagmire obsidian dm:console:bob chat:den", "--as", "Ann", "--json"]);
    // Each run of the binary starts a new range of ids.
    let numbers = (0..4).flat_map(|run| (1..=8).map(move |number| run * 1_024 + number));
    let all: Vec<(bool, String)> =
        numbers.map(|number| shown(&["show", &format!("m{number}"), "--as", "Ann"])).collect();
    let own = all.iter().filter(|(ok, text)| *ok && text.contains("heliotrope")).count();
    assert_eq!(own, 1, "Ann's own word is there for her: {all:?}");
    let (ok, export) = shown(&["export", "--person", "console:ann"]);
    assert!(ok && export.contains("heliotrope"), "{export}");
    shown(&["stats"]);
    shown(&["stats", "--json"]);
    shown(&["check", "--deep"]);
    shown(&["check", "--json"]);
    shown(&["rebuild"]);
    let (ok, receipt) = shown(&["forget", "--person", "console:ann", "--yes"]);
    assert!(ok && receipt.contains("\"messages\": 1"), "{receipt}");
    assert_eq!(
        subcommands(scratch.path()),
        tried,
        "every command that `azera memory` has, and no other, is tried here"
    );
}
