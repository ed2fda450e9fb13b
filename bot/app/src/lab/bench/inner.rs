//! `azera bench inner`: measures what moods, tags, notes and background writing add to the first word of a reply. Two
//! apps on the same model talk side by side, and one of them runs without these parts. Also measures how soon
//! background generation gives way to a person's message.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, bail};
use async_trait::async_trait;
use azera_adapter::{
    Access, Host, InboundEvent, Making, Outbound, Outcome, Platform, PlatformError, StreamEvent, Streaming,
};
use azera_config::Config;
use azera_fake_sim::{PLATFORM, SimPlatform, Timeline};
use azera_model_api::{ChatMessage, ChatRequest, Event, Priority, Role, Sampling};
use azera_types::{
    ChatId, Clock, Inbound, ManualClock, MessageId, PersonId, Place, PlatformId, ReadableScopes, Text, Timestamp,
};
use serde_json::{Value, json};

use super::rounded;
use crate::bootstrap::{self, App, BootstrapOptions, ModelChoice};
use crate::cli::BenchInner;
use crate::lab::eval::world;
use crate::lab::measure::{median, percentile};
use crate::stores;

/// Turns before the measurement starts.
const WARM_UP: usize = 10;

/// Maximum tokens of a reply; only the first one is timed.
const REPLY_TOKENS: u32 = 16;

/// Tokens of the background text: more than can be generated before the reply starts.
const BACKGROUND_TOKENS: usize = 400;

/// Number of messages sent during background generation.
const INTERRUPTIONS: usize = 20;

const ACTIVITIES: [&str; 12] = [
    "baked bread",
    "met my sister at the harbour",
    "lost my keys",
    "read about whales",
    "planted tomatoes",
    "missed the bus",
    "painted the fence",
    "called the dentist",
    "fed the neighbour's cat",
    "bought a lamp",
    "wrote to my uncle",
    "cleaned the attic",
];

pub async fn inner(config: &Config, options: &BenchInner) -> anyhow::Result<Value> {
    let mut with = BenchApp::open(config, options, true).await?;
    let mut without = BenchApp::open(config, options, false).await?;
    let (mut full, mut plain) = (Vec::new(), Vec::new());
    for turn in 0..WARM_UP + options.turns {
        // Alternate which one goes first, so that neither has an advantage.
        let (one, two) = match turn % 2 {
            0 => (with.turn(turn).await?, without.turn(turn).await?),
            _ => {
                let without = without.turn(turn).await?;
                (with.turn(turn).await?, without)
            }
        };
        if turn >= WARM_UP {
            full.push(one);
            plain.push(two);
        }
    }
    without.app.engine.stop().await;
    let (mut interrupting, mut late) = (Vec::new(), Vec::new());
    for number in 0..INTERRUPTIONS {
        let (ms, pieces) = with.interrupt(WARM_UP + options.turns + number).await?;
        interrupting.push(ms);
        late.push(pieces as f64);
    }
    with.app.engine.stop().await;
    let added: Vec<f64> = full.iter().zip(&plain).map(|(full, plain)| full - plain).collect();
    Ok(json!({
        "turns": options.turns,
        "first_word_p50_ms": rounded(median(&full)),
        "without_p50_ms": rounded(median(&plain)),
        "added_p50_ms": rounded(median(&added)),
        "added_share": rounded(median(&added) / median(&plain).max(f64::MIN_POSITIVE)),
        "interrupting_p50_ms": rounded(median(&interrupting)),
        "background_pieces_after_being_asked_max": percentile(&late, 1.0),
    }))
}

/// An app and the person who talks to it.
struct BenchApp {
    app: App,
    clock: ManualClock,
    platform: Arc<FirstWordPlatform>,
    _folder: tempfile::TempDir,
}

impl BenchApp {
    async fn open(config: &Config, options: &BenchInner, inner_life: bool) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("making a folder for the benchmark")?;
        let mut config = stores::scratch_config(config, folder.path());
        config.models.prefix_cache_mb = 0;
        config.models.max_reply_tokens = Some(REPLY_TOKENS);
        let clock = ManualClock::new("2026-03-02T09:00:00Z".parse()?);
        let answers = options.model.as_deref().map_or(ModelChoice::Chosen, ModelChoice::named);
        let opening = BootstrapOptions { answers, clock: Arc::new(clock.clone()), seed: Some(0), on_trial: false };
        let app = match inner_life {
            true => bootstrap::open(&config, opening).await?,
            false => bootstrap::open_without_inner_life(&config, opening).await?,
        };
        let sim = Arc::new(SimPlatform::new(Arc::new(clock.clone()))?);
        let platform = Arc::new(FirstWordPlatform { sim: sim.clone(), first: Mutex::default() });
        app.engine.attach(platform.clone());
        app.engine.start().await?;
        let line = json!({"type": "chat", "at": clock.now(), "chat": "talk", "kind": "dm", "members": ["ann"]});
        world::set_up(&app, &clock, &sim, &Timeline::read(line.to_string().as_bytes())?).await?;
        // Let the classifiers finish training before the first turn.
        app.engine.settle().await?;
        Ok(Self { app, clock, platform, _folder: folder })
    }

    /// Sends a message and runs the due jobs afterwards. Returns the milliseconds until the first word of the reply.
    async fn turn(&mut self, number: usize) -> anyhow::Result<f64> {
        self.clock.advance_to(self.clock.now() + jiff::SignedDuration::from_mins(1));
        let (one, other) =
            (ACTIVITIES[number % ACTIVITIES.len()], ACTIVITIES[number / ACTIVITIES.len() % ACTIVITIES.len()]);
        let inbound = Inbound {
            id: MessageId::new(format!("said-{number}"))?,
            chat: ChatId::new("talk")?,
            person: PersonId::new("ann")?,
            name: "Ann".to_owned(),
            text: Text::new(format!("This morning I {one}, then I {other}. What do you think of day {number}?")),
            at: self.clock.now(),
            parts: Vec::new(),
            mentions_bot: false,
            mentions: Vec::new(),
            reply_to: None,
        };
        self.platform.reset();
        let begun = Instant::now();
        let receipt = self.app.engine.submit(&PlatformId::new(PLATFORM)?, InboundEvent::Message(inbound)).await?;
        let outcome = receipt.outcome().await?;
        if let Outcome::Skipped(why) = outcome {
            bail!("a turn was not answered: {}", why.why());
        }
        let first = self.platform.first_word().context("a reply without a word")?;
        self.app.engine.settle().await?;
        Ok((first - begun).as_secs_f64() * 1_000.0)
    }

    /// Asks a question during background generation. Returns the milliseconds until the first word, and the number of
    /// background pieces generated between the question and that word.
    async fn interrupt(&mut self, number: usize) -> anyhow::Result<(f64, usize)> {
        let mut request =
            ChatRequest::new(vec![ChatMessage::new(Role::User, "Tell me a very long dream about a harbour.")]);
        request.priority = Priority::Background;
        request.max_tokens = BACKGROUND_TOKENS;
        request.sampling = Sampling { seed: u32::try_from(number).ok(), ..Sampling::default() };
        let mut writing = self.app.model.chat(request).await?;
        // Wait until generation has started.
        writing.next().await.context("nothing is written")??;
        let arrivals: Arc<Mutex<Vec<Instant>>> = Arc::default();
        let recorder = arrivals.clone();
        let reading = tokio::spawn(async move {
            while let Some(Ok(Event::Content(_))) = writing.next().await {
                recorder.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
            }
        });
        let prompt =
            vec![ChatMessage::new(Role::User, format!("What is the capital of Portugal? That is question {number}."))];
        let mut foreground = ChatRequest::new(prompt);
        foreground.max_tokens = 1;
        let started = Instant::now();
        let mut reply = self.app.model.chat(foreground).await?;
        while let Some(event) = reply.next().await {
            if matches!(event?, Event::Content(_)) {
                break;
            }
        }
        let answered = Instant::now();
        reading.abort();
        let arrivals = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        let late = arrivals.iter().filter(|at| (started..=answered).contains(*at)).count();
        Ok(((answered - started).as_secs_f64() * 1_000.0, late))
    }
}

/// The simulated platform, which also notes the time of a reply's first word.
struct FirstWordPlatform {
    sim: Arc<SimPlatform>,
    first: Mutex<Option<Instant>>,
}

impl FirstWordPlatform {
    fn reset(&self) {
        *self.first.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn first_word(&self) -> Option<Instant> {
        *self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Streaming for FirstWordPlatform {
    async fn event(&self, _: Making<'_>, event: &StreamEvent) {
        if matches!(event, StreamEvent::Content { .. }) {
            self.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Instant::now);
        }
    }
}

#[async_trait]
impl Platform for FirstWordPlatform {
    fn id(&self) -> &PlatformId {
        self.sim.id()
    }

    async fn place(&self, chat: &ChatId, asker: &PersonId) -> Result<Option<Place>, PlatformError> {
        self.sim.place(chat, asker).await
    }

    async fn readable_scopes(&self, person: &PersonId) -> Result<ReadableScopes, PlatformError> {
        self.sim.readable_scopes(person).await
    }

    async fn access(&self, chat: &ChatId, person: &PersonId) -> Result<Access, PlatformError> {
        self.sim.access(chat, person).await
    }

    async fn deliver(&self, outbound: &Outbound) -> Result<(), PlatformError> {
        self.sim.deliver(outbound).await
    }

    async fn show_again(&self, outbound: &Outbound) -> Result<(), PlatformError> {
        self.sim.show_again(outbound).await
    }

    async fn place_for_all(&self, chat: &ChatId) -> Result<Option<Place>, PlatformError> {
        self.sim.place_for_all(chat).await
    }

    async fn retract(&self, chat: &ChatId, reply: &MessageId, at: Timestamp) -> Result<(), PlatformError> {
        self.sim.retract(chat, reply, at).await
    }

    fn streaming(&self) -> Option<&dyn Streaming> {
        Some(self)
    }
}
