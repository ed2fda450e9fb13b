//! Files of messages, from outside: kept, given back, exported, backed up, restored, and forgotten to the last byte.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::forgetting::{find_in_home, on_disk};
use crate::{at, azera, command, fed, of, replay};

/// Words that stand in the file and nowhere else.
const SECRET: &str = "heliotrope-lighthouse";

const PICTURE_SECRET: &str = "52.5200N-13.4050E";

fn dm() -> Value {
    json!({"type": "chat", "at": at(0), "chat": "dm", "kind": "dm", "members": ["ann"]})
}

fn say(minute: usize, id: &str, files: &Value) -> Value {
    json!({"type": "message", "at": at(minute), "id": id, "chat": "dm", "person": "ann", "text": "look at that",
        "files": files})
}

fn file(name: &str, mime: &str, content: &[u8]) -> Value {
    json!({"name": name, "mime": mime, "content": STANDARD.encode(content)})
}

fn give(minute: usize, which: &str) -> Value {
    json!({"type": "command", "at": at(minute), "chat": "dm", "person": "ann", "text": format!("/memory file {which}")})
}

/// Runs a command on the data folder and returns its output.
#[track_caller]
fn run(home: &Path, arguments: &[&str]) -> String {
    let data = home.join("data");
    let output = azera(home, &[arguments, &["--data", data.to_str().expect("a path")]].concat(), "");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Returns the contents of the files in the export of ann.
fn exported(home: &Path) -> Vec<String> {
    let export: Value = serde_json::from_str(&run(home, &["memory", "export", "--person", "ann"])).expect("JSON");
    let messages = export["messages"].as_array().expect("messages").iter();
    let files = messages.flat_map(|message| message["files"].as_array().cloned().unwrap_or_default());
    let content = |file: Value| Some(String::from_utf8_lossy(&STANDARD.decode(file["content"].as_str()?).ok()?).into());
    files.filter_map(content).collect()
}

fn is_sound(home: &Path) -> bool {
    let found: Value = serde_json::from_str(&run(home, &["memory", "check", "--json"])).expect("JSON");
    found["good"] == true
}

#[test]
fn a_file_is_given_back_backed_up_restored_and_forgotten() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let text = format!("the word is {SECRET}");
    let chunk = |kind: &[u8], data: &[u8]| [&(data.len() as u32).to_be_bytes()[..], kind, data, b"sums"].concat();
    let picture =
        [b"\x89PNG\r\n\x1a\n".to_vec(), chunk(b"eXIf", PICTURE_SECRET.as_bytes()), chunk(b"IEND", b"")].concat();
    let replayed = replay(
        &[
            dm(),
            say(1, "m1", &json!([file("../../notes.txt", "text/plain", text.as_bytes())])),
            say(10, "m2", &json!([file("photo.png", "image/png", &picture)])),
            give(11, "notes.txt"),
            give(12, "photo.png"),
        ],
        home,
        "scripted",
    );
    assert!(of(&replayed, "error").is_empty(), "{replayed:?}");
    let answers = of(&replayed, "command");
    let given =
        |answer: &Value| STANDARD.decode(answer["files"][0]["content"].as_str().expect("a file")).expect("base64");
    assert_eq!((given(answers[0]), &answers[0]["files"][0]["name"]), (text.clone().into_bytes(), &json!("notes.txt")));
    let picture = given(answers[1]);
    assert!(picture.starts_with(b"\x89PNG") && picture.ends_with(b"sums"));
    assert_eq!(find_in_home(home, PICTURE_SECRET), None, "the metadata of a picture is kept");
    assert_eq!(exported(home).len(), 2);
    assert!(exported(home).contains(&text));
    let stats: Value = serde_json::from_str(&run(home, &["memory", "stats", "--json"])).expect("JSON");
    assert_eq!(stats["files"], 2);
    assert!(is_sound(home));

    // Lost with the data folder, and back from the backup; then the present record is put aside, and back, too.
    run(home, &["backup"]);
    let blobs = home.join("data/blobs");
    std::fs::remove_dir_all(&blobs).expect("it was there");
    let lost = azera(home, &["memory", "check", "--data", home.join("data").to_str().expect("a path")], "");
    assert!(String::from_utf8_lossy(&lost.stdout).contains("2 files that are missing"));
    run(home, &["restore", "--replace"]);
    assert!(on_disk(&blobs, SECRET).is_some() && is_sound(home));
    assert!(exported(home).contains(&text));
    run(home, &["restore", "--replace"]);
    run(home, &["restore", "--undo"]);
    assert!(exported(home).contains(&text) && is_sound(home));
    assert!(run(home, &["backup", "verify"]).lines().all(|line| line.contains("is whole")));

    run(home, &["memory", "forget", "--yes", "--message", "m1"]);
    assert_eq!(find_in_home(home, SECRET), None);
    assert_eq!(exported(home).len(), 1);
    run(home, &["restore", "--replace"]);
    run(home, &["memory", "rebuild"]);
    assert_eq!(find_in_home(home, SECRET), None, "a backup brings it back");
    assert!(is_sound(home));
}

#[test]
fn a_salvaged_record_keeps_its_files_and_a_limit_of_nothing_keeps_none() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let replayed =
        replay(&[dm(), say(1, "m1", &json!([file("notes.txt", "text/plain", SECRET.as_bytes())]))], home, "scripted");
    assert!(of(&replayed, "error").is_empty(), "{replayed:?}");
    run(home, &["restore", "--salvage", "--replace"]);
    assert_eq!(exported(home), [SECRET]);
    assert!(is_sound(home));
    let line = say(30, "m2", &json!([file("more.txt", "text/plain", b"more")]));
    let data = home.join("data");
    let mut limited = command(home, &["replay", "-", "--data", data.to_str().expect("a path"), "--model", "scripted"]);
    limited.env("AZERA__MEMORY__BLOBS_MAX_BYTES", "0");
    assert!(fed(&mut limited, &format!("{}\n{line}\n", dm())).status.success());
    assert_eq!(exported(home), [SECRET]);
}
