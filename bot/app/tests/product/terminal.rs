//! The terminal and the pipe: what is said, what is a command, and what reaches the output.

use std::path::Path;
use std::process::Output;

use super::{azera, command, fed};

/// Chats; messages count as memories at once.
fn chat(home: &Path, more: &[&str], input: &str) -> Output {
    let arguments = [&["chat", "--model", "scripted", "--as", "Ann"], more].concat();
    fed(command(home, &arguments).env("AZERA__MEMORY__MIN_AGE_S", "0"), input)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn lines_that_only_look_like_commands_are_said_and_found() {
    let scratch = tempfile::tempdir().expect("a folder");
    let said = [
        "/opt/lanterns holds the list of lamps",
        "/r/kites is where the kites are",
        "// the kettle is a comment",
        "/s of course the cellar is dry",
        "/42 steps lead to the attic",
        "/quit sugar is my plan for autumn",
        "/new boots are in the hall",
        "/var/lib/almanac",
    ];
    let output = chat(scratch.path(), &[], &said.map(|line| format!("{line}\n")).concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    for word in ["lanterns", "kites", "kettle", "cellar", "attic", "sugar", "boots", "almanac"] {
        let found = chat(scratch.path(), &[], &format!("/memory search {word}\n"));
        assert!(text(&found.stdout).contains(word), "{word}: {}", text(&found.stdout));
    }
}

#[test]
fn a_mistyped_command_is_kept_and_the_nearest_named() {
    let scratch = tempfile::tempdir().expect("a folder");
    let output = chat(scratch.path(), &[], "/forgte last\n/forget\n/help brunch\n/help branch\n/why not\n");
    let errors = text(&output.stderr);
    assert!(!output.status.success());
    assert!(errors.contains("Did you mean `/forget`?") && errors.contains("Not sent: /forgte last"), "{errors}");
    assert!(errors.contains("What should I forget?"), "{errors}");
    assert!(errors.contains("Did you mean `/branch`?"), "{errors}");
    assert!(text(&output.stdout).contains("- `/branch switch NAME`"), "{}", text(&output.stdout));
    let exported = azera(scratch.path(), &["memory", "export", "--person", "console:ann"], "");
    let exported = text(&exported.stdout);
    assert!(exported.contains("/why not") && !exported.contains("forgte"), "{exported}");
}

#[test]
fn one_memory_is_counted_in_the_singular() {
    let scratch = tempfile::tempdir().expect("a folder");
    let output = chat(scratch.path(), &[], "/remember The ferry leaves at six.\n/memory stats\n");
    let stats = text(&output.stdout);
    assert!(!stats.contains("1 memories"), "{stats}");
}

#[test]
fn a_pipe_can_hold_messages_of_several_lines() {
    let scratch = tempfile::tempdir().expect("a folder");
    let code = "Look at this:\n```rust\nfn ferry() {}\n\nfn quay() {}\n```\n";
    for (unit, input, replies) in [
        ("line", "one\ntwo\n".to_owned(), 2),
        ("file", format!("{code}\nIs it right?\n"), 1),
        ("paragraph", format!("{code}\nIs it right?\n"), 2),
        ("nul", format!("{code}\0Is it right?\0"), 2),
    ] {
        let output = chat(scratch.path(), &["--message-per", unit], &input);
        assert!(output.status.success(), "{unit}: {}", text(&output.stderr));
        assert_eq!(text(&output.stdout).lines().count(), replies, "{unit}: {}", text(&output.stdout));
    }
    let help = text(&azera(scratch.path(), &["chat", "--help"], "").stdout);
    assert!(help.contains("--message-per") && help.contains("paragraph"), "{help}");
}

#[test]
fn colour_codes_never_reach_a_pipe() {
    let scratch = tempfile::tempdir().expect("a folder");
    // A command that reads no input gets none.
    for (arguments, input) in [
        (&["--help"][..], ""),
        (&["chat", "--help"], ""),
        (&["chat", "--model", "scripted"], "Good evening\n/help\n/nonsense\n"),
        (&["chat", "--model", "scripted", "--persona", "nobody"], ""),
        (&["models", "list"], ""),
        (&["doctor"], ""),
        (&["nonsense"], ""),
    ] {
        let mut run = command(scratch.path(), arguments);
        run.env("TERM", "xterm-256color").env("COLORTERM", "truecolor").env("AZERA_LOG", "debug");
        let output = fed(&mut run, input);
        for bytes in [&output.stdout, &output.stderr] {
            assert!(!bytes.contains(&0x1b), "{arguments:?}: {}", text(bytes));
        }
    }
}
