//! Learning in the weights, with the real model: a night after which an adapter serves where it was learnt, until something that it
//! rests on is forgotten.

use std::path::Path;

use serde_json::{Value, json};

use crate::{command, fed, lines, of};

fn said(at: &str, id: &str, text: &str) -> Value {
    json!({"type": "message", "at": at, "id": id, "chat": "dm-ann", "person": "ann", "text": text})
}

fn asked(at: &str, text: &str) -> Value {
    json!({"type": "command", "at": at, "chat": "dm-ann", "person": "ann", "text": text})
}

fn answers(happened: &[Value]) -> Vec<String> {
    of(happened, "command").iter().filter_map(|line| line["text"].as_str().map(str::to_owned)).collect()
}

fn adapters(data: &Path) -> usize {
    let files = std::fs::read_dir(data.join("hearth")).expect("a folder");
    files.filter(|file| file.as_ref().is_ok_and(|file| file.path().extension().is_some_and(|it| it == "gguf"))).count()
}

#[test]
fn a_night_teaches_and_forgetting_unlearns() {
    let scratch = tempfile::tempdir().expect("a folder");
    let data = scratch.path().join("data");
    let play = |world: &[Value]| {
        let text: String = world.iter().map(|line| format!("{line}\n")).collect();
        let folder = data.to_str().expect("a plain path");
        let mut command =
            command(scratch.path(), &["replay", "-", "--data", folder, "--model", "default", "--seed", "5"]);
        for (name, value) in [
            ("MODELS__THREADS", "2"),
            ("HEARTH__ENABLED", "true"),
            ("HEARTH__EXCHANGES", "4"),
            ("HEARTH__ROUNDS", "2"),
            ("HEARTH__RANK", "4"),
            ("GARDENER__DREAMS", "false"),
            ("GARDENER__JOURNAL", "false"),
            ("GARDENER__DIARY_MESSAGES", "0"),
            ("GARDENER__NOTES_EVERY", "0"),
            ("GARDENER__PIECE_DAYS", "0"),
        ] {
            command.env(format!("AZERA__{name}"), value);
        }
        lines(&fed(&mut command, &text))
    };
    let chat = |at: &str| json!({"type": "chat", "at": at, "chat": "dm-ann", "kind": "dm", "members": ["ann"]});
    let day = [
        chat("2026-03-01T19:00:00Z"),
        asked("2026-03-01T19:00:10Z", "/hearth opt-in"),
        said("2026-03-01T19:01:00Z", "m1", "I carved a little owl out of pear wood today"),
        said("2026-03-01T19:03:00Z", "m2", "the ferry was late again and everybody sang"),
        said("2026-03-01T19:05:00Z", "m3", "my brother thinks that bees can count to four"),
        said("2026-03-01T19:07:00Z", "m4", "we are out of saffron, so the rice is grey"),
        said("2026-03-01T19:09:00Z", "m5", "somebody left a tuba in the laundry room"),
        asked("2026-03-02T09:00:00Z", "/hearth status"),
        asked("2026-03-02T09:00:10Z", "/hearth history"),
        said("2026-03-02T09:01:00Z", "m6", "good morning, how did you sleep?"),
    ];
    let happened = play(&day);
    assert_eq!(of(&happened, "error"), [] as [&Value; 0]);
    let told = answers(&happened);
    assert!(told[1].contains("lesson 1 serves here, of 4 exchanges"), "{told:?}");
    assert!(told[2].contains("lesson 1, 4 exchanges: kept (loss "), "{told:?}");
    assert_eq!(of(&happened, "reply").len(), 6);
    assert_eq!(adapters(&data), 1);
    // Of the five one was left out of the lesson; of two forgotten one at least was in it.
    let after = [
        chat("2026-03-02T09:59:00Z"),
        asked("2026-03-02T10:00:00Z", "/hearth status"),
        json!({"type": "delete", "at": "2026-03-02T10:01:00Z", "id": "m1"}),
        json!({"type": "delete", "at": "2026-03-02T10:01:10Z", "id": "m2"}),
        asked("2026-03-02T10:01:20Z", "/hearth status"),
        said("2026-03-02T10:02:00Z", "m7", "are you still there?"),
    ];
    let happened = play(&after);
    let told = answers(&happened);
    assert!(told[0].contains("lesson 1 serves here"), "{told:?}");
    assert!(told[1].contains("nothing serves here"), "{told:?}");
    assert_eq!(of(&happened, "reply").len(), 1);
    assert_eq!(adapters(&data), 0);
}
