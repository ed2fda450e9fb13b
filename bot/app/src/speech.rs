//! What hears voice messages and speaks replies, by the models on this machine.

use std::num::NonZero;
use std::sync::Arc;

use anyhow::{Context, bail};
use azera_config::{Config, VoiceReplies};
use azera_engine::{Engine, Voice};
use azera_model_registry::{InstalledModel, Kind, Models};
use azera_voice_api::{Listener, Speaker};
use azera_voice_engines::PiperVoice;
use azera_voice_speech::{NoteSpeaker, RecordingListener};
use azera_voice_whisper::{Options, Whisper};

use crate::bootstrap;

/// The most threads; more do not make these small models faster.
const MAX_THREADS: usize = 8;

/// Lets the engine hear voice messages and speak, as far as the models are on this machine. The log says once what is
/// missing. A model is loaded when it is first needed.
///
/// # Errors
/// The configuration names a model that is unknown, or of another kind.
pub fn give_voice(engine: &Engine, config: &Config) -> anyhow::Result<()> {
    if !config.voice.enabled {
        return Ok(());
    }
    let models = bootstrap::models(config)?;
    let voice = Voice {
        listener: listener(config, &models)?,
        speaker: speaker(config, &models)?,
        replies: match config.voice.replies {
            VoiceReplies::Auto => azera_memory::VoiceReplies::Auto,
            VoiceReplies::Always => azera_memory::VoiceReplies::Always,
            VoiceReplies::Never => azera_memory::VoiceReplies::Never,
        },
    };
    match (&voice.listener, &voice.speaker) {
        (Some(_), Some(_)) => tracing::info!("voice messages are heard, and answered by voice"),
        (Some(_), None) => tracing::info!("voice messages are heard, and answered by text alone"),
        (None, _) => tracing::info!("voice messages are not heard"),
    }
    engine.give_voice(voice);
    Ok(())
}

fn listener(config: &Config, models: &Models) -> anyhow::Result<Option<Arc<dyn Listener>>> {
    let Some(installed) = installed(config, models, Kind::Speech).context("voice.speech_model")? else {
        return Ok(None);
    };
    let loading = Options { threads: threads(config).min(MAX_THREADS), language: None };
    let open = move || {
        let whisper = Whisper::load(&installed.path, &installed.entry.name, &loading)?;
        Ok(Arc::new(whisper) as Arc<_>)
    };
    Ok(Some(Arc::new(RecordingListener::new(Box::new(open), config.voice.max_seconds))))
}

fn speaker(config: &Config, models: &Models) -> anyhow::Result<Option<Arc<dyn Speaker>>> {
    let Some(installed) = installed(config, models, Kind::Voice).context("voice.voice")? else { return Ok(None) };
    let threads = threads(config);
    let open = move || {
        let voice = PiperVoice::open(&installed.path, &installed.entry.name, threads)?;
        Ok(Arc::new(voice) as Arc<_>)
    };
    Ok(Some(Arc::new(NoteSpeaker::new(Box::new(open), config.voice.max_seconds))))
}

/// Returns the model in use for a kind, if it is on this machine.
fn installed(config: &Config, models: &Models, kind: Kind) -> anyhow::Result<Option<InstalledModel>> {
    let name = bootstrap::chosen(config, models, kind)?;
    match models.registry()?.get(&name) {
        Some(entry) if entry.kind != kind => bail!("{name} is a {} model, and a {kind} model is needed", entry.kind),
        Some(_) => {}
        None => bail!("there is no model {name:?}; `azera models list` shows those that there are"),
    }
    let found = models.find(&name)?;
    if found.is_none() {
        tracing::warn!("the {kind} model {name} is not on this machine; `azera models pull {name}` fetches it");
    }
    Ok(found)
}

/// Returns the threads of a speech engine.
pub fn threads(config: &Config) -> usize {
    match config.models.threads {
        0 => std::thread::available_parallelism().map_or(1, NonZero::get),
        threads => threads as usize,
    }
}
