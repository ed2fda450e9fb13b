//! Pictures from a server, kept and shown.

use std::path::Path;
use std::process::Output;
use std::sync::atomic::Ordering;

use serde_json::Value;

use super::painter::{Painter, SERVER_METADATA};
use super::{command, fed, lines, of};

/// Says lines in a terminal that a program reads, with a server that draws.
fn talk(home: &Path, painter: &Painter, input: &str) -> Output {
    talk_judged_by(home, painter, None, input)
}

/// Says lines in the same way. The server at `judge`, if there is one, sees the pictures.
fn talk_judged_by(home: &Path, painter: &Painter, judge: Option<&str>, input: &str) -> Output {
    let data = home.join("data");
    let mut chat = command(home, &["chat", "--json", "--model", "scripted", "--data", data.to_str().expect("a path")]);
    chat.env("AZERA__IMAGES__KIND", "automatic1111").env("AZERA__IMAGES__URL", &painter.url);
    chat.env("TMPDIR", home).env("AZERA_LOG", "debug");
    if let Some(judge) = judge {
        chat.env("AZERA__VISION_SERVER__URL", judge);
    }
    fed(&mut chat, input)
}

/// Returns the bytes of the saved files.
fn files(events: &[Value]) -> Vec<Vec<u8>> {
    let paths = of(events, "file").into_iter().filter_map(|line| line["path"].as_str());
    paths.map(|path| std::fs::read(path).expect("a file")).collect()
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

#[test]
fn a_picture_is_drawn_kept_and_forgotten() {
    let home = tempfile::tempdir().expect("a folder");
    let painter = Painter::start();
    let output = talk(home.path(), &painter, "/imagine a heliotrope lighthouse --seed 7 --negative fog\n");
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!log.contains("heliotrope"), "the log never holds a prompt");
    let events = lines(&output);
    let replies = of(&events, "reply");
    let caption = replies[0]["text"].as_str().expect("a text");
    assert!(caption.contains("heliotrope") && caption.contains("seed 7") && caption.contains("8×8"), "{caption}");
    let files = files(&events);
    assert_eq!(files.len(), 1);
    for text in ["a heliotrope lighthouse", "azera", "grey"] {
        assert!(holds(&files[0], text), "{text} is not in the file");
    }
    assert!(!holds(&files[0], SERVER_METADATA), "the picture is written anew");
    {
        let asked = painter.asked.lock().expect("nobody panics while they hold this");
        assert_eq!((&asked[0]["seed"], &asked[0]["negative_prompt"]), (&7.into(), &"fog".into()));
    }
    // Another start finds it, and the oldest word of it goes with its person.
    let events = lines(&talk(home.path(), &painter, "/gallery search heliotrope\n/memory export\n/picture vary\n"));
    let answers: Vec<&str> = of(&events, "command").iter().filter_map(|line| line["text"].as_str()).collect();
    assert!(answers[0].contains("seed 7") && answers[1].contains("\"pictures\""), "{answers:?}");
    let strength = painter.asked.lock().expect("nobody panics while they hold this")[1]["denoising_strength"].as_f64();
    assert!(strength.is_some_and(|strength| (strength - 0.35).abs() < 1e-6), "{strength:?}");
    let events = lines(&talk(home.path(), &painter, "/forget me\n/gallery\n"));
    let answers: Vec<&str> = of(&events, "command").iter().filter_map(|line| line["text"].as_str()).collect();
    assert!(answers[1].contains("no pictures"), "{answers:?}");
    let left = super::forgetting::find_in_home(home.path(), "heliotrope");
    assert_eq!(left, None);
}

#[test]
fn in_the_terminal_too_a_picture_is_looked_at_before_it_is_shown() {
    let home = tempfile::tempdir().expect("a folder");
    let painter = Painter::start();
    let judge = format!("{}/v1", painter.url);
    let imagine = || lines(&talk_judged_by(home.path(), &painter, Some(&judge), "/imagine a person on a beach\n"));
    assert_eq!(files(&imagine()).len(), 1);
    painter.is_nude.store(true, Ordering::SeqCst);
    let events = imagine();
    let text = of(&events, "reply")[0]["text"].as_str().expect("a text");
    assert!(files(&events).is_empty() && text.contains("what came out breaks a rule"), "{text}");
}

#[test]
fn a_picture_whose_server_rests_is_drawn_after_the_next_start() {
    let home = tempfile::tempdir().expect("a folder");
    let painter = Painter::start();
    painter.is_broken.store(true, Ordering::SeqCst);
    lines(&talk(home.path(), &painter, "/imagine a patient boat\n"));
    assert!(painter.prompts().is_empty());
    painter.is_broken.store(false, Ordering::SeqCst);
    let events = lines(&talk(home.path(), &painter, "/picture queue\n"));
    assert_eq!(painter.prompts(), ["a patient boat"]);
    assert_eq!(files(&events).len(), 1);
}

#[test]
fn the_operator_draws_a_portrait_of_a_shared_persona_in_the_terminal() {
    let home = tempfile::tempdir().expect("a folder");
    let painter = Painter::start();
    let personas = home.path().join("data/personas");
    std::fs::create_dir_all(&personas).expect("a folder");
    let file = "---\nid: mira\nname: Mira\n---\n\n## Intent\n\nKeeps the log.\n\n## Core Identity\n\nYou are Mira.\n\n\
                ## Appearance\n\nRed hair.\n";
    std::fs::write(personas.join("mira.md"), file).expect("a file");
    let events = lines(&talk(home.path(), &painter, "/persona portrait mira\n"));
    assert_eq!(painter.prompts(), ["portrait of Mira, Red hair., head and shoulders"]);
    let caption = of(&events, "reply")[0]["text"].as_str().expect("a text");
    assert!(caption.contains("*picture "), "{caption}");
    // The exit status tells of a refused command, too.
    let refused = talk(home.path(), &painter, "/persona portrait nobody\n");
    let refused = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert!(refused.contains("Name a persona that all places share"), "{refused}");
}

#[test]
fn without_a_server_the_bot_says_how_to_get_one() {
    let home = tempfile::tempdir().expect("a folder");
    let output = fed(&mut command(home.path(), &["chat", "--json", "--model", "scripted"]), "/imagine a boat\n");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("[images]") && text.contains("\"ok\":false"), "{text}");
}
