//! `azera eval dreams`: plays days of talk, each followed by a night, through the same code as `azera replay`. A dream
//! is *about the day* if it contains a content word of that day's talk. It is a *repetition* if its embedding has a
//! similarity of at least 0.85 to an earlier dream's.

use std::collections::HashSet;
use std::process::ExitCode;

use anyhow::Context;
use azera_config::Config;
use azera_fake_sim::Timeline;
use azera_model_api::{Priority, Purpose};
use azera_types::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cli::EvalDreams;
use crate::{bootstrap, replay};

/// Days of talk, written for this project.
const DAYS: &str = include_str!("../../../eval/days.jsonl");

/// Cosine similarity from which a dream repeats another.
const REPEATED_SIMILARITY: f32 = 0.85;

/// Minimum letters of a content word; shorter words occur in every text.
const MIN_LETTERS: usize = 5;

/// Longer words that occur in every text.
const STOP_WORDS: [&str; 12] =
    ["about", "after", "again", "before", "before", "still", "their", "there", "through", "today", "tomorrow", "which"];

#[derive(Debug, Deserialize)]
struct Day {
    said: Vec<(String, String)>,
}

pub async fn dreams(config: &Config, options: EvalDreams) -> anyhow::Result<ExitCode> {
    let days = DAYS.lines().filter(|line| !line.trim().is_empty()).enumerate();
    let days: Vec<Day> = days
        .map(|(index, line)| serde_json::from_str(line).with_context(|| format!("day {}", index + 1)))
        .collect::<anyhow::Result<_>>()?;
    let talk: Vec<&Day> = days.iter().cycle().take(options.nights).collect();
    // Write nothing but dreams, so that a night takes only as long as its dream.
    let mut config = config.clone();
    config.gardener.enabled = true;
    config.gardener.dreams = true;
    config.gardener.journal = false;
    config.gardener.diary_messages = 0;
    config.gardener.notes_every = 0;
    config.gardener.piece_days = 0;
    config.gardener.reviews = false;
    let timeline = Timeline::read(timeline(&talk)?.as_bytes())?;
    let mut out = Vec::new();
    replay::play(&config, &timeline, None, &options.model, options.seed, &mut out).await?;
    let night_dreams = night_dreams(&out)?;
    let texts: Vec<String> = night_dreams.iter().map(|(_, text)| text.clone()).collect();
    let embedder = bootstrap::embedder(&config).await?;
    let vectors = match texts.is_empty() {
        true => Vec::new(),
        false => embedder.embed(texts, Purpose::Document, Priority::Foreground).await?,
    };
    let (mut about, mut repeated) = (0, 0);
    for (index, (night, text)) in night_dreams.iter().enumerate() {
        let day = talk.get(*night).context("a dream of no day")?;
        let names = names_something(text, day);
        let cosine = |other: &Vec<f32>| vectors[index].iter().zip(other).map(|(a, b)| a * b).sum::<f32>();
        let again = vectors[..index].iter().any(|other| cosine(other) >= REPEATED_SIMILARITY);
        about += usize::from(names);
        repeated += usize::from(again);
        if options.show {
            let mark = |is: bool| if is { "+" } else { "-" };
            eprintln!("{} {} night {}: {text}", mark(names), mark(!again), night + 1);
        }
    }
    let share = |count: usize| count as f64 / options.nights.max(1) as f64;
    let report = json!({
        "nights": options.nights,
        "dreams": night_dreams.len(),
        "about_the_day": share(about),
        "repeated": repeated,
    });
    println!("{}", if options.json { report.to_string() } else { serde_json::to_string_pretty(&report)? });
    Ok(ExitCode::SUCCESS)
}

/// Builds a realm with a journal, and one day of talk per entry, each followed by a night. The last message of a day
/// addresses the persona.
fn timeline(days: &[&Day]) -> anyhow::Result<String> {
    let start: Timestamp = "2026-03-02T10:00:00Z".parse()?;
    let minute = |minute: i64| start + jiff::Span::new().minutes(minute);
    let members = ["ann", "bob", "cid"];
    let mut lines = vec![
        json!({"type": "realm", "at": start, "realm": "guild", "members": members, "journal": "journal"}),
        json!({"type": "chat", "at": start, "realm": "guild", "chat": "journal", "kind": "public"}),
        json!({"type": "chat", "at": start, "realm": "guild", "chat": "hall", "kind": "public"}),
    ];
    for (number, day) in (0_i64..).zip(days) {
        for (index, (name, text)) in (0_i64..).zip(&day.said) {
            // A persona that nobody addresses has no mind state, and does not dream.
            let last = index + 1 == day.said.len() as i64;
            lines.push(json!({
                "type": "message", "at": minute(number * 24 * 60 + index * 3), "id": format!("day-{number}-{index}"),
                "chat": "hall", "person": name.to_lowercase(), "name": name, "text": text, "mentions_bot": last,
            }));
        }
        lines.push(json!({"type": "wait", "until": minute(number * 24 * 60 + 22 * 60)}));
    }
    Ok(lines.iter().map(|line| format!("{line}\n")).collect())
}

/// Returns the dreams, each with the number of the day before it.
fn night_dreams(out: &[u8]) -> anyhow::Result<Vec<(usize, String)>> {
    let mut dreams = Vec::new();
    for line in std::str::from_utf8(out)?.lines() {
        let value: Value = serde_json::from_str(line)?;
        if value["type"] == "error" {
            anyhow::bail!("the replay met an error: {}", value["text"]);
        }
        if value["type"] == "post" && value["kind"] == "dream" {
            let at: Timestamp = value["at"].as_str().unwrap_or_default().parse()?;
            let start: Timestamp = "2026-03-02T00:00:00Z".parse()?;
            let night = (at.as_second() - start.as_second()) / 86_400 - 1;
            dreams.push((usize::try_from(night)?, value["text"].as_str().unwrap_or_default().to_owned()));
        }
    }
    Ok(dreams)
}

fn names_something(text: &str, day: &Day) -> bool {
    let said: HashSet<String> = day.said.iter().flat_map(|(name, text)| words(name).chain(words(text))).collect();
    words(text).any(|word| said.contains(&word))
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().count() >= MIN_LETTERS)
        .map(str::to_lowercase)
        .filter(|word| !STOP_WORDS.contains(&word.as_str()))
}
