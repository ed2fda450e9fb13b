//! `azera transcribe`: recognises the speech of sound files.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use azera_config::Config;
use azera_model_registry::{InstalledModel, Kind, Models};
use azera_voice_api::{Audio, Error, SpeechToText, SpokenWord, Transcript};
use azera_voice_recordings::{read, split};
use azera_voice_servers::LazyRecognizer;
use azera_voice_whisper::{Options, Whisper};
use serde_json::{Value, json};

use crate::bootstrap::{chosen, installed, models};
use crate::cli::TranscribeOptions;
use crate::speech_servers;

/// The longest part of a recording that is recognised at once, in seconds. One second of silence still fits into the
/// model's window after it.
const PART_SECONDS: f32 = 29.0;
/// The most threads; more do not make these small models faster.
const MAX_THREADS: usize = 8;

pub async fn run(config: &Config, options: TranscribeOptions) -> anyhow::Result<ExitCode> {
    let engine = engine(config, &options).await?;
    tokio::task::spawn_blocking(move || {
        let engine = engine()?;
        let mut code = ExitCode::SUCCESS;
        for file in &options.files {
            if let Err(error) = transcribe(&*engine, file, &options) {
                eprintln!("azera: {}: {error:#}", file.display());
                code = ExitCode::FAILURE;
            }
        }
        Ok(code)
    })
    .await?
}

/// Opens a recogniser, on a thread for blocking work.
type Open = Box<dyn Fn() -> Result<Arc<dyn SpeechToText>, Error> + Send + Sync>;

/// Returns how to open the configured server with the model on this machine behind it, or the model alone. A model that
/// is named counts more than the server.
async fn engine(config: &Config, options: &TranscribeOptions) -> anyhow::Result<Open> {
    let models = models(config)?;
    let threads = if config.models.threads == 0 { default_threads() } else { config.models.threads as usize };
    let loading = Options { threads, language: options.language.clone() };
    let server = match &options.model {
        None => speech_servers::recognizer(config, options.language.as_deref())?,
        Some(_) => None,
    };
    let Some(server) = server else {
        let installed = model(config, &models, options.model.as_deref()).await?;
        return Ok(Box::new(move || load(&installed, &loading)));
    };
    // The model on this machine is only fetched by a command of its own, because the server may do without.
    let name = chosen(config, &models, Kind::Speech)?;
    let here = models.find(&name)?.map(|installed| -> Arc<dyn SpeechToText> {
        Arc::new(LazyRecognizer::new(name, move || load(&installed, &loading)))
    });
    let engine = speech_servers::recognizer_or_installed(config, &models, Some(server), here)?;
    let engine = engine.context("nothing recognises speech")?;
    Ok(Box::new(move || Ok(engine.clone())))
}

fn load(installed: &InstalledModel, loading: &Options) -> Result<Arc<dyn SpeechToText>, Error> {
    Ok(Arc::new(Whisper::load(&installed.path, &installed.entry.name, loading)?))
}

/// Returns the recogniser, and fetches it first if it is missing.
async fn model(config: &Config, models: &Models, name: Option<&str>) -> anyhow::Result<InstalledModel> {
    let name = match name {
        Some(name) => name.to_owned(),
        None => chosen(config, models, Kind::Speech)?,
    };
    if let Some(entry) = models.registry()?.get(&name)
        && entry.kind != Kind::Speech
    {
        bail!("{name} is a {} model and recognises no speech; `azera models list` shows the speech models", entry.kind);
    }
    let fetched = installed(models, &name).await;
    fetched.with_context(|| format!("there is no model to recognise speech; `azera models pull {name}` fetches it"))
}

fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(MAX_THREADS)
}

/// Recognises one file. Plain text is printed part by part.
fn transcribe(engine: &dyn SpeechToText, file: &Path, options: &TranscribeOptions) -> anyhow::Result<()> {
    let started = Instant::now();
    let audio = read(file)?;
    let seconds = audio.duration().as_secs_f32();
    let mut parts = Vec::new();
    let mut out = std::io::stdout().lock();
    if options.files.len() > 1 && !options.json {
        writeln!(out, "{}:", file.display())?;
    }
    for range in split(&audio, PART_SECONDS) {
        let start = audio.rate.duration(range.start);
        let part = Audio { rate: audio.rate, samples: audio.samples.get(range).unwrap_or(&[]).to_vec() };
        let transcript = engine.transcribe(&part, &|| true)?;
        if transcript.text.is_empty() {
            continue;
        }
        if !options.json {
            writeln!(out, "{}", &*transcript.text)?;
            out.flush()?;
        }
        parts.push(segment(&transcript, start, part.duration()));
    }
    let has_speech = !parts.is_empty();
    if options.json {
        let file = file.display().to_string();
        writeln!(out, "{}", json!({"file": file, "model": engine.name(), "seconds": seconds, "parts": parts}))?;
    }
    let taken = started.elapsed().as_secs_f32();
    let factor = taken / seconds.max(f32::MIN_POSITIVE);
    let note = if has_speech { "" } else { ", no speech found" };
    eprintln!("{}: {seconds:.1} s in {taken:.1} s (real-time factor {factor:.2}){note}", file.display());
    Ok(())
}

/// Returns a part of the file as JSON. Times count from the start of the file.
fn segment(transcript: &Transcript, start: Duration, length: Duration) -> Value {
    let at = |offset: Duration| rounded((start + offset).as_secs_f32());
    let word = |word: &SpokenWord| json!({"text": &*word.text, "start": at(word.start), "end": at(word.end)});
    json!({
        "text": &*transcript.text,
        "start": at(Duration::ZERO),
        "end": at(length),
        "confidence": rounded(transcript.confidence),
        "no_speech": rounded(transcript.no_speech),
        "words": transcript.words.iter().map(word).collect::<Vec<_>>(),
    })
}

/// Rounds to thousandths, for people who read the JSON.
fn rounded(value: f32) -> f64 {
    (f64::from(value) * 1_000.0).round() / 1_000.0
}
