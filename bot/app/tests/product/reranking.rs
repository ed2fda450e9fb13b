//! A reranking model on this machine: a tiny one with made-up weights, in the form in which the model hub has them.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use super::{at, command, fed, lines, models, of};

const HIDDEN: usize = 32;
const WORDS: [&str; 12] =
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "harbour", "lamp", "brass", "pier", "##s", "?"];

/// Writes a cross-encoder with one layer.
fn write_cross_encoder(folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    let config = json!({
        "architectures": ["BertForSequenceClassification"], "model_type": "bert", "hidden_size": HIDDEN,
        "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2, "layer_norm_eps": 1e-12,
        "max_position_embeddings": 128, "type_vocab_size": 2, "vocab_size": WORDS.len(),
    });
    fs::write(folder.join("config.json"), config.to_string()).expect("the configuration");
    fs::write(folder.join("vocab.txt"), WORDS.join("\n")).expect("the vocabulary");
    let embeddings = [("word_embeddings", WORDS.len()), ("position_embeddings", 128), ("token_type_embeddings", 2)];
    let mut shapes: Vec<(String, Vec<usize>)> = embeddings
        .into_iter()
        .map(|(name, rows)| (format!("bert.embeddings.{name}.weight"), vec![rows, HIDDEN]))
        .collect();
    let layer = "bert.encoder.layer.0";
    for norm in ["bert.embeddings", &format!("{layer}.attention.output"), &format!("{layer}.output")] {
        shapes.extend(["weight", "bias"].map(|part| (format!("{norm}.LayerNorm.{part}"), vec![HIDDEN])));
    }
    for (name, rows, columns) in [
        (format!("{layer}.attention.self.query"), HIDDEN, HIDDEN),
        (format!("{layer}.attention.self.key"), HIDDEN, HIDDEN),
        (format!("{layer}.attention.self.value"), HIDDEN, HIDDEN),
        (format!("{layer}.attention.output.dense"), HIDDEN, HIDDEN),
        (format!("{layer}.intermediate.dense"), 64, HIDDEN),
        (format!("{layer}.output.dense"), HIDDEN, 64),
        ("bert.pooler.dense".to_owned(), HIDDEN, HIDDEN),
        ("classifier".to_owned(), 1, HIDDEN),
    ] {
        shapes.push((format!("{name}.weight"), vec![rows, columns]));
        shapes.push((format!("{name}.bias"), vec![rows]));
    }
    let (mut header, mut data, mut dice) = (serde_json::Map::new(), Vec::new(), 1_u32);
    for (name, shape) in shapes {
        let begin = data.len();
        for _ in 0..shape.iter().product() {
            dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            data.extend(((dice >> 8) as f32 / 8_388_608.0 - 1.0).to_le_bytes());
        }
        header.insert(name, json!({"dtype": "F32", "shape": shape, "data_offsets": [begin, data.len()]}));
    }
    let header = Value::Object(header).to_string();
    let file = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat();
    fs::write(folder.join("model.safetensors"), file).expect("the weights");
}

/// Runs the binary in a home with models of its own.
fn run(home: &Path, settings: &[(&str, &str)], arguments: &[&str], input: &str) -> Output {
    let mut command = command(home, arguments);
    command.env("AZERA__MODELS__DIR", home.join("models")).env("AZERA__DATA__DIR", home.join("data"));
    // Other tests may keep all cores busy.
    command.env("AZERA__RERANKER__TIMEOUT_MS", "10000").envs(settings.iter().copied());
    fed(&mut command, input)
}

fn said(home: &Path, settings: &[(&str, &str)], arguments: &[&str]) -> String {
    let output = run(home, settings, arguments, "");
    let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
    write!(said, "{}", String::from_utf8_lossy(&output.stderr)).expect("a string takes it");
    said
}

/// Returns the hits for a question with their signals, after the lines of `timeline`.
#[track_caller]
fn hits(home: &Path, settings: &[(&str, &str)], timeline: &[Value], minute: usize) -> String {
    let chat = json!({"type": "chat", "at": at(0), "chat": "dm", "kind": "dm", "members": ["ann"]});
    let probe =
        json!({"type": "probe", "at": at(minute), "chat": "dm", "person": "ann", "query": "what of the harbour lamp?"});
    let text: String = [&[chat], timeline, &[probe]].concat().iter().map(|line| format!("{line}\n")).collect();
    let data = home.join("data");
    let arguments = ["replay", "-", "--data", data.to_str().expect("a plain path"), "--model", "scripted"];
    let replayed = lines(&run(home, settings, &arguments, &text));
    of(&replayed, "probe")[0]["hits"].to_string()
}

#[test]
fn an_installed_reranking_model_orders_what_is_found_until_it_is_switched_off() {
    let home = tempfile::tempdir().expect("a folder");
    let home = home.path();
    fs::create_dir(home.join("models")).expect("a folder");
    symlink(models().join("minilm-l6-v2"), home.join("models/minilm-l6-v2")).expect("a link");
    // What the classifiers learn from their examples takes a minute to compute, and is the same for all tests.
    if models().join("senses").exists() {
        symlink(models().join("senses"), home.join("models/senses")).expect("a link");
    }
    let say = |minute: usize, text: &str| json!({"type": "message", "at": at(minute), "id": format!("m{minute}"), "chat": "dm", "person": "ann", "text": text});
    let told = [say(1, "the harbour lamp shines over the pier"), say(2, "somebody polished the harbour lamp of brass")];
    assert!(!hits(home, &[], &told, 100).contains("reranked"), "none is installed");
    let doctor = said(home, &[], &["doctor"]);
    assert!(doctor.contains("ok    reranking model: none is installed"), "{doctor}");

    write_cross_encoder(&home.join("original"));
    let original = home.join("original");
    let imported = said(home, &[], &["models", "import", original.to_str().expect("a plain path"), "--name", "tiny"]);
    assert!(imported.contains("tiny is installed"), "{imported}");
    let listed = |settings| {
        said(home, settings, &["models", "list"]).lines().rfind(|line| line.starts_with("tiny")).map(str::to_owned)
    };
    let line = listed(&[]).expect("it is listed");
    assert!(line.contains("reranker") && line.contains("in use"), "{line}");
    let found = hits(home, &[], &[], 200);
    assert!(found.contains("reranked"), "{found}");
    let doctor = said(home, &[], &["doctor"]);
    assert!(doctor.contains("ok    reranking model: tiny, ") && doctor.contains("for 10 short texts"), "{doctor}");

    let off = [("AZERA__RERANKER__ENABLED", "false")];
    assert!(!hits(home, &off, &[], 300).contains("reranked"));
    assert!(listed(&off).expect("it is listed").contains("installed"));
    assert!(said(home, &off, &["doctor"]).contains("ok    reranking model: not used: reranker.enabled is false"));
    let other = [("AZERA__RERANKER__MODEL", "minilm-l6-v2")];
    assert!(!hits(home, &other, &[], 400).contains("reranked"), "recall works without a usable model");
    let doctor = said(home, &other, &["doctor"]);
    assert!(
        doctor.contains("BAD   reranking model: minilm-l6-v2 is no reranker but of the kind embedding"),
        "{doctor}"
    );
    let removed = said(home, &[], &["models", "remove", "tiny", "--force"]);
    assert!(removed.contains("tiny is removed"), "{removed}");
    assert!(!hits(home, &[], &[], 500).contains("reranked"));
}
