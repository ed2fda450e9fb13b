//! `azera eval time`: people say things over days, and one of them asks about a time. The right message has to be first.

use std::process::ExitCode;

use azera_config::Config;
use azera_types::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::timelines::{self, Said, TimelineRun};
use crate::cli::EvalTimelines;
use crate::lab::measure::median;

/// Worlds written for this project by `bot/scripts/worlds_time.py`.
const WORLDS: &str = include_str!("../../../eval/time.jsonl");

#[derive(Debug, Deserialize)]
struct World {
    zone: String,
    messages: Vec<Said>,
    now: Timestamp,
    asker: String,
    question: String,
    right: Vec<String>,
}

pub async fn time(config: &Config, options: EvalTimelines) -> anyhow::Result<ExitCode> {
    let worlds: Vec<World> = timelines::read(options.file.as_deref(), WORLDS, options.half)?;
    let (mut first_right, mut any_at_5, mut times) = (0, 0, Vec::new());
    for world in &worlds {
        let people = timelines::people(&world.messages, [world.asker.as_str()]);
        let start = world.messages.iter().map(|said| said.at).min().unwrap_or(world.now);
        let run = TimelineRun::open(config, &options.model, &world.zone, &people, start).await?;
        for said in &world.messages {
            run.say(said).await?;
        }
        let (hits, ms) = run.ask(world.now, &world.asker, &world.question).await?;
        run.close().await;
        times.push(ms);
        let is_right =
            |hit: &azera_adapter::Hit| hit.sources.iter().any(|id| world.right.iter().any(|it| it == id.as_str()));
        any_at_5 += usize::from(hits.iter().any(is_right));
        if hits.first().is_some_and(is_right) {
            first_right += 1;
        } else if options.show {
            timelines::show(&world.question, &world.right, &hits);
        }
    }
    let share = |part: usize| part as f64 / worlds.len() as f64;
    let report = json!({
        "n": worlds.len(),
        "first_right": share(first_right),
        "any_at_5": share(any_at_5),
        "query_p50_ms": median(&times),
    });
    println!("{}", if options.json { report.to_string() } else { serde_json::to_string_pretty(&report)? });
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worlds_can_be_read_and_name_their_own_messages() {
        let worlds: Vec<World> = timelines::read(None, WORLDS, None).unwrap();
        assert!(worlds.len() >= 150);
        for world in worlds {
            let known = |id: &String| world.messages.iter().any(|said| said.id == *id);
            assert!(!world.right.is_empty() && world.right.iter().all(known), "{}", world.question);
            assert!(world.messages.is_sorted_by_key(|said| said.at), "{}", world.question);
            assert!(world.messages.iter().all(|said| said.at <= world.now), "{}", world.question);
        }
    }
}
