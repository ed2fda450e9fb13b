//! What is said, what is a command, and which commands read files.

use azera_adapter_console::Format;

use crate::talk;

#[tokio::test]
async fn only_commands_are_commands() {
    let talk_lines = "/var/log is full\n// a note\n/j\n/9 lives\n/quit coffee is what I want\n/new shoes hurt\n/srv\n";
    let session = talk(Format::Plain, &format!("{talk_lines}/qiut\n/Quit\nnever read\n")).await;
    insta::assert_snapshot!(session.heard, @"
    open console:ann:main
    Ann in console:ann:main: /var/log is full
    Ann in console:ann:main: // a note
    Ann in console:ann:main: /j
    Ann in console:ann:main: /9 lives
    Ann in console:ann:main: /quit coffee is what I want
    Ann in console:ann:main: /new shoes hurt
    command in console:ann:main: /Quit
    ");
    insta::assert_snapshot!(session.err, @"
    There is no command `/srv`. `/help` lists all commands. Not sent: /srv
    There is no command `/qiut`. Did you mean `/quit`? Not sent: /qiut
    ");
}

#[tokio::test]
async fn help_needs_no_slash_for_a_person() {
    let session = talk(Format::Plain, "help\n?\nHELP\nhelp me out\n").await;
    assert_eq!(session.heard.matches("/help").count(), 3, "{}", session.heard);
    assert!(session.heard.contains("main: help me out"), "{}", session.heard);
    // A program says what people say.
    let session = talk(Format::Json, "help\n").await;
    assert!(session.heard.ends_with("Ann in console:ann:main: help"), "{}", session.heard);
}

#[tokio::test]
async fn a_command_reads_the_file_that_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("diary.md");
    std::fs::write(&path, "# 2026-01-02\nSleet.\n").unwrap();
    let line = format!("/journal import {}\n/journal import lost.md\n", path.display());
    let session = talk(Format::Plain, &line).await;
    assert!(
        session.heard.ends_with("command in console:ann:main: /journal import # 2026-01-02\nSleet."),
        "{}",
        session.heard
    );
    assert!(session.err.contains("There is no file `lost.md`."), "{}", session.err);
    // A program passes on what people write, and they may not read files.
    let session = talk(Format::Json, &line).await;
    assert!(!session.heard.contains("Sleet") && session.heard.contains("diary.md"), "{}", session.heard);
}

#[tokio::test]
async fn a_person_shows_a_picture_by_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cat.png");
    std::fs::write(&path, b"\x89PNG").unwrap();
    let line = format!("what is this? --picture {}\nand this --picture lost.png\n", path.display());
    let session = talk(Format::Plain, &line).await;
    assert!(session.heard.ends_with("Ann in console:ann:main: what is this? [cat.png]"), "{}", session.heard);
    assert!(session.err.contains("The picture `lost.png` cannot be used"), "{}", session.err);
    // A program passes on what people write, and they may not read files.
    let session = talk(Format::Json, &line).await;
    assert!(!session.heard.contains("[cat.png]") && session.heard.contains("lost.png"), "{}", session.heard);
}
