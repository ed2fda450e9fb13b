//! The commands that train and measure LoRAs, with the real model.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::{azera, command, fed, lines, of};

const BUNDLED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/registry/loras/smollm2-135m.gguf");

fn prose(folder: &Path) -> String {
    let path = folder.join("prose.txt");
    let text = "The tide leaves twice a day, and whoever walks out has to know when it comes back. ".repeat(8);
    std::fs::write(&path, text).expect("a file");
    path.to_str().expect("a plain path").to_owned()
}

#[test]
fn a_training_pauses_resumes_and_is_measured() {
    let scratch = tempfile::tempdir().expect("a folder");
    let file = |name: &str| scratch.path().join(name).to_str().expect("a plain path").to_owned();
    let (examples, out, checkpoint) = (file("lessons.jsonl"), file("taught.gguf"), file("taught.checkpoint"));
    let others = ["recalled", "told_apart", "of_another", "newer", "in_history", "near", "unknown", "heard"];
    let others = others.iter().chain(&["of_itself", "talk", "scene", "writing", "claim"]);
    let shares: Vec<String> = others.flat_map(|kind| ["--share".to_owned(), format!("{kind}=0")]).collect();
    let shares: Vec<&str> = shares.iter().map(String::as_str).collect();
    let made = [&["hearth", "curriculum", "--count", "8", &examples], shares.as_slice()].concat();
    assert!(azera(scratch.path(), &made, "").status.success());
    // An unwritable path fails before the training starts.
    let nowhere = file("nowhere/taught.gguf");
    let refused = azera(scratch.path(), &["hearth", "train", &examples, "--out", &nowhere, "--steps", "9999"], "");
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("nowhere"));
    let recipe = |rank: &'static str| {
        ["hearth", "train", examples.as_str(), "--out", out.as_str(), "--steps", "40", "--batch", "1", "--rank", rank]
            .map(str::to_owned)
    };
    let train = |rank| {
        let arguments = recipe(rank);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        command(scratch.path(), &arguments)
    };
    let mut child = train("2").spawn().expect("the binary runs");
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    stderr.read_line(&mut line).expect("what it is at");
    assert!(line.contains("training with"), "{line}");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill runs").success());
    stderr.read_to_string(&mut line).expect("the rest");
    let output = child.wait_with_output().expect("the binary ends");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("the same command goes on"), "{said}{line}");
    assert!(Path::new(&checkpoint).exists() && !Path::new(&out).exists());
    // Another recipe cannot resume this training.
    let refused = fed(&mut train("3"), "");
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("--anew begins again"));
    let output = fed(&mut train("2"), "");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && log.contains("going on after step"), "{log}");
    assert!(!Path::new(&checkpoint).exists());
    // The model learned the prose nearly by heart, so its loss on these examples is lower.
    let measured = azera(scratch.path(), &["hearth", "measure", "--lora", &out, "--lessons", &examples], "");
    let report: Value = serde_json::from_slice(&measured.stdout).expect("a report");
    let loss = |which: &str| report["lessons"][which].as_f64().expect("a loss");
    assert!(loss("loss_with") < loss("loss_without") - 0.05, "{report}");
    // With `--keep-prose`, the loss stays as it was.
    let kept = file("kept.gguf");
    let (steps, keep) = (["--steps", "10", "--batch", "1", "--rank", "2"], "--keep-prose");
    let train = [&["hearth", "train", &examples, "--out", &kept, keep], steps.as_slice()].concat();
    assert!(azera(scratch.path(), &train, "").status.success());
    let measured = azera(scratch.path(), &["hearth", "measure", "--lora", &kept, "--lessons", &examples], "");
    let report: Value = serde_json::from_slice(&measured.stdout).expect("a report");
    let loss = |which: &str| report["lessons"][which].as_f64().expect("a loss");
    assert!((loss("loss_with") - loss("loss_without")).abs() < 1e-4, "{report}");
}

/// Merging writes a LoRA that works. A LoRA merged with itself stays the same.
#[test]
fn the_mean_of_a_lora_and_itself_is_that_lora() {
    let scratch = tempfile::tempdir().expect("a folder");
    let file = |name: &str| scratch.path().join(name).to_str().expect("a plain path").to_owned();
    let (mean, half, prose) = (file("mean.gguf"), file("half.gguf"), prose(scratch.path()));
    let run = |arguments: &[&str]| azera(scratch.path(), &[&["hearth"], arguments].concat(), "");
    let merged = |arguments: &[&str]| lines(&run(&[&["merge"], arguments].concat())).remove(0);
    assert_eq!(merged(&[BUNDLED, BUNDLED, "--out", &mean])["adapters"], 2);
    let kept_share = merged(&[BUNDLED, &mean, "--rank", "4", "--scale", "0.5", "--out", &half])["kept"].as_f64();
    assert!(kept_share < Some(0.99), "{kept_share:?}");
    let ratio = |lora: &str| {
        let output = run(&["measure", "--lora", lora, "--text", &prose]);
        let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
        report["text"]["ratio"].as_f64().expect("a ratio")
    };
    let (own, same, less) = (ratio(BUNDLED), ratio(&mean), ratio(&half));
    assert!((own / same - 1.0).abs() < 1e-3 && (own / less - 1.0).abs() > 1e-3, "{own} {same} {less}");
    let refused = run(&["merge", BUNDLED, &prose, "--out", &file("none.gguf")]);
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("prose.txt"));
    assert!(!Path::new(&file("none.gguf")).exists());
}

#[test]
fn the_default_lora_serves_unless_it_is_left_out() {
    let world: String = [
        json!({"type": "chat", "at": "2026-03-01T19:00:00Z", "chat": "dm-ann", "kind": "dm", "members": ["ann"]}),
        json!({"type": "message", "at": "2026-03-01T19:01:00Z", "id": "m1", "chat": "dm-ann", "person": "ann",
               "text": "my canary is called Basil and sings at noon"}),
    ]
    .iter()
    .map(|line| format!("{line}\n"))
    .collect();
    let replies = |arguments: &[&str], lora: Option<&str>| {
        let scratch = tempfile::tempdir().expect("a folder");
        let arguments = [arguments, &["replay", "-", "--model", "default", "--seed", "5"]].concat();
        let mut command = command(scratch.path(), &arguments);
        if let Some(lora) = lora {
            command.env("AZERA__MODELS__ADAPTER", lora);
        }
        let replayed = lines(&fed(&mut command, &world));
        let replies: Vec<String> = of(&replayed, "reply").iter().map(|line| line["text"].to_string()).collect();
        assert_eq!(replies.len(), 1, "{replayed:?}");
        replies
    };
    let with = replies(&[], None);
    assert_eq!(with, replies(&[], Some(BUNDLED)), "it is the bundled one");
    let without = replies(&["--no-lora"], None);
    assert_ne!(with, without);
    assert_eq!(without, replies(&[], Some("none")));
}
