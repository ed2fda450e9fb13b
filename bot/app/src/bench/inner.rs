//! `azera bench inner`: what a persona's inner life adds to the first word of a reply. Two houses on the same model talk side by
//! side, one of them without: nothing is learned there of moods and tags, no notes are made, nothing is written. And how soon
//! what is being written in the background gives way to somebody who talks.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, bail};
use async_trait::async_trait;
use azera_adapter::{Access, Host, Making, Outbound, Outcome, Platform, PlatformError, StreamEvent, Streaming};
use azera_config::Config;
use azera_fake_sim::{PLATFORM, SimPlatform, Timeline};
use azera_model_api::{ChatMessage, ChatRequest, Event, Priority, Role, Sampling};
use azera_types::{
    ChatId, Clock, ComputeDevice, Inbound, ManualClock, MessageId, PersonId, PlatformId, ReadableScopes, Text,
    Timestamp,
};
use serde_json::{Value, json};

use super::rounded;
use crate::bootstrap::{self, App, BootstrapOptions, ModelChoice};
use crate::cli::BenchInner;
use crate::eval::world;
use crate::measure::{median, percentile};
use crate::stores;

/// Turns before the clock counts.
const WARM_UP: usize = 10;

/// Tokens of a reply: the first is what counts.
const REPLY_TOKENS: u32 = 16;

/// Tokens of what is being written when somebody talks: more than come before they are answered.
const WRITTEN_TOKENS: usize = 400;

/// Times somebody talks while something is being written.
const INTERRUPTIONS: usize = 20;

const DONE: [&str; 12] = [
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
    let mut with = Side::open(config, options, true).await?;
    let mut without = Side::open(config, options, false).await?;
    let (mut full, mut plain) = (Vec::new(), Vec::new());
    for turn in 0..WARM_UP + options.turns {
        // Who goes first changes, so that neither has the better of it.
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
    without.app.azera.stop().await;
    let (mut interrupting, mut late) = (Vec::new(), Vec::new());
    for number in 0..INTERRUPTIONS {
        let (ms, pieces) = with.interrupt(WARM_UP + options.turns + number).await?;
        interrupting.push(ms);
        late.push(pieces as f64);
    }
    with.app.azera.stop().await;
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

/// A house and somebody who talks in it.
struct Side {
    app: App,
    clock: ManualClock,
    ear: Arc<Ear>,
    _folder: tempfile::TempDir,
}

impl Side {
    async fn open(config: &Config, options: &BenchInner, inner_life: bool) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("making a folder for the benchmark")?;
        let mut config = stores::apart(config, folder.path());
        config.models.prefix_cache_mb = 0;
        config.models.max_reply_tokens = REPLY_TOKENS;
        let clock = ManualClock::new("2026-03-02T09:00:00Z".parse()?);
        let answers = options.model.as_deref().map_or(ModelChoice::Chosen, ModelChoice::named);
        let opening = BootstrapOptions { answers, clock: Arc::new(clock.clone()), seed: Some(0), on_trial: false };
        let app = match inner_life {
            true => bootstrap::open(&config, opening).await?,
            false => bootstrap::open_without_inner_life(&config, opening).await?,
        };
        let sim = Arc::new(SimPlatform::new(Arc::new(clock.clone()))?);
        let ear = Arc::new(Ear { sim: sim.clone(), first: Mutex::default() });
        app.azera.attach(ear.clone());
        app.azera.start().await?;
        let line = json!({"type": "chat", "at": clock.now(), "chat": "talk", "kind": "dm", "members": ["ann"]});
        world::set_up(&app, &clock, &sim, &Timeline::read(line.to_string().as_bytes())?).await?;
        // Moods and tags are learned before anybody talks.
        app.azera.settle().await?;
        Ok(Self { app, clock, ear, _folder: folder })
    }

    /// Somebody says something; gives the milliseconds until the first word of the reply, and does after it what is due.
    async fn turn(&mut self, number: usize) -> anyhow::Result<f64> {
        self.clock.advance_to(self.clock.now() + jiff::SignedDuration::from_mins(1));
        let (one, other) = (DONE[number % DONE.len()], DONE[number / DONE.len() % DONE.len()]);
        let inbound = Inbound {
            id: MessageId::new(format!("said-{number}"))?,
            chat: ChatId::new("talk")?,
            person: PersonId::new("ann")?,
            name: "Ann".to_owned(),
            text: Text::new(format!("This morning I {one}, then I {other}. What do you think of day {number}?")),
            at: self.clock.now(),
            mentions_bot: false,
            mentions: Vec::new(),
            reply_to: None,
        };
        self.ear.listen();
        let begun = Instant::now();
        let outcome = self.app.azera.message(&PlatformId::new(PLATFORM)?, inbound).await?;
        if let Outcome::Skipped(why) = outcome {
            bail!("a turn was not answered: {}", why.why());
        }
        let first = self.ear.heard().context("a reply without a word")?;
        self.app.azera.settle().await?;
        Ok((first - begun).as_secs_f64() * 1_000.0)
    }

    /// The same while something is being written; gives also how many pieces of that came between being asked and the first word.
    async fn interrupt(&mut self, number: usize) -> anyhow::Result<(f64, usize)> {
        let mut request =
            ChatRequest::new(vec![ChatMessage::new(Role::User, "Tell me a very long dream about a harbour.")]);
        request.priority = Priority::Background;
        request.max_tokens = WRITTEN_TOKENS;
        request.sampling = Sampling { seed: u32::try_from(number).ok(), ..Sampling::default() };
        let mut writing = self.app.model.chat(request).await?;
        // It is under way.
        writing.next().await.context("nothing is written")??;
        let came: Arc<Mutex<Vec<Instant>>> = Arc::default();
        let noted = came.clone();
        let reading = tokio::spawn(async move {
            while let Some(Ok(Event::Content(_))) = writing.next().await {
                noted.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
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
        let came = came.lock().unwrap_or_else(PoisonError::into_inner);
        let late = came.iter().filter(|at| (started..=answered).contains(*at)).count();
        Ok(((answered - started).as_secs_f64() * 1_000.0, late))
    }
}

/// The sim platform, listening for the first word of a reply.
struct Ear {
    sim: Arc<SimPlatform>,
    first: Mutex<Option<Instant>>,
}

impl Ear {
    fn listen(&self) {
        *self.first.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn heard(&self) -> Option<Instant> {
        *self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Streaming for Ear {
    async fn event(&self, _: Making<'_>, event: &StreamEvent) {
        if matches!(event, StreamEvent::Content { .. }) {
            self.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Instant::now);
        }
    }
}

#[async_trait]
impl Platform for Ear {
    fn id(&self) -> &PlatformId {
        self.sim.id()
    }

    async fn place(&self, chat: &ChatId, asker: &PersonId) -> Result<Option<ComputeDevice>, PlatformError> {
        self.sim.place(chat, asker).await
    }

    async fn reach(&self, person: &PersonId) -> Result<ReadableScopes, PlatformError> {
        self.sim.reach(person).await
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

    async fn place_for_all(&self, chat: &ChatId) -> Result<Option<ComputeDevice>, PlatformError> {
        self.sim.place_for_all(chat).await
    }

    async fn retract(&self, chat: &ChatId, reply: &MessageId, at: Timestamp) -> Result<(), PlatformError> {
        self.sim.retract(chat, reply, at).await
    }

    fn streaming(&self) -> Option<&dyn Streaming> {
        Some(self)
    }
}
