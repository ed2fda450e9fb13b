//! Mistakes of the operator are reported before they do harm: in the configuration, in ids, in persona files, and a disk
//! that fills up.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::{azera, command, fed};

#[track_caller]
fn refuse(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stdout).into_owned() + &*String::from_utf8_lossy(&output.stderr)
}

#[track_caller]
fn succeed(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// Runs a command with a variable set. Messages count as memories at once.
fn with(home: &Path, arguments: &[&str], variable: (&str, &str), input: &str) -> Output {
    fed(command(home, arguments).env(variable.0, variable.1).env("AZERA__MEMORY__MIN_AGE_S", "0"), input)
}

#[test]
fn a_configured_name_that_is_nobodys_is_reported_with_the_nearest() {
    let home = tempfile::tempdir().expect("a folder");
    let data = home.path().join("data");
    let data = data.to_str().expect("a path");
    let chat = ["chat", "--as", "ann", "--model", "scripted", "--data", data];
    for started in [false, true] {
        for (variable, value, key, right) in [
            ("AZERA__GARDENER__TIME_ZONE", "Europe/Lisbonn", "gardener.time_zone", "Europe/Lisbon\""),
            ("AZERA__CHAT__PERSONA", "azrea", "chat.persona", "azera"),
            ("AZERA__CHAT__PERSONA", "nosuch", "chat.persona", "azera, "),
            ("AZERA__CHAT__USER_PERSONA", "protga", "chat.user_persona", "protag"),
            ("AZERA__CHAT_SERVER__FAMILY", "qwen", "chat_server.family", "qwen2"),
            ("AZERA__CHAT__LOCALE", "english", "chat.locale", "en-GB"),
        ] {
            let told = refuse(&with(home.path(), &["doctor", "--data", data], (variable, value), ""));
            assert!([key, value, right].iter().all(|part| told.contains(part)), "{told}");
            let told = refuse(&with(home.path(), &chat, (variable, value), "hello\n"));
            assert!([key, value, right].iter().all(|part| told.contains(part)), "{told}");
        }
        if !started {
            succeed(&azera(home.path(), &chat, "hello\n"));
        }
    }
}

#[test]
fn an_id_that_nobody_has_is_reported() {
    let home = tempfile::tempdir().expect("a folder");
    let data = home.path().join("data");
    let data = data.to_str().expect("a path");
    succeed(&azera(home.path(), &["chat", "--as", "ann", "--model", "scripted", "--data", data], "hello\n"));
    for (arguments, told) in [
        (&["memory", "export", "--person", "nobody"][..], "no such person"),
        (&["memory", "forget", "--yes", "--person", "nobody"], "no such person"),
        (&["memory", "forget", "--yes", "--chat", "nowhere"], "no such chat"),
        (&["memory", "forget", "--yes", "--realm", "nowhere"], "no such realm"),
        (&["memory", "forget", "--yes", "--message", "nothing"], "no such message"),
        (&["memory", "forget", "--yes", "--memory", "m999999"], "no such memory"),
        (&["memory", "search", "hello", "--persona", "nobody"], "no persona nobody"),
        (&["memory", "show", "m1", "--persona", "nobody"], "no persona nobody"),
        (&["persona", "list", "--realm", "nowhere"], "no such realm"),
        (&["persona", "show", "nobody"], "no persona nobody"),
    ] {
        let output = refuse(&azera(home.path(), &[arguments, &["--data", data]].concat(), ""));
        assert!(output.contains(told), "{arguments:?}: {output}");
    }
    let export = succeed(&azera(home.path(), &["memory", "export", "--person", "console:ann", "--data", data], ""));
    assert!(export.contains("hello"), "{export}");
}

#[test]
fn a_file_in_the_personas_folder_becomes_a_persona() {
    let home = tempfile::tempdir().expect("a folder");
    let data = home.path().join("data");
    let folder = data.join("personas");
    std::fs::create_dir_all(&folder).expect("a folder");
    let data = data.to_str().expect("a path");
    let template = succeed(&azera(home.path(), &["persona", "template", "Mira"], ""));
    std::fs::write(folder.join("my character.md"), &template).expect("a file");
    std::fs::write(folder.join("broken.md"), "---\nid: broken\n---\n").expect("a file");
    let list = succeed(&azera(home.path(), &["persona", "list", "--data", data], ""));
    assert!(list.contains("mira") && !list.contains("broken"), "{list}");
    assert!(folder.join("mira.md").exists() && !folder.join("my character.md").exists());
    let chat = ["chat", "--as", "ann", "--model", "scripted", "--data", data];
    succeed(&with(home.path(), &chat, ("AZERA__CHAT__PERSONA", "mira"), "hello\n"));
    let doctor = succeed(&azera(home.path(), &["doctor", "--data", data], ""));
    assert!(doctor.contains("broken.md is not used"), "{doctor}");
    // A removed persona stays removed.
    succeed(&azera(home.path(), &["persona", "remove", "mira", "--data", data], ""));
    let list = succeed(&azera(home.path(), &["persona", "list", "--data", data], ""));
    assert!(!list.contains("mira"), "{list}");
}

/// A floor above what the disk has: nothing new is taken, and what is there can be read.
#[test]
fn below_the_floor_of_free_space_no_message_is_taken() {
    let home = tempfile::tempdir().expect("a folder");
    let data = home.path().join("data");
    let data = data.to_str().expect("a path");
    let chat = ["chat", "--as", "ann", "--model", "scripted", "--data", data];
    succeed(&azera(home.path(), &chat, "my locker has the code 4711\n"));
    let floor = ("AZERA__DATA__MIN_FREE_MB", "1000000");
    let refused = refuse(&with(home.path(), &chat, floor, "the ferry leaves at seven\n"));
    assert!(refused.contains("no room left on the disk") && refused.contains("data.min_free_mb"), "{refused}");
    let doctor = refuse(&with(home.path(), &["doctor", "--data", data], floor, ""));
    assert!(doctor.contains("no new message is taken") && doctor.contains("data.min_free_mb"), "{doctor}");
    let found = succeed(&with(home.path(), &["memory", "search", "locker", "--as", "ann", "--data", data], floor, ""));
    assert!(found.contains("4711"), "{found}");
    succeed(&azera(home.path(), &chat, "the ferry leaves at seven\n"));
    // Forgetting needs a little room, and makes more.
    let forget = ["memory", "forget", "--person", "console:bob", "--yes", "--data", data];
    succeed(&azera(home.path(), &["chat", "--as", "bob", "--model", "scripted", "--data", data], "my bike is green\n"));
    let receipt = succeed(&with(home.path(), &forget, floor, ""));
    assert!(receipt.contains("\"bytes_on_disk\": \"overwritten\""), "{receipt}");
    let export = succeed(&azera(home.path(), &["memory", "export", "--person", "console:ann", "--data", data], ""));
    assert_eq!(export.matches("the ferry leaves at seven").count(), 2, "said once, and its memory: {export}");
}

/// A small disk runs full while Azera talks. It stops taking messages above the floor, and the process lives.
#[test]
fn a_small_disk_never_fills_to_the_floor() {
    let mounts = Command::new("unshare").args(["-rm", "sh", "-c", "mount -t tmpfs tmpfs /mnt"]).output();
    if !mounts.is_ok_and(|output| output.status.success()) {
        eprintln!("not tested: this machine gives no user namespace to mount a small disk in");
        return;
    }
    let home = tempfile::tempdir().expect("a folder");
    let data = home.path().join("data");
    std::fs::create_dir(&data).expect("a folder");
    let folder = data.to_str().expect("a path");
    let inner = command(home.path(), &["chat", "--as", "ann", "--model", "scripted", "--data", folder]);
    let script = r#"mount -t tmpfs -o size=16m tmpfs "$DATA" && "$0" "$@"; echo "status $?"; df --output=avail -m "$DATA" | tail -1"#;
    let mut outer = Command::new("unshare");
    outer.args(["-rm", "sh", "-c", script]).arg(inner.get_program()).args(inner.get_args()).env_clear();
    outer.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("DATA", &data);
    outer.env("AZERA__DATA__MIN_FREE_MB", "14");
    outer.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let lines: String =
        (0..60).map(|number| format!("{number} {}\n", "all of that is much to say. ".repeat(700))).collect();
    let output = fed(&mut outer, &lines);
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &*String::from_utf8_lossy(&output.stderr);
    let tail = text.get(text.len().saturating_sub(2_000)..).unwrap_or_default();
    assert!(text.contains("no room left on the disk"), "{tail}");
    assert!(text.contains("status 1"), "refused messages give a failure, and no signal ended it: {tail}");
    let left: u64 = text.lines().filter_map(|line| line.trim().parse().ok()).next_back().expect("what df says");
    assert!(left >= 10, "{left} MB are left: {tail}");
}

/// An invalid timeline is refused before anything is played.
#[test]
fn a_bad_timeline_names_its_line() {
    let scratch = tempfile::tempdir().expect("a folder");
    let timeline = "{\"type\":\"wait\",\"until\":\"2026-03-02T00:00:00Z\"}\n{\"type\":\"mesage\"}\n";
    let output = azera(scratch.path(), &["replay", "-"], timeline);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("line 2"), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_wrong_section_of_a_server_that_is_not_needed_stops_nothing_else() {
    let home = tempfile::tempdir().expect("a folder");
    let data = home.path().join("data");
    let data = data.to_str().expect("a path");
    let chat = ["chat", "--as", "ann", "--model", "scripted", "--data", data];
    succeed(&azera(home.path(), &chat, "hello\n"));
    for (variable, value, section) in [
        ("AZERA__IMAGES__KIND", "openai", "images"),
        ("AZERA__IMAGES__STEPS", "many", "images"),
        ("AZERA__VISION_SERVER__URL", "http://127.0.0.1:1/?x=1", "vision_server"),
        ("AZERA__VISION_SERVER__TIMEOUT_S", "0", "vision_server"),
        ("AZERA__RERANK_SERVER__API", "tei", "rerank_server"),
        ("AZERA__SPEECH_SERVER__API", "openai", "speech_server"),
    ] {
        let output = with(home.path(), &chat, (variable, value), "hello again\n");
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(succeed(&output).contains("Noted."), "{variable}");
        assert!(log.contains(&format!("[{section}] is left out")) && log.contains("azera doctor"), "{variable}: {log}");
        let doctor = refuse(&with(home.path(), &["doctor", "--data", data], (variable, value), ""));
        assert!(doctor.contains(&format!("correct [{section}]")), "{variable}: {doctor}");
        let list = with(home.path(), &["persona", "list", "--data", data], (variable, value), "");
        let log = String::from_utf8_lossy(&list.stderr).into_owned();
        assert!(succeed(&list).contains("azera") && !log.contains("left out"), "{variable}: {log}");
    }
    let told = refuse(&with(home.path(), &["say", "hello"], ("AZERA__SPEECH_SERVER__API", "openai"), ""));
    assert!(told.contains("`speech_server.url` must be set"), "{told}");
    let told = refuse(&with(home.path(), &chat, ("AZERA__IMAGES__KNID", "sidecar"), "hello\n"));
    assert!(told.contains("there is no key"), "{told}");
}
