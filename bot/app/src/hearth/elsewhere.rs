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
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use azera_chat::{AWAY, Back, COURSE, Courier, Course, Examined, LEARNT, LearnError, Lesson, Trained, Trainer};
use azera_config::{Config, Hearth};
use indicatif::ProgressBar;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::learn::OnProcessor;
use super::sealed::{Key, invalid};
use super::{FOLDER, train};
use crate::adapters;
use crate::cli::{Install, Pack, Train};
use crate::house::models;

/// The file of the key, beside the courses.
const KEY: &str = "key";

/// What a course says before the adapter that it goes on from, if there is one.
#[derive(Serialize, Deserialize)]
struct Sent {
    model: String,
    ground: String,
    lessons: Vec<Lesson>,
    older: Vec<Lesson>,
    voice: Vec<Lesson>,
    seed: u64,
    rounds: u32,
    rank: u32,
    max_rank: u32,
    rate: f64,
}

/// What comes back before the adapter.
#[derive(Serialize, Deserialize)]
struct Made {
    ground: String,
    examined: Examined,
}

/// A folder in the data folder, from which the operator carries courses and to which they bring back what came of them.
pub struct ByHand {
    folder: PathBuf,
    hearth: Hearth,
}

impl ByHand {
    /// By a configuration's settings.
    pub fn new(data: &Path, hearth: Hearth) -> Self {
        Self { folder: data.join(FOLDER).join(AWAY), hearth }
    }
}

impl Courier for ByHand {
    fn send(&self, course: &Course, ground: &str, file: &Path) -> Result<(), LearnError> {
        let Course { model, lessons, older, voice, beside, to: _, seed } = course;
        let sent = Sent {
            model: model.clone(),
            ground: ground.to_owned(),
            lessons: lessons.clone(),
            older: older.clone(),
            voice: voice.clone(),
            seed: *seed,
            rounds: self.hearth.rounds,
            rank: self.hearth.rank,
            max_rank: self.hearth.max_rank,
            rate: self.hearth.rate,
        };
        let send = || {
            let adapter = beside.as_ref().map_or_else(|| Ok(Vec::new()), fs::read)?;
            let key = Key::made(&self.folder.join(KEY))?;
            write_whole(file, &key.seal(&purpose(file)?, &parcel(&sent, &adapter)?)?)
        };
        send().map_err(|error| LearnError::Failed(error.to_string()))
    }

    fn receive(&self, course: &Path, learnt: &Path, to: &Path) -> io::Result<Back> {
        let key = Key::read(&self.folder.join(KEY))?;
        let (sent, _) = opened::<Sent>(&key, course)?;
        let (made, adapter) = opened::<Made>(&key, learnt)?;
        if made.ground != sent.ground {
            return Err(invalid("it was made for another model, or another adapter of it".into()));
        }
        fs::write(to, adapter)?;
        let trained = Trained { id: adapters::at(to)?.id, examined: made.examined };
        Ok(Back { lessons: sent.lessons, older: sent.older, trained })
    }
}

/// `azera hearth pack`.
pub fn pack(config: &Config, options: &Pack) -> anyhow::Result<ExitCode> {
    let folder = away(config)?;
    let mut courses = Vec::new();
    if folder.exists() {
        for file in fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
            courses.extend(Some(file?.path()).filter(|path| ends(path, COURSE)));
        }
    }
    courses.sort();
    if courses.is_empty() {
        println!("no course waits to be learnt elsewhere");
        if !(config.hearth.enabled && config.hearth.elsewhere) {
            println!("(hearth.enabled and hearth.elsewhere in the configuration have courses laid out)");
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(to) = &options.to {
        fs::create_dir_all(to).with_context(|| format!("making {}", to.display()))?;
    }
    for course in &courses {
        let name = course.file_name().unwrap_or_default();
        let shown = match &options.to {
            Some(to) => {
                let copy = to.join(name);
                write_whole(&copy, &fs::read(course)?).with_context(|| format!("writing {}", copy.display()))?;
                copy
            }
            None => course.clone(),
        };
        let back = if course.with_extension(LEARNT).exists() { ", is back and waits to be examined" } else { "" };
        println!("{}: {} kB{back}", shown.display(), course.metadata()?.len() / 1024);
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

/// `azera hearth train`, of a course.
pub async fn train_course(config: &Config, options: &Train) -> anyhow::Result<ExitCode> {
    let course = &options.lessons;
    let key = options.key.as_ref();
    let key = key.context("a course is sealed: --key FILE names the key of the machine that it comes from")?;
    let key = Key::read(key).with_context(|| format!("reading {}", key.display()))?;
    let (sent, beside) = opened::<Sent>(&key, course).with_context(|| format!("opening {}", course.display()))?;
    let out = options.out.clone().unwrap_or_else(|| course.with_extension(LEARNT));
    if out.file_stem() != course.file_stem() || !ends(&out, LEARNT) {
        let name = course.with_extension(LEARNT);
        bail!(
            "what comes of a course bears its name: --out may end in {}",
            name.file_name().unwrap_or_default().display()
        );
    }
    let scratch = tempfile::tempdir()?;
    let own = scratch.path().join("beside.gguf");
    fs::write(&own, &beside)?;
    let course = Course {
        model: sent.model,
        lessons: sent.lessons,
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
    let trainer = OnProcessor::watched(config.clone(), models(&config)?, {
        let bar: ProgressBar = bar.clone();
        Arc::new(move |now| train::show(&bar, now))
    });
    let name = &course.model;
    let ground = trainer.ground(name);
    let ground = ground.with_context(|| format!("{name} is not here: `azera models pull {name}` fetches it"))?;
    if ground != sent.ground {
        bail!(
            "the {name} here is not the one that the course is for, or serves with other adapters there: both machines need the same \
             Azera, the same model and the same models.adapter"
        );
    }
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            asked.store(true, Ordering::Relaxed);
        }
    });
    let to = course.to.clone();
    let learnt = trainer.learn(course, Arc::new(move || !stop.load(Ordering::Relaxed))).await;
    bar.finish_and_clear();
    let trained = match learnt {
        Ok(trained) => trained,
        Err(LearnError::BrokenOff) => {
            println!("broken off; nothing was written");
            return Ok(ExitCode::FAILURE);
        }
        Err(LearnError::Failed(why)) => bail!(why),
    };
    let parcel = parcel(&Made { ground, examined: trained.examined }, &fs::read(&to)?)?;
    write_whole(&out, &key.seal(&purpose(&out)?, &parcel)?).with_context(|| format!("writing {}", out.display()))?;
    let loss = trained.examined.learnt;
    println!("{}: loss {:.2}, then {:.2}", out.display(), loss.before, loss.after);
    println!("bring it back and `azera hearth install` it there");
    Ok(ExitCode::SUCCESS)
}

/// `azera hearth install`.
pub fn install(config: &Config, options: &Install) -> anyhow::Result<ExitCode> {
    let folder = away(config)?;
    for path in &options.learnt {
        let shown = path.display();
        let name = path.file_name().filter(|_| ends(path, LEARNT));
        let name = name
            .with_context(|| format!("{shown} is no .{LEARNT} file, which `azera hearth train` writes of a course"))?;
        let here = folder.join(name);
        let course = here.with_extension(COURSE);
        if !course.exists() {
            bail!(
                "no course of that name is away: what {shown} rests on was forgotten or taken back meanwhile, or another came back \
                 before it, or it belongs to another data folder"
            );
        }
        let key = folder.join(KEY);
        let key = Key::read(&key).with_context(|| format!("reading {}", key.display()))?;
        let (made, _) = opened::<Made>(&key, path).with_context(|| format!("opening {shown}"))?;
        let (sent, _) = opened::<Sent>(&key, &course).with_context(|| format!("opening {}", course.display()))?;
        if made.ground != sent.ground {
            bail!("{shown} was made for another model, or another adapter of it");
        }
        write_whole(&here, &fs::read(path)?).with_context(|| format!("writing {}", here.display()))?;
        println!(
            "{shown} is here: Azera examines it within the hour while it runs, and /hearth history tells what came of it"
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Where courses lie that are away.
fn away(config: &Config) -> anyhow::Result<PathBuf> {
    Ok(config.data_dir()?.join(FOLDER).join(AWAY))
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
fn parcel<T: Serialize>(header: &T, adapter: &[u8]) -> io::Result<Vec<u8>> {
    let header = serde_json::to_vec(header)?;
    Ok([&(header.len() as u64).to_le_bytes(), header.as_slice(), adapter].concat())
}

/// What a file holds: its header, and its adapter.
fn opened<T: DeserializeOwned>(key: &Key, file: &Path) -> io::Result<(T, Vec<u8>)> {
    let bytes = key.open(&purpose(file)?, &fs::read(file)?)?;
    let cut = || invalid("it ends too early".into());
    let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(cut)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| cut())?;
    let (header, adapter) = rest.split_at_checked(length).ok_or_else(cut)?;
    let header = serde_json::from_slice(header);
    let header = header.map_err(|error| invalid(format!("an older or newer Azera wrote it ({error})")))?;
    Ok((header, adapter.to_vec()))
}

/// Writes a file whole or not at all.
fn write_whole(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let staged = file.with_extension("part");
    let mut part = File::create(&staged)?;
    part.write_all(bytes)?;
    part.sync_all()?;
    fs::rename(staged, file)
}
