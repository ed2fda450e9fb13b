//! `azera eval talk`: sixty openings and short conversations with both personas, as whole turns of the product, judged
//! by the rules in `talk_rules`. `bot/app/eval/TALK.md` explains them.

use std::collections::{BTreeMap, HashMap};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use azera_config::Config;
use azera_fake_sim::{SimPlatform, Timeline};
use azera_types::{ManualClock, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::facts::replies;
use super::talk_rules::{Judged, Kind, Rule, broken_rules, is_declined};
use super::world;
use crate::bootstrap::{self, BootstrapOptions, ModelChoice};
use crate::cli::EvalFacts;
use crate::stores;

/// Written for this project. They share nothing with training examples.
const TALKS: &str = include_str!("../../../eval/openings.jsonl");

/// The name of the person in every conversation.
const PERSON: &str = "Robin";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Talk {
    id: String,
    kind: Kind,
    persona: String,
    #[serde(default = "english")]
    language: String,
    said: Vec<String>,
    #[serde(default)]
    answer: Vec<String>,
}

fn english() -> String {
    "en".to_owned()
}

/// The result of one conversation.
struct Outcome {
    kind: Kind,
    broken: Vec<Rule>,
    declined: bool,
}

pub async fn talk(config: &Config, options: EvalFacts) -> anyhow::Result<ExitCode> {
    let talks: Vec<Talk> = world::cases(&options, TALKS)?;
    let scratch = tempfile::tempdir().context("making a folder for the evaluation")?;
    let config = stores::scratch_config(config, scratch.path());
    let clock = ManualClock::new("2026-03-02T09:00:00Z".parse()?);
    let opening = BootstrapOptions {
        answers: ModelChoice::named(&options.model),
        clock: Arc::new(clock.clone()),
        seed: Some(options.seed),
        on_trial: false,
    };
    let app = bootstrap::open(&config, opening).await?;
    let sim = Arc::new(SimPlatform::new(Arc::new(clock.clone()))?);
    app.engine.attach(sim.clone());
    app.engine.start().await?;
    let mut outcomes = Vec::new();
    for (index, talk) in talks.iter().enumerate() {
        let mut out = Vec::new();
        let timeline = Timeline::read(timeline(talk, index)?.as_bytes())?;
        world::play(&app, &clock, &sim, &timeline, &mut out).await?;
        outcomes.push(judge(talk, &replies(&out)?, options.show)?);
    }
    app.engine.stop().await;
    let report = report(&app.model.info().name, &outcomes);
    println!("{}", if options.json { report.to_string() } else { serde_json::to_string_pretty(&report)? });
    Ok(ExitCode::SUCCESS)
}

/// Builds a direct chat, with a minute between messages and an hour between conversations.
fn timeline(talk: &Talk, index: usize) -> anyhow::Result<String> {
    let start: Timestamp = "2026-03-02T09:00:00Z".parse()?;
    let mut at = start.checked_add(jiff::Span::new().hours(i64::try_from(index)?))?;
    let person = format!("person-{}", talk.id);
    let mut lines = json!({
        "type": "chat", "at": at, "chat": talk.id, "kind": "dm", "members": [person], "persona": talk.persona,
    })
    .to_string();
    for (index, text) in talk.said.iter().enumerate() {
        at = at.checked_add(jiff::Span::new().minutes(1))?;
        let message = json!({
            "type": "message", "at": at, "id": message_id(talk, index), "chat": talk.id, "person": person,
            "name": PERSON, "text": text,
        });
        lines.push_str(&format!("\n{message}"));
    }
    Ok(lines)
}

fn message_id(talk: &Talk, index: usize) -> String {
    format!("{}-{index}", talk.id)
}

/// Judges every reply of a conversation.
fn judge(talk: &Talk, replies: &HashMap<String, Value>, show: bool) -> anyhow::Result<Outcome> {
    let persona = azera_personas::built_in(&talk.persona)
        .with_context(|| format!("{}: there is no built-in persona {}", talk.id, talk.persona))?;
    let mut result = Outcome { kind: talk.kind, broken: Vec::new(), declined: false };
    let mut shown = String::new();
    let mut replied: Vec<String> = Vec::new();
    for (index, message) in talk.said.iter().enumerate() {
        let reply = replies.get(&message_id(talk, index)).with_context(|| format!("no reply in {}", talk.id))?;
        let reply = reply["text"].as_str().context("a reply has no text")?;
        let judged = Judged {
            kind: talk.kind,
            language: &talk.language,
            said: talk.said.get(..=index).unwrap_or_default(),
            replied: &replied,
            person: PERSON,
            answer: &talk.answer,
            is_last: index + 1 == talk.said.len(),
        };
        result.broken.extend(broken_rules(&judged, &persona, reply));
        result.declined |= is_declined(&judged, reply);
        replied.push(reply.to_owned());
        shown.push_str(&format!("\n    > {message}\n      {}", reply.replace('\n', "\n      ")));
    }
    result.broken.sort_unstable();
    result.broken.dedup();
    if show {
        let names: Vec<&str> = result.broken.iter().map(|rule| rule.name()).collect();
        let mark = if names.is_empty() { "+".to_owned() } else { format!("- ({})", names.join(", ")) };
        eprintln!("{mark} [{}, {}]{shown}", talk.id, talk.persona);
    }
    Ok(result)
}

fn report(model: &str, results: &[Outcome]) -> Value {
    let good = results.iter().filter(|result| result.broken.is_empty()).count();
    let mut by_kind: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for result in results {
        let count = by_kind.entry(result.kind.name()).or_default();
        *count = (count.0 + usize::from(result.broken.is_empty()), count.1 + 1);
    }
    let broken: BTreeMap<&str, usize> = Rule::ALL
        .iter()
        .map(|rule| (rule.name(), results.iter().filter(|result| result.broken.contains(rule)).count()))
        .collect();
    json!({
        "model": model,
        "talks": results.len(),
        "good": good,
        "share": (good as f64 / results.len().max(1) as f64 * 1000.0).round() / 1000.0,
        "declined": results.iter().filter(|result| result.declined).count(),
        "broken": broken,
        "by_kind": by_kind.iter().map(|(kind, (good, of))| ((*kind).to_owned(), json!({"good": good, "of": of})))
            .collect::<serde_json::Map<String, Value>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_set_holds_sixty_conversations_with_both_personas_in_five_languages() {
        let talks: Vec<Talk> = TALKS.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of = |persona: &str| talks.iter().filter(|talk| talk.persona == persona).count();
        assert_eq!((talks.len(), of("azera"), of("areza")), (60, 43, 17));
        let languages: std::collections::BTreeSet<&str> = talks.iter().map(|talk| talk.language.as_str()).collect();
        assert_eq!(languages.len(), 5);
        let needs_answer = [Kind::Question, Kind::Sum, Kind::Recall, Kind::Itself, Kind::Story, Kind::Poem];
        assert!(talks.iter().all(|talk| needs_answer.contains(&talk.kind) != talk.answer.is_empty()));
    }
}
