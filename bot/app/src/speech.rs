//! What hears voice messages and speaks replies: a server, the models on this machine, or both.

use std::num::NonZero;
use std::sync::Arc;

use anyhow::Context;
use azera_config::{Config, VoiceReplies};
use azera_engine::{Engine, Voice};
use azera_model_registry::{InstalledModel, Kind, Models};
use azera_voice_api::{Listener, Speaker, SpeechToText, TextToSpeech};
use azera_voice_speech::{NoteSpeaker, Open, RecordingListener};

use crate::hearing::Hearing;
use crate::set_aside::unless_wrong;
use crate::voice_clones::GivenSamples;
use crate::{bootstrap, local_speech, speech_servers};

/// Lets the engine hear voice messages and speak, as far as a server is configured or the models are on this machine. The
/// log says once what is missing. A model is loaded when it is first needed.
///
/// # Errors
/// The configuration names a model that is unknown, or of another kind, or a server in a way that cannot work.
pub async fn give_voice(engine: &Engine, config: &Config) -> anyhow::Result<()> {
    if !config.voice.enabled {
        return keep_samples(engine, config);
    }
    let models = bootstrap::models(config)?;
    let voice = Voice {
        listener: listener(config, &models)?,
        speaker: speaker(config, &models).await?,
        samples: Some(Arc::new(GivenSamples::new(config)?)),
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

/// Lets the engine keep and forget recordings of people's voices, without hearing or speaking.
///
/// # Errors
/// The configuration names a server in a way that cannot work.
pub fn keep_samples(engine: &Engine, config: &Config) -> anyhow::Result<()> {
    engine.give_voice(Voice { samples: Some(Arc::new(GivenSamples::new(config)?)), ..Voice::default() });
    Ok(())
}

fn listener(config: &Config, models: &Models) -> anyhow::Result<Option<Arc<dyn Listener>>> {
    let server = unless_wrong("recognition_server", speech_servers::recognizer(config, None));
    let installed = installed(config, models, Kind::Speech).context("voice.speech_model")?;
    let here = installed.map(|installed| Hearing::of(config, &installed).for_recordings());
    let Some(engine) = speech_servers::recognizer_or_installed(config, models, server, here)? else { return Ok(None) };
    let open: Open<dyn SpeechToText> = Box::new(move || Ok(Arc::clone(&engine)));
    Ok(Some(Arc::new(RecordingListener::new(open, config.voice.max_seconds))))
}

async fn speaker(config: &Config, models: &Models) -> anyhow::Result<Option<Arc<dyn Speaker>>> {
    let threads = threads(config);
    let for_recordings = |voices| local_speech::calls_first().voices_for_recordings(voices);
    let open: Open<dyn TextToSpeech> =
        if let Some(server) = unless_wrong("speech_server", speech_servers::voices(config)) {
            let engine = speech_servers::voices_with_installed(config, models, server, threads, for_recordings).await?;
            Box::new(move || Ok(engine.clone()))
        } else {
            installed(config, models, Kind::Voice).context("voice.voice")?;
            let voices: Arc<dyn TextToSpeech> = match local_speech::voices(config, models, threads)? {
                Some(voices) => voices,
                None => match local_speech::apart(config, models, local_speech::last_resort).await? {
                    Some(espeak) => {
                        tracing::info!("espeak-ng speaks as the last resort, because no voice is on this machine");
                        espeak
                    }
                    None => return Ok(None),
                },
            };
            let voices = for_recordings(voices);
            Box::new(move || Ok(Arc::clone(&voices)))
        };
    Ok(Some(Arc::new(NoteSpeaker::new(open, config.voice.max_seconds).reading(reading(config)))))
}

/// Returns how texts are read aloud: in the time zone of the configuration.
pub fn reading(config: &Config) -> azera_voice_spoken::Options {
    let zone = jiff::tz::TimeZone::get(&config.gardener.time_zone).unwrap_or(jiff::tz::TimeZone::UTC);
    azera_voice_spoken::Options { zone, ..azera_voice_spoken::Options::default() }
}

/// Returns the model of a kind that is used, and says in the log if the chosen one is not here.
fn installed(config: &Config, models: &Models, kind: Kind) -> anyhow::Result<Option<InstalledModel>> {
    let name = bootstrap::chosen(config, models, kind)?;
    let found = local_speech::installed(config, models, kind)?.into_iter().next();
    match &found {
        None => tracing::warn!("the {kind} model {name} is not on this machine; `azera models pull {name}` fetches it"),
        Some(found) if found.entry.name != name => {
            let other = &found.entry.name;
            tracing::warn!("the {kind} model {name} is not on this machine, so {other} takes its place");
        }
        Some(_) => {}
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
