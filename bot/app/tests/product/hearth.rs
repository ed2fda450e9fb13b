//! The Hearth with the real model: after a night, a LoRA serves in the place of its training, until something that it
//! rests on is forgotten. The same with training on another machine.

use std::path::Path;

use serde_json::{Value, json};

use crate::{azera, command, fed, lines, of};

fn said(at: &str, id: &str, text: &str) -> Value {
    json!({"type": "message", "at": at, "id": id, "chat": "dm-ann", "person": "ann", "text": text})
}

fn command_line(at: &str, text: &str) -> Value {
    json!({"type": "command", "at": at, "chat": "dm-ann", "person": "ann", "text": text})
}

fn answers(replayed: &[Value]) -> Vec<String> {
    of(replayed, "command").iter().filter_map(|line| line["text"].as_str().map(str::to_owned)).collect()
}

fn loras(data: &Path) -> usize {
    let files = std::fs::read_dir(data.join("hearth")).expect("a folder");
    files.filter(|file| file.as_ref().is_ok_and(|file| file.path().extension().is_some_and(|it| it == "gguf"))).count()
}

/// Plays a timeline on a data folder, with the Hearth on.
fn play(scratch: &Path, data: &Path, offload: bool, world: &[Value]) -> Vec<Value> {
    let text: String = world.iter().map(|line| format!("{line}\n")).collect();
    let folder = data.to_str().expect("a plain path");
    let mut command = command(scratch, &["replay", "-", "--data", folder, "--model", "default", "--seed", "5"]);
    for (name, value) in [
        ("HEARTH__ENABLED", "true"),
        ("HEARTH__ELSEWHERE", if offload { "true" } else { "false" }),
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
}

fn chat(at: &str) -> Value {
    json!({"type": "chat", "at": at, "chat": "dm-ann", "kind": "dm", "members": ["ann"]})
}

/// An evening with exchanges to learn from.
fn evening() -> Vec<Value> {
    vec![
        chat("2026-03-01T19:00:00Z"),
        command_line("2026-03-01T19:00:10Z", "/hearth opt-in"),
        said("2026-03-01T19:01:00Z", "m1", "I carved a little owl out of pear wood today"),
        said("2026-03-01T19:03:00Z", "m2", "the ferry was late again and everybody sang"),
        said("2026-03-01T19:05:00Z", "m3", "my brother thinks that bees can count to four"),
        said("2026-03-01T19:07:00Z", "m4", "we are out of saffron, so the rice is grey"),
        said("2026-03-01T19:09:00Z", "m5", "somebody left a tuba in the laundry room"),
    ]
}

#[test]
fn a_night_trains_a_lora_and_forgetting_withdraws_it() {
    let scratch = tempfile::tempdir().expect("a folder");
    let data = scratch.path().join("data");
    let mut day = evening();
    day.extend([
        command_line("2026-03-02T09:00:00Z", "/hearth status"),
        command_line("2026-03-02T09:00:10Z", "/hearth history"),
        said("2026-03-02T09:01:00Z", "m6", "good morning, how did you sleep?"),
    ]);
    let replayed = play(scratch.path(), &data, false, &day);
    assert_eq!(of(&replayed, "error"), [] as [&Value; 0]);
    let outputs = answers(&replayed);
    assert!(outputs[1].contains("training 1 with 4 exchanges has been in use here"), "{outputs:?}");
    assert!(outputs[2].contains("training 1, 4 exchanges: kept (loss "), "{outputs:?}");
    assert_eq!(of(&replayed, "reply").len(), 6);
    assert_eq!(loras(&data), 1);
    // One of the five exchanges is held out. So of two forgotten ones, at least one was trained on.
    let after = [
        chat("2026-03-02T09:59:00Z"),
        command_line("2026-03-02T10:00:00Z", "/hearth status"),
        json!({"type": "delete", "at": "2026-03-02T10:01:00Z", "id": "m1"}),
        json!({"type": "delete", "at": "2026-03-02T10:01:10Z", "id": "m2"}),
        command_line("2026-03-02T10:01:20Z", "/hearth status"),
        said("2026-03-02T10:02:00Z", "m7", "are you still there?"),
    ];
    let replayed = play(scratch.path(), &data, false, &after);
    let outputs = answers(&replayed);
    assert!(outputs[0].contains("training 1 with"), "{outputs:?}");
    assert!(outputs[1].contains("**Learned:** nothing yet"), "{outputs:?}");
    assert_eq!(of(&replayed, "reply").len(), 1);
    assert_eq!(loras(&data), 0);
}

#[test]
fn a_night_is_trained_on_another_machine() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (data, stick) = (scratch.path().join("data"), scratch.path().join("stick"));
    let mut night = evening();
    night.push(command_line("2026-03-02T09:00:00Z", "/hearth status"));
    let outputs = answers(&play(scratch.path(), &data, true, &night));
    assert!(outputs[0].contains("another machine"), "{outputs:?}");
    assert!(outputs[1].contains("a training job has waited for that machine"), "{outputs:?}");
    assert_eq!(loras(&data), 0);
    let hearth = |arguments: &[&str]| {
        let mut command = command(scratch.path(), &["hearth"]);
        command.args(arguments).current_dir(&stick);
        command.env("AZERA__DATA__DIR", &data);
        let output = command.output().expect("the binary runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    };
    std::fs::create_dir(&stick).expect("a folder");
    let (packed, shown, _) = hearth(&["pack", "--to", "."]);
    assert!(packed && shown.contains("azera hearth train NAME.course"), "{shown}");
    let key = data.join("hearth").join("away").join("key");
    let carried: Vec<_> = std::fs::read_dir(&stick).expect("a folder").map(|it| it.expect("a file").path()).collect();
    let [job] = carried.as_slice() else { panic!("one course: {carried:?}") };
    let (job, learned) = (job.to_str().expect("a plain path"), job.with_extension("learnt"));
    let learned = learned.to_str().expect("a plain path");
    let sealed = std::fs::read(job).expect("a file");
    for word in ["saffron", "laundry", "messages"] {
        assert!(!sealed.windows(word.len()).any(|some| some == word.as_bytes()), "{word}");
    }
    // Nobody can read the job without the right key.
    let (read, _, why) = hearth(&["train", job]);
    assert!(!read && why.contains("--key FILE"), "{why}");
    std::fs::write(stick.join("other"), "0".repeat(64)).expect("a file");
    let (read, _, why) = hearth(&["train", job, "--key", "other"]);
    assert!(!read && why.contains("the key does not open it"), "{why}");
    let (trained, shown, why) = hearth(&["train", job, "--key", key.to_str().expect("a plain path")]);
    assert!(trained && shown.contains("loss "), "{shown}{why}");
    // A result is rejected under another name.
    let renamed = stick.join("0000000000000000.learnt");
    std::fs::copy(learned, &renamed).expect("a copy");
    let (installed, _, why) = hearth(&["install", renamed.to_str().expect("a plain path")]);
    assert!(!installed && why.contains("no training job fits"), "{why}");
    let (installed, shown, why) = hearth(&["install", learned]);
    assert!(installed && shown.contains("examines it"), "{shown}{why}");
    let morning = [
        chat("2026-03-02T09:59:00Z"),
        said("2026-03-02T10:00:00Z", "m6", "good morning, how did you sleep?"),
        command_line("2026-03-02T13:00:00Z", "/hearth status"),
        command_line("2026-03-02T13:00:10Z", "/hearth history"),
    ];
    let outputs = answers(&play(scratch.path(), &data, true, &morning));
    assert!(outputs[0].contains("training 1 with 4 exchanges has been in use here"), "{outputs:?}");
    assert!(outputs[1].contains("training 1, 4 exchanges: kept (loss "), "{outputs:?}");
    assert_eq!(loras(&data), 1);
    assert_eq!(std::fs::read_dir(data.join("hearth").join("away")).expect("a folder").count(), 1, "the key alone");
    // The operator forgets two of the five while Azera is stopped; at least one was trained on.
    for message in ["m1", "m2"] {
        let forget = ["memory", "forget", "--message", message, "--yes", "--data"];
        let output = azera(scratch.path(), &[&forget[..], &[data.to_str().expect("a plain path")]].concat(), "");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(loras(&data), 0);
    let later = [chat("2026-03-02T13:59:00Z"), command_line("2026-03-02T14:00:00Z", "/hearth history")];
    let outputs = answers(&play(scratch.path(), &data, true, &later));
    assert!(outputs[0].contains("something that it rested on was forgotten"), "{outputs:?}");
}

/// A restored record must not train on people who opted out after the backup. So every restore, and every undo, asks
/// everyone again.
#[test]
fn a_restored_record_asks_everyone_for_consent_again() {
    let scratch = tempfile::tempdir().expect("a folder");
    let data = scratch.path().join("data");
    let run = |arguments: &[&str]| {
        let output =
            azera(scratch.path(), &[arguments, &["--data", data.to_str().expect("a plain path")]].concat(), "");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let mut minute = 0;
    let mut has_consent = |first: &[&str]| {
        minute += 1;
        let at = format!("2026-03-01T19:{minute:02}:00Z");
        let mut world = vec![chat(&at)];
        world.extend(first.iter().chain(&["/hearth status"]).map(|command| command_line(&at, command)));
        let status = answers(&play(scratch.path(), &data, false, &world)).pop().expect("an answer");
        let (consents, unasked) =
            (status.contains("want me to learn"), status.contains("did not say that I may learn"));
        assert_ne!(consents, unasked, "{status}");
        consents
    };
    assert!(!has_consent(&[]));
    assert!(has_consent(&["/hearth opt-in"]));
    run(&["backup"]);
    run(&["restore", "--replace"]);
    assert!(!has_consent(&[]), "a restored record asks anew");
    assert!(has_consent(&["/hearth opt-in"]));
    run(&["restore", "--undo"]);
    assert!(!has_consent(&[]), "one that is brought back does too");
}
