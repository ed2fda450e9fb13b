//! `azera eval recall`: evaluates how well the product's recall finds the evidence for a question.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, bail};
use azera_adapter::{Host, InboundEvent, SearchRequest};
use azera_config::Config;
use azera_fake_sim::{PLATFORM, SimPlatform, Timeline};
use azera_types::{ChatId, Inbound, ManualClock, MessageId, PersonId, PlatformId, Text, Timestamp};
use serde::Deserialize;
use serde_json::json;

use crate::bootstrap::{self, App, BootstrapOptions, ModelChoice};
use crate::cli::EvalRecall;
use crate::lab::eval::world;
use crate::lab::measure::{median, percentile};
use crate::stores;

/// Maximum number of turns to retrieve for a question.
const DEPTH: usize = 20;

#[derive(Debug, Deserialize)]
struct Conversation {
    id: String,
    speakers: Vec<String>,
    turns: Vec<Turn>,
    queries: Vec<Question>,
}

#[derive(Debug, Deserialize)]
struct Turn {
    id: String,
    session: u64,
    time: Timestamp,
    speaker: String,
    text: String,
}

#[derive(Debug, Deserialize)]
struct Question {
    question: String,
    category: String,
    evidence: Vec<String>,
}

/// The scores of one question.
struct Scored {
    category: String,
    recall: [f64; 3],
    any_at_10: bool,
    all_at_10: bool,
    session_any_at_5: bool,
    /// Whether a model that reranks had a say.
    reranked: bool,
    ms: f64,
}

pub async fn recall(config: &Config, options: EvalRecall) -> anyhow::Result<ExitCode> {
    let mut scored = Vec::new();
    let (mut turns, mut seconds) = (0, 0.0);
    for file in &options.files {
        let conversation = read(file)?;
        let started = Instant::now();
        let run = RecallRun::open(config, &conversation).await?;
        seconds += started.elapsed().as_secs_f64();
        turns += conversation.turns.len();
        for question in &conversation.queries {
            scored.push(run.score(&conversation, question).await?);
        }
        run.app.engine.stop().await;
        if !options.json {
            eprintln!(
                "{}: {} turns, {} questions",
                file.display(),
                conversation.turns.len(),
                conversation.queries.len()
            );
        }
    }
    if scored.is_empty() {
        bail!("there is no question in these files");
    }
    let report = report(&scored, turns as f64 / seconds.max(f64::EPSILON));
    if options.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        println!("{}", serde_json::to_string_pretty(&report)?);
    }
    Ok(ExitCode::SUCCESS)
}

fn read(file: &PathBuf) -> anyhow::Result<Conversation> {
    let text = std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| file.display().to_string())
}

/// A remembered conversation, and a person who asks about it from another chat of the same audience.
struct RecallRun {
    app: App,
    platform: PlatformId,
    chat: ChatId,
    person: PersonId,
    _scratch: tempfile::TempDir,
}

impl RecallRun {
    async fn open(config: &Config, conversation: &Conversation) -> anyhow::Result<Self> {
        let scratch = tempfile::tempdir()?;
        let config = stores::scratch_config(config, scratch.path());
        let Some(first) = conversation.turns.first() else { bail!("{} has no turns", conversation.id) };
        let clock = ManualClock::new(first.time);
        let opening = BootstrapOptions {
            answers: ModelChoice::Scripted,
            clock: Arc::new(clock.clone()),
            seed: Some(0),
            on_trial: false,
        };
        let app = bootstrap::open(&config, opening).await?;
        let sim = Arc::new(SimPlatform::new(Arc::new(clock.clone()))?);
        app.engine.attach(sim.clone());
        app.engine.start().await?;
        let members: Vec<&str> = conversation.speakers.iter().map(String::as_str).chain(["reader"]).collect();
        let world = [
            json!({"type": "realm", "at": first.time, "realm": "eval", "members": members}),
            json!({"type": "chat", "at": first.time, "realm": "eval", "chat": "told", "kind": "public"}),
            json!({"type": "chat", "at": first.time, "realm": "eval", "chat": "asked", "kind": "public"}),
        ];
        let world: String = world.iter().map(|line| format!("{line}\n")).collect();
        let timeline = Timeline::read(world.as_bytes())?;
        world::set_up(&app, &clock, &sim, &timeline).await?;
        let platform = PlatformId::new(PLATFORM)?;
        for turn in &conversation.turns {
            clock.advance_to(turn.time);
            let inbound = Inbound {
                id: MessageId::new(&turn.id)?,
                chat: ChatId::new("told")?,
                person: PersonId::new(&turn.speaker)?,
                name: turn.speaker.clone(),
                text: Text::new(&turn.text),
                at: turn.time,
                parts: Vec::new(),
                mentions_bot: false,
                mentions: Vec::new(),
                reply_to: None,
            };
            app.engine.submit(&platform, InboundEvent::Message(inbound)).await?.outcome().await?;
        }
        app.engine.settle().await?;
        let last = conversation.turns.iter().map(|turn| turn.time).max().unwrap_or(first.time);
        clock.advance_to(last + jiff::Span::new().hours(24));
        Ok(Self { app, platform, chat: ChatId::new("asked")?, person: PersonId::new("reader")?, _scratch: scratch })
    }

    async fn score(&self, conversation: &Conversation, question: &Question) -> anyhow::Result<Scored> {
        let line = SearchRequest {
            chat: self.chat.clone(),
            person: self.person.clone(),
            query: Text::new(&question.question),
            limit: Some(DEPTH),
            as_of: None,
        };
        let started = Instant::now();
        let hits = self.app.engine.search(&self.platform, line).await?.hits;
        let ms = started.elapsed().as_secs_f64() * 1_000.0;
        let reranked = hits.iter().any(|hit| hit.signals.iter().any(|signal| signal == "reranked"));
        // A hit with several turns takes one rank for each. A repeated turn counts once.
        let mut ranked: Vec<Option<&str>> = Vec::new();
        let mut seen = HashSet::new();
        for id in hits.iter().flat_map(|hit| &hit.sources) {
            ranked.push(seen.insert(id.as_str()).then_some(id.as_str()));
        }
        let evidence: HashSet<&str> = question.evidence.iter().map(String::as_str).collect();
        let among = |k: usize| ranked.iter().take(k).flatten().filter(|id| evidence.contains(**id)).count();
        let share = |k: usize| among(k) as f64 / evidence.len().max(1) as f64;
        let session_of = |id: &str| conversation.turns.iter().find(|turn| turn.id == id).map(|turn| turn.session);
        let evidence_sessions: HashSet<u64> = evidence.iter().filter_map(|id| session_of(id)).collect();
        let mut sessions: Vec<u64> = Vec::new();
        for session in ranked.iter().flatten().filter_map(|id| session_of(id)) {
            if !sessions.contains(&session) {
                sessions.push(session);
            }
        }
        Ok(Scored {
            category: question.category.clone(),
            recall: [share(5), share(10), share(20)],
            any_at_10: among(10) > 0,
            all_at_10: among(10) == evidence.len(),
            session_any_at_5: sessions.iter().take(5).any(|session| evidence_sessions.contains(session)),
            reranked,
            ms,
        })
    }
}

fn report(scored: &[Scored], ingest_turns_per_s: f64) -> serde_json::Value {
    let mean = |value: &dyn Fn(&Scored) -> f64| scored.iter().map(value).sum::<f64>() / scored.len() as f64;
    let share = |is: &dyn Fn(&Scored) -> bool| mean(&|one| if is(one) { 1.0 } else { 0.0 });
    let times: Vec<f64> = scored.iter().map(|one| one.ms).collect();
    let mut categories: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for one in scored {
        categories.entry(&one.category).or_default().push(one.recall[1]);
    }
    let by_category: BTreeMap<&str, f64> =
        categories.into_iter().map(|(name, values)| (name, values.iter().sum::<f64>() / values.len() as f64)).collect();
    json!({
        "queries": scored.len(),
        "recall_at_5": mean(&|one| one.recall[0]),
        "recall_at_10": mean(&|one| one.recall[1]),
        "recall_at_20": mean(&|one| one.recall[2]),
        "any_at_10": share(&|one| one.any_at_10),
        "all_at_10": share(&|one| one.all_at_10),
        "session_any_at_5": share(&|one| one.session_any_at_5),
        "by_category": by_category,
        "reranked": share(&|one| one.reranked),
        "query_p50_ms": median(&times),
        "query_p99_ms": percentile(&times, 0.99),
        "ingest_turns_per_s": ingest_turns_per_s,
    })
}
