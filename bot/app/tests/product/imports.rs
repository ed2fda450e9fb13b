//! `azera import` and `azera hook`: what other programs know becomes memories of one person, once, and can be forgotten.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::forgetting::{find_in_home, on_disk};
use crate::{azera, command};

/// Runs a command on the data folder, and returns what it printed.
#[track_caller]
pub fn run(home: &Path, arguments: &[&str]) -> String {
    let data = home.join("data");
    let output = azera(home, &[arguments, &["--data", data.to_str().expect("a path")]].concat(), "");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Imports a file, and returns the report.
#[track_caller]
pub fn import(home: &Path, file: &str, arguments: &[&str]) -> Value {
    let path = home.join(file);
    let printed = run(home, &[&["import", path.to_str().expect("a path"), "--json"], arguments].concat());
    serde_json::from_str(&printed).expect("JSON")
}

/// Returns what a search finds: author, day and text.
#[track_caller]
pub fn search(home: &Path, query: &str, arguments: &[&str]) -> Vec<String> {
    let found = run(home, &[&["memory", "search", query, "--json"], arguments].concat());
    let found: Vec<Value> = serde_json::from_str(&found).expect("JSON");
    let text = |hit: &Value, field: &str| hit[field].as_str().unwrap_or_default().to_owned();
    found.iter().map(|hit| format!("{} {}", text(hit, "memory"), text(hit, "text"))).collect()
}

/// Returns a memory as the person may see it.
#[track_caller]
pub fn memory(home: &Path, hit: &str, person: &str) -> Value {
    let id = hit.split(' ').next().expect("an id");
    serde_json::from_str(&run(home, &["memory", "show", id, "--as", person])).expect("JSON")
}

/// A conversation of ChatGPT with these messages, each by a role.
pub fn chatgpt(said: &[(&str, &str)]) -> String {
    let mut mapping = serde_json::Map::new();
    mapping.insert("n0".into(), json!({"id": "n0", "parent": null, "message": null}));
    for (number, (role, text)) in said.iter().enumerate() {
        let id = format!("n{}", number + 1);
        let message = json!({
            "id": format!("m{}", number + 1), "author": {"role": role}, "create_time": 1_709_290_000 + number,
            "content": {"content_type": "text", "parts": [text]}, "recipient": "all",
        });
        mapping.insert(id.clone(), json!({"id": id, "parent": format!("n{number}"), "message": message}));
    }
    let current = format!("n{}", said.len());
    json!([{"conversation_id": "c1", "title": "The Mistletoe", "current_node": current, "mapping": mapping}])
        .to_string()
}

pub const SAID: [(&str, &str); 4] = [
    ("user", "My boat is called heliotrope and lies in harbour nine."),
    ("assistant", "A quagmire of a harbour, but a good name for a boat."),
    ("user", "I bought my boat from a man called Obsidian."),
    ("assistant", "Noted."),
];

/// The whole life of an import: counted, imported, found with its date and speaker, imported again, grown, undone.
#[test]
fn a_conversation_is_imported_once_found_and_undone() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    std::fs::write(home.join("chat.json"), chatgpt(&SAID[..2])).expect("a file");
    let ann = ["--as", "Ann"];
    let counted = import(home, "chat.json", &["--as", "Ann", "--dry-run"]);
    assert_eq!((&counted["added"], &counted["dry_run"]), (&json!(2), &json!(true)));
    assert_eq!(search(home, "boat", &ann), [""; 0], "counting adds nothing");
    let first = import(home, "chat.json", &ann);
    assert_eq!((&first["added"], &first["known"], &first["format"]), (&json!(2), &json!(0), &json!("chatgpt")));
    let again = import(home, "chat.json", &ann);
    assert_eq!((&again["added"], &again["known"]), (&json!(0), &json!(2)));
    let stats: Value = serde_json::from_str(&run(home, &["memory", "stats", "--json"])).expect("JSON");
    assert_eq!((&stats["memories"], &stats["queued"], &stats["unaccounted"]), (&json!(2), &json!(0), &json!(0)));
    let found = search(home, "What is my boat called?", &ann);
    let own = found.iter().find(|hit| hit.contains("heliotrope")).expect("it is found");
    let row = memory(home, own, "Ann");
    assert_eq!(
        (&row["author"]["person"]["name"], &row["author"]["person"]["id"]),
        (&json!("Ann"), &json!("console:ann"))
    );
    assert_eq!(row["at"], json!("2024-03-01T10:46:40Z"), "{row}");
    let other = found.iter().find(|hit| hit.contains("quagmire")).expect("it is found");
    let author = &memory(home, other, "Ann")["author"]["person"];
    assert_eq!(author["name"], json!("ChatGPT"), "an assistant's words are its own");
    assert!(author["id"].as_str().is_some_and(|id| id.starts_with("import:")), "{author}");

    std::fs::write(home.join("chat.json"), chatgpt(&SAID)).expect("a file");
    let grown = import(home, "chat.json", &ann);
    assert_eq!((&grown["added"], &grown["known"], &grown["import"]), (&json!(2), &json!(2), &first["import"]));
    let listed: Value = serde_json::from_str(&run(home, &["import", "--list", "--json", "--as", "Ann"])).expect("JSON");
    assert_eq!((listed.as_array().map(Vec::len), &listed[0]["messages"]), (Some(1), &json!(4)), "{listed}");
    assert!(run(home, &["import", "--list", "--as", "Ben"]).contains("imported nothing"));
    run(home, &["backup"]);
    for word in ["heliotrope", "quagmire", "obsidian", "mistletoe", "chat.json"] {
        assert!(find_in_home(home, word).is_some(), "{word} is there before the undo");
    }

    let id = first["import"].as_str().expect("an id");
    let data = home.join("data");
    let data = data.to_str().expect("a path");
    let refused = azera(home, &["import", "--undo", id, "--yes", "--as", "Ben", "--data", data], "");
    assert!(!refused.status.success(), "it is not Ben's import");
    let receipt: Value =
        serde_json::from_str(&run(home, &["import", "--undo", id, "--yes", "--as", "Ann"])).expect("JSON");
    assert_eq!((&receipt["messages"], &receipt["memories"], &receipt["chats"]), (&json!(4), &json!(4), &json!(1)));
    for word in ["heliotrope", "quagmire", "obsidian", "mistletoe", "chat.json"] {
        assert_eq!(find_in_home(home, word), None, "{word} after the undo");
    }
    assert_eq!(search(home, "What is my boat called?", &ann), [""; 0]);
    let back = import(home, "chat.json", &ann);
    assert_eq!((&back["added"], &back["forgotten"]), (&json!(4), &json!(0)), "an undone import can be repeated");
    assert!(search(home, "What is my boat called?", &ann).iter().any(|hit| hit.contains("heliotrope")));
    run(home, &["memory", "forget", "--person", "console:ann", "--yes"]);
    for word in ["heliotrope", "quagmire", "obsidian", "mistletoe"] {
        assert_eq!(find_in_home(home, word), None, "{word} after Ann was forgotten");
    }
    let forgotten = import(home, "chat.json", &ann);
    assert_eq!((&forgotten["added"], &forgotten["forgotten"]), (&json!(0), &json!(4)), "what was forgotten stays so");
    let check: Value = serde_json::from_str(&run(home, &["memory", "check", "--deep", "--json"])).expect("JSON");
    assert_eq!(check["good"], json!(true), "{check}");
}

/// What Ann imported is shown to her and one persona alone; nothing of it counts as hers that she did not say.
#[test]
fn an_import_is_shown_to_nobody_else() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let discord = json!({
        "guild": {"id": "1", "name": "Club"}, "channel": {"id": "7", "name": "kitchen"},
        "messages": [
            {"id": "1", "type": "Default", "timestamp": "2025-05-01T12:00:00+02:00", "content": "The locker code is heliotrope.",
             "author": {"id": "9", "name": "ann", "nickname": "Annie", "isBot": false}},
            {"id": "2", "type": "Default", "timestamp": "2025-05-01T12:01:00+02:00", "content": "My locker code is quagmire.",
             "author": {"id": "8", "name": "ben", "nickname": null, "isBot": false}},
            {"id": 3},
        ],
    });
    std::fs::write(home.join("kitchen.json"), discord.to_string()).expect("a file");
    let report = import(home, "kitchen.json", &["--as", "Ann", "--me", "ann"]);
    assert_eq!(
        (&report["added"], &report["flaws"], &report["listed_flaws"][0]["position"]),
        (&json!(2), &json!(1), &json!(3))
    );
    let query = "What is the locker code?";
    let found = search(home, query, &["--as", "Ann"]);
    assert_eq!(found.len(), 2, "{found:?}");
    for hit in &found {
        let name = memory(home, hit, "Ann")["author"]["person"]["name"].clone();
        assert_eq!(name, json!(if hit.contains("heliotrope") { "Ann" } else { "ben" }));
    }
    for other in [["--as", "Ben"], ["--as", "ann ben"]] {
        assert_eq!(search(home, query, &other), [""; 0], "{other:?}");
    }
    assert_eq!(search(home, query, &["--as", "Ann", "--persona", "areza"]), [""; 0], "another persona knows nothing");
    // Without `--me`, everybody in the file is somebody else.
    let report = import(home, "kitchen.json", &["--as", "Cid", "--project", "club"]);
    assert_eq!(report["added"], json!(2), "another person's import is another one");
    let found = search(home, query, &["--as", "Cid"]);
    assert_eq!(found.len(), 2, "{found:?}");
    for hit in &found {
        // A project is a realm of its own, and only a search by its person reaches it.
        let output = azera(
            home,
            &[
                "memory",
                "show",
                hit.split(' ').next().expect("an id"),
                "--as",
                "Ann",
                "--data",
                home.join("data").to_str().expect("a path"),
            ],
            "",
        );
        assert!(!output.status.success(), "Cid's project is hidden from Ann");
        assert_eq!(memory(home, hit, "Cid")["scope"], json!("realm:project:console:cid:club"));
    }
    let export = run(home, &["memory", "export", "--person", "console:cid"]);
    assert!(!export.contains("heliotrope") && !export.contains("quagmire"), "Cid said none of it: {export}");
}

/// A message of an export of Discord.
fn of_discord(id: usize, author: (&str, &str, &str), text: &str) -> Value {
    let (author, name, nickname) = author;
    json!({"id": id.to_string(), "type": "Default", "timestamp": "2025-05-01T12:00:00Z", "content": text,
        "author": {"id": author, "name": name, "nickname": nickname, "isBot": false}})
}

/// Everybody may choose any name to show, so `--me` takes ids and names of accounts alone, and refuses two people.
#[test]
fn a_nickname_makes_nobody_the_person_who_imports() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let channel = |messages: Value| json!({"guild": null, "channel": {"id": "7"}, "messages": messages}).to_string();
    let ann = of_discord(1, ("109", "ann", "Annie"), "The locker code is heliotrope.");
    let ben = of_discord(2, ("108", "ben", "ann"), "My locker code is quagmire.");
    std::fs::write(home.join("kitchen.json"), channel(json!([ben, ann]))).expect("a file");
    assert_eq!(import(home, "kitchen.json", &["--as", "Ann", "--me", "ann"])["added"], json!(2));
    let found = search(home, "What is the locker code?", &["--as", "Ann"]);
    assert_eq!(found.len(), 2, "{found:?}");
    for hit in &found {
        let id = memory(home, hit, "Ann")["author"]["person"]["id"].clone();
        assert_eq!(id == json!("console:ann"), hit.contains("heliotrope"), "{hit}: {id}");
    }
    let eve = of_discord(3, ("110", "109", "Eve"), "My locker code is zeppelin.");
    std::fs::write(home.join("kitchen.json"), channel(json!([ann, eve]))).expect("a file");
    let (path, data) = (home.join("kitchen.json"), home.join("data"));
    let path = path.to_str().expect("a path");
    let data = data.to_str().expect("a path");
    let refused = azera(home, &["import", path, "--as", "Cid", "--me", "109", "--data", data], "");
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && errors.contains("109 and 110"), "{errors}");
    assert!(run(home, &["import", "--list", "--as", "Cid"]).contains("imported nothing"));
}

/// A session of Claude Code, with one line for each message.
pub fn transcript(session: &str, said: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (number, (role, said)) in said.iter().enumerate() {
        let line = json!({
            "type": role, "uuid": format!("{session}-{number}"), "sessionId": session,
            "timestamp": format!("2026-03-01T10:{number:02}:00Z"),
            "message": {"role": role, "content": [{"type": "text", "text": said}]},
        });
        writeln!(text, "{line}").expect("a text takes everything");
    }
    text
}

/// Calls a hook as Claude Code does, and returns its output.
#[track_caller]
pub fn hook(home: &Path, what: &str, event: &str, transcript: &Path, cwd: &Path, arguments: &[&str]) -> String {
    let input = json!({
        "session_id": "s", "transcript_path": transcript, "cwd": cwd, "hook_event_name": event, "source": "startup",
    });
    let data = home.join("data");
    let arguments = [&["hook", what], arguments, &["--data", data.to_str().expect("a path")]].concat();
    let output = azera(home, &arguments, &input.to_string());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    eprintln!("hook: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The context that a hook gave the assistant.
#[track_caller]
pub fn context(printed: &str) -> String {
    let answer: Value = serde_json::from_str(printed).expect("JSON");
    assert_eq!(answer["hookSpecificOutput"]["hookEventName"], json!("SessionStart"));
    answer["hookSpecificOutput"]["additionalContext"].as_str().expect("a context").to_owned()
}

/// One session is remembered, the next one is told of it within its budget, and another project is told nothing.
#[test]
fn the_next_session_of_a_project_is_told_about_the_last_one() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let (gate, boat) = (home.join("gate/src"), home.join("boat"));
    std::fs::create_dir_all(&gate).expect("a folder");
    std::fs::create_dir_all(home.join("gate/.git")).expect("a folder");
    std::fs::create_dir_all(&boat).expect("a folder");
    let file = home.join("session.jsonl");
    let said = [
        ("user", "We decided to use heliotrope for the gate's database. I prefer tabs over spaces."),
        ("assistant", "I will use quagmire, then."),
        ("user", "The zeppelin test still fails."),
        ("assistant", "It fails because of the obsidian clock."),
    ];
    std::fs::write(&file, transcript("s1", &said)).expect("a file");
    let ann = ["--as", "Ann"];
    assert_eq!(hook(home, "start", "SessionStart", &file, &gate, &ann), "", "nothing is remembered yet");
    assert_eq!(hook(home, "stop", "Stop", &file, &gate, &ann), "");
    let told = context(&hook(home, "start", "SessionStart", &file, &gate, &ann));
    assert!(told.contains("zeppelin") && told.contains("obsidian"), "how the session ended: {told}");
    assert!(told.contains("2026-03-01") && told.contains("session.jsonl"), "with its source: {told}");
    let short = context(&hook(home, "start", "SessionStart", &file, &gate, &["--as", "Ann", "--tokens", "90"]));
    assert!(short.len() <= 270 && short.len() < told.len(), "{short}");
    let others: [(&Path, &[&str]); 3] =
        [(&boat, &ann), (&gate, &["--as", "Ben"]), (&gate, &["--as", "Ann", "--persona", "areza"])];
    for (cwd, whose) in others {
        assert_eq!(hook(home, "start", "SessionStart", &file, cwd, whose), "", "{} {whose:?}", cwd.display());
    }
    assert!(
        search(home, "Which test fails?", &ann).iter().any(|hit| hit.contains("zeppelin")),
        "Ann's search finds it"
    );
    assert_eq!(search(home, "Which test fails?", &["--as", "Ben"]), [""; 0]);

    // The session goes on, and is imported again.
    let longer = [&said[..], &[("user", "Now the cormorant test passes.")]].concat();
    std::fs::write(&file, transcript("s1", &longer)).expect("a file");
    hook(home, "stop", "Stop", &file, &gate, &ann);
    let told = context(&hook(home, "start", "SessionStart", &file, &gate, &ann));
    assert!(told.contains("cormorant"), "{told}");
    let listed: Value = serde_json::from_str(&run(home, &["import", "--list", "--json", "--as", "Ann"])).expect("JSON");
    assert_eq!((listed.as_array().map(Vec::len), &listed[0]["messages"]), (Some(1), &json!(5)), "{listed}");

    // What was undone stays undone, however often the hook is called.
    run(home, &["import", "--undo", listed[0]["id"].as_str().expect("an id"), "--yes", "--as", "Ann"]);
    hook(home, "stop", "Stop", &file, &gate, &ann);
    assert_eq!(hook(home, "start", "SessionStart", &file, &gate, &ann), "");
    for word in ["heliotrope", "quagmire", "zeppelin", "obsidian", "cormorant"] {
        assert_eq!(on_disk(&home.join("data"), word), None, "{word}");
    }
}

/// Does something while another Azera has the data folder.
pub fn beside_a_chat(home: &Path, work: impl FnOnce()) {
    let folder = home.join("data");
    let data = folder.to_str().expect("a path");
    let mut chat = command(home, &["chat", "--data", data, "--model", "scripted", "--as", "Ann", "--json"]);
    let mut chat = chat.spawn().expect("the binary runs");
    // The folder is taken once it answers.
    let mut pipe = chat.stdin.take().expect("a pipe");
    writeln!(pipe, "hello").expect("it reads");
    let mut first = String::new();
    let mut output = std::io::BufReader::new(chat.stdout.take().expect("a pipe"));
    std::io::BufRead::read_line(&mut output, &mut first).expect("it answers");
    work();
    drop(pipe);
    assert!(chat.wait().expect("it ends").success());
}

/// Returns true if a note about a transcript is there.
pub fn waits(home: &Path) -> bool {
    std::fs::read_dir(home.join("data/transcripts")).is_ok_and(|mut notes| notes.next().is_some())
}

/// Waits until the running Azera took in what a hook left. It first computes what the classifiers need, if nothing of it
/// is there yet.
#[track_caller]
pub fn until_taken_in(home: &Path, bot: &crate::web::Running) {
    bot.logs("the transcript that a hook left is imported");
    assert!(!waits(home), "nothing waits");
}

/// Beside a running Azera, a hook leaves the transcript to it.
#[test]
fn a_running_azera_takes_in_what_a_hook_leaves() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (home, folder) = (scratch.path(), scratch.path().join("data"));
    let file = home.join("session.jsonl");
    std::fs::write(&file, transcript("s1", &[("user", "The lighthouse opens with a heliotrope key.")]))
        .expect("a file");
    let data = folder.to_str().expect("a path");
    beside_a_chat(home, || {
        hook(home, "stop", "Stop", &file, home, &["--as", "Ann", "--project", "tower"]);
        assert_eq!(hook(home, "start", "SessionStart", &file, home, &["--as", "Ann", "--project", "tower"]), "");
    });
    assert_eq!(
        search(home, "What opens the lighthouse?", &["--as", "Ann"])
            .iter()
            .filter(|hit| hit.contains("heliotrope"))
            .count(),
        0
    );
    let bot = crate::web::Running::start(home, data);
    until_taken_in(home, &bot);
    bot.stop();
    let found = search(home, "What opens the lighthouse?", &["--as", "Ann"]);
    assert!(found.iter().any(|hit| hit.contains("heliotrope")), "{found:?}");
}

/// Growth of the record, in bytes, after which an import is killed.
const GROWTH: u64 = 64 << 10;

/// Returns the size of the files in a folder. Files may come and go meanwhile.
fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("a folder").filter_map(Result::ok);
    entries
        .map(
            |entry| if entry.path().is_dir() { size(&entry.path()) } else { entry.metadata().map_or(0, |it| it.len()) },
        )
        .sum()
}

/// A kill in the middle leaves a whole prefix, and the next run adds the rest: nothing is lost, and nothing is doubled.
#[test]
fn a_killed_import_goes_on_where_it_stopped() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let data = home.join("data");
    let data = data.to_str().expect("a path");
    let count = 1_000;
    let texts: Vec<String> = (0..count).map(|number| format!("stone {number}")).collect();
    let said: Vec<(&str, &str)> = texts.iter().map(|text| ("user", text.as_str())).collect();
    std::fs::write(home.join("long.json"), chatgpt(&said)).expect("a file");
    let path = home.join("long.json");
    let path = path.to_str().expect("a path");
    let rows = |home: &Path| {
        let check: Value = serde_json::from_str(&run(home, &["memory", "check", "--json"])).expect("JSON");
        assert_eq!((&check["record"]["broken"], &check["record"]["unreadable"]), (&json!({}), &json!({})), "{check}");
        check["record"]["messages"].as_u64().expect("a count")
    };
    import(home, "long.json", &["--as", "Ann", "--dry-run"]);
    let record = home.join("data/record");
    let empty = size(&record);
    let mut child = command(home, &["import", path, "--as", "Ann", "--data", data]).spawn().expect("the binary runs");
    // Killed as soon as the record grows.
    while size(&record) < empty + GROWTH && child.try_wait().expect("a child").is_none() {
        std::thread::yield_now();
    }
    child.kill().expect("it is killed");
    child.wait().expect("it ended");
    let before = rows(home);
    let rest = import(home, "long.json", &["--as", "Ann"]);
    assert_eq!(rest["known"].as_u64(), Some(before), "{rest}");
    assert_eq!(rest["added"].as_u64(), Some(count - before), "{rest}");
    assert_eq!(rows(home), count);
    let stats: Value = serde_json::from_str(&run(home, &["memory", "stats", "--json"])).expect("JSON");
    assert_eq!((&stats["memories"], &stats["queued"]), (&json!(count), &json!(0)), "{stats}");
    assert_eq!(import(home, "long.json", &["--as", "Ann"])["added"], json!(0));
}

/// Mistakes are named, and change nothing.
#[test]
fn mistakes_of_an_import_are_named() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    std::fs::write(home.join("notes.txt"), "hello").expect("a file");
    std::fs::write(home.join("cut.json"), "[{\"conversation_id\": \"c\", \"mapping\": {}").expect("a file");
    let data = home.join("data");
    let fails = |arguments: &[&str]| {
        let output = command(home, arguments).current_dir(home).output().expect("the binary runs");
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let data = data.to_str().expect("a path");
    assert!(fails(&["import", "notes.txt", "--data", data]).contains("no export that Azera knows"));
    assert!(fails(&["import", "missing.json", "--data", data]).contains("missing.json"));
    assert!(fails(&["import", "--data", data]).contains("FILE"));
    assert!(fails(&["import", "cut.json", "--persona", "nobody", "--data", data]).contains("no persona nobody"));
    assert!(fails(&["import", "--undo", "0000000000", "--yes", "--data", data]).contains("no import 0000000000"));
    let cut = import(home, "cut.json", &["--format", "chatgpt"]);
    assert!(cut["broken"].as_str().is_some_and(|why| why.contains("ends in the middle")), "{cut}");
    let broken = azera(home, &["hook", "stop", "--data", data], "{nonsense");
    assert!(String::from_utf8_lossy(&broken.stderr).contains("not the JSON of a hook"));
}
