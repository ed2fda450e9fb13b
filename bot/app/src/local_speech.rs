//! The models of speech on this machine: which are there, and which are missing.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use anyhow::{Context as _, bail};
use azera_config::{Config, RecognitionApi, SpeechApi};
use azera_model_registry::{InstalledModel, Kind, Models, State};
use azera_voice_api::Error;
use azera_voice_engines::{ESPEAK, Espeak, EspeakLimits, LocalVoices, VoiceFile};
use azera_voice_whisper::Whisper;

use crate::bootstrap;
use crate::doctor::Found;

/// Why speech does not work, in words for everybody in a chat: without paths and addresses. The error that it is the context of
/// says more, for the log.
#[derive(Debug)]
pub struct ForPeople(pub String);

impl fmt::Display for ForPeople {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Says that the file of a model cannot be used, and what the operator does.
pub fn broken(model: &InstalledModel, error: &Error) -> ForPeople {
    let (name, file) = (&model.entry.name, model.path.file_name().unwrap_or_default().to_string_lossy());
    let why = match error {
        Error::Model { why, .. } => format!(": {why}"),
        _ => String::new(),
    };
    ForPeople(format!(
        "the file {file} of the model {name} cannot be used{why}; the operator checks it with `azera models verify {name}`, \
         removes it with `azera models remove {name}` and fetches it again with `azera models pull {name}`"
    ))
}

/// Returns the installed models of a kind, the one in use first. If that one is not here, the others take its place,
/// unless the configuration names it.
///
/// # Errors
/// The configuration names a model that is unknown, or of another kind.
pub fn installed(config: &Config, models: &Models, kind: Kind) -> anyhow::Result<Vec<InstalledModel>> {
    let name = bootstrap::chosen(config, models, kind)?;
    match models.registry()?.get(&name) {
        Some(entry) if entry.kind != kind => bail!("{name} is a {} model, and a {kind} model is needed", entry.kind),
        Some(_) => {}
        None => bail!("there is no model {name:?}; `azera models list` shows those that there are"),
    }
    let mut found: Vec<InstalledModel> = models.find(&name)?.into_iter().collect();
    let is_named = match kind {
        Kind::Speech => config.voice.speech_model.is_some(),
        Kind::Voice => config.voice.voice.is_some(),
        Kind::Chat | Kind::Embedding | Kind::Vad | Kind::Reranker => false,
    };
    if found.is_empty() && is_named {
        return Ok(found);
    }
    for other in models.list()? {
        let is_other = other.entry.kind == kind && other.entry.name != name;
        if is_other && matches!(other.state, State::Installed(_)) {
            found.extend(models.find(&other.entry.name)?);
        }
    }
    Ok(found)
}

/// The voices that speak now. Voice messages and calls share them, so that no voice is in memory twice.
static VOICES: Mutex<Weak<LocalVoices>> = Mutex::new(Weak::new());

/// Returns the voices of these files, which are shared while somebody uses them.
fn shared(files: Vec<VoiceFile>, threads: usize) -> Arc<LocalVoices> {
    let mut shared = VOICES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(voices) = shared.upgrade().filter(|voices| voices.has(&files)) {
        return voices;
    }
    let voices = Arc::new(LocalVoices::new(files, threads));
    *shared = Arc::downgrade(&voices);
    voices
}

/// Returns the voices of this machine as one engine, which opens none yet; `None` if there is none. Voice messages and
/// calls get the same one.
///
/// # Errors
/// Those of [`installed`].
pub fn voices(config: &Config, models: &Models, threads: usize) -> anyhow::Result<Option<Arc<LocalVoices>>> {
    let installed = installed(config, models, Kind::Voice)?;
    let files = installed.into_iter().map(|model| VoiceFile { id: model.entry.name, path: model.path });
    let files: Vec<VoiceFile> = files.collect();
    Ok((!files.is_empty()).then(|| shared(files, threads)))
}

/// Checks that the file of a voice on this machine can be read. One that cannot does not matter beside others.
///
/// # Errors
/// Those of [`installed`], or none of the files can be read.
pub fn check_voices(config: &Config, models: &Models) -> anyhow::Result<()> {
    let mut broken = None;
    for model in installed(config, models, Kind::Voice)? {
        match std::fs::File::open(&model.path) {
            Ok(_) => return Ok(()),
            Err(error) => broken = Some((model.entry.name, error)),
        }
    }
    let told = |name: &str| {
        ForPeople(format!(
            "the file of the voice {name} cannot be read; the operator checks it with `azera models verify {name}`"
        ))
    };
    broken.map_or(Ok(()), |(name, error)| Err(error).with_context(|| told(&name)))
}

/// Returns espeak-ng, if it speaks here: the program is installed, and neither a voice nor a server is there. The program is
/// asked for its voices, which takes a moment.
///
/// # Errors
/// Those of [`installed`].
pub fn last_resort(config: &Config, models: &Models) -> anyhow::Result<Option<Arc<Espeak>>> {
    let is_wanted = config.voice.espeak && config.voice.voice.is_none();
    let has_server = config.speech_server.api != SpeechApi::None;
    if !is_wanted || has_server || !installed(config, models, Kind::Voice)?.is_empty() {
        return Ok(None);
    }
    Ok(espeak())
}

/// espeak-ng, once it told its voices. It is not asked again.
static LAST_RESORT: Mutex<Option<Arc<Espeak>>> = Mutex::new(None);

/// Returns the voices of espeak-ng; `None` if it is not installed, or does not work.
pub fn espeak() -> Option<Arc<Espeak>> {
    let mut known = LAST_RESORT.lock().unwrap_or_else(PoisonError::into_inner);
    if known.is_none() {
        match Espeak::open(Path::new(ESPEAK), EspeakLimits::default()) {
            Ok(espeak) => *known = espeak.map(Arc::new),
            Err(error) => tracing::warn!(%error, "the last resort cannot speak"),
        }
    }
    known.clone()
}

/// Does what may ask espeak-ng on a thread for blocking work.
///
/// # Errors
/// Those of the work.
pub async fn apart<T: Send + 'static>(
    config: &Config,
    models: &Models,
    work: impl FnOnce(&Config, &Models) -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    let (config, models) = (config.clone(), models.clone());
    tokio::task::spawn_blocking(move || work(&config, &models)).await?
}

/// Returns the names of the models that are in use and missing, where neither another one nor a server takes their place,
/// nor espeak-ng that of a voice. Calls need a detector of speech, too.
///
/// # Errors
/// Those of [`installed`].
pub fn missing(config: &Config, models: &Models, for_calls: bool) -> anyhow::Result<Vec<String>> {
    let kinds = [
        (Kind::Speech, config.recognition_server.api == RecognitionApi::None),
        (Kind::Voice, config.speech_server.api == SpeechApi::None),
        (Kind::Vad, for_calls),
    ];
    let mut missing = Vec::new();
    for (kind, _) in kinds.into_iter().filter(|(_, is_needed)| *is_needed) {
        let is_replaced = || anyhow::Ok(kind == Kind::Voice && last_resort(config, models)?.is_some());
        if installed(config, models, kind)?.is_empty() && !is_replaced()? {
            missing.push(bootstrap::chosen(config, models, kind)?);
        }
    }
    Ok(missing)
}

/// Says which models are missing, and how the operator fetches all of them.
pub fn told_missing(missing: &[String]) -> String {
    let (names, command) = (missing.join(", "), missing.join(" "));
    let (are, them) = if missing.len() == 1 { ("the model is", "it") } else { ("these models are", "them") };
    format!("{are} missing: {names}; the operator fetches {them} with `azera models pull {command}`")
}

/// Checks the models of speech for `azera doctor`.
pub fn check(config: &Config) -> Found {
    if !config.voice.enabled && !config.voice.calls {
        return Found::Good("switched off by voice.enabled = false and voice.calls = false".into());
    }
    let checked = bootstrap::models(config).and_then(|models| {
        let for_messages = config.voice.enabled && !missing(config, &models, false)?.is_empty();
        let missing = missing(config, &models, config.voice.calls)?;
        let mut here = Vec::new();
        for (kind, does) in [(Kind::Speech, "hears"), (Kind::Voice, "speaks"), (Kind::Vad, "tells speech from noise")] {
            let found = installed(config, &models, kind)?.into_iter().next();
            let found = found.filter(|_| kind != Kind::Vad || config.voice.calls);
            if let Some(model) = found.as_ref().filter(|_| kind == Kind::Speech)
                && let Err(error) = Whisper::check(&model.path)
            {
                bail!(broken(model, &error));
            }
            here.extend(found.map(|model| format!("{} {does}", model.entry.name)));
        }
        check_voices(config, &models)?;
        let needed_by = match (for_messages, config.voice.calls) {
            (true, true) => "voice messages and calls",
            (true, false) => "voice messages",
            (false, _) => "calls",
        };
        let resort = match last_resort(config, &models)? {
            Some(_) => Some(bootstrap::chosen(config, &models, Kind::Voice)?),
            None => None,
        };
        anyhow::Ok((missing, needed_by, here, resort))
    });
    let (missing, needed_by, mut here, resort) = match checked {
        Err(error) => return Found::Bad(format!("{error:#}"), "see [voice] in the configuration".into()),
        Ok(checked) => checked,
    };
    if !missing.is_empty() {
        here = vec![format!(
            "not fetched: {}; {needed_by} need them: `azera models pull {}`",
            missing.join(", "),
            missing.join(" ")
        )];
    }
    let resort = resort.map(|voice| {
        format!("{ESPEAK} speaks, as the last resort; `azera models pull {voice}` fetches a voice that sounds human")
    });
    let is_good = missing.is_empty() && resort.is_none();
    here.extend(resort);
    if !config.voice.calls {
        here.push("calls are switched off by voice.calls = false".to_owned());
    }
    // The detector of speech has no server, so something is here; or that calls are off.
    if is_good { Found::Good(here.join(", ")) } else { Found::Note(here.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_calls_share_the_voices_of_the_machine() {
        let file = |id: &str| VoiceFile { id: id.to_owned(), path: id.into() };
        let of_messages = shared(vec![file("joe"), file("norman")], 2);
        assert!(Arc::ptr_eq(&of_messages, &shared(vec![file("joe"), file("norman")], 8)));
        // Another one is the usual one.
        assert!(!Arc::ptr_eq(&of_messages, &shared(vec![file("norman"), file("joe")], 2)));
    }
}
