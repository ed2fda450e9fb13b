//! Backups: made on a schedule, kept by a rule, restored by one command, and cleaned when something is forgotten.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::forgetting::{backups, find_in_home, holds};
use crate::{at, azera, command, fed, of, replay};

fn dm() -> Value {
    json!({"type": "chat", "at": at(0), "chat": "dm", "kind": "dm", "members": ["ann"]})
}

fn say(minute: usize, id: &str, text: &str) -> Value {
    json!({"type": "message", "at": at(minute), "id": id, "chat": "dm", "person": "ann", "text": text})
}

/// Runs a command on the data folder under `scratch`.
fn run(scratch: &Path, arguments: &[&str]) -> Output {
    let data = scratch.join("data");
    let data = ["--data", data.to_str().expect("a path")];
    azera(scratch, &[arguments, &data].concat(), "")
}

#[track_caller]
fn succeed(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

#[track_caller]
fn refuse(output: &Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// Returns the manifests of all backups, oldest first.
fn manifests(scratch: &Path) -> Vec<Value> {
    let list = succeed(&run(scratch, &["backup", "list", "--json"]));
    let list: Vec<Value> = serde_json::from_str(&list).expect("JSON");
    list.into_iter().map(|backup| backup["manifest"].clone()).collect()
}

/// Returns ann's messages from the record.
fn said(scratch: &Path) -> Vec<String> {
    let export: Value =
        serde_json::from_str(&succeed(&run(scratch, &["memory", "export", "--person", "ann"]))).expect("JSON");
    let messages = export["messages"].as_array().expect("messages").iter();
    messages.map(|message| message["text"].as_str().expect("a text").to_owned()).collect()
}

/// Three hours of talk leave the backups of the retention rule, and each restores the record of its time.
#[test]
fn scheduled_backups_restore_the_record_of_their_time() {
    let scratch = tempfile::tempdir().expect("a folder");
    let mut talk = vec![dm()];
    // From one to four o'clock, a message every three minutes.
    talk.extend(
        (0..60).map(|number| say(60 + number * 3, &format!("m{number}"), &format!("the day's word is w{number}"))),
    );
    // Short enough that the persona does not fall asleep, which would change the record.
    talk.push(json!({"type": "wait", "until": at(250)}));
    let replayed = replay(&talk, scratch.path(), "scripted");
    assert!(of(&replayed, "error").is_empty(), "{replayed:?}");
    let made: Vec<String> = manifests(scratch.path())
        .iter()
        .map(|manifest| manifest["made_at"].as_str().expect("a time").trim_start_matches("2026-03-01T").to_owned())
        .collect();
    // At 04:00, when the last backup was made, the rule keeps all of the last hour and the first of each earlier hour.
    // The rest of the wait changed nothing, so it made no backup.
    let last_hour = (1..12).map(|step| format!("03:{:02}:00Z", step * 5)).chain(["04:00:00Z".to_owned()]);
    let hours = (0..4).map(|hour| format!("0{hour}:00:00Z"));
    let want: Vec<String> = hours.chain(last_hour).collect();
    assert_eq!(made, want);
    assert!(succeed(&run(scratch.path(), &["backup", "verify"])).lines().all(|line| line.contains("is whole")));

    let all = said(scratch.path());
    assert_eq!(all.len(), 60);
    assert!(refuse(&run(scratch.path(), &["restore"])).contains("--replace"));
    assert_eq!(said(scratch.path()), all, "a refused restore changed nothing");
    let list = succeed(&run(scratch.path(), &["backup", "list"]));
    let at_two = list.lines().find(|line| line.contains("02:00:00")).expect("the backup of two o'clock");
    let at_two = at_two.split_whitespace().next().expect("its name");
    succeed(&run(scratch.path(), &["restore", at_two, "--replace"]));
    let early = said(scratch.path());
    assert_eq!(early, all[..early.len()]);
    assert_eq!(early.last().map(String::as_str), Some("the day's word is w19"));
    // The next start rebuilds the indexes, and nothing is answered twice.
    let replayed = replay(
        &[
            dm(),
            json!({"type": "probe", "at": at(301), "chat": "dm", "person": "ann", "query": "the word w7"}),
            json!({"type": "probe", "at": at(302), "chat": "dm", "person": "ann", "query": "the word w59"}),
            say(310, "m59", "the day's word is w59"),
        ],
        scratch.path(),
        "scripted",
    );
    let probes = of(&replayed, "probe");
    assert_eq!(probes[0]["hits"][0]["sources"], json!(["m7"]), "{}", probes[0]);
    assert!(!probes[1]["hits"].to_string().contains("w59"), "{}", probes[1]);
    let replies: Vec<&Value> = of(&replayed, "reply").into_iter().map(|reply| &reply["to"]).collect();
    assert_eq!(replies, ["m59"]);

    succeed(&run(scratch.path(), &["restore", "--undo"]));
    assert_eq!(said(scratch.path()), all);
    // Restore the newest backup into a folder that has nothing but backups.
    succeed(&run(scratch.path(), &["backup"]));
    for gone in ["record", "vectors", "text", "working", "personas", "aside"] {
        std::fs::remove_dir_all(scratch.path().join("data").join(gone)).expect("the folder was there");
    }
    succeed(&run(scratch.path(), &["restore"]));
    assert_eq!(said(scratch.path()), all);
    assert!(succeed(&run(scratch.path(), &["persona", "list"])).contains("areza"));
}

/// Every way to forget also removes the content from the backups.
#[test]
fn forgotten_content_leaves_the_backups() {
    let scratch = tempfile::tempdir().expect("a folder");
    let secret = "xylophonist77";
    let secret_message = format!("my wifi password is {secret}");
    let replayed = replay(
        &[
            dm(),
            say(1, "m1", &secret_message),
            say(10, "m2", "the weather is lovely"),
            say(20, "m3", &secret_message),
            json!({"type": "delete", "at": at(30), "id": "m1"}),
            say(40, "m4", "good night"),
        ],
        scratch.path(),
        "scripted",
    );
    assert!(of(&replayed, "error").is_empty(), "{replayed:?}");
    let rows = |scratch: &Path| {
        manifests(scratch).iter().map(|manifest| manifest["rows"]["messages"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(rows(scratch.path()), [json!(null), json!(2), json!(4), json!(6), json!(6), json!(8)]);
    let restored = |number: usize| {
        let list = succeed(&run(scratch.path(), &["backup", "list"]));
        let name = list.lines().nth(number).and_then(|line| line.split_whitespace().next()).expect("a name").to_owned();
        succeed(&run(scratch.path(), &["restore", &name, "--replace"]));
        let said = said(scratch.path());
        succeed(&run(scratch.path(), &["restore", "--undo"]));
        said
    };
    assert_eq!(restored(2), ["the weather is lovely"], "one of before the forgetting");
    assert_eq!(restored(3), ["the weather is lovely", &secret_message], "m3 was not forgotten");
    // On the command line, forgetting cleans backups at once, and also deletes what a restore set aside.
    let receipt = succeed(&run(scratch.path(), &["memory", "forget", "--message", "m3", "--yes"]));
    let receipt: Value = serde_json::from_str(&receipt).expect("JSON");
    assert_eq!(receipt["backups_rewritten"], 3, "{receipt}");
    assert_eq!(restored(3), ["the weather is lovely"]);
    assert_eq!(find_in_home(scratch.path(), secret), None);
}

/// Neither a restore nor its undo brings back forgotten content, even if a backup cannot be read and the process ended
/// before it cleaned the others.
#[test]
fn a_restore_does_not_bring_back_what_was_forgotten() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (home, data) = (scratch.path(), scratch.path().join("data"));
    let secret = "my wifi password is xylophonist77";
    replay(&[dm(), say(1, "m1", secret), say(10, "m2", "the weather is lovely")], home, "scripted");
    succeed(&run(home, &["backup"]));
    let (newest, other_place) = (backups(home).pop().expect("a backup").path, home.join("elsewhere.zip"));
    std::fs::copy(&newest, &other_place).expect("a copy");
    succeed(&run(home, &["restore", "--replace"]));
    std::fs::rename(data.join("aside"), home.join("aside")).expect("what was there is aside");
    // A folder in place of a backup file cannot be read.
    let name = newest.file_name().and_then(|name| name.to_str()).and_then(|name| name.split('-').next_back());
    let unreadable = data.join("backups").join(format!("azera-19990101T000000Z-{}", name.expect("its record")));
    std::fs::create_dir(&unreadable).expect("a folder");
    let forget = run(home, &["memory", "forget", "--message", "m1", "--yes"]);
    assert!(refuse(&forget).contains("may still stand in a backup"));
    let receipt: Value = serde_json::from_slice(&forget.stdout).expect("a receipt all the same");
    assert_eq!(receipt["messages"], 1, "{receipt}");
    assert!(!backups(home).iter().any(|backup| holds(backup, secret)), "the other backups forgot");
    // As if the process had ended before it cleaned what was set aside.
    std::fs::rename(home.join("aside"), data.join("aside")).expect("it is back");
    succeed(&run(home, &["restore", "--undo"]));
    assert_eq!(said(home), ["the weather is lovely"]);
    let restored = run(home, &["restore", "--replace", other_place.to_str().expect("a path")]);
    assert!(!String::from_utf8_lossy(&restored.stderr).contains("the present record cannot be read"));
    succeed(&restored);
    assert_eq!(said(home), ["the weather is lovely"]);
    // The restored record knows which content its backups still have to lose.
    let count = backups(home).len();
    assert!(refuse(&run(home, &["backup"])).contains("may still stand in a backup"));
    assert_eq!(backups(home).len(), count + 1, "it was made all the same");
    std::fs::remove_dir(&unreadable).expect("it was there");
    std::fs::rename(&other_place, data.join("backups").join("azera-found.zip")).expect("a name");
    succeed(&run(home, &["backup"]));
    assert_eq!(find_in_home(home, secret), None);
}

/// Records that a restore set aside are deleted after some days, also with backups off.
#[test]
fn replaced_records_are_deleted_after_some_days() {
    let scratch = tempfile::tempdir().expect("a folder");
    let data = scratch.path().join("data");
    let aside = |name: &str| data.join("aside").join(name);
    for name in ["20000101T000000Z", "29990101T000000Z"] {
        std::fs::create_dir_all(aside(name)).expect("a folder");
    }
    let chat = ["chat", "--json", "--model", "scripted", "--data", data.to_str().expect("a path")];
    let output = fed(command(scratch.path(), &chat).env("AZERA__BACKUP__ENABLED", "false"), "hello\n");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!aside("20000101T000000Z").exists() && aside("29990101T000000Z").exists());
}

/// A running Azera names itself as the folder's holder, and makes its backups itself.
#[test]
fn a_folder_in_use_is_refused() {
    let scratch = tempfile::tempdir().expect("a folder");
    let data = scratch.path().join("data");
    let chat = ["chat", "--json", "--model", "scripted", "--data", data.to_str().expect("a path")];
    let mut running = command(scratch.path(), &chat).spawn().expect("the binary runs");
    let mut input = running.stdin.take().expect("a pipe");
    writeln!(input, "hello").expect("it reads");
    let mut output = BufReader::new(running.stdout.take().expect("a pipe")).lines();
    assert!(output.any(|line| line.expect("a line").contains("\"type\":\"turn\"")));
    let holder = format!("process {}", running.id());
    for (arguments, hint) in [(&["backup"][..], "makes backups itself"), (&["restore", "--replace"], "stop it first")] {
        let refused = refuse(&run(scratch.path(), arguments));
        assert!(refused.contains(&holder) && refused.contains(hint), "{refused}");
    }
    drop(input);
    assert!(running.wait().expect("it ends").success());
    assert!(succeed(&run(scratch.path(), &["backup"])).contains("2 messages"));
    assert_eq!(manifests(scratch.path()).len(), 1);
}

/// A missing backup folder is reported until it is given up.
#[test]
fn a_missing_backup_folder_is_reported_until_it_is_given_up() {
    let scratch = tempfile::tempdir().expect("a folder");
    let lost = scratch.path().join("lost");
    let data = scratch.path().join("data");
    let data = ["--data", data.to_str().expect("a path")];
    let talk = ["chat", "--json", "--model", "scripted"];
    assert!(azera(scratch.path(), &[&talk[..], &data].concat(), "hello\n").status.success());
    let backup = [&["backup"][..], &data].concat();
    assert!(command(scratch.path(), &backup).env("AZERA__BACKUP__DIR", &lost).status().expect("it runs").success());
    std::fs::remove_dir_all(&lost).expect("a folder");
    let name = lost.to_str().expect("a path");
    let doctor = || String::from_utf8(run(scratch.path(), &["doctor"]).stdout).expect("UTF-8");
    assert!(doctor().contains(&format!("azera backup give-up {name}")), "{}", doctor());
    assert!(refuse(&run(scratch.path(), &["backup", "give-up", "/elsewhere"])).contains("no backups were made into"));
    assert!(succeed(&run(scratch.path(), &["backup", "give-up", name])).contains("is given up"));
    assert!(!doctor().contains(name), "{}", doctor());
}
