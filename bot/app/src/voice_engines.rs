//! The engines of spoken conversations: servers, if the configuration names some, and the models on this machine.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use azera_config::Config;
use azera_model_registry::{InstalledModel, Kind, Models};
use azera_voice_api::{CLONE_MARK, Error, SpeechToText, Style, TextToSpeech, VoiceActivity};
use azera_voice_call::{Engines, Loadable, OnDemand};
use azera_voice_engines::{LocalVoices, SileroVad};
use azera_voice_servers::USUAL_VOICE;
use azera_voice_whisper::Whisper;

use crate::hearing::Hearing;
use crate::local_speech::ForPeople;
use crate::speech::reading;
use crate::{bootstrap, local_speech, speech_servers};

/// Told where nothing speaks.
const SERVER_AWAY: &str = "the speech server does not answer or tells no voice, and no voice is on this machine to take its \
                           place; the operator finds the reason with `azera doctor`";

/// The most threads; more do not make these small models faster.
const MAX_THREADS: usize = 8;

/// Prepares what hears, speaks and tells speech from other sounds. The models on this machine that hear and speak are loaded
/// when somebody speaks, and unloaded when nobody did for a while. With a server, the model on this machine takes its place
/// while it does not answer, if it is there.
///
/// # Errors
/// A model is not on this machine, or cannot be read.
pub async fn load(config: &Config) -> anyhow::Result<Engines> {
    let models = bootstrap::models(config)?;
    let missing = local_speech::apart(config, &models, |config, models| local_speech::missing(config, models, true));
    let missing = missing.await?;
    if !missing.is_empty() {
        bail!(ForPeople(local_speech::told_missing(&missing)));
    }
    let detector = first(config, &models, Kind::Vad)?.context("the detector of speech is gone")?;
    let activity = SileroVad::open(&detector.path).map_err(|error| unusable(&detector, error))?;
    let mut loadable = Vec::new();
    let recogniser = recogniser(config, &models, &mut loadable)?;
    let speaker = speaker(config, &models, &mut loadable).await?;
    let voices = speaker.voices().into_iter().filter(|voice| !voice.id.starts_with(CLONE_MARK));
    let voices: Vec<String> = voices.map(|voice| voice.id).collect();
    let usual = match voices.as_slice() {
        [] => bail!(ForPeople("the speech server has no voice".to_owned())),
        [only] if only == USUAL_VOICE => bail!(ForPeople(SERVER_AWAY.to_owned())),
        [usual, ..] => usual.clone(),
    };
    let activity = Mutex::new(activity);
    let open = move || -> Box<dyn VoiceActivity> {
        Box::new(activity.lock().unwrap_or_else(PoisonError::into_inner).for_another_stream())
    };
    let engines = Engines::new(recogniser, speaker, Style::of(usual), Arc::new(open)).reading(reading(config));
    if loadable.is_empty() {
        return Ok(engines);
    }
    let unload_after = Some(Duration::from_secs(config.voice.unload_after_s.into())).filter(|after| !after.is_zero());
    Ok(engines.loaded_on_demand(OnDemand::new(loadable, unload_after)))
}

/// The recogniser on this machine, as calls load it ahead. It is unloaded where it is shared.
struct Recogniser {
    hearing: Arc<Hearing>,
    /// True if it only takes the place of a server. It is not loaded ahead then.
    is_fallback: bool,
}

impl Loadable for Recogniser {
    fn load(&self, _: &str) -> Result<(), Error> {
        if self.is_fallback { Ok(()) } else { self.hearing.load() }
    }

    fn unload(&self) {}

    fn speaks(&self) -> bool {
        false
    }

    fn is_in_use(&self) -> bool {
        false
    }

    fn uses(&self) -> u64 {
        0
    }
}

/// The voices on this machine.
struct Voices {
    voices: Arc<LocalVoices>,
    /// See [`Recogniser`].
    is_fallback: bool,
}

impl Loadable for Voices {
    fn load(&self, voice: &str) -> Result<(), Error> {
        if self.is_fallback { Ok(()) } else { self.voices.open(voice) }
    }

    fn unload(&self) {
        self.voices.close();
    }

    fn speaks(&self) -> bool {
        true
    }

    fn is_in_use(&self) -> bool {
        self.voices.is_in_use()
    }

    fn uses(&self) -> u64 {
        self.voices.uses()
    }
}

fn recogniser(
    config: &Config,
    models: &Models,
    loadable: &mut Vec<Box<dyn Loadable>>,
) -> anyhow::Result<Arc<dyn SpeechToText>> {
    let server = speech_servers::recognizer(config, None)?;
    let here = first(config, models, Kind::Speech)?;
    if let (Some(here), None) = (&here, &server) {
        // It is loaded when somebody speaks. Whoever asks the bot in must know before that nothing would be heard.
        Whisper::check(&here.path).map_err(|error| unusable(here, error))?;
    }
    let hearing = here.map(|here| Hearing::of(config, &here));
    if let Some(hearing) = &hearing {
        loadable.push(Box::new(Recogniser { hearing: Arc::clone(hearing), is_fallback: server.is_some() }));
    }
    let here = hearing.map(|hearing| hearing.for_calls());
    speech_servers::recognizer_or_installed(config, models, server, here)?.context("the speech model is gone")
}

async fn speaker(
    config: &Config,
    models: &Models,
    loadable: &mut Vec<Box<dyn Loadable>>,
) -> anyhow::Result<Arc<dyn TextToSpeech>> {
    let threads = threads(config);
    let server = speech_servers::voices(config)?;
    let voices = local_speech::voices(config, models, threads)?;
    if let Some(voices) = &voices {
        if server.is_none() {
            local_speech::check_voices(config, models)?;
        }
        loadable.push(Box::new(Voices { voices: Arc::clone(voices), is_fallback: server.is_some() }));
    }
    let for_calls = |voices| local_speech::calls_first().voices_for_calls(voices);
    if let Some(server) = server {
        // It gets the same voices, because they are shared.
        return speech_servers::voices_with_installed(config, models, server, threads, for_calls).await;
    }
    let here: Arc<dyn TextToSpeech> = match voices {
        Some(voices) => voices,
        None => {
            let espeak = local_speech::apart(config, models, local_speech::last_resort).await?;
            espeak.context("the voice is gone")?
        }
    };
    Ok(for_calls(here))
}

fn unusable(model: &InstalledModel, error: Error) -> anyhow::Error {
    let told = local_speech::broken(model, &error);
    anyhow!(error).context(told)
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
