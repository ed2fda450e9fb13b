//! `azera hook stop` beside a running Azera: no end of a session is lost.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::azera;
use crate::imports::{beside_a_chat, hook, search, transcript, until_taken_in, waits};
use crate::web::Running;

const ARGUMENTS: [&str; 4] = ["--as", "Ann", "--project", "tower"];

fn stop(home: &Path, file: &Path) {
    hook(home, "stop", "Stop", file, home, &ARGUMENTS);
}

fn finds(home: &Path, word: &str) -> bool {
    search(home, "What opens the lighthouse?", &["--as", "Ann"]).iter().any(|hit| hit.contains(word))
}

/// The session goes on while its beginning is being imported.
#[test]
fn what_a_session_gets_during_its_import_is_imported_too() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let (file, longer) = (home.join("session.jsonl"), home.join("longer.jsonl"));
    let said = [
        ("user", "The lighthouse opens with a heliotrope key."),
        ("user", "The lighthouse opens at zeppelin o'clock."),
    ];
    // The import reads from a pipe, so that the test decides when it goes on.
    assert!(Command::new("mkfifo").arg(&file).status().expect("there is mkfifo").success());
    std::fs::write(&longer, transcript("s1", &said)).expect("a file");
    beside_a_chat(home, || stop(home, &file));
    let bot = Running::start(home, home.join("data").to_str().expect("a path"));
    let mut pipe = std::fs::OpenOptions::new().write(true).open(&file).expect("the import opens it");
    stop(home, &file);
    std::fs::rename(&longer, &file).expect("a file");
    pipe.write_all(transcript("s1", &said[..1]).as_bytes()).expect("the import reads");
    drop(pipe);
    until_taken_in(home, &bot);
    bot.stop();
    assert!(finds(home, "heliotrope"), "the beginning");
    assert!(finds(home, "zeppelin"), "the end");
}

#[test]
fn a_transcript_whose_import_failed_waits_for_the_next_one() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let (file, other) = (home.join("session.jsonl"), home.join("other.jsonl"));
    std::fs::create_dir(&file).expect("a folder");
    std::fs::write(&other, transcript("s2", &[("user", "The gate is closed.")])).expect("a file");
    beside_a_chat(home, || stop(home, &file));
    // Each hook also takes in what waits.
    stop(home, &other);
    assert!(waits(home), "a folder is no transcript");
    std::fs::remove_dir(&file).expect("a folder");
    std::fs::write(&file, transcript("s1", &[("user", "The lighthouse opens with a heliotrope key.")]))
        .expect("a file");
    stop(home, &other);
    assert!(!waits(home), "it is imported");
    assert!(finds(home, "heliotrope"));
}

#[test]
fn a_transcript_that_cannot_be_imported_is_given_up_and_named() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let (file, other) = (home.join("session.jsonl"), home.join("other.jsonl"));
    std::fs::create_dir(&file).expect("a folder");
    std::fs::write(&other, transcript("s2", &[("user", "The gate is closed.")])).expect("a file");
    beside_a_chat(home, || stop(home, &file));
    let note =
        || std::fs::read_dir(home.join("data/transcripts")).expect("notes").flatten().next().expect("a note").path();
    // One try is left.
    let mut waiting: Value = serde_json::from_slice(&std::fs::read(note()).expect("a note")).expect("JSON");
    waiting["tries"] = 119.into();
    std::fs::write(note(), waiting.to_string()).expect("a note");
    stop(home, &other);
    assert!(note().extension().is_some_and(|is| is == "failed"), "{}", note().display());
    let doctor = azera(home, &["doctor", "--data", &home.join("data").to_string_lossy()], "");
    let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(doctor.contains("transcripts: 1 could not be imported") && doctor.contains("session.jsonl"), "{doctor}");
    // The session goes on, and its next hook begins anew.
    std::fs::remove_dir(&file).expect("a folder");
    std::fs::write(&file, transcript("s1", &[("user", "The lighthouse opens with a heliotrope key.")]))
        .expect("a file");
    beside_a_chat(home, || stop(home, &file));
    stop(home, &other);
    assert!(!waits(home), "it is imported, and its note is gone");
}
