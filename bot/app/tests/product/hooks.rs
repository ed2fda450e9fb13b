//! `azera hook` and `azera import` beside a running Azera: sessions are told what is remembered, and no end of one is lost.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::imports::{
    SAID, beside_a_chat, chatgpt, context, hook, import, run, search, transcript, until_taken_in, waits,
};
use crate::web::Running;
use crate::{azera, command};

const ARGUMENTS: [&str; 4] = ["--as", "Ann", "--project", "tower"];

fn stop(home: &Path, file: &Path) {
    hook(home, "stop", "Stop", file, home, &ARGUMENTS);
}

fn finds(home: &Path, word: &str) -> bool {
    search(home, "What opens the lighthouse?", &["--as", "Ann"]).iter().any(|hit| hit.contains(word))
}

/// The running Azera tells and learns for people of the terminal, before anybody has an account. Nobody else is told.
#[test]
fn a_hook_asks_the_running_azera() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let file = home.join("session.jsonl");
    let bot = Running::start(home, home.join("data").to_str().expect("a path"));
    let start = |whose: &[&str]| hook(home, "start", "SessionStart", &file, home, whose);
    assert_eq!(start(&ARGUMENTS), "", "nothing is remembered yet");
    let said = [("user", "The lighthouse opens with a heliotrope key.")];
    std::fs::write(&file, transcript("s1", &said)).expect("a file");
    stop(home, &file);
    until_taken_in(home, &bot);
    let told = context(&start(&ARGUMENTS));
    assert!(told.contains("heliotrope") && told.contains("2026-03-01"), "{told}");
    let longest = start(&["--as", "Ann", "--project", "tower", "--tokens", "20"]);
    assert!(longest.len() < told.len(), "{longest}");
    for whose in [["--as", "Ben", "--project", "tower"], ["--as", "Ann", "--project", "gate"]] {
        assert_eq!(start(&whose), "", "{whose:?}");
    }
    assert_eq!(start(&["--as", "Ann", "--project", "tower", "--persona", "areza"]), "", "another persona");
    bot.stop();
    assert_eq!(context(&start(&ARGUMENTS)), told, "the same without a running Azera");
    assert!(finds(home, "heliotrope"));
}

/// The running Azera imports, lists and forgets for the person who asks.
#[test]
fn an_import_asks_the_running_azera() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let said = [("user", "The gate opens with a zeppelin."), ("assistant", "Noted.")];
    std::fs::write(home.join("chat.json"), chatgpt(&SAID)).expect("a file");
    std::fs::write(home.join("gate.jsonl"), transcript("s1", &said)).expect("a file");
    let data = home.join("data");
    let data = data.to_str().expect("a path");
    let bot = Running::start(home, data);
    let ann = ["--as", "Ann"];
    let first = import(home, "chat.json", &ann);
    assert_eq!(
        (&first["added"], &first["format"], &first["interrupted"]),
        (&4.into(), &"chatgpt".into(), &false.into())
    );
    assert_eq!(import(home, "chat.json", &ann)["known"], 4);
    let told = run(home, &["import", home.join("gate.jsonl").to_str().expect("a path"), "--as", "Ann"]);
    assert!(told.contains("imported 2 messages in 1 chat") && told.contains("azera import --undo"), "{told}");
    let listed: Value = serde_json::from_str(&run(home, &["import", "--list", "--json", "--as", "Ann"])).expect("JSON");
    assert_eq!(listed.as_array().map(Vec::len), Some(2), "{listed}");
    assert!(run(home, &["import", "--list", "--as", "Ben"]).contains("imported nothing"));
    let id = first["import"].as_str().expect("an id");
    let fails = |arguments: &[&str]| {
        let output = azera(home, &[arguments, &["--data", data]].concat(), "");
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(fails(&["import", "--undo", id, "--yes", "--as", "Ben"]).contains("Ben has no import"));
    assert!(fails(&["import", "missing.json", "--as", "Ann"]).contains("missing.json"));
    let (empty, pipe) = (home.join("empty.json"), home.join("pipe"));
    std::fs::write(&empty, "").expect("a file");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("there is mkfifo").success());
    let unknown = fails(&["import", empty.to_str().expect("a path"), "--as", "Ann"]);
    assert!(unknown.contains("no export that Azera knows"), "{unknown}");
    for endless in [pipe.to_str().expect("a path"), "/dev/zero"] {
        let refused = fails(&["import", endless, "--as", "Ann"]);
        assert!(refused.contains("no regular file"), "{refused}");
    }
    let receipt = run(home, &["import", "--undo", id, "--yes", "--json", "--as", "Ann"]);
    let receipt: Value = serde_json::from_str(&receipt).expect("JSON");
    assert_eq!(receipt["messages"], 4, "{receipt}");
    bot.stop();
    let found = search(home, "What opens the gate? What is my boat called?", &ann);
    assert!(found.iter().any(|hit| hit.contains("zeppelin")), "{found:?}");
    assert!(!found.iter().any(|hit| hit.contains("heliotrope")), "{found:?}");
    assert_eq!(search(home, "What opens the gate?", &["--as", "Ben"]), [""; 0]);
}

/// The Azera that imports the transcript works in another folder than the hook.
#[test]
fn a_transcript_is_found_from_every_folder() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let (work, data) = (home.join("work"), home.join("data"));
    std::fs::create_dir(&work).expect("a folder");
    let said = [("user", "The lighthouse opens with a heliotrope key.")];
    std::fs::write(work.join("session.jsonl"), transcript("s1", &said)).expect("a file");
    beside_a_chat(home, || {
        let arguments = [&["hook", "stop"], &ARGUMENTS[..], &["--data", data.to_str().expect("a path")]].concat();
        let mut hook = command(home, &arguments);
        let input = serde_json::json!({"transcript_path": "session.jsonl", "cwd": "."}).to_string();
        assert!(crate::fed(hook.current_dir(&work), &input).status.success());
    });
    let other = home.join("other.jsonl");
    std::fs::write(&other, transcript("s2", &[("user", "The gate is closed.")])).expect("a file");
    stop(home, &other);
    assert!(!waits(home) && finds(home, "heliotrope"));
}

/// Calls a hook with the variable that Claude Code sets, and returns its output.
#[track_caller]
fn hook_of_claude(home: &Path, what: &str, input: &Value, project_dir: &Path, arguments: &[&str]) -> String {
    let data = home.join("data");
    let arguments = [&["hook", what], arguments, &["--data", data.to_str().expect("a path")]].concat();
    let mut hook = command(home, &arguments);
    let output = crate::fed(hook.env("CLAUDE_PROJECT_DIR", project_dir), &input.to_string());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Makes two repositories. The second one is a worktree, which has a file `.git`.
fn repositories(home: &Path) -> (PathBuf, PathBuf) {
    let (gate, boat) = (home.join("gate"), home.join("boat"));
    std::fs::create_dir_all(gate.join(".git")).expect("a folder");
    std::fs::create_dir_all(&boat).expect("a folder");
    std::fs::write(boat.join(".git"), "gitdir: ../gate/.git/worktrees/boat\n").expect("a file");
    (gate, boat)
}

/// A line of a transcript, written in a folder.
fn said_in(folder: &Path, session: &str, minute: u32, said: &str) -> String {
    let line = serde_json::json!({
        "type": "user", "uuid": format!("{session}-{minute}"), "sessionId": session, "cwd": folder,
        "timestamp": format!("2026-03-01T10:{minute:02}:00Z"), "message": {"role": "user", "content": said},
    });
    format!("{line}\n")
}

#[test]
fn a_session_that_enters_another_folder_stays_in_its_project() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let (gate, boat) = repositories(home);
    let (file, ann) = (home.join("session.jsonl"), ["--as", "Ann"]);
    let begun = said_in(&gate, "s1", 0, "The lighthouse opens with a heliotrope key.");
    std::fs::write(&file, &begun).expect("a file");
    hook(home, "stop", "Stop", &file, &gate, &ann);
    std::fs::write(&file, begun + &said_in(&boat, "s1", 1, "The zeppelin test still fails.")).expect("a file");
    hook(home, "stop", "Stop", &file, &boat, &ann);
    let told = context(&hook(home, "start", "SessionStart", &file, &gate, &ann));
    assert!(told.contains("zeppelin"), "{told}");
    assert_eq!(hook(home, "start", "SessionStart", &file, &boat, &ann), "", "it is another project");
    let listed: Value = serde_json::from_str(&run(home, &["import", "--list", "--json", "--as", "Ann"])).expect("JSON");
    assert_eq!((listed.as_array().map(Vec::len), &listed[0]["messages"]), (Some(1), &2.into()), "{listed}");
}

/// What the session said before counts in its project alone, also after the import of it was undone.
#[test]
fn a_session_whose_folder_was_removed_stays_in_its_project() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let (gate, _) = repositories(home);
    let (shed, file, ann) = (gate.join("worktrees/shed"), home.join("session.jsonl"), ["--as", "Ann"]);
    std::fs::create_dir_all(&shed).expect("a folder");
    std::fs::write(shed.join(".git"), "gitdir: ../../.git/worktrees/shed\n").expect("a file");
    let mut said = String::new();
    let mut goes_on = |folder: &Path, minute: u32, text: &str| {
        said += &said_in(folder, "s1", minute, text);
        std::fs::write(&file, &said).expect("a file");
        hook(home, "stop", "Stop", &file, folder, &ann);
    };
    let started = |whose: &[&str]| hook(home, "start", "SessionStart", &file, &gate, whose);
    let listed = || run(home, &["import", "--list", "--json", "--as", "Ann"]);
    goes_on(&shed, 0, "The lighthouse opens with a heliotrope key.");
    std::fs::remove_dir_all(&shed).expect("a folder");
    goes_on(&gate, 1, "The zeppelin test still fails.");
    let told = context(&started(&["--as", "Ann", "--project", "shed"]));
    assert!(told.contains("heliotrope") && told.contains("zeppelin"), "{told}");
    assert_eq!(started(&ann), "", "it is another project");
    let imports: Value = serde_json::from_str(&listed()).expect("JSON");
    run(home, &["import", "--undo", imports[0]["id"].as_str().expect("an id"), "--yes", "--as", "Ann"]);
    goes_on(&gate, 2, "The gate is closed.");
    assert_eq!((started(&ann).as_str(), listed().trim()), ("", "[]"), "nothing came back");
}

#[test]
fn the_assistants_variable_names_the_project_unless_an_option_does() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let (gate, boat) = repositories(home);
    let (tower, file, ann) = (home.join("tower"), home.join("session.jsonl"), ["--as", "Ann"]);
    std::fs::write(&file, said_in(&gate, "s1", 0, "The lighthouse opens with a heliotrope key.")).expect("a file");
    let ended = serde_json::json!({"transcript_path": file, "cwd": boat, "hook_event_name": "Stop"});
    assert_eq!(hook_of_claude(home, "stop", &ended, &tower, &ann), "");
    let begins = serde_json::json!({"cwd": gate, "hook_event_name": "SessionStart"});
    let told = context(&hook_of_claude(home, "start", &begins, &tower, &ann));
    assert!(told.contains("heliotrope"), "{told}");
    for folder in [&gate, &boat] {
        assert_eq!(hook_of_claude(home, "start", &begins, folder, &ann), "", "{}", folder.display());
    }
    let shed = ["--as", "Ann", "--project", "shed"];
    assert_eq!(hook_of_claude(home, "start", &begins, &tower, &shed), "", "the option has the last word");
    hook_of_claude(home, "stop", &ended, &tower, &shed);
    assert!(context(&hook_of_claude(home, "start", &begins, &tower, &shed)).contains("heliotrope"));
}

/// `azera chat` serves no web. A session starts all the same, and is told why it knows nothing.
#[test]
fn without_a_web_a_hook_says_so() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let data = home.join("data");
    let data = data.to_str().expect("a path");
    beside_a_chat(home, || {
        let started = azera(home, &["hook", "start", "--project", "tower", "--data", data], "{}");
        let says = String::from_utf8_lossy(&started.stderr).into_owned();
        assert!(started.status.success() && says.contains("serves no web"), "{says}");
        let refused = azera(home, &["import", "--list", "--data", data], "");
        let says = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && says.contains("serves no web"), "{says}");
    });
}

/// A pipe would hold the session up for ever. It is refused with and without a running Azera, and the session goes on.
#[test]
fn a_hook_refuses_what_is_no_file_and_does_not_wait() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let (pipe, folder) = (home.join("pipe"), home.join("folder"));
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("there is mkfifo").success());
    std::fs::create_dir(&folder).expect("a folder");
    let refuses = || {
        for path in [pipe.as_path(), folder.as_path(), Path::new("/dev/zero")] {
            let input = serde_json::json!({"transcript_path": path, "cwd": home, "hook_event_name": "Stop"});
            let data = home.join("data");
            let arguments = [&["hook", "stop"], &ARGUMENTS[..], &["--data", data.to_str().expect("a path")]].concat();
            let output = azera(home, &arguments, &input.to_string());
            let says = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success() && says.contains("no regular file"), "{}: {says}", path.display());
            assert!(output.stdout.is_empty() && !waits(home), "{}", path.display());
        }
    };
    refuses();
    beside_a_chat(home, refuses);
}

#[test]
fn a_transcript_whose_import_failed_waits_for_the_next_one() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let (file, other) = (home.join("session.jsonl"), home.join("other.jsonl"));
    std::fs::write(&file, "").expect("a file");
    std::fs::write(&other, transcript("s2", &[("user", "The gate is closed.")])).expect("a file");
    beside_a_chat(home, || stop(home, &file));
    std::fs::remove_file(&file).expect("a file");
    std::fs::create_dir(&file).expect("a folder");
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
    std::fs::write(&file, "").expect("a file");
    std::fs::write(&other, transcript("s2", &[("user", "The gate is closed.")])).expect("a file");
    beside_a_chat(home, || stop(home, &file));
    std::fs::remove_file(&file).expect("a file");
    std::fs::create_dir(&file).expect("a folder");
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
