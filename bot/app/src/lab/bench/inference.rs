//! `azera bench inference`: measures the chat model's prompt and generation speed, alone and with many chats, the cache
//! of a second turn, the embedding speed, and the memory that an idle chat uses.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, bail};
use azera_adapter::{Host, InboundEvent, Outcome, TurnUsage};
use azera_config::Config;
use azera_fake_sim::{PLATFORM, SimPlatform, Timeline};
use azera_model_api::{ChatMessage, ChatModel, ChatRequest, Embedder, Lora, Priority, Purpose, Role, Sampling, Usage};
use azera_types::{ChatId, Clock, Inbound, ManualClock, MessageId, PersonId, PlatformId, Text, Timestamp};
use serde_json::{Value, json};

use super::crowd::Crowd;
use super::loras::loras;
use super::rounded;
use crate::bootstrap::{self, App, BootstrapOptions, ModelChoice};
use crate::cli::BenchInference;
use crate::lab::eval::world;
use crate::lab::measure::{Resident, median};
use crate::stores;

/// Runs of each measurement; the median counts.
pub const RUNS: usize = 5;

/// Minimum prompt tokens when timing the prompt.
const PROMPT_TOKENS: usize = 512;

/// Maximum tokens of each reply.
pub const REPLY_TOKENS: usize = 128;

/// Start of a request that gives long replies.
const STORY: &str = "Tell me a very long story, with many people in it, about";

/// Texts to embed, first one by one and then all at once.
const TEXTS: usize = 128;

/// Words of each text.
const TEXT_WORDS: usize = 15;

/// Chats that send one message and fall silent.
const IDLE_CHATS: usize = 64;

pub async fn inference(config: &Config, options: &BenchInference) -> anyhow::Result<Value> {
    if options.chats == 0 {
        bail!("--chats must be at least 1");
    }
    let scratch = tempfile::tempdir().context("making a folder for the benchmark")?;
    let mut config = stores::scratch_config(config, scratch.path());
    // Turn off the prefix cache on disk, so that no earlier run helps.
    config.models.prefix_cache_mb = 0;
    config.models.slots = config.models.slots.max(u32::try_from(options.chats)?);
    let clock = ManualClock::new("2026-01-01T12:00:00Z".parse()?);
    let answers = options.model.as_deref().map_or(ModelChoice::Chosen, ModelChoice::named);
    let opening = BootstrapOptions { answers, clock: Arc::new(clock.clone()), seed: Some(0), on_trial: false };
    let app = bootstrap::open(&config, opening).await?;
    let mut crowd = Crowd::new(4, 1);

    let (mut reading, mut writing, mut one, mut many, mut lengths) = (vec![], vec![], vec![], vec![], vec![]);
    // The first run warms up and does not count.
    for run in 0..=RUNS {
        let read = usages(&app.model, vec![long(&app.model, &mut crowd)], 1, &[]).await?.0;
        let (alone, alone_rate) = usages(&app.model, stories(&mut crowd, 1), REPLY_TOKENS, &[]).await?;
        let (together, rate) = usages(&app.model, stories(&mut crowd, options.chats), REPLY_TOKENS, &[]).await?;
        if run == 0 {
            continue;
        }
        reading.extend(read.iter().map(|usage| usage.evaluated_tokens as f64 / usage.ttft_ms * 1_000.0));
        writing.extend(alone.iter().map(|usage| usage.tokens_per_s));
        one.push(alone_rate);
        many.push(rate);
        lengths.extend(alone.iter().chain(&together).map(|usage| usage.completion_tokens as f64));
    }
    let (mut singly, mut batched) = (vec![], vec![]);
    for run in 0..=RUNS {
        let alone = embedded_per_s(&app.embedder, &mut crowd, 1).await?;
        let together = embedded_per_s(&app.embedder, &mut crowd, TEXTS).await?;
        if run > 0 {
            singly.push(alone);
            batched.push(together);
        }
    }
    let (first, second) = two_turns(&app, &clock).await?;
    let idle_chat_mb = idle_chats(&app, &clock, &mut crowd).await?;
    app.engine.stop().await;
    let name = app.model.info().name.clone();
    drop(app);
    let installed = bootstrap::models(&config)?.find(&name)?;
    let with_loras = match installed {
        Some(installed) => Some(loras(&config, &installed, options.chats).await?),
        // A model on a server takes no LoRA.
        None => None,
    };
    Ok(json!({
        "model": name,
        "prompt_tokens_per_s": rounded(median(&reading)),
        "tokens_per_s": rounded(median(&writing)),
        "chats": options.chats,
        "total_tokens_per_s": rounded(median(&many)),
        "one_chat_total_tokens_per_s": rounded(median(&one)),
        "reply_tokens": rounded(median(&lengths)),
        "second_turn_cached_share": rounded(second.cached_tokens as f64 / second.prompt_tokens.max(1) as f64),
        "ttft_ms": rounded(first.ttft_ms),
        "second_turn_ttft_ms": rounded(second.ttft_ms),
        "embedded_per_s": rounded(median(&singly)),
        "embedded_per_s_batched": rounded(median(&batched)),
        "idle_chats": IDLE_CHATS,
        "idle_chat_mb": idle_chat_mb.map(rounded),
        "first_turn_prompt_tokens": first.prompt_tokens,
        "second_turn_prompt_tokens": second.prompt_tokens,
        "with_adapter": with_loras,
    }))
}

/// Returns a prompt of at least [`PROMPT_TOKENS`].
pub fn long(model: &Arc<dyn ChatModel>, crowd: &mut Crowd) -> String {
    let mut text = crowd.prose(64);
    while model.count_tokens(&text) < PROMPT_TOKENS {
        text.push(' ');
        text.push_str(&crowd.prose(32));
    }
    text
}

pub fn stories(crowd: &mut Crowd, count: usize) -> Vec<String> {
    (0..count).map(|_| format!("{STORY} {}.", crowd.prose(3))).collect()
}

/// Sends all prompts at once. Returns each reply's usage, and the tokens generated per second over all of them, from
/// the first request to the end of the last reply.
pub async fn usages(
    model: &Arc<dyn ChatModel>,
    prompts: Vec<String>,
    max_tokens: usize,
    loras: &[Lora],
) -> anyhow::Result<(Vec<Usage>, f64)> {
    let begun = Instant::now();
    let mut requests = Vec::with_capacity(prompts.len());
    for (number, prompt) in prompts.into_iter().enumerate() {
        let mut request = ChatRequest::new(vec![ChatMessage::new(Role::User, prompt)]);
        request.max_tokens = max_tokens;
        request.loras = loras.to_vec();
        request.sampling = Sampling { temperature: 0.8, seed: u32::try_from(number).ok(), ..Sampling::default() };
        let model = model.clone();
        requests.push(tokio::spawn(async move { model.chat(request).await?.collect().await }));
    }
    let mut usages = Vec::with_capacity(requests.len());
    for reply in requests {
        usages.push(reply.await??.1);
    }
    let tokens: usize = usages.iter().map(|usage| usage.completion_tokens).sum();
    Ok((usages, tokens as f64 / begun.elapsed().as_secs_f64()))
}

/// Runs two turns of a new chat with the default persona, through the whole product.
async fn two_turns(app: &App, clock: &ManualClock) -> anyhow::Result<(TurnUsage, TurnUsage)> {
    let sim = Arc::new(SimPlatform::new(Arc::new(clock.clone()))?);
    app.engine.attach(sim.clone());
    app.engine.start().await?;
    let dm = |chat: &str, person: &str| {
        let line = json!({"type": "chat", "at": clock.now(), "chat": chat, "kind": "dm", "members": [person]});
        format!("{line}\n")
    };
    let idle = (0..IDLE_CHATS).map(|number| dm(&format!("idle-{number}"), &format!("person-{number}")));
    let chats: String = std::iter::once(dm("talk", "ann")).chain(idle).collect();
    world::set_up(app, clock, &sim, &Timeline::read(chats.as_bytes())?).await?;
    let mut costs = Vec::new();
    for (id, text) in [("one", "Hi! I am Ann, and I just came home from the sea."), ("two", "What should I cook now?")]
    {
        clock.advance_to(clock.now() + jiff::SignedDuration::from_mins(1));
        costs.push(turn(app, clock.now(), ("talk", "ann"), id, text).await?);
    }
    match <[TurnUsage; 2]>::try_from(costs) {
        Ok([first, second]) => Ok((first, second)),
        Err(_) => bail!("two turns were asked for"),
    }
}

/// Returns texts embedded per second, with `batch` texts in each request, one request after the other.
async fn embedded_per_s(embedder: &Arc<dyn Embedder>, crowd: &mut Crowd, batch: usize) -> anyhow::Result<f64> {
    let texts: Vec<String> = (0..TEXTS).map(|_| crowd.prose(TEXT_WORDS)).collect();
    let begun = Instant::now();
    for texts in texts.chunks(batch) {
        embedder.embed(texts.to_vec(), Purpose::Document, Priority::Background).await?;
    }
    Ok(TEXTS as f64 / begun.elapsed().as_secs_f64())
}

/// Returns the anonymous memory that each idle chat adds, in MB; `None` where it cannot be read.
async fn idle_chats(app: &App, clock: &ManualClock, crowd: &mut Crowd) -> anyhow::Result<Option<f64>> {
    let before = Resident::now();
    for number in 0..IDLE_CHATS {
        clock.advance_to(clock.now() + jiff::SignedDuration::from_mins(1));
        let (chat, person) = (format!("idle-{number}"), format!("person-{number}"));
        let text = format!("Hello! Today I saw {}.", crowd.prose(TEXT_WORDS));
        turn(app, clock.now(), (&chat, &person), &format!("idle-{number}"), &text).await?;
    }
    app.engine.settle().await?;
    let after = Resident::now();
    Ok(before.zip(after).map(|(before, after)| (after.anonymous - before.anonymous) / IDLE_CHATS as f64))
}

async fn turn(
    app: &App,
    at: Timestamp,
    (chat, person): (&str, &str),
    id: &str,
    text: &str,
) -> anyhow::Result<TurnUsage> {
    let inbound = Inbound {
        id: MessageId::new(id)?,
        chat: ChatId::new(chat)?,
        person: PersonId::new(person)?,
        name: "Ann".to_owned(),
        text: Text::new(text),
        at,
        parts: Vec::new(),
        mentions_bot: false,
        mentions: Vec::new(),
        reply_to: None,
    };
    let receipt = app.engine.submit(&PlatformId::new(PLATFORM)?, InboundEvent::Message(inbound)).await?;
    match receipt.outcome().await? {
        Outcome::Replied(turn) => Ok(turn.usage),
        Outcome::Skipped(why) => bail!("a turn was not answered: {}", why.why()),
    }
}
