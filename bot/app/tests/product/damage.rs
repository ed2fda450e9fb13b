//! Damaged files: indexes repair themselves, and a damaged record says what can be recovered.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::kills::Dice;
use crate::{command, fed};

/// Number of damages tried; each costs two starts.
const DAMAGES: usize = 12;

fn run(home: &Path, arguments: &[&str], input: &str) -> Output {
    let data = home.join("data");
    let mut command = command(home, &[arguments, &["--data", data.to_str().expect("a path")]].concat());
    // Find new messages at once.
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
fn a_damaged_index_is_repaired() {
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
            // File names change when the indexes are rebuilt.
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
        // As if the machine had lost power: the lock file shows an unclean end.
        std::fs::write(home.path().join("data").join("lock"), "1\n0\n").expect("the lock");
        let output = run(home.path(), &chat, &format!("which orchard is mine {number}\n"));
        let (out, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{what}: {out}{log}");
        let check = run(home.path(), &["memory", "check", "--deep", "--json"], "");
        by_itself += usize::from(check.status.success());
        // Damage without a checksum is found by embedding again.
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

/// Other commands between a kill and the next start do not clear the pending comparison of indexes and record.
#[test]
fn indexes_are_compared_after_a_kill_however_late() {
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
    // As if the process had been killed before the last index changes reached the disk.
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

/// With the record's log cut off, the start says what to do, and both ways of recovery work.
#[test]
fn a_damaged_record_says_how_to_recover_it() {
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
        let output_text = [output.stdout, output.stderr].concat();
        let output_text = String::from_utf8_lossy(&output_text);
        assert!(
            output_text.contains("damaged") && output_text.contains("azera restore"),
            "{arguments:?}: {output_text}"
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
    let output_text = String::from_utf8_lossy(&salvaged.stderr).into_owned();
    assert!(!salvaged.status.success() && output_text.contains("--replace"), "{output_text}");
    let salvaged = run(home.path(), &["restore", "--salvage", "--replace"], "");
    let output_text = String::from_utf8_lossy(&salvaged.stdout).into_owned();
    assert!(salvaged.status.success(), "{output_text}{}", String::from_utf8_lossy(&salvaged.stderr));
    assert!(output_text.contains("newest whole backup"), "{output_text}");
    let recovered = messages();
    assert!((30..60).contains(&recovered), "{recovered} of 60: {output_text}");
    assert!(run(home.path(), &chat, "and on it goes\n").status.success());
    assert!(run(home.path(), &["restore", "--replace"], "").status.success());
    assert_eq!(messages(), 30);
}
