//! `azera bench recall`: measures recall alone on a made-up community. The question's vector is made up too, so no
//! model runs, unless one is to rerank.

use std::collections::HashSet;
use std::path::Path;
use std::time::Instant;

use anyhow::Context as _;
use azera_config::Config;
use azera_memory::{Calendar, Limits, Memory, Opinion, Query, ReadScope, Recalled};
use azera_model_api::Reranker;
use azera_types::{MemoryId, ReadableScopes, Text, TimeZone};
use serde_json::{Value, json};

use super::crowd::{self, Crowd, Spot};
use super::{fill, rounded};
use crate::bootstrap;
use crate::cli::BenchRecall;
use crate::lab::measure::{Resident, folder_mb, median, percentile};
use crate::{reranker, stores};

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
    let reranker = match options.reranked {
        true => Some(
            reranker::load(config, &bootstrap::models(config)?)
                .context("no reranking model is installed and on; see `azera doctor`")?,
        ),
        false => None,
    };
    let mut reranked = 0;
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
        let begun = Instant::now();
        let query = tokio::task::block_in_place(|| {
            let question = memory.recall().question(&read_scope, &text, &who, "Azera", &calendar)?;
            anyhow::Ok(Query {
                question,
                vector: Some(vector),
                event_vector: None,
                asker: Some(who.clone()),
                now,
                include_latest: false,
                exclude: HashSet::new(),
                limits,
                results: RESULTS,
            })
        })?;
        let recalled = match &reranker {
            Some(reranker) => find_reranked(memory, &read_scope, &query, reranker.as_ref()).await?,
            None => tokio::task::block_in_place(|| memory.recall().find(&read_scope, &query))?,
        };
        let ms = begun.elapsed().as_secs_f64() * 1_000.0;
        if number == 0 {
            first_ms = ms;
        }
        if number >= WARM_UP {
            times.push(ms);
            found += recalled.hits.len();
            reranked += usize::from(recalled.hits.iter().any(|hit| hit.signals.contains(&"reranked")));
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
        "reranked": rounded(reranked as f64 / options.queries.max(1) as f64),
    }))
}

/// Finds what [`azera_memory::Recall::find`] finds, ordered by the reranker, if it answers in time.
async fn find_reranked(
    memory: &Memory,
    read_scope: &ReadScope,
    query: &Query,
    reranker: &dyn Reranker,
) -> anyhow::Result<Recalled> {
    let info = reranker.info();
    let shortlist = tokio::task::block_in_place(|| {
        let words = memory.recall().find_words(read_scope, query);
        memory.recall().shortlist(read_scope, query, words, info.candidates)
    })?;
    let (ids, texts): (Vec<MemoryId>, Vec<String>) =
        shortlist.texts(info.candidates).map(|(id, text)| (id, text.to_owned())).unzip();
    let scores = reranker.rerank(&query.question.embed, &texts).await.unwrap_or_default();
    let opinion = Opinion { scores: ids.into_iter().zip(scores).collect(), weight: info.weight };
    Ok(tokio::task::block_in_place(|| memory.recall().finish(read_scope, query, shortlist, Some(&opinion)))?)
}
