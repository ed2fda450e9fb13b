//! `azera say`: speaks text into a WAV file or a voice note.

mod note;
mod text;
mod wav;

use std::io::{Cursor, IsTerminal as _, Write as _};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use azera_config::{Config, SpeechApi};
use azera_model_registry::{InstalledModel, Kind, ModelStatus, Models, State};
use azera_voice_api::{Style, TextToSpeech, Voice};
use azera_voice_engines::{ESPEAK, LocalVoices};

use crate::chosen::hint;
use crate::cli::SayOptions;
use crate::{bootstrap, local_speech, speech_servers};
use note::NoteFile;
use wav::WavWriter;

/// The name of a file that stands for the standard streams.
const STANDARD: &str = "-";
/// How many voices of one model a line of the list names.
const VOICES_IN_LINE: usize = 6;

pub async fn run(config: &Config, options: SayOptions) -> anyhow::Result<ExitCode> {
    let models = bootstrap::models(config)?;
    if options.list_voices {
        list(&models)?;
        return Ok(ExitCode::SUCCESS);
    }
    let to_stdout = options.out.as_os_str() == STANDARD;
    if to_stdout && std::io::stdout().is_terminal() {
        bail!("a WAV file is nothing for a terminal; name a file with `--out`, or pipe the output into a player");
    }
    let text = text::given(&options.text)?;
    let reading = crate::speech::reading(config);
    let source = source(config, &models, options.voice.as_deref()).await?;
    let spoken = tokio::task::spawn_blocking(move || speak(source, &text, reading, &options)).await??;
    let out = if to_stdout { "the standard output".to_owned() } else { spoken.out };
    eprintln!(
        "{out}: {:.1} s of speech by {}, made in {:.2} s (real-time factor {:.2}); the voice was loaded in {:.2} s",
        spoken.sound.as_secs_f64(),
        spoken.voice,
        spoken.work.as_secs_f64(),
        spoken.work.as_secs_f64() / spoken.sound.as_secs_f64(),
        spoken.load.as_secs_f64(),
    );
    Ok(ExitCode::SUCCESS)
}

/// What was spoken, and how long it took.
struct Spoken {
    voice: String,
    out: String,
    sound: Duration,
    work: Duration,
    load: Duration,
}

fn speak(
    source: Source,
    text: &str,
    reading: azera_voice_spoken::Options,
    options: &SayOptions,
) -> anyhow::Result<Spoken> {
    let begin = Instant::now();
    let Source { name, open } = source;
    let engine = open()?;
    let Voice { id: name, rate, language, .. } = voice_of(&engine.voices(), name)?;
    let sentences = &text::sentences(text, reading.in_language(&language));
    let load = begin.elapsed();
    let SayOptions { pace, pitch, liveliness, .. } = *options;
    let needs_voice = options.voice.is_some();
    let style = Style { needs_voice, pace, pitch, liveliness, ..Style::of(name.as_str()) };
    let begin = Instant::now();
    let sound = if options.out.as_os_str() == STANDARD {
        let mut whole = Cursor::new(Vec::new());
        let sound = write(&*engine, sentences, &style, WavWriter::new(&mut whole, rate)?)?;
        std::io::stdout().lock().write_all(whole.get_ref()).context("writing to the standard output")?;
        sound
    } else {
        let is_note = options.out.extension().is_some_and(|extension| extension == "ogg" || extension == "opus");
        to_file(&options.out, |file| match is_note {
            true => write(&*engine, sentences, &style, NoteFile::new(file, rate)?),
            false => write(&*engine, sentences, &style, WavWriter::new(file, rate)?),
        })?
    };
    Ok(Spoken { voice: name, out: options.out.display().to_string(), sound, work: begin.elapsed(), load })
}

/// A sound file that is written piece by piece.
trait SoundFile {
    /// Adds samples.
    fn push(&mut self, samples: &[f32]) -> std::io::Result<()>;

    /// Completes the file and returns how long its sound lasts.
    fn finish(self) -> std::io::Result<Duration>;
}

/// Speaks all sentences into a file and returns its duration.
fn write(
    engine: &dyn TextToSpeech,
    sentences: &[String],
    style: &Style,
    mut file: impl SoundFile,
) -> anyhow::Result<Duration> {
    for sentence in sentences {
        let mut failed = Ok(());
        engine.speak(sentence, style, &mut |piece| {
            failed = file.push(&piece.audio.samples);
            if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        failed.context("writing the sound")?;
    }
    let sound = file.finish().context("writing the sound")?;
    if sound.is_zero() {
        bail!("there is nothing to say: the text has no words");
    }
    Ok(sound)
}

/// Writes a file beside its final place and puts it there when it is whole.
fn to_file(
    path: &Path,
    write: impl FnOnce(&mut std::io::BufWriter<&std::fs::File>) -> anyhow::Result<Duration>,
) -> anyhow::Result<Duration> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let at = || format!("writing {}", path.display());
    // A device or a pipe stays what it is.
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        bail!("{} is no file; `--out -` writes to the standard output", path.display());
    }
    let file = readable_by_others().tempfile_in(folder).with_context(at)?;
    let mut buffered = std::io::BufWriter::new(file.as_file());
    let sound = write(&mut buffered)?;
    buffered.flush().with_context(at)?;
    drop(buffered);
    file.persist(path).with_context(at)?;
    Ok(sound)
}

/// Creates temporary files that others may read as far as the umask allows, like any other new file.
fn readable_by_others() -> tempfile::Builder<'static, 'static> {
    #[cfg_attr(not(unix), expect(unused_mut))]
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder
}

fn threads_or_all(threads: u32) -> usize {
    match threads {
        0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        threads => threads as usize,
    }
}

/// An engine that speaks, not opened yet.
struct Source {
    /// The voice to speak with; without one, the first of the engine.
    name: Option<String>,
    open: Box<dyn FnOnce() -> anyhow::Result<Arc<dyn TextToSpeech>> + Send>,
}

/// Returns a voice of an engine: the named one, or else the first.
fn voice_of(voices: &[Voice], name: Option<String>) -> anyhow::Result<Voice> {
    let is_it = |voice: &&Voice| name.as_ref().is_none_or(|name| voice.id == *name);
    if let Some(voice) = voices.iter().find(is_it) {
        return Ok(voice.clone());
    }
    let (name, known) = (name.unwrap_or_default(), voices.iter().map(|voice| voice.id.clone()).collect::<Vec<_>>());
    bail!("there is no voice {name:?}; {}", hint(&name, &known))
}

/// Returns the configured server with the voice in use behind it, or an installed voice, or espeak-ng where neither is there.
/// A voice on this machine that is named counts more than the server.
async fn source(config: &Config, models: &Models, wanted: Option<&str>) -> anyhow::Result<Source> {
    let threads = threads_or_all(config.models.threads);
    let has_server = config.speech_server.api != SpeechApi::None;
    let known: Vec<String> = voices(models)?.into_iter().flat_map(|listed| names(listed, has_server)).collect();
    if wanted.is_some_and(|wanted| wanted.starts_with(ESPEAK)) {
        let espeak = local_speech::espeak().context("espeak-ng is not installed, or does not list its voices")?;
        return Ok(Source { name: wanted.map(str::to_owned), open: Box::new(move || Ok(espeak as Arc<_>)) });
    }
    let is_here = wanted.is_some_and(|wanted| known.iter().any(|known| known == wanted));
    if !is_here && let Some(server) = speech_servers::voices(config)? {
        let engine = speech_servers::voices_with_installed(config, models, server, threads, |here| here).await?;
        let name = wanted.map(str::to_owned).or_else(|| config.speech_server.voice.clone());
        return Ok(Source { name, open: Box::new(move || Ok(engine)) });
    }
    if let Some(wanted) = wanted.filter(|_| !is_here) {
        bail!("there is no voice {wanted:?}; {}; `azera say --list-voices` shows them", hint(wanted, &known));
    }
    let name = match wanted {
        Some(wanted) => models.registry()?.with_voice(wanted).map_or(wanted.to_owned(), |model| model.name.clone()),
        None => bootstrap::chosen(config, models, Kind::Voice)?,
    };
    if wanted.is_none()
        && !std::io::stderr().is_terminal()
        && let Some(espeak) = local_speech::last_resort(config, models)?
    {
        eprintln!("{ESPEAK} speaks, as the last resort; `azera models pull {name}` fetches a voice that sounds human");
        return Ok(Source { name: None, open: Box::new(move || Ok(espeak as Arc<_>)) });
    }
    let installed = installed(models, &name).await?;
    // A model with several voices speaks with its usual one, unless another one is named.
    let named = wanted.or(config.voice.voice.as_deref());
    let files = local_speech::voice_files(&installed);
    let file = files.iter().find(|file| named == Some(file.id.as_str())).or(files.first()).cloned();
    let file = file.with_context(|| format!("the model {name} has no voice"))?;
    let id = file.id.clone();
    let open = move || {
        let voices = LocalVoices::new(vec![file.clone()], threads);
        voices.open(&file.id)?;
        Ok(Arc::new(voices) as Arc<_>)
    };
    Ok(Source { name: Some(id), open: Box::new(open) })
}

/// Returns the names by which people choose a model's voice: its own, and those of the voices in it. A server may have
/// voices of the same names, so these count beside one only if the model is here.
fn names(listed: ModelStatus, has_server: bool) -> Vec<String> {
    let is_here = matches!(listed.state, State::Installed(_));
    let voices = if is_here || !has_server { listed.entry.voices } else { Vec::new() };
    [vec![listed.entry.name], voices].concat()
}

/// Returns the installed voice of this name. At a terminal, fetches it if it is missing.
async fn installed(models: &Models, name: &str) -> anyhow::Result<InstalledModel> {
    match models.find(name)? {
        Some(installed) => Ok(installed),
        None if std::io::stderr().is_terminal() => bootstrap::installed(models, name).await,
        None => bail!("the voice {name} is not on this machine; fetch it with `azera models pull {name}`"),
    }
}

fn voices(models: &Models) -> anyhow::Result<Vec<ModelStatus>> {
    let listed = models.list()?;
    Ok(listed.into_iter().filter(|listed| listed.entry.kind == Kind::Voice).collect())
}

fn list(models: &Models) -> anyhow::Result<()> {
    for listed in voices(models)? {
        let state = match (&listed.state, listed.in_use) {
            (State::Installed(_), true) => "in use",
            (State::Installed(_), false) => "installed",
            (State::Damaged { .. }, _) => "damaged",
            _ => "not fetched",
        };
        println!("{:<22} {state:<12} {}", listed.entry.name, listed.entry.description);
        for voices in listed.entry.voices.chunks(VOICES_IN_LINE) {
            println!("{:<22} {:<12} {}", "", "", voices.join(", "));
        }
    }
    Ok(())
}
