//! Damaged files: indexes come back by themselves, a record says what can be saved.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::kills::Dice;
use crate::{command, fed};

/// Damages tried; each costs two starts.
const DAMAGES: usize = 12;

fn run(home: &Path, arguments: &[&str], input: &str) -> Output {
    let data = home.join("data");
    let mut command = command(home, &[arguments, &["--data", data.to_str().expect("a path")]].concat());
    // What was said a moment ago is to be found.
    fed(command.env("AZERA__MEMORY__MIN_AGE_S", "0"), input)
}

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            files(&entry, found);
        } else if entry.metadata().expect("a file").len() > 0 {
            found.push(entry);
        }
    }
}

/// Cuts a file off, or overwrites a part of it.
fn damage(file: &Path, dice: &mut Dice) -> String {
    let mut bytes = std::fs::read(file).expect("a file");
    let length = bytes.len() as u64;
    let at = dice.throw(length) as usize;
    let what = if dice.throw(2) == 0 {
        bytes.truncate(at);
        format!("cut off at {at} of {length}")
    } else {
        let end = (at + 1 + dice.throw(2_000) as usize).min(bytes.len());
        bytes[at..end].iter_mut().for_each(|byte| *byte = dice.throw(256) as u8);
        format!("overwritten from {at} to {end} of {length}")
    };
    std::fs::write(file, bytes).expect("a file");
    format!("{} {what}", file.display())
}

fn talk(messages: usize) -> String {
    let words = ["tide", "ladder", "copper", "orchard", "lantern", "gravel", "walnut", "harbour"];
    (0..messages).map(|number| format!("the {} number {number} is mine\n", words[number % words.len()])).collect()
}

#[test]
fn a_damaged_index_is_mended() {
    let home = tempfile::tempdir().expect("a folder");
    let chat = ["chat", "--json", "--as", "ann", "--model", "scripted"];
    assert!(run(home.path(), &chat, &talk(60)).status.success());
    assert!(run(home.path(), &["memory", "check", "--mend", "--json"], "").status.success());
    let mut dice = Dice(0x853c_49e6_748f_ea9b);
    let mut found = Vec::new();
    for index in ["vectors", "text"] {
        files(&home.path().join("data").join(index), &mut found);
    }
    let mut by_itself = 0;
    for number in 0..DAMAGES {
        let file = loop {
            // Names change as the indexes are made anew.
            let at = dice.throw(found.len() as u64) as usize;
            if found[at].exists() {
                break found[at].clone();
            }
            found.clear();
            for index in ["vectors", "text"] {
                files(&home.path().join("data").join(index), &mut found);
            }
        };
        let what = damage(&file, &mut dice);
        // As if the machine had gone down: nobody said goodbye.
        std::fs::write(home.path().join("data").join("lock"), "1\n0\n").expect("the lock");
        let output = run(home.path(), &chat, &format!("which orchard is mine {number}\n"));
        let (out, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{what}: {out}{log}");
        let check = run(home.path(), &["memory", "check", "--deep", "--json"], "");
        by_itself += usize::from(check.status.success());
        // What no checksum guards is found by making it anew.
        let mended = run(home.path(), &["memory", "check", "--deep", "--mend", "--json"], "");
        let text = String::from_utf8_lossy(&mended.stdout).into_owned();
        assert!(mended.status.success(), "{what}: {text}{}", String::from_utf8_lossy(&mended.stderr));
        let search = run(home.path(), &["memory", "search", "orchard", "--as", "ann", "--json", "--limit", "3"], "");
        let (hits, log) = (String::from_utf8_lossy(&search.stdout), String::from_utf8_lossy(&search.stderr));
        assert!(hits.contains("orchard"), "{what}: {hits}{log}");
    }
    eprintln!("{by_itself} of {DAMAGES} damaged indexes were mended by the start alone, the others by `memory check`");
    assert!(by_itself > DAMAGES / 2);
    let check = run(home.path(), &["memory", "check", "--json"], "");
    let check: Value = serde_json::from_slice(&check.stdout).expect("JSON");
    assert_eq!(check["record"]["messages"], 60 + DAMAGES, "the record was never touched: {check}");
}

/// Other commands between a kill and the next start do not make it forget to compare the indexes with the record.
#[test]
fn indexes_left_behind_by_a_kill_are_compared_however_late() {
    let home = tempfile::tempdir().expect("a folder");
    let data = home.path().join("data");
    let chat = ["chat", "--json", "--as", "ann", "--model", "scripted"];
    let unaccounted = || {
        let check = run(home.path(), &["memory", "check", "--json"], "");
        serde_json::from_slice::<Value>(&check.stdout).expect("JSON")["unaccounted"].clone()
    };
    assert!(run(home.path(), &chat, &talk(4)).status.success());
    assert!(run(home.path(), &["memory", "check", "--mend"], "").status.success());
    let older = home.path().join("older");
    std::fs::rename(data.join("text"), &older).expect("the index");
    assert!(run(home.path(), &chat, &talk(8)).status.success());
    assert!(run(home.path(), &["memory", "check", "--mend"], "").status.success());
    // Killed before the last changes of an index were on the disk.
    std::fs::remove_dir_all(data.join("text")).expect("the index");
    std::fs::rename(&older, data.join("text")).expect("the older index");
    std::fs::write(data.join("lock"), "1\n0\n").expect("the lock");
    for command in [&["backup"][..], &["restore", "--undo"], &["memory", "stats"]] {
        run(home.path(), command, "");
    }
    assert_ne!(unaccounted(), 0, "the older index holds less");
    assert!(run(home.path(), &chat, "hello\n").status.success());
    assert_eq!(unaccounted(), 0);
}

/// The record's own log is cut off: the start says so and what to do, and both ways out work.
#[test]
fn a_damaged_record_says_what_can_be_saved() {
    let home = tempfile::tempdir().expect("a folder");
    let chat = ["chat", "--json", "--as", "ann", "--model", "scripted"];
    assert!(run(home.path(), &chat, &talk(30)).status.success());
    assert!(run(home.path(), &["backup"], "").status.success());
    assert!(run(home.path(), &chat, &talk(30)).status.success());
    let log = home.path().join("data/record/g1/db");
    let bytes = std::fs::read(&log).expect("the log");
    std::fs::write(&log, &bytes[..bytes.len() - bytes.len() / 4]).expect("the log");
    for arguments in [&chat[..], &["doctor"], &["memory", "check"]] {
        let output = run(home.path(), arguments, "hello\n");
        assert!(!output.status.success());
        let answer_text = [output.stdout, output.stderr].concat();
        let answer_text = String::from_utf8_lossy(&answer_text);
        assert!(
            answer_text.contains("damaged") && answer_text.contains("azera restore"),
            "{arguments:?}: {answer_text}"
        );
    }
    let messages = || {
        let check = run(home.path(), &["memory", "check", "--json"], "");
        let text = String::from_utf8_lossy(&check.stdout).into_owned();
        assert!(check.status.success(), "{text}{}", String::from_utf8_lossy(&check.stderr));
        let check: Value = serde_json::from_str(&text).expect("JSON");
        check["record"]["messages"].as_u64().expect("a count")
    };
    let salvaged = run(home.path(), &["restore", "--salvage"], "");
    let answer_text = String::from_utf8_lossy(&salvaged.stderr).into_owned();
    assert!(!salvaged.status.success() && answer_text.contains("--replace"), "{answer_text}");
    let salvaged = run(home.path(), &["restore", "--salvage", "--replace"], "");
    let answer_text = String::from_utf8_lossy(&salvaged.stdout).into_owned();
    assert!(salvaged.status.success(), "{answer_text}{}", String::from_utf8_lossy(&salvaged.stderr));
    assert!(answer_text.contains("newest whole backup"), "{answer_text}");
    let retained = messages();
    assert!((30..60).contains(&retained), "{retained} of 60: {answer_text}");
    assert!(run(home.path(), &chat, "and on it goes\n").status.success());
    assert!(run(home.path(), &["restore", "--replace"], "").status.success());
    assert_eq!(messages(), 30);
}
