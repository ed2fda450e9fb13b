//! `azera tour`: plays a few made-up days with the real models. The days are a timeline in the format of `azera
//! replay`, with a line of explanation before each part.

use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use azera_config::Config;
use azera_fake_sim::{Event, Timeline};
use azera_types::Timestamp;
use serde_json::Value;

use crate::cli::TourOptions;
use crate::lab::replay::Stage;

const DAYS: &str = include_str!("../tour/days.jsonl");

/// Fixes the tour's random choices. Replies still differ between models.
const SEED: u64 = 1;

pub async fn run(config: &Config, options: TourOptions) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let out = &mut std::io::stdout();
    writeln!(
        out,
        "Two days with Azera, in a few minutes. The models on this machine write every reply. The people are made up, and the \
         clock is moved. Azera deletes the folder of the tour at its end."
    )?;
    let mut parts = read(DAYS)?.into_iter();
    let start = DAYS.lines().filter_map(|line| Timeline::read(line.as_bytes()).ok()?.start()).next();
    let mut stage = Stage::open(config, None, &options.model, SEED, start).await?;
    let outcome = play_parts(&mut stage, &mut parts, out).await;
    stage.close().await;
    outcome?;
    writeln!(
        out,
        "\nThat was the tour, {} seconds. `azera chat` talks with you; nothing of this is remembered there.",
        began.elapsed().as_secs()
    )?;
    Ok(ExitCode::SUCCESS)
}

/// A part of the tour.
enum Part {
    /// Explanation of the next part.
    Explanation(String),
    /// Events of one part.
    Events(Timeline),
}

fn read(days: &str) -> anyhow::Result<Vec<Part>> {
    let part = |line: &str| {
        let value: Value = serde_json::from_str(line)?;
        Ok(match value["scene"].as_str() {
            Some(scene) => Part::Explanation(scene.to_owned()),
            None => Part::Events(Timeline::read(line.as_bytes())?),
        })
    };
    let parts = days.lines().filter(|line| !line.is_empty()).map(part);
    parts.collect::<anyhow::Result<_>>().context("the tour cannot be read")
}

async fn play_parts(
    stage: &mut Stage,
    parts: &mut impl Iterator<Item = Part>,
    out: &mut (dyn Write + Send),
) -> anyhow::Result<()> {
    for part in parts {
        match part {
            Part::Explanation(scene) => writeln!(out, "\n=== {scene}\n")?,
            Part::Events(timeline) => {
                // Show what happened on its own before this part's time.
                let waits = timeline.lines().iter().any(|line| matches!(line.event, Event::Wait(_)));
                if let Some(at) = timeline.start().filter(|_| !waits) {
                    let until = serde_json::json!({"type": "wait", "until": at}).to_string();
                    play(stage, &Timeline::read(until.as_bytes())?, out).await?;
                }
                for line in timeline.lines() {
                    announce(&line.event, out)?;
                }
                out.flush()?;
                play(stage, &timeline, out).await?;
            }
        }
        out.flush()?;
    }
    Ok(())
}

/// Plays events and shows their results.
async fn play(stage: &mut Stage, timeline: &Timeline, out: &mut (dyn Write + Send)) -> anyhow::Result<()> {
    let mut output = Vec::new();
    stage.play(timeline, &mut output).await?;
    for line in String::from_utf8_lossy(&output).lines() {
        show(&serde_json::from_str(line)?, out)?;
    }
    Ok(())
}

/// Shows an event before its results.
fn announce(event: &Event, out: &mut (dyn Write + Send)) -> anyhow::Result<()> {
    match event {
        Event::Message(line) => {
            writeln!(out, "{}  {} in {}: {}", clock(line.at), line.shown_name(), line.chat, line.text.as_str())?;
        }
        Event::Command(line) => {
            writeln!(out, "{}  {} in {}: {}", clock(line.at), line.person, line.chat, line.text.as_str())?;
        }
        Event::Wait(line) => writeln!(out, "... until {}", clock(line.until))?,
        _ => {}
    }
    Ok(())
}

/// Shows a result.
fn show(line: &Value, out: &mut (dyn Write + Send)) -> anyhow::Result<()> {
    let text = |key: &str| line[key].as_str().unwrap_or_default();
    let body = text("text").trim().replace('\n', "\n        ");
    match text("type") {
        "reply" => {
            writeln!(out, "        Azera: {body}")?;
            let recalled = line["recalled"].as_array().map_or(0, Vec::len);
            if let (Some(mood), Some(energy)) = (line["mood"].as_str(), line["energy"].as_f64()) {
                writeln!(out, "        [{mood}, energy {energy:.2}, {recalled} memories in the prompt]")?;
            }
        }
        "post" => {
            let at = line["at"].as_str().and_then(|at| at.parse().ok()).map(clock).unwrap_or_default();
            writeln!(out, "{at}  Azera posts a {} in {}: {body}", text("kind"), text("chat"))?;
        }
        "command" => writeln!(out, "        {body}")?,
        "silent" => writeln!(out, "        (no answer: {})", text("why"))?,
        "error" => writeln!(out, "        (this failed: {body})")?,
        _ => {}
    }
    writeln!(out)?;
    Ok(())
}

fn clock(at: Timestamp) -> String {
    at.strftime("%a %H:%M").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_days_are_a_timeline_with_explanations() {
        let parts = read(DAYS).unwrap();
        let scenes = parts.iter().filter(|part| matches!(part, Part::Explanation(_))).count();
        assert!(scenes >= 5 && parts.len() > scenes);
        let all: Vec<&str> = DAYS.lines().filter(|line| !line.contains("\"scene\"")).collect();
        Timeline::read(all.join("\n").as_bytes()).unwrap();
    }
}
