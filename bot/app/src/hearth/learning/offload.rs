//! Learning on another machine: courses go there sealed, and adapters come back sealed.
//!
//! ```text
//! here, running   a persona rests   NAME.course   in the data folder
//! here            azera hearth pack               a copy of it, to be carried
//! there           azera hearth train              NAME.learnt
//! here            azera hearth install            into the data folder, where the running Azera examines it
//! ```

use std::fs::{self, File};
use std::io::{self, Write};
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

/// How the file ends that says what a job is; it is the core's.
const RECORD: &str = "json";

/// The file of the key, beside the jobs.
const KEY: &str = "key";

/// What a job says before the lora that it goes on from, if there is one.
#[derive(Serialize, Deserialize)]
struct Sent {
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

/// What comes back before the lora.
#[derive(Serialize, Deserialize)]
struct Made {
    #[serde(rename = "ground")]
    base_fingerprint: String,
    #[serde(rename = "examined")]
    evaluation: Evaluation,
}

/// A folder in the data folder, from which the operator carries jobs and to which they bring back what came of them.
pub struct FolderTransport {
    folder: PathBuf,
    hearth: Hearth,
}

impl FolderTransport {
    /// By a configuration's settings.
    pub fn new(data: &Path, hearth: Hearth) -> Self {
        Self { folder: data.join(FOLDER).join(OFFLOAD_FOLDER), hearth }
    }
}

impl OffloadTransport for FolderTransport {
    fn send(&self, job: &TrainingJob, base_fingerprint: &str, file: &Path) -> Result<(), TrainError> {
        let TrainingJob { model, training_examples, older, voice, beside, to: _, seed } = job;
        let sent = Sent {
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
            let lora = beside.as_ref().map_or_else(|| Ok(Vec::new()), |it| fs::read(it).map_err(of(it)))?;
            let key_file = self.folder.join(KEY);
            if !key_file.try_exists()? && !jobs_in(&self.folder)?.is_empty() {
                tracing::warn!("the key of courses that are away is gone: what comes back of them cannot be opened");
            }
            let key = Key::made(&key_file).map_err(of(&key_file))?;
            write_whole(file, &key.seal(&purpose(file)?, &parcel(&sent, &lora)?)?).map_err(of(file))
        };
        send().map_err(|error| TrainError::Failed(error.to_string()))
    }

    fn receive(&self, job: &Path, learnt: &Path, to: &Path) -> Result<OffloadResult, OffloadError> {
        let key_file = self.folder.join(KEY);
        let key = Key::read(&key_file).map_err(of(&key_file))?;
        let or = |kind: fn(io::Error) -> OffloadError| {
            move |error: io::Error| match error.kind() {
                io::ErrorKind::InvalidData => kind(error),
                _ => OffloadError::Io(error),
            }
        };
        let (sent, _) = opened::<Sent>(&key, job).map_err(of(job)).map_err(or(OffloadError::NoJob))?;
        let (made, lora) = opened::<Made>(&key, learnt).map_err(of(learnt)).map_err(or(OffloadError::NotOfIt))?;
        fits(&made, &sent).map_err(OffloadError::NotOfIt)?;
        fs::write(to, lora).map_err(of(to))?;
        let trained = TrainingResult { id: loras::at(to)?.id, evaluation: made.evaluation };
        Ok(OffloadResult { training_examples: sent.training_examples, older: sent.older, trained })
    }
}

/// `azera hearth pack`.
pub fn pack(config: &Config, options: &Pack) -> anyhow::Result<ExitCode> {
    let folder = offload_folder(config)?;
    let jobs = match folder.exists() {
        true => jobs_in(&folder).with_context(|| format!("reading {}", folder.display()))?,
        false => Vec::new(),
    };
    if jobs.is_empty() {
        println!("no course waits to be learnt elsewhere");
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
            // Something that it rests on was forgotten at this moment.
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

/// The options that are for lessons alone and are not as they come.
fn of_examples(options: &Train) -> Vec<&'static str> {
    #[derive(clap::Parser)]
    struct AsItComes {
        #[command(flatten)]
        train: Train,
    }
    let usual = AsItComes::parse_from(["train", "lessons"]).train;
    let given = [
        ("--model", options.model != usual.model),
        ("--from", options.from.is_some()),
        ("--beside", !options.beside.is_empty()),
        ("--seed", options.seed != usual.seed),
        ("--steps", options.steps != usual.steps),
        ("--batch", options.batch != usual.batch),
        ("--length-power", options.length_power != usual.length_power),
        ("--keep-prose", options.keep_prose),
        ("--rate", options.rate != usual.rate),
        ("--scale", options.scale != usual.scale),
        ("--rank", options.rank != usual.rank),
        ("--pass-tokens", options.pass_tokens != usual.pass_tokens),
        ("--anew", options.anew),
    ];
    given.into_iter().filter_map(|(name, is)| is.then_some(name)).collect()
}

/// `azera hearth train`, of a course.
pub async fn train_job(config: &Config, options: &Train) -> anyhow::Result<ExitCode> {
    let job = &options.lessons;
    let key = options.key.as_ref();
    let key = key.context("a course is sealed: --key FILE names the key of the machine that it comes from")?;
    let key = Key::read(key).with_context(|| format!("reading {}", key.display()))?;
    let (sent, beside) = opened::<Sent>(&key, job).with_context(|| format!("opening {}", job.display()))?;
    let for_examples = of_examples(options);
    if !for_examples.is_empty() {
        bail!("a course says itself how it is to be learnt: {} would be for lessons", for_examples.join(", "));
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
    let own = scratch.path().join("beside.gguf");
    fs::write(&own, &beside)?;
    let job = TrainingJob {
        model: sent.model,
        training_examples: sent.training_examples,
        older: sent.older,
        voice: sent.voice,
        beside: (!beside.is_empty()).then_some(own),
        to: scratch.path().join("learnt.gguf"),
        seed: sent.seed,
    };
    let mut config = config.clone();
    let Hearth { rounds, rank, max_rank, rate, largest_model_mb, .. } = &mut config.hearth;
    (*rounds, *rank, *max_rank, *rate) = (sent.rounds, sent.rank, sent.max_rank, sent.rate);
    // Whoever starts this means it.
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
            "the {name} here is not the one that the course is for, or serves with other adapters there: both machines need the same \
             Azera, the same model and the same models.adapter"
        );
    }
    // What lies open in the scratch folder goes with it.
    let (stop, open) = (CancellationToken::new(), scratch.path().to_owned());
    cancel_on_signal(
        stop.clone(),
        || eprintln!("breaking off; the second time, it ends at once"),
        move || drop(fs::remove_dir_all(open)),
    )?;
    let to = job.to.clone();
    let learnt = trainer.learn(job, Arc::new(move || !stop.is_cancelled())).await;
    bar.finish_and_clear();
    let trained = match learnt {
        Ok(trained) => trained,
        Err(TrainError::BrokenOff) => {
            println!("broken off; nothing was written");
            return Ok(ExitCode::FAILURE);
        }
        Err(TrainError::Failed(why)) => bail!(why),
    };
    let parcel = parcel(&Made { base_fingerprint, evaluation: trained.evaluation }, &fs::read(&to)?)?;
    write_whole(&out, &key.seal(&purpose(&out)?, &parcel)?).with_context(|| format!("writing {}", out.display()))?;
    let loss = trained.evaluation.learnt;
    println!("{}: loss {:.2}, then {:.2}", out.display(), loss.before, loss.after);
    println!("bring it back and `azera hearth install` it there");
    Ok(ExitCode::SUCCESS)
}

/// `azera hearth install`.
pub fn install(config: &Config, options: &Install) -> anyhow::Result<ExitCode> {
    let folder = offload_folder(config)?;
    for path in &options.learnt {
        let shown = path.display();
        let name = path.file_name().filter(|_| ends(path, RESULT_EXTENSION));
        let name = name
            .with_context(|| format!("{shown} is no .{LEARNT} file, which `azera hearth train` writes of a course"))?;
        let here = folder.join(name);
        let job = here.with_extension(JOB_EXTENSION);
        let no_job = || {
            anyhow!(
                "no course of that name is away: what {shown} rests on was forgotten or taken back meanwhile, or another came back \
                 before it, or it belongs to another data folder"
            )
        };
        if !job.exists() {
            return Err(no_job());
        }
        let key = folder.join(KEY);
        let key = Key::read(&key).with_context(|| format!("reading {}", key.display()))?;
        let (made, _) = opened::<Made>(&key, path).with_context(|| format!("opening {shown}"))?;
        let (sent, _) = opened::<Sent>(&key, &job).with_context(|| format!("opening {}", job.display()))?;
        fits(&made, &sent).with_context(|| format!("taking in {shown}"))?;
        write_whole(&here, &fs::read(path)?).with_context(|| format!("writing {}", here.display()))?;
        // What it rests on may have been forgotten at this moment, and Azera removed all that it knew of.
        if !job.exists() {
            fs::remove_file(&here).or_else(gone_is_well).with_context(|| format!("removing {}", here.display()))?;
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

/// The courses of a folder that are away.
fn jobs_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let files: Vec<PathBuf> = fs::read_dir(folder)?.map(|file| Ok(file?.path())).collect::<io::Result<_>>()?;
    // One without its record is being laid out yet, or is given up.
    let is_offloaded = |path: &PathBuf| ends(path, JOB_EXTENSION) && path.with_extension(RECORD).exists();
    let mut jobs: Vec<PathBuf> = files.into_iter().filter(is_offloaded).collect();
    jobs.sort();
    Ok(jobs)
}

/// Where courses lie that are away.
fn offload_folder(config: &Config) -> anyhow::Result<PathBuf> {
    Ok(config.data_dir()?.join(FOLDER).join(OFFLOAD_FOLDER))
}

fn ends(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|it| it == extension)
}

/// What a file is for: what it is, and of which course.
fn purpose(file: &Path) -> io::Result<String> {
    let name = file.file_name().and_then(|name| name.to_str());
    name.map(str::to_owned).ok_or_else(|| invalid(format!("{} has no plain name", file.display())))
}

/// A header and an adapter as one.
fn parcel<T: Serialize>(header: &T, lora: &[u8]) -> io::Result<Vec<u8>> {
    let header = serde_json::to_vec(header)?;
    Ok([&(header.len() as u64).to_le_bytes(), header.as_slice(), lora].concat())
}

/// An error with the file that it is about.
fn of(file: &Path) -> impl FnOnce(io::Error) -> io::Error {
    let file = file.display().to_string();
    move |error| io::Error::new(error.kind(), format!("{file}: {error}"))
}

/// What a file holds: its header, and its adapter.
fn opened<T: DeserializeOwned>(key: &Key, file: &Path) -> io::Result<(T, Vec<u8>)> {
    let bytes = key.open(&purpose(file)?, &fs::read(file)?)?;
    let cut = || invalid("it ends too early".into());
    let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(cut)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| cut())?;
    let (header, lora) = rest.split_at_checked(length).ok_or_else(cut)?;
    let header = serde_json::from_slice(header);
    let header = header.map_err(|error| invalid(format!("an older or newer Azera wrote it ({error})")))?;
    Ok((header, lora.to_vec()))
}

/// Writes a file whole or not at all.
pub(super) fn write_whole(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let staged = file.with_extension("part");
    let written = File::create(&staged).and_then(|mut part| {
        part.write_all(bytes)?;
        part.sync_all()?;
        fs::rename(&staged, file)
    });
    if written.is_err() {
        // The first error is the one that says what is wrong.
        fs::remove_file(&staged).or_else(gone_is_well).ok();
    }
    written
}

/// Nothing is wrong with removing what is gone.
fn gone_is_well(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// Whether something was made for what its course is for.
fn fits(made: &Made, sent: &Sent) -> io::Result<()> {
    if made.base_fingerprint == sent.base_fingerprint {
        return Ok(());
    }
    Err(invalid("it was made for another model, or another adapter of it".into()))
}

#[cfg(test)]
mod tests {
    use azera_engine::LossChange;
    use azera_model_api::{ChatMessage, Role};

    use super::*;

    fn training_example(reply: &str) -> TrainingExample {
        TrainingExample {
            messages: vec![ChatMessage::new(Role::User, "who keeps the lamp?")],
            words: String::new(),
            reply: reply.into(),
        }
    }

    /// Two courses that are away, in a data folder.
    fn two(data: &Path) -> (FolderTransport, Key, [PathBuf; 2]) {
        let folder = data.join(FOLDER).join(OFFLOAD_FOLDER);
        fs::create_dir_all(&folder).unwrap();
        let transport = FolderTransport::new(data, Hearth::default());
        let jobs = ["00000000000000aa.course", "00000000000000bb.course"].map(|name| folder.join(name));
        for (job, reply) in jobs.iter().zip(["Ann keeps it", "Bob keeps it"]) {
            let (training_examples, older, voice) =
                (vec![training_example(reply)], vec![training_example("older")], Vec::new());
            let to = data.join("unused");
            let job_of =
                TrainingJob { model: "model".into(), training_examples, older, voice, beside: None, to, seed: 1 };
            transport.send(&job_of, "ground", job).unwrap();
        }
        (transport, Key::read(&folder.join(KEY)).unwrap(), jobs)
    }

    fn bring_back(key: &Key, job: &Path, base_fingerprint: &str) {
        let same = LossChange { before: 2.0, after: 1.5 };
        let evaluation = Evaluation {
            learnt: same,
            older: Some(same),
            voice: None,
            tasks: same,
            prose: same,
            tells_secrets: false,
            largest_cosine: 0.0,
            rank: 4,
            share: 1.0,
        };
        let learnt = job.with_extension(RESULT_EXTENSION);
        let plain = parcel(&Made { base_fingerprint: base_fingerprint.into(), evaluation }, b"weights").unwrap();
        write_whole(&learnt, &key.seal(&purpose(&learnt).unwrap(), &plain).unwrap()).unwrap();
    }

    #[test]
    fn what_comes_of_a_job_is_received_as_it_was_made() {
        let data = tempfile::tempdir().unwrap();
        let (transport, key, [job, _]) = two(data.path());
        let sealed = fs::read(&job).unwrap();
        assert!(!sealed.windows(18).any(|part| part == b"who keeps the lamp"), "nobody reads it without the key");
        bring_back(&key, &job, "ground");
        let to = data.path().join("draft.part");
        let back = transport.receive(&job, &job.with_extension(RESULT_EXTENSION), &to).unwrap();
        assert_eq!(
            (back.training_examples, back.older),
            (vec![training_example("Ann keeps it")], vec![training_example("older")])
        );
        assert_eq!(back.trained.evaluation.learnt, LossChange { before: 2.0, after: 1.5 });
        assert_eq!(fs::read(to).unwrap(), b"weights");
    }

    #[test]
    fn what_is_not_of_a_job_is_not_received() {
        let data = tempfile::tempdir().unwrap();
        let (transport, key, [job, other]) = two(data.path());
        let (learnt, to) = (job.with_extension(RESULT_EXTENSION), data.path().join("draft.part"));
        let receive = || transport.receive(&job, &learnt, &to);
        bring_back(&key, &job, "another ground");
        assert!(matches!(receive(), Err(OffloadError::NotOfIt(_))));
        bring_back(&key, &other, "ground");
        fs::copy(other.with_extension(RESULT_EXTENSION), &learnt).unwrap();
        assert!(matches!(receive(), Err(OffloadError::NotOfIt(_))), "another's under its name");
        bring_back(&key, &job, "ground");
        let whole = fs::read(&learnt).unwrap();
        fs::write(&learnt, &whole[..whole.len() - 1]).unwrap();
        assert!(matches!(receive(), Err(OffloadError::NotOfIt(_))), "cut");
        fs::write(&learnt, whole).unwrap();
        let sealed = fs::read(&job).unwrap();
        fs::copy(&other, &job).unwrap();
        assert!(matches!(receive(), Err(OffloadError::NoJob(_))), "the course is another's");
        fs::write(&job, sealed).unwrap();
        fs::remove_file(job.with_file_name(KEY)).unwrap();
        assert!(matches!(receive(), Err(OffloadError::Io(_))), "the key may be brought back");
        assert!(!to.exists());
    }

    #[test]
    fn a_job_whose_header_is_cut_is_an_error() {
        let data = tempfile::tempdir().unwrap();
        let (_, key, [job, _]) = two(data.path());
        for plain in [vec![], vec![1; 7], 9_u64.to_le_bytes().to_vec(), u64::MAX.to_le_bytes().to_vec()] {
            fs::write(&job, key.seal(&purpose(&job).unwrap(), &plain).unwrap()).unwrap();
            let error = opened::<Sent>(&key, &job).err().unwrap();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
        }
    }
}
