//! Training on another machine. Jobs go there sealed, and LoRAs come back sealed.
//!
//! ```text
//! here, running   a persona rests   NAME.course   in the data folder
//! here            azera hearth pack               a copy of it, to carry
//! there           azera hearth train              NAME.learnt
//! here            azera hearth install            into the data folder, where the running Azera evaluates it
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use azera_config::{Config, Hearth};
use azera_engine::{
    Evaluation, JOB_EXTENSION, OFFLOAD_FOLDER, OffloadError, OffloadResult, OffloadTransport, RESULT_EXTENSION,
    TrainError, Trainer, TrainingExample, TrainingJob, TrainingResult,
};
use clap::Parser;
use indicatif::ProgressBar;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::sealed::{Key, invalid};
use super::train;
use super::train_local::LocalTrainer;
use crate::bootstrap::models;
use crate::cli::{Install, Pack, Train};
use crate::hearth::FOLDER;
use crate::loras;
use crate::run::cancel_on_signal;

/// Extension of the file that describes a job; the engine writes it.
const RECORD: &str = "json";

/// Name of the key file, beside the jobs.
const KEY: &str = "key";

/// The header of a job. The LoRA that it continues from follows, if there is one.
#[derive(Serialize, Deserialize)]
struct JobHeader {
    model: String,
    #[serde(rename = "ground")]
    base_fingerprint: String,
    #[serde(rename = "lessons")]
    training_examples: Vec<TrainingExample>,
    older: Vec<TrainingExample>,
    voice: Vec<TrainingExample>,
    seed: u64,
    rounds: u32,
    rank: u32,
    max_rank: u32,
    rate: f64,
}

/// The header of a result. The LoRA follows.
#[derive(Serialize, Deserialize)]
struct ResultHeader {
    #[serde(rename = "ground")]
    base_fingerprint: String,
    #[serde(rename = "examined")]
    evaluation: Evaluation,
}

/// A folder in the data folder. The operator carries jobs from it and brings results back.
pub struct FolderTransport {
    folder: PathBuf,
    hearth: Hearth,
}

impl FolderTransport {
    /// Creates the transport from the configuration's settings.
    pub fn new(data: &Path, hearth: Hearth) -> Self {
        Self { folder: data.join(FOLDER).join(OFFLOAD_FOLDER), hearth }
    }
}

impl OffloadTransport for FolderTransport {
    fn send(&self, job: &TrainingJob, base_fingerprint: &str, file: &Path) -> Result<(), TrainError> {
        let TrainingJob { model, training_examples, older, voice, beside, to: _, seed } = job;
        let sent = JobHeader {
            model: model.clone(),
            base_fingerprint: base_fingerprint.to_owned(),
            training_examples: training_examples.clone(),
            older: older.clone(),
            voice: voice.clone(),
            seed: *seed,
            rounds: self.hearth.rounds,
            rank: self.hearth.rank,
            max_rank: self.hearth.max_rank,
            rate: self.hearth.rate,
        };
        let send = || {
            let lora = beside.as_ref().map_or_else(|| Ok(Vec::new()), |it| fs::read(it).map_err(with_path(it)))?;
            let key_file = self.folder.join(KEY);
            if !key_file.try_exists()? && !jobs_in(&self.folder)?.is_empty() {
                tracing::warn!("the key of waiting training jobs is lost: their results cannot be opened");
            }
            let key = Key::read_or_create(&key_file).map_err(with_path(&key_file))?;
            write_whole(file, &key.seal(&purpose(file)?, &payload(&sent, &lora)?)?).map_err(with_path(file))
        };
        send().map_err(|error| TrainError::Failed(error.to_string()))
    }

    fn receive(&self, job: &Path, learned: &Path, to: &Path) -> Result<OffloadResult, OffloadError> {
        let key_file = self.folder.join(KEY);
        let key = Key::read(&key_file).map_err(with_path(&key_file))?;
        let or = |kind: fn(io::Error) -> OffloadError| {
            move |error: io::Error| match error.kind() {
                io::ErrorKind::InvalidData => kind(error),
                _ => OffloadError::Io(error),
            }
        };
        let (sent, _) = open_sealed::<JobHeader>(&key, job).map_err(with_path(job)).map_err(or(OffloadError::NoJob))?;
        let (made, lora) = open_sealed::<ResultHeader>(&key, learned)
            .map_err(with_path(learned))
            .map_err(or(OffloadError::NotOfIt))?;
        check_base(&made, &sent).map_err(OffloadError::NotOfIt)?;
        // What was learnt from people is for nobody else on this machine, also before it is in use.
        azera_files::write_through(&to.with_extension("new"), to, &lora).map_err(with_path(to))?;
        let trained = TrainingResult { id: loras::at(to)?.id, evaluation: made.evaluation };
        Ok(OffloadResult { training_examples: sent.training_examples, older: sent.older, trained })
    }
}

/// Runs `azera hearth pack`.
pub fn pack(config: &Config, options: &Pack) -> anyhow::Result<ExitCode> {
    let folder = offload_folder(config)?;
    let jobs = match folder.exists() {
        true => jobs_in(&folder).with_context(|| format!("reading {}", folder.display()))?,
        false => Vec::new(),
    };
    if jobs.is_empty() {
        println!("no training job waits for another machine");
        if !(config.hearth.enabled && config.hearth.elsewhere) {
            println!("(hearth.enabled and hearth.elsewhere in the configuration have courses laid out)");
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(to) = &options.to {
        fs::create_dir_all(to).with_context(|| format!("making {}", to.display()))?;
    }
    for job in &jobs {
        let name = job.file_name().unwrap_or_default();
        let sealed = match fs::read(job) {
            // The engine removed the job just now, because something in it was forgotten.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            read => read.with_context(|| format!("reading {}", job.display()))?,
        };
        let shown = match &options.to {
            Some(to) => {
                let copy = to.join(name);
                write_whole(&copy, &sealed).with_context(|| format!("writing {}", copy.display()))?;
                copy
            }
            None => job.clone(),
        };
        let back =
            if job.with_extension(RESULT_EXTENSION).exists() { ", is back and waits to be examined" } else { "" };
        println!("{}: {} kB{back}", shown.display(), sealed.len() / 1024);
    }
    let key = folder.join(KEY);
    match &options.to {
        None => println!("\nazera hearth pack --to DIR copies them there."),
        Some(_) => println!(
            "\nThe key is {}: whoever has it and a course reads what people said, so carry it another way.\nOn the other \
             machine, with the same Azera and `azera models pull`:\n  azera hearth train NAME.course --key key\nand here, with \
             what that writes:\n  azera hearth install NAME.learnt",
            key.display()
        ),
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the given options that apply only to training examples and differ from their defaults.
fn example_options(options: &Train) -> Vec<&'static str> {
    #[derive(clap::Parser)]
    struct DefaultOptions {
        #[command(flatten)]
        train: Train,
    }
    let defaults = DefaultOptions::parse_from(["train", "lessons"]).train;
    let given = [
        ("--model", options.model != defaults.model),
        ("--from", options.from.is_some()),
        ("--beside", !options.beside.is_empty()),
        ("--seed", options.seed != defaults.seed),
        ("--steps", options.steps != defaults.steps),
        ("--batch", options.batch != defaults.batch),
        ("--length-power", options.length_power != defaults.length_power),
        ("--keep-prose", options.keep_prose),
        ("--rate", options.rate != defaults.rate),
        ("--scale", options.scale != defaults.scale),
        ("--rank", options.rank != defaults.rank),
        ("--pass-tokens", options.pass_tokens != defaults.pass_tokens),
        ("--anew", options.anew),
    ];
    given.into_iter().filter_map(|(name, is)| is.then_some(name)).collect()
}

/// Runs `azera hearth train` for a training job.
pub async fn train_job(config: &Config, options: &Train) -> anyhow::Result<ExitCode> {
    let job = &options.lessons;
    let key = options.key.as_ref();
    let key =
        key.context("a training job is sealed: name the key of the machine that it comes from with --key FILE")?;
    let key = Key::read(key).with_context(|| format!("reading {}", key.display()))?;
    let (sent, beside) = open_sealed::<JobHeader>(&key, job).with_context(|| format!("opening {}", job.display()))?;
    let for_examples = example_options(options);
    if !for_examples.is_empty() {
        bail!(
            "a training job holds its own settings: leave out {}, which only apply to files of examples",
            for_examples.join(", ")
        );
    }
    let out = options.out.clone().unwrap_or_else(|| job.with_extension(RESULT_EXTENSION));
    if out.file_stem() != job.file_stem() || !ends(&out, RESULT_EXTENSION) {
        let name = job.with_extension(RESULT_EXTENSION);
        bail!(
            "what comes of a course bears its name: --out may end in {}",
            name.file_name().unwrap_or_default().display()
        );
    }
    let scratch = tempfile::tempdir()?;
    let beside_file = scratch.path().join("beside.gguf");
    fs::write(&beside_file, &beside)?;
    let job = TrainingJob {
        model: sent.model,
        training_examples: sent.training_examples,
        older: sent.older,
        voice: sent.voice,
        beside: (!beside.is_empty()).then_some(beside_file),
        to: scratch.path().join("learnt.gguf"),
        seed: sent.seed,
    };
    let mut config = config.clone();
    let Hearth { rounds, rank, max_rank, rate, largest_model_mb, .. } = &mut config.hearth;
    (*rounds, *rank, *max_rank, *rate) = (sent.rounds, sent.rank, sent.max_rank, sent.rate);
    // The limit does not apply, because the operator started this job on purpose.
    *largest_model_mb = u32::MAX;
    if options.threads > 0 {
        config.models.threads = u32::try_from(options.threads)?;
    }
    let bar = train::bar();
    let trainer = LocalTrainer::watched(config.clone(), models(&config)?, {
        let bar: ProgressBar = bar.clone();
        Arc::new(move |now| train::show(&bar, now))
    });
    let name = &job.model;
    let base_fingerprint = trainer.base_fingerprint(name);
    let base_fingerprint =
        base_fingerprint.with_context(|| format!("{name} is not here: `azera models pull {name}` fetches it"))?;
    if base_fingerprint != sent.base_fingerprint {
        bail!(
            "the {name} here is not the one that the course is for, or serves with other LoRAs there: both machines need the same \
             Azera, the same model and the same models.adapter"
        );
    }
    // A second signal also deletes the scratch folder, because it holds unsealed files.
    let (stop, open) = (CancellationToken::new(), scratch.path().to_owned());
    cancel_on_signal(
        stop.clone(),
        || eprintln!("breaking off; the second time, it ends at once"),
        move || drop(fs::remove_dir_all(open)),
    )?;
    let to = job.to.clone();
    let learned = trainer.learn(job, Arc::new(move || !stop.is_cancelled())).await;
    bar.finish_and_clear();
    let trained = match learned {
        Ok(trained) => trained,
        Err(TrainError::BrokenOff) => {
            println!("broken off; nothing was written");
            return Ok(ExitCode::FAILURE);
        }
        Err(TrainError::Failed(why)) => bail!(why),
    };
    let payload = payload(&ResultHeader { base_fingerprint, evaluation: trained.evaluation }, &fs::read(&to)?)?;
    write_whole(&out, &key.seal(&purpose(&out)?, &payload)?).with_context(|| format!("writing {}", out.display()))?;
    let loss = trained.evaluation.learned;
    println!("{}: loss {:.2}, then {:.2}", out.display(), loss.before, loss.after);
    println!("bring it back and `azera hearth install` it there");
    Ok(ExitCode::SUCCESS)
}

/// Runs `azera hearth install`.
pub fn install(config: &Config, options: &Install) -> anyhow::Result<ExitCode> {
    let folder = offload_folder(config)?;
    for path in &options.learned {
        let shown = path.display();
        let name = path.file_name().filter(|_| ends(path, RESULT_EXTENSION));
        let name = name.with_context(|| {
            format!("{shown} is no .{RESULT_EXTENSION} file, which `azera hearth train` writes of a course")
        })?;
        let here = folder.join(name);
        let job = here.with_extension(JOB_EXTENSION);
        let no_job = || {
            anyhow!(
                "no training job fits {shown}: its sources were forgotten or withdrawn, another result came first, \
                 or it belongs to another data folder"
            )
        };
        if !job.exists() {
            return Err(no_job());
        }
        let key = folder.join(KEY);
        let key = Key::read(&key).with_context(|| format!("reading {}", key.display()))?;
        let (made, _) = open_sealed::<ResultHeader>(&key, path).with_context(|| format!("opening {shown}"))?;
        let (sent, _) = open_sealed::<JobHeader>(&key, &job).with_context(|| format!("opening {}", job.display()))?;
        check_base(&made, &sent).with_context(|| format!("taking in {shown}"))?;
        write_whole(&here, &fs::read(path)?).with_context(|| format!("writing {}", here.display()))?;
        // Something in the job may have been forgotten just now. Azera then removed only the files that it knew.
        if !job.exists() {
            fs::remove_file(&here).or_else(ignore_missing).with_context(|| format!("removing {}", here.display()))?;
            return Err(no_job());
        }
        println!(
            "{shown} is here: Azera looks for it every half an hour while it runs, and examines it once nobody talks there; /hearth \
             history tells what came of it"
        );
    }
    if !(config.hearth.enabled && config.hearth.elsewhere) {
        println!(
            "(but not without hearth.enabled and hearth.elsewhere: with these switched off it gives up what is away)"
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the jobs in a folder that wait for a result.
fn jobs_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let files: Vec<PathBuf> = fs::read_dir(folder)?.map(|file| Ok(file?.path())).collect::<io::Result<_>>()?;
    // A job without its record is either incomplete or given up.
    let is_offloaded = |path: &PathBuf| ends(path, JOB_EXTENSION) && path.with_extension(RECORD).exists();
    let mut jobs: Vec<PathBuf> = files.into_iter().filter(is_offloaded).collect();
    jobs.sort();
    Ok(jobs)
}

/// Returns the folder of waiting jobs.
fn offload_folder(config: &Config) -> anyhow::Result<PathBuf> {
    Ok(config.data_dir()?.join(FOLDER).join(OFFLOAD_FOLDER))
}

fn ends(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|it| it == extension)
}

/// Returns a file's purpose: its name, which identifies the kind and the job.
fn purpose(file: &Path) -> io::Result<String> {
    let name = file.file_name().and_then(|name| name.to_str());
    name.map(str::to_owned).ok_or_else(|| invalid(format!("{} has no plain name", file.display())))
}

/// Joins a header and a LoRA.
fn payload<T: Serialize>(header: &T, lora: &[u8]) -> io::Result<Vec<u8>> {
    let header = serde_json::to_vec(header)?;
    Ok([&(header.len() as u64).to_le_bytes(), header.as_slice(), lora].concat())
}

/// Adds the file's path to an error.
fn with_path(file: &Path) -> impl FnOnce(io::Error) -> io::Error {
    let file = file.display().to_string();
    move |error| io::Error::new(error.kind(), format!("{file}: {error}"))
}

/// Opens a sealed file and returns its header and LoRA.
fn open_sealed<T: DeserializeOwned>(key: &Key, file: &Path) -> io::Result<(T, Vec<u8>)> {
    let bytes = key.open(&purpose(file)?, &fs::read(file)?)?;
    let cut = || invalid("it ends too early".into());
    let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(cut)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| cut())?;
    let (header, lora) = rest.split_at_checked(length).ok_or_else(cut)?;
    let header = serde_json::from_slice(header);
    let header = header.map_err(|error| invalid(format!("an older or newer Azera wrote it ({error})")))?;
    Ok((header, lora.to_vec()))
}

/// Writes a file whole or not at all. The engine removes what a crash leaves of it.
pub(super) fn write_whole(file: &Path, bytes: &[u8]) -> io::Result<()> {
    azera_files::write_through(&file.with_extension("part"), file, bytes)
}

/// Ignores the error that a file is already gone.
fn ignore_missing(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// Checks that a result belongs to the base fingerprint of its job.
fn check_base(made: &ResultHeader, sent: &JobHeader) -> io::Result<()> {
    if made.base_fingerprint == sent.base_fingerprint {
        return Ok(());
    }
    Err(invalid("it was made for another model, or with another LoRA".into()))
}

#[cfg(test)]
mod tests;
