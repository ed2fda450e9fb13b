//! `azera bench turn`: runs whole turns of a made-up community through the engine, with the real embedding model and a
//! scripted chat model. Turns follow each other without a pause, so a turn's embedding and indexing runs during the
//! next one.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, bail};
use azera_adapter::{Host, InboundEvent, Outcome};
use azera_config::Config;
use azera_fake_sim::{PLATFORM, SimPlatform, Timeline};
use azera_types::{Clock, Inbound, ManualClock, MessageId, PlatformId, Text, Timestamp};
use serde_json::{Value, json};

use super::crowd::{self, CHANNELS, Crowd, PEOPLE, Spot};
use super::{fill, rounded};
use crate::bootstrap::{self, App, BootstrapOptions, ModelChoice};
use crate::cli::BenchTurn;
use crate::lab::eval::world;
use crate::lab::measure::{Resident, median, percentile};
use crate::stores;

/// Memories written before the second half of the turns, for the vector index to build into graphs meanwhile. A few
/// more than it leaves without a graph.
const FRESH_MEMORIES: usize = 12_000;

/// Turns before the measurement starts.
const WARM_UP: usize = 100;

pub async fn turn(config: &Config, config_file: Option<&Path>, options: &BenchTurn) -> anyhow::Result<Value> {
    let (folder, _) = fill::filled(config_file, options.folder.as_deref(), options.memories)?;
    let config = stores::scratch_config(config, &folder.path);
    let clock = ManualClock::new(fill::end(options.memories + FRESH_MEMORIES)?);
    let opening = BootstrapOptions {
        answers: ModelChoice::Scripted,
        clock: Arc::new(clock.clone()),
        seed: Some(0),
        on_trial: false,
    };
    let app = bootstrap::open(&config, opening).await?;
    let dimension = fill::embedder(&config).await?.dimension;
    let sim = Arc::new(SimPlatform::new(Arc::new(clock.clone()))?);
    app.engine.attach(sim.clone());
    app.engine.start().await?;
    world::set_up(&app, &clock, &sim, &timeline(clock.now())?).await?;

    let mut talk = Talk {
        app: &app,
        clock,
        crowd: Crowd::new(3, dimension),
        platform: PlatformId::new(PLATFORM)?,
        run: Timestamp::as_microsecond(azera_types::SystemClock.now()),
        turns: 0,
    };
    for _ in 0..WARM_UP {
        talk.turn().await?;
    }
    let mut times = Vec::with_capacity(options.turns);
    for _ in 0..options.turns / 2 {
        times.push(talk.turn().await?);
    }
    // These messages are in both indexes, but not in a graph yet. The second half of the turns runs while the index
    // builds one.
    app.engine.settle().await?;
    let mut crowd = Crowd::new(2, dimension);
    tokio::task::block_in_place(|| -> anyhow::Result<()> {
        fill::write(&app.memory, &mut crowd, options.memories..options.memories + FRESH_MEMORIES, None)?;
        Ok(fill::index(&app.memory, &crowd)?)
    })?;
    let optimizing = Arc::new(AtomicBool::new(true));
    let optimization = {
        let (memory, running) = (app.memory.clone(), optimizing.clone());
        tokio::task::spawn_blocking(move || {
            let done = memory.indexing().optimize();
            running.store(false, Ordering::Relaxed);
            done
        })
    };
    let mut meanwhile = 0;
    while times.len() < options.turns {
        let during = optimizing.load(Ordering::Relaxed);
        times.push(talk.turn().await?);
        meanwhile += usize::from(during);
    }
    let resident = Resident::now();
    optimization.await??;
    app.engine.settle().await?;
    app.engine.stop().await;
    let (quiet, busy) = times.split_at(options.turns / 2);
    Ok(json!({
        "memories": options.memories,
        "turns": options.turns,
        "p50_ms": rounded(median(&times)),
        "p99_ms": rounded(percentile(&times, 0.99)),
        "rss_mb": resident.map(|resident| rounded(resident.all)),
        "anonymous_mb": resident.map(|resident| rounded(resident.anonymous)),
        "quiet_p50_ms": rounded(median(quiet)),
        "quiet_p99_ms": rounded(percentile(quiet, 0.99)),
        "optimizing_p50_ms": rounded(median(busy)),
        "optimizing_p99_ms": rounded(percentile(busy, 0.99)),
        "turns_while_optimizing": meanwhile,
    }))
}

/// Returns the community's chats, as a platform knows them.
fn timeline(at: Timestamp) -> anyhow::Result<Timeline> {
    let members = (0..PEOPLE).map(crowd::person).collect::<Result<Vec<_>, _>>()?;
    let realm = crowd::realm()?;
    let mut lines = vec![json!({"type": "realm", "at": at, "realm": realm, "members": members})];
    for channel in 0..CHANNELS {
        let chat = crowd::chat(Spot::Channel(channel), 0)?;
        lines.push(json!({"type": "chat", "at": at, "realm": realm, "chat": chat, "kind": "public"}));
    }
    for (number, person) in members.iter().enumerate() {
        let chat = crowd::chat(Spot::Dm, number)?;
        lines.push(json!({"type": "chat", "at": at, "chat": chat, "kind": "dm", "members": [person]}));
    }
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    Timeline::read(text.as_bytes()).context("the made-up community")
}

struct Talk<'a> {
    app: &'a App,
    clock: ManualClock,
    crowd: Crowd,
    platform: PlatformId,
    /// Distinguishes this run's messages from those of an earlier run in the same folder.
    run: i64,
    turns: usize,
}

impl Talk<'_> {
    /// Sends a new question, every second time in a DM. Returns the milliseconds until the reply was delivered.
    async fn turn(&mut self) -> anyhow::Result<f64> {
        self.turns += 1;
        let person = self.crowd.any_person();
        let spot = if self.turns.is_multiple_of(2) { Spot::Dm } else { Spot::Channel(self.crowd.any_channel()) };
        self.clock.advance_to(self.clock.now() + jiff::SignedDuration::from_secs(30));
        let inbound = Inbound {
            id: MessageId::new(format!("turn-{}-{}", self.run, self.turns))?,
            chat: crowd::chat(spot, person)?,
            person: crowd::person(person)?,
            name: crowd::name(person),
            text: Text::new(self.crowd.question()),
            at: self.clock.now(),
            parts: Vec::new(),
            mentions_bot: true,
            mentions: Vec::new(),
            reply_to: None,
        };
        let begun = Instant::now();
        let receipt = self.app.engine.submit(&self.platform, InboundEvent::Message(inbound)).await?;
        let outcome = receipt.outcome().await?;
        let ms = begun.elapsed().as_secs_f64() * 1_000.0;
        match outcome {
            Outcome::Replied(_) => Ok(ms),
            Outcome::Skipped(why) => bail!("a turn was not answered: {}", why.why()),
        }
    }
}
