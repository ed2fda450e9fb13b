//! The classifiers with the default embedding model, on sentences that were not used for training.

use serde_json::Value;

use crate::{azera, lines};

fn report(what: &str, options: &[&str]) -> Value {
    let home = tempfile::tempdir().expect("a folder");
    let file = format!("../affect/labelled/{what}.jsonl");
    let output = azera(home.path(), &[&["eval", what, &file, "--json"], options].concat(), "");
    lines(&output).remove(0)
}

#[test]
fn moods_are_detected_in_sentences() {
    let report = report("mood", &[]);
    assert!(report["accuracy"].as_f64() > Some(0.85), "{report}");
    assert_eq!(report["by_label"]["melancholy"]["n"], 32, "{report}");
}

/// The built-in method must be better than the one it replaced.
#[test]
fn prototypes_detect_moods_less_well() {
    let [served, other] = [report("mood", &[]), report("mood", &["--by", "prototypes"])];
    let accuracy = |report: &Value| report["accuracy"].as_f64().expect("a share");
    assert!(0.5 < accuracy(&other) && accuracy(&other) < accuracy(&served), "{served} {other}");
}

#[test]
fn tags_are_detected_in_messages() {
    let report = report("tags", &[]);
    assert!(report["macro_f1"].as_f64() > Some(0.8), "{report}");
    assert!(report["by_label"]["self_harm"]["recall"].as_f64() > Some(0.9), "{report}");
    assert!(report["by_label"]["none"]["n"].as_u64() > Some(90), "{report}");
}

#[test]
fn an_unknown_label_is_reported() {
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join("mine.jsonl");
    let check = |text: &str, want: &[&str]| {
        std::fs::write(&file, text).expect("a file");
        let output = azera(home.path(), &["eval", "mood", file.to_str().expect("a path")], "");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && want.iter().all(|want| said.contains(want)), "{said}");
    };
    check("{\"text\": \"hm\", \"label\": \"grumpy\"}\n", &["sentence 1", "grumpy", "melancholy"]);
    check("{\"text\": \"hm\", \"labels\": []}\n", &["sentence 1", "0 labels"]);
    check("{\"text\": \"hm\", \"label\": \"calm\"}\nhello\n", &["mine.jsonl", "line 2"]);
    check("\n", &["holds no sentence"]);
}

#[test]
fn claims_are_extracted_as_json() {
    let home = tempfile::tempdir().expect("a folder");
    // Without the reading LoRA, six of these are right.
    let report = lines(&azera(home.path(), &["eval", "claims", "--limit", "12", "--json"], "")).remove(0);
    assert_eq!(report["sentences"], 12, "{report}");
    assert!(report["valid"].as_u64() > Some(9) && report["right"].as_u64() > Some(8), "{report}");
}
