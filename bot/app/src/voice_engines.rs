//! The engines of spoken conversations: servers, if the configuration names some, and the models on this machine.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, bail};
use azera_config::Config;
use azera_model_registry::{InstalledModel, Kind, Models};
use azera_voice_api::{CLONE_MARK, Error, SpeechToText, Style, TextToSpeech, VoiceActivity};
use azera_voice_call::Engines;
use azera_voice_engines::SileroVad;
use azera_voice_whisper::{Options, Whisper};

use crate::speech::reading;
use crate::{bootstrap, local_speech, speech_servers};

/// The most threads; more do not make these small models faster.
const MAX_THREADS: usize = 8;

/// Loads what hears, speaks and tells speech from other sounds. With a server, the model on this machine takes its place
/// while it does not answer, if it is there.
///
/// # Errors
/// A model is not on this machine, or cannot be read.
pub async fn load(config: &Config) -> anyhow::Result<Engines> {
    let models = bootstrap::models(config)?;
    let missing = local_speech::apart(config, &models, |config, models| local_speech::missing(config, models, true));
    let missing = missing.await?;
    if !missing.is_empty() {
        bail!(local_speech::told_missing(&missing));
    }
    let activity =
        SileroVad::open(&first(config, &models, Kind::Vad)?.context("the detector of speech is gone")?.path)?;
    let recogniser = recogniser(config, &models).await?;
    let speaker = speaker(config, &models).await?;
    let usual = speaker
        .voices()
        .into_iter()
        .find(|voice| !voice.id.starts_with(CLONE_MARK))
        .context("the speech server has no voice")?
        .id;
    let activity = Mutex::new(activity);
    let open = move || -> Box<dyn VoiceActivity> {
        Box::new(activity.lock().unwrap_or_else(PoisonError::into_inner).for_another_stream())
    };
    Ok(Engines::new(recogniser, speaker, Style::of(usual), Arc::new(open)).reading(reading(config)))
}

async fn recogniser(config: &Config, models: &Models) -> anyhow::Result<Arc<dyn SpeechToText>> {
    let options = Options { threads: threads(config), language: None };
    let here = first(config, models, Kind::Speech)?;
    let Some(server) = speech_servers::recognizer(config, None)? else {
        let here = here.context("the speech model is gone")?;
        let load = move || Whisper::load(&here.path, &here.entry.name, &options);
        return Ok(Arc::new(tokio::task::spawn_blocking(load).await??));
    };
    let open = move || -> Result<Arc<dyn SpeechToText>, Error> {
        let missing = || Error::Model { file: "the speech model".to_owned(), why: "it is not here".to_owned() };
        let here = here.as_ref().ok_or_else(missing)?;
        Ok(Arc::new(Whisper::load(&here.path, &here.entry.name, &options)?))
    };
    Ok(speech_servers::recognizer_with_fallback(server, Box::new(open)))
}

async fn speaker(config: &Config, models: &Models) -> anyhow::Result<Arc<dyn TextToSpeech>> {
    let threads = threads(config);
    if let Some(server) = speech_servers::voices(config)? {
        return speech_servers::voices_with_installed(config, models, server, threads).await;
    }
    let Some(voices) = local_speech::voices(config, models, threads)? else {
        let espeak = local_speech::apart(config, models, local_speech::last_resort).await?;
        return Ok(espeak.context("the voice is gone")?);
    };
    let usual = Arc::clone(&voices);
    tokio::task::spawn_blocking(move || usual.open_usual()).await??;
    Ok(voices)
}

/// Returns the model of a kind that is used: the one in use, or another one that is here.
fn first(config: &Config, models: &Models, kind: Kind) -> anyhow::Result<Option<InstalledModel>> {
    Ok(local_speech::installed(config, models, kind)?.into_iter().next())
}

fn threads(config: &Config) -> usize {
    match config.models.threads {
        0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(MAX_THREADS),
        threads => threads as usize,
    }
}
