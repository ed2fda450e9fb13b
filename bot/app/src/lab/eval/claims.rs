//! `azera eval claims`: evaluates the claims that a model extracts as JSON, and how contradictions are detected with
//! them. Both use the product's own code.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, ensure};
use azera_config::Config;
use azera_engine::Claim;
use azera_types::SystemClock;
use serde::Deserialize;
use serde_json::json;

use crate::bootstrap::{self, BootstrapOptions, ModelChoice};
use crate::cli::EvalFacts;
use crate::stores;

/// A hundred sentences with a claim, and forty pairs of which half replace one claim by another. They share no name,
/// value or run of six words with the training examples.
const SENTENCES: &str = include_str!("../../../eval/claims.jsonl");

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Row {
    Pair {
        who: String,
        before: String,
        now: String,
        replaced: bool,
    },
    Sentence {
        who: String,
        text: String,
        /// The claim's subject must have a word that begins with one of each group.
        about: Vec<Vec<String>>,
        /// The claim's value must be one of these, with at most two more words.
        value: Vec<String>,
    },
}

#[derive(Debug, Default)]
struct Tally {
    sentences: usize,
    valid: usize,
    right: usize,
    changes: usize,
    found: usize,
    pairs: usize,
    mistaken: usize,
}

pub async fn claims(config: &Config, options: EvalFacts) -> anyhow::Result<ExitCode> {
    let rows = read(options.file.as_deref(), options.limit.unwrap_or(usize::MAX))?;
    let scratch = tempfile::tempdir().context("making a folder for the evaluation")?;
    let config = stores::scratch_config(config, scratch.path());
    let opening = BootstrapOptions {
        answers: ModelChoice::named(&options.model),
        clock: Arc::new(SystemClock),
        seed: Some(options.seed),
        on_trial: false,
    };
    let app = bootstrap::open(&config, opening).await?;
    let mut tally = Tally::default();
    for row in &rows {
        match row {
            Row::Sentence { who, text, about, value } => {
                let claim = app.engine.claim(who, text).await?;
                let right = claim.as_ref().is_some_and(|claim| is_correct(claim, about, value));
                tally.sentences += 1;
                tally.valid += usize::from(claim.is_some());
                tally.right += usize::from(right);
                if options.show {
                    let read = serde_json::to_string(&claim)?;
                    eprintln!("{} {text}\n      {read}", if right { "+" } else { "-" });
                }
            }
            Row::Pair { who, before, now, replaced } => {
                let (old, new) = (app.engine.claim(who, before).await?, app.engine.claim(who, now).await?);
                let outcome = match old.zip(new) {
                    Some((old, new)) => app.engine.replaces(&old, &new).await?,
                    None => false,
                };
                tally.pairs += 1;
                tally.changes += usize::from(*replaced);
                tally.found += usize::from(outcome && *replaced);
                tally.mistaken += usize::from(outcome && !*replaced);
                if options.show {
                    let said = if outcome { "replaced" } else { "both stand" };
                    eprintln!("{} {before} / {now}\n      {said}", if outcome == *replaced { "+" } else { "-" });
                }
            }
        }
    }
    app.engine.stop().await;
    let report = json!({
        "sentences": tally.sentences, "valid": tally.valid, "right": tally.right,
        "changes": tally.changes, "found": tally.found,
        "no_changes": tally.pairs - tally.changes, "mistaken": tally.mistaken,
    });
    println!("{}", if options.json { report.to_string() } else { serde_json::to_string_pretty(&report)? });
    Ok(ExitCode::SUCCESS)
}

fn read(file: Option<&Path>, limit: usize) -> anyhow::Result<Vec<Row>> {
    let text = match file {
        Some(file) => std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?,
        None => SENTENCES.to_owned(),
    };
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).take(limit);
    let rows = lines
        .map(|(index, line)| serde_json::from_str(line).with_context(|| format!("line {}", index + 1)))
        .collect::<anyhow::Result<Vec<Row>>>()?;
    ensure!(!rows.is_empty(), "there is nothing to read");
    Ok(rows)
}

fn words(text: &str) -> Vec<String> {
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '.' | '-');
    let words = text.split(|c| !inside(c)).map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase());
    words.filter(|word| !word.is_empty()).collect()
}

fn is_correct(claim: &Claim, about: &[Vec<String>], value: &[String]) -> bool {
    let named = words(&claim.about);
    let is_about = about.iter().all(|group| group.iter().any(|key| named.iter().any(|word| word.starts_with(key))));
    let said = words(&claim.value);
    let holds = |key: &String| {
        let key = words(key);
        said.windows(key.len().max(1)).any(|run| run == key) && said.len() <= key.len() + 2
    };
    is_about && value.iter().any(holds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_correct_by_its_subject_and_its_value() {
        #[track_caller]
        fn check(about: &str, value: &str, want: bool) {
            let claim = Claim { about: about.into(), value: value.into() };
            let groups = [vec!["tortoise".to_owned()], vec!["age".to_owned(), "old".to_owned()]];
            assert_eq!(is_correct(&claim, &groups, &["sixty two".into()]), want, "{about}: {value}");
        }
        check("how old your tortoise is", "sixty two", true);
        check("the age of your tortoise", "Sixty two this spring", true);
        check("the age of your tortoise", "our tortoise is older than me, sixty two", false);
        check("the name of your tortoise", "sixty two", false);
        check("how old you are", "sixty two", false);
        check("", "", false);
    }

    #[test]
    fn the_sentences_can_be_read() {
        let rows = read(None, usize::MAX).unwrap();
        let sentences = rows.iter().filter(|row| matches!(row, Row::Sentence { .. })).count();
        let changes = rows.iter().filter(|row| matches!(row, Row::Pair { replaced: true, .. })).count();
        assert_eq!((rows.len(), sentences, changes), (140, 100, 20));
    }
}
