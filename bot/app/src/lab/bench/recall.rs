//! `azera bench recall`: measures recall alone on a made-up community. The question's vector is made up too, so no
//! model runs.

use std::collections::HashSet;
use std::path::Path;
use std::time::Instant;

use azera_config::Config;
use azera_memory::{Calendar, Limits, Query, ReadScope};
use azera_types::{ReadableScopes, Text, TimeZone};
use serde_json::{Value, json};

use super::crowd::{self, Crowd, Spot};
use super::{fill, rounded};
use crate::bootstrap;
use crate::cli::BenchRecall;
use crate::lab::measure::{Resident, folder_mb, median, percentile};
use crate::stores;

/// Questions before the measurement starts, so that it does not count the first read of each page.
const WARM_UP: usize = 100;

/// Number of hits to ask for.
const RESULTS: usize = 10;

pub async fn recall(config: &Config, config_file: Option<&Path>, options: &BenchRecall) -> anyhow::Result<Value> {
    let (folder, filled) = fill::filled(config_file, options.folder.as_deref(), options.memories)?;
    let info = fill::embedder(config).await?;
    let opened = Instant::now();
    let stores = bootstrap::open_stores(&stores::scratch_config(config, &folder.path), &folder.path, &info)?;
    let memory = &stores.memory;
    let open_s = opened.elapsed().as_secs_f64();
    let now = fill::end(options.memories)?;
    let calendar = Calendar::new(now, TimeZone::UTC);
    // Use another seed than the one that filled the folder.
    let mut crowd = Crowd::new(1, info.dimension);
    let limits = Limits { candidates: config.memory.candidates as usize };
    let mut times = Vec::with_capacity(options.queries);
    let (mut first_ms, mut found) = (0.0, 0);
    for number in 0..WARM_UP + options.queries {
        let person = crowd.any_person();
        let spot = if number % 2 == 0 { Spot::Dm } else { Spot::Channel(crowd.any_channel()) };
        let reach = ReadableScopes { realms: vec![(crowd::realm()?, None)], ..ReadableScopes::default() };
        let read_scope = ReadScope::in_place(crowd::persona()?, &crowd::place(spot, person)?, &reach);
        let text = Text::new(crowd.question());
        let vector = crowd.vector(&text);
        let who = crowd::person(person)?;
        let recalled = tokio::task::block_in_place(|| {
            let (begun, exclude) = (Instant::now(), HashSet::new());
            let question = memory.recall().question(&read_scope, &text, &who, "Azera", &calendar)?;
            let query = Query {
                question,
                vector: Some(vector),
                event_vector: None,
                asker: Some(who.clone()),
                now,
                include_latest: false,
                exclude,
                limits,
                results: RESULTS,
            };
            let recalled = memory.recall().find(&read_scope, &query)?;
            anyhow::Ok((recalled, begun.elapsed().as_secs_f64() * 1_000.0))
        });
        let (recalled, ms) = recalled?;
        if number == 0 {
            first_ms = ms;
        }
        if number >= WARM_UP {
            times.push(ms);
            found += recalled.hits.len();
        }
    }
    let resident = Resident::now();
    Ok(json!({
        "memories": options.memories,
        "queries": options.queries,
        "p50_ms": rounded(median(&times)),
        "p99_ms": rounded(percentile(&times, 0.99)),
        "build_s": rounded(filled.build_s),
        "disk_mb": rounded(folder_mb(&folder.path)?),
        "rss_mb": resident.map(|resident| rounded(resident.all)),
        "anonymous_mb": resident.map(|resident| rounded(resident.anonymous)),
        "open_s": rounded(open_s),
        "first_ms": rounded(first_ms),
        "hits_per_query": rounded(found as f64 / options.queries.max(1) as f64),
    }))
}
