//! `azera bench graph`: measures spreading over the knowledge graph on made-up acquaintances.

use std::time::Instant;

use azera_config::Config;
use azera_memory::{NewFact, ReadScope};
use azera_types::{Author, ReadableScopes, Text, Timestamp};
use serde_json::{Value, json};

use super::crowd::{self, Spot};
use super::{fill, rounded};
use crate::cli::BenchGraph;
use crate::lab::measure::{folder_mb, median, percentile};
use crate::stores;

/// Questions before the measurement starts, so that it does not count the first read of each page.
const WARM_UP: usize = 100;

/// Edges that each sentence adds: two people and a place, all joined with each other.
const EDGES: usize = 3;

const FIRST: [&str; 20] = [
    "Ada", "Ben", "Cleo", "Dora", "Emil", "Fay", "Gus", "Hana", "Ivo", "Jun", "Kira", "Leo", "Mina", "Nils", "Olga",
    "Pia", "Rolf", "Sina", "Timo", "Vera",
];

const LAST: [&str; 20] = [
    "Abel", "Brandt", "Castell", "Dunbar", "Egger", "Farrow", "Gilles", "Harlow", "Imhof", "Jansen", "Keller", "Lund",
    "Marlow", "Novak", "Oakley", "Prior", "Quist", "Rhodes", "Sander", "Thorne",
];

const PLACES: [&str; 12] =
    ["Oslo", "Ghent", "Porto", "Malmö", "Turin", "Riga", "Cork", "Basel", "Lyon", "Split", "Vigo", "Bergen"];

/// Numbers that depend on a seed only.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    /// Returns somebody; the first ones are named more often than the others.
    fn person(&mut self) -> String {
        let first = self.below(FIRST.len()).min(self.below(FIRST.len()));
        let last = self.below(LAST.len());
        format!("{} {}", FIRST[first], LAST[last])
    }
}

pub async fn graph(config: &Config, options: &BenchGraph) -> anyhow::Result<Value> {
    let folder = tempfile::tempdir()?;
    let info = fill::embedder(config).await?;
    let opened = fill::open_relaxed(&stores::scratch_config(config, folder.path()), folder.path(), &info)?;
    let memory = &opened.memory;
    let mut numbers = Numbers(7);
    let begun = Instant::now();
    let sentences = options.edges.div_ceil(EDGES);
    let channel = crowd::place(Spot::Channel(0), 0)?;
    tokio::task::block_in_place(|| -> anyhow::Result<()> {
        for number in 0..sentences {
            let (one, other, place) = (numbers.person(), numbers.person(), PLACES[numbers.below(PLACES.len())]);
            let seconds = i64::try_from(number)? * 60;
            let author = Author::Person { id: crowd::person(number % 50)?, name: format!("user{}", number % 50) };
            memory.memories().store_fact(NewFact {
                persona: crowd::persona()?,
                chat: channel.chat.clone(),
                scope: channel.scope(),
                author,
                text: Text::new(format!("{one} lives in {place} with {other}.")),
                at: fill::start().checked_add(jiff::SignedDuration::from_secs(seconds))?,
            })?;
        }
        Ok(())
    })?;
    let build_s = begun.elapsed().as_secs_f64();
    let read_scope = ReadScope::in_place(crowd::persona()?, &channel, &ReadableScopes::default());
    let mut times = Vec::with_capacity(options.queries);
    let mut reached = 0;
    for number in 0..WARM_UP + options.queries {
        let question = format!("Where does the friend of {} live?", numbers.person());
        let (found, ms) = tokio::task::block_in_place(|| {
            let begun = Instant::now();
            let found = memory.graph().reach(&read_scope, &question, Timestamp::MAX);
            (found, begun.elapsed().as_secs_f64() * 1_000.0)
        });
        if number >= WARM_UP {
            reached += found?.len();
            times.push(ms);
        }
    }
    Ok(json!({
        "edges": sentences * EDGES,
        "queries": options.queries,
        "p50_ms": rounded(median(&times)),
        "p99_ms": rounded(percentile(&times, 0.99)),
        "reached_per_query": rounded(reached as f64 / options.queries.max(1) as f64),
        "build_s": rounded(build_s),
        "disk_mb": rounded(folder_mb(folder.path())?),
    }))
}
