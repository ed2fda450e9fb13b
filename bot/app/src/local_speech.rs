//! The models of speech on this machine: which are there, and which are missing.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use anyhow::{Context as _, bail};
use azera_config::{Config, RecognitionApi, SpeechApi};
use azera_model_registry::{InstalledModel, Kind, Models, State};
use azera_voice_api::Error;
use azera_voice_engines::{ESPEAK, Espeak, EspeakLimits, LocalVoices, VoiceFile};
use azera_voice_speech::Precedence;
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

/// Returns what lets calls go before recordings, in whatever the engines of this machine do.
pub fn calls_first() -> &'static Precedence {
    static CALLS_FIRST: LazyLock<Precedence> = LazyLock::new(Precedence::default);
    &CALLS_FIRST
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
    let mut files: Vec<VoiceFile> = installed.iter().flat_map(voice_files).collect();
    // The configuration may name a voice that is not the first one of its model.
    if let Some(usual) = &config.voice.voice {
        files.sort_by_key(|file| file.id != *usual);
    }
    Ok((!files.is_empty()).then(|| shared(files, threads)))
}

/// Returns the voices in a model's file, the usual one first.
pub fn voice_files(model: &InstalledModel) -> Vec<VoiceFile> {
    let file = |id: &str, speaker| VoiceFile { id: id.to_owned(), path: model.path.clone(), speaker };
    match model.manifest.model.voices.as_slice() {
        [] => vec![file(&model.entry.name, None)],
        voices => voices.iter().map(|voice| file(voice, Some(voice.clone()))).collect(),
    }
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
    if !is_wanted || has_server(config, Kind::Voice) || !installed(config, models, Kind::Voice)?.is_empty() {
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
        (Kind::Speech, !has_server(config, Kind::Speech)),
        (Kind::Voice, !has_server(config, Kind::Voice)),
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

/// Returns true if a server does the work of a kind of model, which only takes its place.
fn has_server(config: &Config, kind: Kind) -> bool {
    match kind {
        Kind::Speech => config.recognition_server.api != RecognitionApi::None,
        Kind::Voice => config.speech_server.api != SpeechApi::None,
        Kind::Chat | Kind::Embedding | Kind::Vad | Kind::Reranker => false,
    }
}

/// Returns the model of a kind that is used, if its file can be. The inner error says why it cannot.
///
/// # Errors
/// Those of [`installed`].
pub fn usable(config: &Config, models: &Models, kind: Kind) -> anyhow::Result<Result<Option<InstalledModel>, String>> {
    let Some(model) = installed(config, models, kind)?.into_iter().next() else { return Ok(Ok(None)) };
    let checked = match kind {
        Kind::Speech => Whisper::check(&model.path).map_err(|error| broken(&model, &error).to_string()),
        Kind::Voice => check_voices(config, models).map_err(|error| format!("{error:#}")),
        Kind::Chat | Kind::Embedding | Kind::Vad | Kind::Reranker => Ok(()),
    };
    Ok(checked.map(|()| Some(model)))
}

/// What `azera doctor` finds of the models of speech.
struct Checked {
    missing: Vec<String>,
    needed_by: &'static str,
    /// What each model does.
    here: Vec<String>,
    /// Models that cannot take the place of a server.
    broken: Vec<String>,
    /// The voice that is missing where the last resort speaks.
    resort: Option<String>,
}

impl Checked {
    /// # Errors
    /// The configuration names a wrong model, or a model cannot be used that no server stands for.
    fn of(config: &Config) -> anyhow::Result<Self> {
        let models = bootstrap::models(config)?;
        let for_messages = config.voice.enabled && !missing(config, &models, false)?.is_empty();
        let missing = missing(config, &models, config.voice.calls)?;
        let (mut here, mut broken) = (Vec::new(), Vec::new());
        for (kind, does, server) in [
            (Kind::Speech, "hears", "recognition server"),
            (Kind::Voice, "speaks", "speech server"),
            (Kind::Vad, "tells speech from noise", ""),
        ] {
            if kind == Kind::Vad && !config.voice.calls {
                continue;
            }
            match usable(config, &models, kind)? {
                Ok(None) => {}
                Ok(Some(model)) if has_server(config, kind) => {
                    here.push(format!("{} {does} while the {server} does not answer", model.entry.name));
                }
                Ok(Some(model)) => here.push(format!("{} {does}", model.entry.name)),
                Err(why) if has_server(config, kind) => {
                    broken.push(format!("{why}; until then nothing {does} while the {server} does not answer"));
                }
                Err(why) => bail!(why),
            }
        }
        let needed_by = match (for_messages, config.voice.calls) {
            (true, true) => "voice messages and calls",
            (true, false) => "voice messages",
            (false, _) => "calls",
        };
        let resort = match last_resort(config, &models)? {
            Some(_) => Some(bootstrap::chosen(config, &models, Kind::Voice)?),
            None => None,
        };
        Ok(Self { missing, needed_by, here, broken, resort })
    }
}

/// Checks the models of speech for `azera doctor`.
pub fn check(config: &Config) -> Found {
    if !config.voice.enabled && !config.voice.calls {
        return Found::Good("switched off by voice.enabled = false and voice.calls = false".into());
    }
    let Checked { missing, needed_by, here, broken, resort } = match Checked::of(config) {
        Err(error) => return Found::Bad(format!("{error:#}"), "see [voice] in the configuration".into()),
        Ok(checked) => checked,
    };
    let is_good = missing.is_empty() && broken.is_empty() && resort.is_none();
    let mut told = if missing.is_empty() {
        here
    } else {
        let (names, command) = (missing.join(", "), missing.join(" "));
        vec![format!("not fetched: {names}; {needed_by} need them: `azera models pull {command}`")]
    };
    told.extend(broken);
    told.extend(resort.map(|voice| {
        format!("{ESPEAK} speaks, as the last resort; `azera models pull {voice}` fetches a voice that sounds human")
    }));
    if !config.voice.calls {
        told.push("calls are switched off by voice.calls = false".to_owned());
    }
    // The detector of speech has no server, so something is here; or that calls are off.
    if is_good { Found::Good(told.join(", ")) } else { Found::Note(told.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_calls_share_the_voices_of_the_machine() {
        let file = |id: &str| VoiceFile { id: id.to_owned(), path: id.into(), speaker: None };
        let of_messages = shared(vec![file("joe"), file("norman")], 2);
        assert!(Arc::ptr_eq(&of_messages, &shared(vec![file("joe"), file("norman")], 8)));
        // Another one is the usual one.
        assert!(!Arc::ptr_eq(&of_messages, &shared(vec![file("norman"), file("joe")], 2)));
    }
}
