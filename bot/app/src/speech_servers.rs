//! Speech servers named in the configuration, each with the engine on this machine behind it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use azera_config::{Config, RecognitionApi, Secret, SpeechApi, SpeechFormat};
use azera_model_registry::{Kind, Models};
use azera_voice_api::{Error, SpeechToText, TextToSpeech};
use azera_voice_samples::SampleFolder;
use azera_voice_servers::{
    ApiKey, Failure, LazyRecognizer, LazyVoices, RecognizerConfig, ServerConfig, ServerError, ServerRecognizer,
    ServerVoices, SoundFormat, Timeouts, VoicesConfig, WithFallback,
};
use tokio::runtime::Handle;

use crate::doctor::Found;
use crate::voice_clones::Clones;
use crate::{bootstrap, local_speech};

/// The folder of voice samples in the data folder.
const SAMPLES: &str = "voice_samples";

/// Returns the folder of the voice samples.
pub fn samples(config: &Config) -> anyhow::Result<SampleFolder> {
    Ok(samples_in(&config.data_dir()?))
}

/// Returns the folder of the voice samples in a data folder.
pub fn samples_in(data: &Path) -> SampleFolder {
    SampleFolder::new(samples_path(data))
}

/// Returns where the voice samples are in a data folder.
pub fn samples_path(data: &Path) -> PathBuf {
    data.join(SAMPLES)
}

/// Returns the server that recognises speech, if one is configured. `language` overrides the configured one. Requests
/// run on the current runtime.
pub fn recognizer(config: &Config, language: Option<&str>) -> anyhow::Result<Option<ServerRecognizer>> {
    let settings = &config.recognition_server;
    let (api, default_url) = match settings.api {
        RecognitionApi::None => return Ok(None),
        RecognitionApi::OpenAi => (azera_voice_servers::RecognitionApi::OpenAi, ""),
        RecognitionApi::WhisperCpp => (azera_voice_servers::RecognitionApi::WhisperCpp, "http://127.0.0.1:8080"),
    };
    let recognizer = RecognizerConfig {
        api,
        server: server("recognition_server", &settings.url, default_url, &settings.key, settings.timeout_s),
        model: settings.model.clone(),
        language: language.map(str::to_owned).or_else(|| settings.language.clone()),
    };
    Ok(Some(ServerRecognizer::new(recognizer, Handle::current())?))
}

/// Returns the server that speaks, if one is configured. Requests run on the current runtime.
pub fn voices(config: &Config) -> anyhow::Result<Option<ServerVoices>> {
    let settings = &config.speech_server;
    let (api, default_url) = match settings.api {
        SpeechApi::None => return Ok(None),
        SpeechApi::OpenAi => {
            let format = match settings.format {
                SpeechFormat::Wav => SoundFormat::Wav,
                SpeechFormat::Pcm => SoundFormat::Pcm,
            };
            let model = settings.model.clone().unwrap_or_default();
            (azera_voice_servers::SpeechApi::OpenAi { model, format }, "")
        }
        SpeechApi::Xtts => (azera_voice_servers::SpeechApi::Xtts, "http://127.0.0.1:8020"),
    };
    let voices = VoicesConfig {
        api,
        server: server("speech_server", &settings.url, default_url, &settings.key, settings.timeout_s),
        voice: settings.voice.clone(),
        language: settings.language.clone(),
        samples: Clones::of(&config.data_dir()?),
    };
    Ok(Some(ServerVoices::new(voices, Handle::current())?))
}

fn server(
    section: &str,
    url: &Option<String>,
    default_url: &str,
    key: &Option<Secret>,
    timeout_s: u64,
) -> ServerConfig {
    ServerConfig {
        url: url.clone().unwrap_or_else(|| default_url.to_owned()),
        key: key.as_ref().map(|key| ApiKey::new(key.expose())),
        section: section.to_owned(),
        timeouts: Timeouts { first: Duration::from_secs(timeout_s), ..Timeouts::default() },
    }
}

/// Returns what recognises speech: the server with the recogniser on this machine behind it, or one of them; `None` if
/// neither is there.
///
/// # Errors
/// The configuration names no model that there is.
pub fn recognizer_or_installed(
    config: &Config,
    models: &Models,
    server: Option<ServerRecognizer>,
    here: Option<Arc<dyn SpeechToText>>,
) -> anyhow::Result<Option<Arc<dyn SpeechToText>>> {
    let Some(server) = server else { return Ok(here) };
    let name = bootstrap::chosen(config, models, Kind::Speech)?;
    let here = here.unwrap_or_else(|| Arc::new(LazyRecognizer::new(name.clone(), move || Err(not_here(name.clone())))));
    Ok(Some(Arc::new(WithFallback::recognizer(Arc::new(server), here))))
}

fn not_here(file: String) -> Error {
    Error::Model { file, why: "it is not on this machine".to_owned() }
}

/// Puts the voices on this machine behind the server, as far as there are some, in the form that `as_used` gives them.
pub async fn voices_with_installed(
    config: &Config,
    models: &Models,
    server: ServerVoices,
    threads: usize,
    as_used: impl Fn(Arc<dyn TextToSpeech>) -> Arc<dyn TextToSpeech>,
) -> anyhow::Result<Arc<dyn TextToSpeech>> {
    let here: Arc<dyn TextToSpeech> = match local_speech::voices(config, models, threads)? {
        Some(voices) => as_used(voices),
        None => {
            let name = bootstrap::chosen(config, models, Kind::Voice)?;
            let missing = move || Err(not_here(name.clone()));
            // Nobody chooses a voice that is not there.
            Arc::new(LazyVoices::new(Vec::new(), missing))
        }
    };
    Ok(voices_with_fallback(server, here).await)
}

/// Puts other voices behind the server. The server is asked for its voices first, so that they can be listed.
async fn voices_with_fallback(server: ServerVoices, here: Arc<dyn TextToSpeech>) -> Arc<dyn TextToSpeech> {
    match server.check().await {
        Ok(notes) => notes.iter().for_each(|note| tracing::info!("{}: {note}", server.name())),
        Err(error) => tracing::warn!(%error, "the speech server cannot say which voices it has"),
    }
    Arc::new(WithFallback::voices(Arc::new(server), here))
}

/// Checks the server that recognises speech.
pub async fn check_recognition(config: &Config) -> Found {
    match recognizer(config, None) {
        Err(error) => wrong(&error, "recognition_server"),
        Ok(None) => Found::Good("no server".into()),
        Ok(Some(server)) => found(config, Kind::Speech, server.name(), "recognition_server", server.check().await),
    }
}

/// Checks the server that speaks.
pub async fn check_speech(config: &Config) -> Found {
    match voices(config) {
        Err(error) => wrong(&error, "speech_server"),
        Ok(None) => Found::Good("no server".into()),
        Ok(Some(server)) => {
            let checked = server.check().await;
            let name = format!("{} with {} voices", server.name(), server.voices().len());
            found(config, Kind::Voice, &name, "speech_server", checked)
        }
    }
}

fn found(config: &Config, kind: Kind, name: &str, section: &str, checked: Result<Vec<String>, ServerError>) -> Found {
    match checked {
        Ok(notes) if notes.is_empty() => Found::Good(name.to_owned()),
        Ok(notes) => Found::Note(format!("{name}; {}", notes.join("; "))),
        Err(error @ ServerError { failure: Failure::Config(_) | Failure::Key { .. }, .. }) => {
            Found::Bad(error.to_string(), mend(section))
        }
        Err(error) => match is_usable(config, kind) {
            Some(true) => {
                Found::Note(format!("{error}; until it answers, the {kind} model on this machine takes its place"))
            }
            Some(false) => Found::Note(format!(
                "{error}; nothing takes its place: the {kind} model on this machine cannot be used, see \"models of speech\""
            )),
            None => Found::Note(format!("{error}; there is no {kind} model on this machine to take its place")),
        },
    }
}

fn wrong(error: &anyhow::Error, section: &str) -> Found {
    Found::Bad(format!("{error:#}"), mend(section))
}

fn mend(section: &str) -> String {
    format!("see [{section}] in the configuration; with api = \"none\" there the model on this machine takes its place")
}

/// Returns whether the model of a kind that is used can be; `None` if none is on this machine.
fn is_usable(config: &Config, kind: Kind) -> Option<bool> {
    let usable = bootstrap::models(config).and_then(|models| local_speech::usable(config, &models, kind)).ok()?;
    match usable {
        Ok(model) => model.map(|_| true),
        Err(_) => Some(false),
    }
}
