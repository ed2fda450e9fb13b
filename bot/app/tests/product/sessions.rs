//! What coding sessions teach the next ones.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::forgetting::{find_in_home, on_disk};
use crate::imports::{context, hook, run};

/// A session with commands: what was said, or a command with `+` if it worked and `-` if it failed.
fn session_with_commands(session: &str, day: u32, lines: &[(&str, &str)]) -> String {
    let mut text = String::new();
    let line = |number: usize, role: &str, content: Value| {
        json!({
            "type": role, "uuid": format!("{session}-{number}"), "sessionId": session,
            "timestamp": format!("2026-03-{day:02}T10:{number:02}:00Z"),
            "message": {"role": role, "content": content},
        })
    };
    for (number, (role, said)) in lines.iter().enumerate() {
        let id = format!("{session}-t{number}");
        let lines = match *role {
            "+" | "-" => {
                let call = json!([{"type": "tool_use", "id": id, "name": "Bash", "input": {"command": said}}]);
                let result = json!([{"type": "tool_result", "tool_use_id": id, "is_error": *role == "-", "content": "periwinkle"}]);
                vec![line(2 * number, "assistant", call), line(2 * number + 1, "user", result)]
            }
            role => vec![line(2 * number, role, json!([{"type": "text", "text": said}]))],
        };
        lines.iter().for_each(|line| writeln!(text, "{line}").expect("a text takes everything"));
    }
    text
}

/// What an assistant ran becomes procedures and open problems, of one project, without outputs and secrets, and is
/// forgotten with its messages.
#[test]
fn the_next_session_is_told_what_works_and_what_is_open() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let (gate, boat, ann) = (home.join("gate"), home.join("boat"), ["--as", "Ann"]);
    std::fs::create_dir_all(&gate).expect("a folder");
    std::fs::create_dir_all(&boat).expect("a folder");
    let file = |name: &str, day, lines: &[(&str, &str)]| {
        let path = home.join(name);
        std::fs::write(&path, session_with_commands(name, day, lines)).expect("a file");
        path
    };
    for day in 1..4 {
        let name = format!("s{day}");
        let lines = [
            ("user", "Mend the hinge."),
            ("+", "make heliotrope-lint"),
            ("+", "KEY=cinnabar make zeppelin-test"),
            ("assistant", "Done."),
        ];
        hook(home, "stop", "Stop", &file(&name, day, &lines), &gate, &ann);
    }
    let open = [("user", "Why does the marzipan fail?"), ("-", "make marzipan-test"), ("assistant", "Hm.")];
    let last = file("s9", 9, &open);
    hook(home, "stop", "Stop", &last, &gate, &ann);
    hook(home, "stop", "Stop", &last, &gate, &ann);
    let start = |cwd: &Path| hook(home, "start", "SessionStart", &last, cwd, &ann);
    let told = context(&start(&gate));
    let procedure =
        "- `make heliotrope-lint`, then `make zeppelin-test` (the last step worked 3 of 3 times, last 2026-03-03)";
    assert!(told.contains(procedure), "{told}");
    let problem = "- failing command: make marzipan-test; asked: Why does the marzipan fail? (2026-03-09, m";
    assert!(told.contains("## Open problems") && told.contains(problem), "{told}");
    assert_eq!(start(&boat), "", "another project is told nothing");
    let stats: Value = serde_json::from_str(&run(home, &["memory", "stats", "--json"])).expect("JSON");
    assert_eq!(stats["commands"], json!(7), "each is kept once: {stats}");
    let export = run(home, &["memory", "export", "--person", "console:ann"]);
    assert!(export.contains("make marzipan-test"), "{export}");
    for word in ["cinnabar", "periwinkle"] {
        assert_eq!(on_disk(&home.join("data"), word), None, "{word} is not kept");
        assert!(!told.contains(word), "{told}");
    }

    // A later session solves it.
    let solved = file("t1", 10, &[("user", "Again, please."), ("+", "make marzipan-test"), ("assistant", "Done.")]);
    hook(home, "stop", "Stop", &solved, &gate, &ann);
    assert!(!context(&start(&gate)).contains("Open problems"));
    run(home, &["backup"]);
    assert!(find_in_home(home, "heliotrope-lint").is_some(), "it is there before the undo");
    let listed: Value = serde_json::from_str(&run(home, &["import", "--list", "--json", "--as", "Ann"])).expect("JSON");
    for import in listed.as_array().expect("a list") {
        run(home, &["import", "--undo", import["id"].as_str().expect("an id"), "--yes", "--as", "Ann"]);
    }
    assert_eq!(start(&gate), "");
    for name in ["s1", "s2", "s3", "s9", "t1"] {
        std::fs::remove_file(home.join(name)).expect("the file was there");
    }
    for word in ["heliotrope-lint", "zeppelin-test", "marzipan-test"] {
        assert_eq!(find_in_home(home, word), None, "{word} after the undo");
    }
    let stats: Value = serde_json::from_str(&run(home, &["memory", "stats", "--json"])).expect("JSON");
    assert_eq!(stats["commands"], json!(0), "{stats}");
}

/// When these sessions end, the next day has begun in the configured time zone.
#[test]
fn a_session_is_told_the_days_of_the_configured_time_zone() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let (file, folder) = (home.join("session.jsonl"), home.join(".config/azera"));
    std::fs::create_dir_all(&folder).expect("a folder");
    let settings = "[gardener]\ntime_zone = \"Pacific/Kiritimati\"\n[projects]\nshared = [\"*\"]\n";
    std::fs::write(folder.join("azera.toml"), settings).expect("a file");
    for day in 1..7 {
        let lines = [("user", "Mend the hinge."), ("+", "make heliotrope-lint"), ("assistant", "Done.")];
        std::fs::write(&file, session_with_commands(&format!("s{day}"), day, &lines)).expect("a file");
        hook(home, "stop", "Stop", &file, home, &["--as", "Ann", "--project", "gate"]);
    }
    let start = |project: &str| {
        context(&hook(home, "start", "SessionStart", &file, home, &["--as", "Ann", "--project", project]))
    };
    let told = start("gate");
    for line in ["worked 6 of 6 times, last 2026-03-07)", "How the session of 2026-03-07 ended"] {
        assert!(told.contains(line), "{told}");
    }
    let others = start("boat");
    assert!(others.contains("- gate: `make heliotrope-lint` (worked 6 of 6 times, last 2026-03-07)"), "{others}");
}

/// A project that its person shares tells their other projects which commands work, and nothing else does.
#[test]
fn a_shared_project_tells_what_works_in_it_and_a_private_one_hears_nothing() {
    let scratch = tempfile::tempdir().expect("a folder");
    let home = scratch.path();
    let file = home.join("session.jsonl");
    for day in 1..7 {
        let lines = [("user", "Mend the hinge."), ("+", "make heliotrope-lint"), ("assistant", "Done.")];
        std::fs::write(&file, session_with_commands(&format!("s{day}"), day, &lines)).expect("a file");
        hook(home, "stop", "Stop", &file, home, &["--as", "Ann", "--project", "gate"]);
    }
    let start = |who: &str, project: &str| {
        hook(home, "start", "SessionStart", &file, home, &["--as", who, "--project", project])
    };
    assert_eq!(start("Ann", "boat"), "", "nothing is shared unless somebody says so");
    let folder = home.join(".config/azera");
    std::fs::create_dir_all(&folder).expect("a folder");
    let shared = "[projects]\nshared = [\"Gate\"]\nprivate = [\"acme\"]\n";
    std::fs::write(folder.join("azera.toml"), shared).expect("a file");
    let told = context(&start("Ann", "boat"));
    let line = "## From other projects of the same person\n- gate: `make heliotrope-lint` (worked 6 of 6 times, last 2026-03-06)\n";
    assert!(told.ends_with(line), "{told}");
    assert_eq!((start("Ann", "acme"), start("Ben", "boat")), (String::new(), String::new()));
    assert!(!context(&start("Ann", "gate")).contains("From other projects"), "it knows that itself");
}
