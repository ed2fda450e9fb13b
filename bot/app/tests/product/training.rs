//! The commands that train adapters, measure them and do without them, with the real model.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::{azera, command, fed, lines, of};

const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/registry/loras/smollm2-135m.gguf");

fn prose(folder: &Path) -> String {
    let path = folder.join("prose.txt");
    let text = "The tide leaves twice a day, and whoever walks out has to know when it comes back. ".repeat(8);
    std::fs::write(&path, text).expect("a file");
    path.to_str().expect("a plain path").to_owned()
}

#[test]
fn a_training_pauses_goes_on_and_is_measured() {
    let scratch = tempfile::tempdir().expect("a folder");
    let file = |name: &str| scratch.path().join(name).to_str().expect("a plain path").to_owned();
    let (examples, out, checkpoint) = (file("lessons.jsonl"), file("taught.gguf"), file("taught.checkpoint"));
    let others = ["recalled", "told_apart", "of_another", "newer", "in_history", "near", "unknown", "heard"];
    let others = others.iter().chain(&["of_itself", "talk", "scene", "writing", "claim"]);
    let shares: Vec<String> = others.flat_map(|kind| ["--share".to_owned(), format!("{kind}=0")]).collect();
    let shares: Vec<&str> = shares.iter().map(String::as_str).collect();
    let made = [&["hearth", "curriculum", "--count", "8", &examples], shares.as_slice()].concat();
    assert!(azera(scratch.path(), &made, "").status.success());
    // Where nothing can be written is told before anything is learnt.
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
    let mut answer_text = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    answer_text.read_line(&mut line).expect("what it is at");
    assert!(line.contains("training with"), "{line}");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill runs").success());
    answer_text.read_to_string(&mut line).expect("the rest");
    let output = child.wait_with_output().expect("the binary ends");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("the same command goes on"), "{said}{line}");
    assert!(Path::new(&checkpoint).exists() && !Path::new(&out).exists());
    // Another recipe is another training, and takes nothing from this one.
    let refused = fed(&mut train("3"), "");
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("--anew begins again"));
    let output = fed(&mut train("2"), "");
    let answer_text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && answer_text.contains("going on after step"), "{answer_text}");
    assert!(!Path::new(&checkpoint).exists());
    // Prose alone was learnt, by heart nearly: it reads these lessons better.
    let measured = azera(scratch.path(), &["hearth", "measure", "--adapter", &out, "--lessons", &examples], "");
    let report: Value = serde_json::from_slice(&measured.stdout).expect("a report");
    let loss = |which: &str| report["lessons"][which].as_f64().expect("a loss");
    assert!(loss("loss_with") < loss("loss_without") - 0.05, "{report}");
    // Kept instead of taught, it reads them as it did.
    let retained = file("kept.gguf");
    let (steps, keep) = (["--steps", "10", "--batch", "1", "--rank", "2"], "--keep-prose");
    let train = [&["hearth", "train", &examples, "--out", &retained, keep], steps.as_slice()].concat();
    assert!(azera(scratch.path(), &train, "").status.success());
    let measured = azera(scratch.path(), &["hearth", "measure", "--adapter", &retained, "--lessons", &examples], "");
    let report: Value = serde_json::from_slice(&measured.stdout).expect("a report");
    let loss = |which: &str| report["lessons"][which].as_f64().expect("a loss");
    assert!((loss("loss_with") - loss("loss_without")).abs() < 1e-4, "{report}");
}

/// Merging goes by the files of adapters and gives one that serves: of the same one twice, that one.
#[test]
fn the_mean_of_a_lora_and_itself_is_that_lora() {
    let scratch = tempfile::tempdir().expect("a folder");
    let file = |name: &str| scratch.path().join(name).to_str().expect("a plain path").to_owned();
    let (mean, half, prose) = (file("mean.gguf"), file("half.gguf"), prose(scratch.path()));
    let run = |arguments: &[&str]| azera(scratch.path(), &[&["hearth"], arguments].concat(), "");
    let merged = |arguments: &[&str]| lines(&run(&[&["merge"], arguments].concat())).remove(0);
    assert_eq!(merged(&[SHIPPED, SHIPPED, "--out", &mean])["adapters"], 2);
    let retained = merged(&[SHIPPED, &mean, "--rank", "4", "--scale", "0.5", "--out", &half])["kept"].as_f64();
    assert!(retained < Some(0.99), "{retained:?}");
    let ratio = |lora: &str| {
        let output = run(&["measure", "--adapter", lora, "--text", &prose]);
        let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
        report["text"]["ratio"].as_f64().expect("a ratio")
    };
    let (own, same, less) = (ratio(SHIPPED), ratio(&mean), ratio(&half));
    assert!((own / same - 1.0).abs() < 1e-3 && (own / less - 1.0).abs() > 1e-3, "{own} {same} {less}");
    let refused = run(&["merge", SHIPPED, &prose, "--out", &file("none.gguf")]);
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("prose.txt"));
    assert!(!Path::new(&file("none.gguf")).exists());
}

#[test]
fn the_default_lora_speaks_unless_it_is_left_out() {
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
    assert_eq!(with, replies(&[], Some(SHIPPED)), "it is the one that ships");
    let without = replies(&["--no-adapter"], None);
    assert_ne!(with, without);
    assert_eq!(without, replies(&[], Some("none")));
}
