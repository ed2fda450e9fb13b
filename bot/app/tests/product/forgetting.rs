//! Forgetting on disk: no byte of forgotten content remains in any file, packed or not, and nothing brings it back.

use std::path::{Path, PathBuf};

use azera_memory::Change;
use azera_memory_backup::{Backup, Folder};
use serde_json::{Value, json};

use crate::{at, azera, command, models, of, replay};

/// Returns a file in the home that contains `word`: a plain file, or a backup by its unpacked content.
pub fn find_in_home(home: &Path, word: &str) -> Option<PathBuf> {
    for folder in ["data", "models/prefixes"] {
        let folder = home.join(folder);
        if let Some(found) = folder.is_dir().then(|| on_disk(&folder, word)).flatten() {
            return Some(found);
        }
    }
    backups(home).into_iter().find(|backup| holds(backup, word)).map(|backup| backup.path)
}

/// Returns a file under `dir` that contains `needle`.
pub fn on_disk(dir: &Path, needle: &str) -> Option<PathBuf> {
    for entry in std::fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            if let Some(found) = on_disk(&entry, needle) {
                return Some(found);
            }
        } else {
            let bytes = std::fs::read(&entry).expect("a file");
            if bytes.windows(needle.len()).any(|window| window.eq_ignore_ascii_case(needle.as_bytes())) {
                return Some(entry);
            }
        }
    }
    None
}

pub fn backups(home: &Path) -> Vec<Backup> {
    Folder::new(home.join("data").join("backups"), "").list().expect("the folder can be read").backups
}

pub fn holds(backup: &Backup, word: &str) -> bool {
    let mut found = false;
    let mut look =
        |bytes: &[u8]| found |= bytes.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()));
    let read = backup.read(&mut |_| {}, &mut |batch| {
        for change in batch.changes() {
            match change {
                Change::Put(_, key, value) => {
                    look(key);
                    look(value);
                }
                Change::Remove(_, key) => look(key),
            }
        }
        Ok(())
    });
    read.expect("a whole backup");
    found
}

/// Runs a command on the data folder and returns its output as JSON.
#[track_caller]
fn run(home: &Path, arguments: &[&str]) -> Value {
    let data = home.join("data");
    let output = azera(home, &[arguments, &["--data", data.to_str().expect("a path")]].concat(), "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

/// Returns a table's number of rows in the record, from a fresh backup.
fn rows(home: &Path, table: &str) -> i64 {
    let path = home.join("count.zip");
    run(home, &["backup", "--to", path.to_str().expect("a path")]);
    let manifest = Backup::open(&path).expect("a backup").manifest;
    std::fs::remove_file(&path).expect("it was there");
    manifest.rows.get(table).map_or(0, |count| *count as i64)
}

/// Each way to forget removes its content from every file, reports it truthfully, and leaves the rest.
#[test]
fn no_byte_of_forgotten_content_remains() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let replayed = tell(home);
    assert!(of(&replayed, "error").is_empty(), "{replayed:?}");
    let fact = of(&replayed, "command")[0]["text"].as_str().expect("a text");
    let fact = fact.split('`').nth(1).expect("the id of the fact").to_owned();
    let made: Vec<_> = backups(home).into_iter().map(|backup| backup.manifest.made_at).collect();
    assert!(made.len() > 5, "every five minutes in which something changed: {made:?}");
    assert!(made.windows(2).all(|pair| pair[1].duration_since(pair[0]).as_mins() >= 5), "{made:?}");

    let (from, to) = (at(19), at(20));
    // Ways to forget, and the words that must disappear with each.
    let table: [(&[&str], &[&str]); 6] = [
        (&["--message", "a1"], &["heliotrope"]),
        (&["--memory", &fact], &["quagmire"]),
        (&["--chat", "den", "--from", &from, "--to", &to], &["obsidian"]),
        (&["--person", "bob"], &["tangerine", "bobington"]),
        (&["--chat", "dm-cid"], &["zeppelin", "marzipan", "perpetua", "zubrowka"]),
        (&["--realm", "club"], &["cormorant", "cidington"]),
    ];
    let gone = |done: usize| table.iter().take(done).flat_map(|(_, words)| *words);
    let left = |done: usize| table.iter().skip(done).flat_map(|(_, words)| *words).chain(&["greengage"]);
    for done in 0..=table.len() {
        for word in gone(done) {
            // Cid spoke in two places; the name disappears with the last one.
            assert_eq!(find_in_home(home, word), None, "{word} after {done} forgettings");
        }
        for word in left(done) {
            assert!(find_in_home(home, word).is_some(), "{word} after {done} forgettings");
            assert!(backups(home).iter().any(|backup| holds(backup, word)), "{word} in a backup");
        }
        let Some((what, _)) = table.get(done) else { break };
        let count = |home: &Path| {
            let record = run(home, &["memory", "check", "--json"])["record"].clone();
            ["messages", "replies", "memories"].map(|field| record[field].as_i64().expect("a count"))
        };
        let (before, why_before) = (count(home), rows(home, "why"));
        let receipt = run(home, &[&["memory", "forget", "--yes", "--quotes"], *what].concat());
        let (after, why_after) = (count(home), rows(home, "why"));
        let counted = ["messages", "replies", "memories", "why"].map(|field| receipt[field].as_i64().expect("a count"));
        let went = [before[0] - after[0], before[1] - after[1], before[2] - after[2], why_before - why_after];
        assert_eq!(counted, went, "messages, replies, memories and notes: {what:?} {receipt}");
        assert!(went.iter().sum::<i64>() > 0, "{what:?} {receipt}");
    }
    let words: Vec<&str> = gone(table.len()).copied().collect();
    nothing_brings_back(home, &words);
}

/// Nothing that is made anew brings forgotten words back, nor does a backup.
fn nothing_brings_back(home: &Path, words: &[&str]) {
    run(home, &["memory", "rebuild"]);
    for restored in [false, true] {
        if restored {
            let oldest = backups(home).into_iter().find(|backup| holds(backup, "greengage")).expect("a backup").path;
            run(home, &["restore", "--replace", oldest.to_str().expect("a path")]);
        }
        let ask = |word: &&str| json!({"type": "probe", "at": at(100), "chat": "dm-ann", "person": "ann", "query": word, "limit": 50});
        let mut timeline = vec![
            json!({"type": "realm", "at": at(99), "realm": "guild", "members": ["ann", "bob"]}),
            json!({"type": "chat", "at": at(99), "realm": "guild", "chat": "den", "kind": "private", "members": ["ann"]}),
            json!({"type": "chat", "at": at(99), "chat": "dm-ann", "kind": "dm", "members": ["ann"]}),
        ];
        timeline.extend(words.iter().map(ask));
        let replayed = replay(&timeline, home, "scripted");
        let hits: String = of(&replayed, "probe").iter().map(|search| search["hits"].to_string()).collect();
        for word in words {
            assert!(!hits.contains(word), "{word} was found: {hits}");
            assert_eq!(find_in_home(home, word), None, "{word}");
        }
        assert!(restored || hits.contains("lies there"), "something is found: {hits}");
    }
}

/// Tells of everything that is forgotten later, in chats of every kind.
fn tell(home: &Path) -> Vec<Value> {
    let say = |minute: usize, id: &str, chat: &str, person: &str, text: &str| {
        json!({"type": "message", "at": at(minute), "id": id, "chat": chat, "person": person,
            "name": format!("{person}ington"), "text": text, "mentions_bot": true})
    };
    replay(
        &[
            json!({"type": "realm", "at": at(0), "realm": "guild", "members": ["ann", "bob"]}),
            json!({"type": "realm", "at": at(0), "realm": "club", "members": ["cid"]}),
            json!({"type": "chat", "at": at(0), "realm": "guild", "chat": "square", "kind": "public"}),
            json!({"type": "chat", "at": at(0), "realm": "guild", "chat": "den", "kind": "private", "members": ["ann"]}),
            json!({"type": "chat", "at": at(0), "realm": "club", "chat": "bar", "kind": "public"}),
            json!({"type": "chat", "at": at(0), "chat": "dm-ann", "kind": "dm", "members": ["ann"]}),
            json!({"type": "chat", "at": at(0), "chat": "dm-cid", "kind": "dm", "members": ["cid"]}),
            say(1, "a1", "dm-ann", "ann", "the password of the lighthouse is heliotrope"),
            say(2, "a2", "dm-ann", "ann", "what is the password of the lighthouse?"),
            json!({"type": "command", "at": at(10), "chat": "dm-ann", "person": "ann", "text": "/remember the gate code is quagmire"}),
            say(20, "d1", "den", "ann", "under the stone lies obsidian"),
            say(21, "d2", "den", "ann", "nothing else lies there"),
            say(30, "s1", "square", "bob", "my favourite fruit is the tangerine"),
            say(31, "s2", "square", "ann", "mine is the greengage"),
            say(40, "c1", "dm-cid", "cid", "I will travel by zeppelin"),
            json!({"type": "command", "at": at(41), "chat": "dm-cid", "person": "cid", "text": "/branch marzipan 1"}),
            say(42, "c2", "dm-cid", "cid", "or by train"),
            // Names and relations of the graph, and a statement about two names.
            say(43, "c3", "dm-cid", "cid", "My sister Perpetua lives in Zubrowka with me."),
            say(44, "c4", "dm-cid", "cid", "Perpetua likes Zubrowka."),
            json!({"type": "command", "at": at(45), "chat": "dm-cid", "person": "cid", "text": "/graph split Perpetua Zubrowka"}),
            say(50, "b1", "bar", "cid", "I saw a cormorant"),
            json!({"type": "wait", "until": at(60)}),
        ],
        home,
        "scripted",
    )
}

/// The running bot forgets as well, through commands and deletions, with a real model, its prompt cache on disk and
/// full logging.
#[test]
fn a_running_bot_leaves_no_byte_of_forgotten_content() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    // A models folder of its own, so that the prompt cache is here.
    std::fs::create_dir(home.join("models")).expect("a folder");
    for name in ["smollm2-135m", "minilm-l6-v2"] {
        std::os::unix::fs::symlink(models().join(name), home.join("models").join(name)).expect("a link");
    }
    let say = |minute: usize, id: &str, text: &str| json!({"type": "message", "at": at(minute), "id": id, "chat": "dm", "person": "ann", "text": text});
    let forget = |minute: usize, what: &str| json!({"type": "command", "at": at(minute), "chat": "dm", "person": "ann", "text": format!("/forget {what}")});
    let play = |timeline: &[Value]| {
        let file = home.join("timeline.jsonl");
        let text: String = timeline.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(&file, text).expect("a file");
        let data = home.join("data");
        let arguments = ["replay", file.to_str().expect("a path"), "--data", data.to_str().expect("a path")];
        let mut command = command(home, &arguments);
        command.env("AZERA__MODELS__DIR", home.join("models")).env("AZERA__MODELS__PREFIX_CACHE_MB", "512");
        command.env("AZERA__MODELS__MAX_REPLY_TOKENS", "16").env("AZERA_LOG", "debug");
        let output = command.output().expect("the binary runs");
        std::fs::remove_file(&file).expect("it was there");
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{log}");
        (String::from_utf8(output.stdout).expect("UTF-8"), log)
    };
    let prefixes = || {
        let files = std::fs::read_dir(home.join("models/prefixes")).expect("evaluated prompts are kept");
        let mut files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
        files.sort();
        files
    };
    let dm = json!({"type": "chat", "at": at(0), "chat": "dm", "kind": "dm", "members": ["ann"]});
    let (_, _) = play(&[dm.clone(), say(1, "m1", "hello")]);
    let before = prefixes();
    assert!(!before.is_empty());
    let words = ["heliotrope", "quagmire", "obsidian", "tangerine"];
    let (events, log) = play(&[
        dm.clone(),
        say(10, "m2", "the first password is heliotrope"),
        say(20, "m3", "the second password is quagmire"),
        forget(21, "last quotes"),
        say(30, "m4", "the third password is obsidian"),
        say(40, "m5", "the fourth password is tangerine"),
        json!({"type": "delete", "at": at(41), "id": "m4"}),
        say(50, "m6", "good night"),
        forget(51, "me quotes"),
        json!({"type": "wait", "until": at(61)}),
    ]);
    assert!(!events.contains("\"type\":\"error\""), "{events}");
    for word in words {
        assert_eq!(find_in_home(home, word), None, "{word}");
        assert!(!log.contains(word), "{word} was logged");
    }
    // The cached prompts are only the persona's, whatever was said.
    assert_eq!(prefixes(), before);
    assert!(backups(home).len() > 3, "backups were made and gone through");
}
