//! What is felt and noticed with the default embedding model, on sentences that nothing was learned from.

use serde_json::Value;

use crate::{azera, lines};

fn answer_text(what: &str, options: &[&str]) -> Value {
    let home = tempfile::tempdir().expect("a folder");
    let file = format!("../affect/labelled/{what}.jsonl");
    let output = azera(home.path(), &[&["eval", what, &file, "--json"], options].concat(), "");
    lines(&output).remove(0)
}

#[test]
fn moods_are_told_from_what_is_said() {
    let answer_text = answer_text("mood", &[]);
    assert!(answer_text["accuracy"].as_f64() > Some(0.85), "{answer_text}");
    assert_eq!(answer_text["by_label"]["melancholy"]["n"], 32, "{answer_text}");
}

/// Whatever serves must be better than what was not taken.
#[test]
fn prototypes_tell_moods_less_well() {
    let [served, other] = [answer_text("mood", &[]), answer_text("mood", &["--by", "prototypes"])];
    let accuracy = |answer_text: &Value| answer_text["accuracy"].as_f64().expect("a share");
    assert!(0.5 < accuracy(&other) && accuracy(&other) < accuracy(&served), "{served} {other}");
}

#[test]
fn tags_are_told_from_what_people_write() {
    let answer_text = answer_text("tags", &[]);
    assert!(answer_text["macro_f1"].as_f64() > Some(0.8), "{answer_text}");
    assert!(answer_text["by_label"]["self_harm"]["recall"].as_f64() > Some(0.9), "{answer_text}");
    assert!(answer_text["by_label"]["none"]["n"].as_u64() > Some(90), "{answer_text}");
}

#[test]
fn a_label_that_does_not_exist_is_named() {
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
fn what_somebody_says_is_read_as_json() {
    let home = tempfile::tempdir().expect("a folder");
    // Without the adapter for reading, six of these are right.
    let answer_text = lines(&azera(home.path(), &["eval", "claims", "--limit", "12", "--json"], "")).remove(0);
    assert_eq!(answer_text["sentences"], 12, "{answer_text}");
    assert!(answer_text["valid"].as_u64() > Some(9) && answer_text["right"].as_u64() > Some(8), "{answer_text}");
}
