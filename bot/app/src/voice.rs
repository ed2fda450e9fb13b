//! The engines of speech for voice channels. They are loaded when somebody first asks the bot into one.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use azera_adapter_discord::{Engines, Speech};
use azera_config::Config;
use azera_model_registry::{InstalledModel, Kind, Models, State};
use azera_voice_api::{Style, VoiceActivity};
use azera_voice_engines::{PiperVoice, SileroVad};
use azera_voice_whisper::{Options, Whisper};
use tokio::sync::OnceCell;

use crate::bootstrap;

/// The most threads; more do not make these small models faster.
const MAX_THREADS: usize = 8;

/// Loads the models of the registry.
pub struct RegistrySpeech {
    config: Config,
    engines: OnceCell<Engines>,
}

impl RegistrySpeech {
    /// Loads nothing yet.
    pub fn new(config: Config) -> Self {
        Self { config, engines: OnceCell::new() }
    }
}

#[async_trait]
impl Speech for RegistrySpeech {
    async fn engines(&self) -> Result<Engines, String> {
        let loading = || async {
            let config = self.config.clone();
            let loaded = tokio::task::spawn_blocking(move || load(&config)).await;
            loaded.map_err(|_| "The models of speech could not be loaded.".to_owned())?.map_err(|error| {
                tracing::warn!(error = format!("{error:#}"), "cannot load the models of speech");
                format!("I can neither hear nor speak here: {error:#}.")
            })
        };
        self.engines.get_or_try_init(loading).await.cloned()
    }
}

fn load(config: &Config) -> anyhow::Result<Engines> {
    let models = bootstrap::models(config)?;
    let threads = match config.models.threads {
        0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(MAX_THREADS),
        threads => threads as usize,
    };
    let speech = installed(config, &models, Kind::Speech)?;
    let voice = installed(config, &models, Kind::Voice)?;
    let activity = SileroVad::open(&installed(config, &models, Kind::Vad)?.path)?;
    let recogniser = Whisper::load(&speech.path, &speech.entry.name, &Options { threads, language: None })?;
    let speaker = PiperVoice::open(&voice.path, &voice.entry.name, threads)?;
    let activity = Mutex::new(activity);
    Ok(Engines {
        recogniser: Arc::new(recogniser),
        speaker: Arc::new(speaker),
        style: Style::of(voice.entry.name.as_str()),
        activity: Arc::new(move || -> Box<dyn VoiceActivity> {
            Box::new(activity.lock().unwrap_or_else(PoisonError::into_inner).for_another_stream())
        }),
    })
}

/// Returns the model in use of a kind, or any other one that is installed.
fn installed(config: &Config, models: &Models, kind: Kind) -> anyhow::Result<InstalledModel> {
    let name = bootstrap::chosen(config, models, kind)?;
    if let Some(found) = models.find(&name)? {
        return Ok(found);
    }
    let others = models.list()?.into_iter().filter(|other| other.entry.kind == kind);
    let other = others.into_iter().find(|other| matches!(other.state, State::Installed(_)));
    match other.map(|other| models.find(&other.entry.name)).transpose()?.flatten() {
        Some(found) => Ok(found),
        None => anyhow::bail!("the model {name} is missing; the operator fetches it with `azera models pull {name}`"),
    }
}
