//! `azera eval facts`: tells facts in one chat, and asks for them in another in other words, three virtual days later.
//! Plays through the same code as `azera replay`. A fact is *in the prompt* if its message was recalled, and *said* if
//! the reply contains one of its keys.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use azera_config::Config;
use azera_fake_sim::Timeline;
use azera_types::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cli::EvalFacts;
use crate::lab::replay;

/// Fifty facts of many kinds, written for this project.
const FACTS: &str = include_str!("../../../eval/facts.jsonl");

/// Messages between the facts.
const SMALL_TALK: [&str; 12] = [
    "hey, how's it going?",
    "ugh, mondays",
    "it rained all morning here",
    "I think I need another coffee",
    "did you sleep well? I didn't",
    "lunch was fine, nothing special",
    "my train was late again, as always",
    "anyway, back to work soon",
    "that made me laugh",
    "I'm so tired of this heat",
    "thanks, you're sweet",
    "okay, talk later!",
];

/// Small talk messages before each fact.
const SMALL_TALK_BEFORE_FACT: usize = 1;

#[derive(Debug, Deserialize)]
struct Fact {
    kind: String,
    #[serde(rename = "told")]
    statement: String,
    #[serde(rename = "asked")]
    question: String,
    keys: Vec<String>,
}

pub async fn facts(config: &Config, options: EvalFacts) -> anyhow::Result<ExitCode> {
    let text = match &options.file {
        Some(file) => read(file)?,
        None => FACTS.to_owned(),
    };
    let facts = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .enumerate()
        .map(|(index, line)| serde_json::from_str(line).with_context(|| format!("fact {}", index + 1)))
        .take(options.limit.unwrap_or(usize::MAX))
        .collect::<anyhow::Result<Vec<Fact>>>()?;
    let (telling, asking) = timelines(&facts)?;
    let data = tempfile::tempdir().context("making a folder for the evaluation")?;
    let mut out = Vec::new();
    let listener = options.listener.as_deref().unwrap_or(&options.model);
    for (timeline, model) in [(telling, listener), (asking, options.model.as_str())] {
        let timeline = Timeline::read(timeline.as_bytes())?;
        replay::play(config, &timeline, Some(data.path()), model, options.seed, &mut out).await?;
    }
    let replies = replies(&out)?;
    let mut rows = Vec::new();
    for (index, fact) in facts.iter().enumerate() {
        let reply = replies.get(&format!("ask-{index}")).with_context(|| format!("no reply to question {index}"))?;
        let source = format!("told-{index}");
        let recalled: Vec<&Value> = reply["recalled"].as_array().into_iter().flatten().collect();
        let rank =
            recalled.iter().position(|hit| hit["sources"].as_array().into_iter().flatten().any(|id| *id == source));
        let said = reply["text"].as_str().unwrap_or_default();
        let lower = said.to_lowercase();
        let is_correct = fact.keys.iter().any(|key| lower.contains(&key.to_lowercase()));
        if options.show {
            let rank = rank.map_or_else(|| "-".to_owned(), |rank| (rank + 1).to_string());
            eprintln!(
                "{rank}/{} {} [{}] {}\n      {}",
                recalled.len(),
                if is_correct { "+" } else { "-" },
                fact.kind,
                fact.question,
                said.replace('\n', " ")
            );
        }
        rows.push((rank, is_correct, recalled.len()));
    }
    let in_prompt = rows.iter().filter(|row| row.0.is_some()).count();
    let first = rows.iter().filter(|row| row.0 == Some(0)).count();
    let said = rows.iter().filter(|row| row.1).count();
    let mean = |field: &str| {
        let values: Vec<f64> = replies.values().filter_map(|reply| reply[field].as_f64()).collect();
        values.iter().sum::<f64>() / values.len().max(1) as f64
    };
    let report = json!({
        "facts": facts.len(),
        "in_prompt": in_prompt,
        "first_in_prompt": first,
        "said": said,
        "mean_recalled": rows.iter().map(|row| row.2).sum::<usize>() as f64 / rows.len().max(1) as f64,
        "mean_prompt_tokens": mean("prompt_tokens"),
        "mean_cached_tokens": mean("cached_tokens"),
    });
    println!("{}", if options.json { report.to_string() } else { serde_json::to_string_pretty(&report)? });
    Ok(ExitCode::SUCCESS)
}

fn read(file: &PathBuf) -> anyhow::Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))
}

/// Returns the timeline that tells the facts, and the one that asks for them three days later.
fn timelines(facts: &[Fact]) -> anyhow::Result<(String, String)> {
    let start: Timestamp = "2026-03-02T09:00:00Z".parse()?;
    let minute = |minute: i64| start + jiff::Span::new().minutes(minute);
    let mut lines = vec![json!({"type": "chat", "at": start, "chat": "telling", "kind": "dm", "members": ["ann"]})];
    let mut talk = SMALL_TALK.iter().cycle();
    let mut now = 0;
    let say = |lines: &mut Vec<Value>, id: String, chat: &str, text: &str, at: Timestamp| {
        lines.push(
            json!({"type": "message", "at": at, "id": id, "chat": chat, "person": "ann", "name": "Ann", "text": text}),
        );
    };
    for (index, fact) in facts.iter().enumerate() {
        for number in 0..SMALL_TALK_BEFORE_FACT {
            now += 2;
            say(&mut lines, format!("talk-{index}-{number}"), "telling", talk.next().unwrap_or(&"hm"), minute(now));
        }
        now += 2;
        say(&mut lines, format!("told-{index}"), "telling", &fact.statement, minute(now));
    }
    let telling = std::mem::take(&mut lines);
    now += 3 * 24 * 60;
    for (index, fact) in facts.iter().enumerate() {
        now += 5;
        let chat = format!("asking-{index}");
        lines.push(json!({"type": "chat", "at": minute(now), "chat": chat, "kind": "dm", "members": ["ann"]}));
        say(&mut lines, format!("ask-{index}"), &chat, &fact.question, minute(now));
    }
    let text = |lines: &[Value]| lines.iter().map(|line| format!("{line}\n")).collect();
    Ok((text(&telling), text(&lines)))
}

/// Returns the replies by the message that they answer.
pub(super) fn replies(out: &[u8]) -> anyhow::Result<HashMap<String, Value>> {
    let mut replies = HashMap::new();
    for line in std::str::from_utf8(out)?.lines() {
        let value: Value = serde_json::from_str(line)?;
        if value["type"] == "error" {
            anyhow::bail!("the replay met an error: {}", value["text"]);
        }
        if value["type"] == "reply" {
            replies.insert(value["to"].as_str().unwrap_or_default().to_owned(), value);
        }
    }
    Ok(replies)
}
