//! `azera eval tags`, and what it shares with `azera eval mood`: runs classifiers on labelled sentences, with the
//! embedding model in use.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, ensure};
use azera_affect::{Classifiers, LabelledSentence, Tag, labelled};
use azera_config::Config;
use azera_model_api::{Embedder, Priority, Purpose};
use serde_json::{Value, json};

use crate::bootstrap;
use crate::cli::EvalLabels;
use crate::lab::measure::median;
use crate::progress::Bar;

/// Name for a sentence without labels.
const NONE: &str = "none";

pub async fn tags(config: &Config, options: EvalLabels) -> anyhow::Result<ExitCode> {
    let known: Vec<&str> = Tag::ALL.iter().map(|tag| tag.name()).collect();
    let sentences = read(&options.file, &known, false)?;
    let embedder = bootstrap::embedder(config).await?;
    let classifiers = classifiers(config, &embedder).await?;
    let results = label_all(&sentences, async |text| {
        let vector = vector(embedder.as_ref(), text).await?;
        Ok(classifiers.tags.classify(text, &vector).into_iter().map(Tag::name).collect())
    });
    report(&sentences, &results.await?, &[&known[..], &[NONE]].concat(), "micro_f1", &options)
}

pub(super) fn read(file: &Path, known: &[&str], one_each: bool) -> anyhow::Result<Vec<LabelledSentence>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let sentences = labelled(&text).with_context(|| file.display().to_string())?;
    ensure!(!sentences.is_empty(), "{} holds no sentence", file.display());
    for (index, sentence) in sentences.iter().enumerate() {
        let number = index + 1;
        ensure!(!one_each || sentence.labels.len() == 1, "sentence {number} has {} labels", sentence.labels.len());
        let unknown = sentence.labels.iter().find(|label| !known.contains(&label.as_str()));
        let all = || known.join(", ");
        ensure!(unknown.is_none(), "sentence {number}: there is no label {unknown:?}; there are {}", all());
    }
    Ok(sentences)
}

pub(super) async fn classifiers(config: &Config, embedder: &Arc<dyn Embedder>) -> anyhow::Result<Arc<Classifiers>> {
    let bar = Bar::new();
    crate::classifiers::classifiers(config, embedder, &|done, of| bar.count(crate::models::LEARNING, done, of)).await
}

/// Returns the embedding of a text.
pub(super) async fn vector(embedder: &dyn Embedder, text: &str) -> anyhow::Result<Vec<f32>> {
    let vectors = embedder.embed(vec![text.to_owned()], Purpose::Document, Priority::Foreground).await?;
    vectors.into_iter().next().context("a sentence has no vector")
}

/// The predicted labels of each sentence, and the milliseconds each took, including the embedding.
pub(super) struct LabelResults {
    labels: Vec<Vec<&'static str>>,
    times: Vec<f64>,
}

pub(super) async fn label_all(
    sentences: &[LabelledSentence],
    classify: impl AsyncFn(&str) -> anyhow::Result<Vec<&'static str>>,
) -> anyhow::Result<LabelResults> {
    let mut results =
        LabelResults { labels: Vec::with_capacity(sentences.len()), times: Vec::with_capacity(sentences.len()) };
    for sentence in sentences {
        let begun = Instant::now();
        results.labels.push(classify(&sentence.text).await?);
        results.times.push(begun.elapsed().as_secs_f64() * 1_000.0);
    }
    Ok(results)
}

#[derive(Default)]
struct Counts {
    correct: usize,
    predicted: usize,
    expected: usize,
}

impl Counts {
    fn precision(&self) -> f64 {
        share(self.correct, self.predicted)
    }

    fn recall(&self) -> f64 {
        share(self.correct, self.expected)
    }

    fn f1(&self) -> f64 {
        share(2 * self.correct, self.predicted + self.expected)
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

pub(super) fn report(
    sentences: &[LabelledSentence],
    results: &LabelResults,
    known: &[&str],
    overall: &str,
    options: &EvalLabels,
) -> anyhow::Result<ExitCode> {
    let mut counts: BTreeMap<&str, Counts> = known.iter().map(|label| (*label, Counts::default())).collect();
    let none: &[&str] = if known.contains(&NONE) { &[NONE] } else { &[] };
    for (sentence, given) in sentences.iter().zip(&results.labels) {
        let expected: Vec<&str> = sentence.labels.iter().map(String::as_str).collect();
        let expected = if expected.is_empty() { none } else { &expected };
        let given = if given.is_empty() { none } else { given };
        for (label, counts) in &mut counts {
            let (is, said) = (expected.contains(label), given.contains(label));
            counts.correct += usize::from(is && said);
            counts.predicted += usize::from(said);
            counts.expected += usize::from(is);
        }
        if options.show && !(expected.len() == given.len() && expected.iter().all(|label| given.contains(label))) {
            println!("[{}] told [{}]: {}", expected.join(", "), given.join(", "), sentence.text);
        }
    }
    let mut all = Counts::default();
    for counts in counts.values() {
        all.correct += counts.correct;
        all.predicted += counts.predicted;
        all.expected += counts.expected;
    }
    // Leave labels without a sentence out of the mean.
    let present: Vec<f64> = counts.values().filter(|counts| counts.expected > 0).map(Counts::f1).collect();
    let macro_f1 = present.iter().sum::<f64>() / present.len().max(1) as f64;
    let p50_ms = median(&results.times);
    if options.json {
        let by_label = |(label, counts): (&&str, &Counts)| {
            let (precision, recall) = (counts.precision(), counts.recall());
            ((*label).to_owned(), json!({"precision": precision, "recall": recall, "n": counts.expected}))
        };
        let by_label: serde_json::Map<String, Value> = counts.iter().map(by_label).collect();
        // With one label per sentence, micro F1 equals accuracy.
        let value = json!({
            "n": sentences.len(), overall: all.f1(), "macro_f1": macro_f1, "by_label": by_label, "p50_ms": p50_ms,
        });
        println!("{value}");
        return Ok(ExitCode::SUCCESS);
    }
    println!("{} sentences, {} {:.3}, macro F1 {macro_f1:.3}, {p50_ms:.1} ms each", sentences.len(), overall, all.f1());
    for (label, counts) in counts.iter().filter(|(_, counts)| counts.expected > 0) {
        let (precision, recall, n) = (counts.precision(), counts.recall(), counts.expected);
        println!("  {label:<15} precision {precision:.2}  recall {recall:.2}  of {n}");
    }
    Ok(ExitCode::SUCCESS)
}
