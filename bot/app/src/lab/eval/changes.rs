//! `azera eval changes`: people say things of which some replace others, and ask for what holds and for what held
//! before.

use std::process::ExitCode;

use azera_config::Config;
use azera_types::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::timelines::{self, Said, TimelineRun};
use crate::cli::EvalTimelines;
use crate::lab::measure::median;

/// Worlds written for this project by `bot/scripts/worlds_changes.py`.
const WORLDS: &str = include_str!("../../../eval/changes.jsonl");

/// Worlds in which somebody says only later since when something holds, by `bot/scripts/worlds_retroactive.py`.
const RETROACTIVE: &str = include_str!("../../../eval/retroactive.jsonl");

#[derive(Debug, Deserialize)]
struct World {
    zone: String,
    messages: Vec<Said>,
    closed: Vec<String>,
    open: Vec<String>,
    asks: Vec<Ask>,
}

#[derive(Debug, Deserialize)]
struct Ask {
    at: Timestamp,
    asker: String,
    question: String,
    first: String,
    /// True if it asks for what holds when it is asked; `None` in worlds that do not say so.
    #[serde(default)]
    now: Option<bool>,
}

#[derive(Debug, Default)]
struct Tally {
    asks: usize,
    first_right: usize,
    /// Questions about now and about then, with those answered rightly, where the worlds tell them apart.
    now: (usize, usize),
    then: (usize, usize),
    closed: usize,
    closed_found: usize,
    open: usize,
    wrongly_closed: usize,
    times: Vec<f64>,
}

pub async fn changes(config: &Config, options: EvalTimelines) -> anyhow::Result<ExitCode> {
    let mut report = lived(config, &options, timelines::read(options.file.as_deref(), WORLDS, options.half)?).await?;
    if options.file.is_none() {
        report["retroactive"] = lived(config, &options, timelines::read(None, RETROACTIVE, options.half)?).await?;
    }
    println!("{}", if options.json { report.to_string() } else { serde_json::to_string_pretty(&report)? });
    Ok(ExitCode::SUCCESS)
}

/// Lives through worlds, and reports what was right.
async fn lived(config: &Config, options: &EvalTimelines, worlds: Vec<World>) -> anyhow::Result<Value> {
    let mut tally = Tally::default();
    for world in &worlds {
        live(config, options, world, &mut tally).await?;
    }
    let share = |part: usize, whole: usize| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    let mut report = json!({
        "n": worlds.len(),
        "closed_recall": share(tally.closed_found, tally.closed),
        "wrongly_closed": share(tally.wrongly_closed, tally.open),
        "first_right": share(tally.first_right, tally.asks),
        "asks": tally.asks,
        "query_p50_ms": median(&tally.times),
    });
    for (name, (asks, right)) in [("now", tally.now), ("then", tally.then)] {
        if asks > 0 {
            report[format!("right_{name}")] = json!(share(right, asks));
        }
    }
    Ok(report)
}

/// Lives through a world, asking each question at its time.
async fn live(config: &Config, options: &EvalTimelines, world: &World, tally: &mut Tally) -> anyhow::Result<()> {
    let people = timelines::people(&world.messages, world.asks.iter().map(|ask| ask.asker.as_str()));
    let starts = world.messages.iter().map(|said| said.at).chain(world.asks.iter().map(|ask| ask.at));
    let Some(start) = starts.min() else { return Ok(()) };
    let run = TimelineRun::open(config, &options.model, &world.zone, &people, start).await?;
    let mut asks: Vec<&Ask> = world.asks.iter().collect();
    asks.sort_by_key(|ask| ask.at);
    let mut asks = asks.into_iter().peekable();
    let ends = [None];
    for said in world.messages.iter().map(Some).chain(ends) {
        while let Some(ask) = asks.next_if(|ask| said.is_none_or(|said| ask.at < said.at)) {
            let (hits, ms) = run.ask(ask.at, &ask.asker, &ask.question).await?;
            let is_first = hits.first().is_some_and(|hit| hit.sources.iter().any(|id| id.as_str() == ask.first));
            tally.asks += 1;
            tally.times.push(ms);
            tally.first_right += usize::from(is_first);
            if let Some(of_now) = ask.now {
                let (asks, right) = if of_now { &mut tally.now } else { &mut tally.then };
                *asks += 1;
                *right += usize::from(is_first);
            }
            if !is_first && options.show {
                timelines::show(&ask.question, std::slice::from_ref(&ask.first), &hits);
            }
        }
        if let Some(said) = said {
            run.say(said).await?;
        }
    }
    let closed = run.closed(&people).await?;
    run.close().await;
    let known = |listed: &[String]| listed.iter().filter(|id| closed.contains(id)).count();
    tally.closed += world.closed.len();
    tally.open += world.open.len();
    tally.closed_found += known(&world.closed);
    tally.wrongly_closed += known(&world.open);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worlds_can_be_read_and_name_their_own_messages() {
        for (text, least) in [(WORLDS, 150), (RETROACTIVE, 30)] {
            let worlds: Vec<World> = timelines::read(None, text, None).unwrap();
            assert!(worlds.len() >= least);
            for world in worlds {
                let known = |id: &String| world.messages.iter().any(|said| said.id == *id);
                assert!(
                    world.closed.iter().chain(&world.open).chain(world.asks.iter().map(|ask| &ask.first)).all(known)
                );
                assert!(world.messages.is_sorted_by_key(|said| said.at));
                assert!(!world.closed.iter().any(|id| world.open.contains(id)));
            }
        }
    }
}
