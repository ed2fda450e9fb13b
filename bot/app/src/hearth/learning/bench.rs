//! `azera bench hearth`: measures how long a training job takes, and how well the first job's examples survive later
//! ones. It uses the product's trainer. The exchanges were written for this benchmark, and the default model's LoRA was
//! not trained on them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use azera_config::Config;
use azera_engine::{KeepGoing, LossChange, Trainer, TrainingExample, TrainingJob};
use azera_model_registry::Kind;
use azera_personas::built_in;
use azera_prompt::{Budget, Line, PromptParts, compose, form_for};
use serde::Deserialize;
use serde_json::{Value, json};

use super::train::{bar, show};
use super::train_local::LocalTrainer;
use crate::bootstrap::{chosen, family, models};
use crate::cli::BenchHearth;
use crate::lab::bench::rounded;
use crate::lab::measure::Resident;

/// What two people say over some weeks, and the replies.
const TALK: &str = include_str!("../../../eval/talk.jsonl");

/// A budget that every exchange fits.
const BUDGET: Budget = Budget { context_tokens: 8192, reply_tokens: 512 };

#[derive(Deserialize)]
struct Exchange {
    who: String,
    said: String,
    reply: String,
}

/// Training examples for each held-out one.
const TRAINED_PER_HELD_OUT: usize = 8;

pub async fn bench(config: &Config, options: &BenchHearth) -> anyhow::Result<Value> {
    let models = models(config)?;
    let model = match &options.model {
        Some(name) => name.clone(),
        None => chosen(config, &models, Kind::Chat)?,
    };
    let installed = models.find(&model)?;
    let installed =
        installed.with_context(|| format!("{model} is not here: `azera models pull {model}` fetches it"))?;
    let family = family(&installed)?;
    let bar = bar();
    let watch = {
        let bar = bar.clone();
        Arc::new(move |now: &_| show(&bar, now))
    };
    let trainer = LocalTrainer::watched(config.clone(), models, watch);
    trainer.base_fingerprint(&model).with_context(|| format!("{model} cannot learn here"))?;
    let count = options.exchanges + options.exchanges.div_ceil(TRAINED_PER_HELD_OUT);
    let mut examples = exchanges(&family, installed.entry.parameters)?.into_iter();
    let enough = examples.len().checked_div(count).unwrap_or_default();
    ensure!(
        (1..=enough).contains(&options.courses),
        "there is talk for {enough} courses of {} exchanges, not for {}",
        options.exchanges,
        options.courses
    );
    let folder = tempfile::tempdir()?;
    let mut longest = Duration::ZERO;
    let (mut beside, mut first, mut jobs) = (None, Vec::new(), Vec::new());
    let (mut slowest, mut largest_cosine, mut first_loss, mut last_loss) = (0.0_f64, 0.0_f32, None, None);
    for number in 0..options.courses {
        let training_examples: Vec<TrainingExample> = examples.by_ref().take(options.exchanges).collect();
        let held_out: Vec<TrainingExample> = examples.by_ref().take(count - options.exchanges).collect();
        let to = folder.path().join(format!("{number}.gguf"));
        let job = TrainingJob {
            model: model.clone(),
            training_examples: training_examples.clone(),
            older: if first.is_empty() { held_out } else { first.clone() },
            voice: Vec::new(),
            beside: beside.clone(),
            to: to.clone(),
            seed: number as u64,
        };
        let began = Instant::now();
        let (may_go_on, longest_between) = timed_gate();
        let trained = trainer.learn(job, may_go_on).await.map_err(|error| anyhow!("{error}"))?;
        longest = longest.max(longest_between());
        let seconds = began.elapsed().as_secs_f64();
        let evaluation = trained.evaluation;
        // Drop a LoRA that may not serve. The next one is trained on top of the last LoRA that may.
        if evaluation.may_serve() {
            beside = Some(to);
            match first_loss {
                None => (first_loss, first) = (Some(evaluation.learned.after), training_examples),
                Some(_) => last_loss = evaluation.older.map(|older| older.after),
            }
        }
        slowest = slowest.max(seconds);
        largest_cosine = largest_cosine.max(evaluation.largest_cosine);
        bar.suspend(|| eprintln!("course {} of {}: {seconds:.1} s", number + 1, options.courses));
        jobs.push(json!({
            "seconds": rounded(seconds), "rank": evaluation.rank, "share": rounded(f64::from(evaluation.share)),
            "largest_cosine": evaluation.largest_cosine,
            "learnt": change(evaluation.learned), "older": evaluation.older.map(change), "tasks": change(evaluation.tasks),
            "prose": change(evaluation.prose), "tells_secrets": evaluation.tells_secrets, "may_serve": evaluation.may_serve(),
        }));
    }
    bar.finish_and_clear();
    let worse = first_loss.zip(last_loss).map(|(first, last)| rounded(last / first - 1.0));
    Ok(json!({
        "model": model, "exchanges": options.exchanges, "slowest_s": rounded(slowest),
        "longest_until_it_gives_way_ms": rounded(longest.as_secs_f64() * 1_000.0), "largest_cosine": largest_cosine,
        "first_course_worse_by": worse, "peak_mb": Resident::now().map(|resident| rounded(resident.peak)), "courses": jobs,
    }))
}

/// Returns a gate that always lets training continue, and a function that returns the longest time between two calls of
/// the gate. A person who talks may have to wait that long for the processor.
fn timed_gate() -> (KeepGoing, impl Fn() -> Duration) {
    let times = Arc::new(Mutex::new((Instant::now(), Duration::ZERO)));
    let recorder = Arc::clone(&times);
    let may_go_on = move || {
        let (last, longest) = &mut *recorder.lock().unwrap_or_else(PoisonError::into_inner);
        *longest = (*longest).max(last.elapsed());
        *last = Instant::now();
        true
    };
    (Arc::new(may_go_on), move || times.lock().unwrap_or_else(PoisonError::into_inner).1)
}

fn change(change: LossChange) -> Value {
    json!({"before": rounded(change.before), "after": rounded(change.after)})
}

/// Returns all exchanges in the product's prompts: each in a direct message, with the exchange before it as history.
fn exchanges(family: &str, parameters: u64) -> anyhow::Result<Vec<TrainingExample>> {
    let persona = built_in("azera").context("Azera is not built in")?;
    let chat_format = form_for(family, Some(parameters));
    let all: Vec<Exchange> =
        TALK.lines().map(serde_json::from_str).collect::<Result<_, _>>().context("reading the talk")?;
    let line = |depth, speaker: Option<&str>, text: &str| Line {
        depth,
        speaker: speaker.map(str::to_owned),
        text: text.to_owned(),
    };
    let mut training_examples = Vec::new();
    for (index, exchange) in all.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|before| all.get(before));
        let before = before.filter(|before| before.who == exchange.who);
        let history: Vec<Line> = before
            .map(|before| vec![line(0, Some(&before.who), &before.said), line(1, None, &before.reply)])
            .unwrap_or_default();
        let message = line(history.len() as u64, Some(&exchange.who), &exchange.said);
        let parts = PromptParts { history: &history, ..PromptParts::new(&persona, &message) };
        // The prompts are far below the limit, so an estimate of the tokens is enough.
        let prompt = compose(&chat_format, &parts, BUDGET, &|text| text.len() / 3 + 1)?;
        training_examples.push(TrainingExample {
            messages: prompt.messages,
            words: exchange.said.clone(),
            reply: exchange.reply.clone(),
        });
    }
    Ok(training_examples)
}
