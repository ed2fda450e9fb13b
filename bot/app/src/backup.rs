//! `azera backup`, and the job that makes backups while Azera runs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use async_trait::async_trait;
use azera_config::Config;
use azera_engine::{Job, JobError};
use azera_memory::{Memory, Record};
use azera_memory_backup::{Backup, Folder, FolderListing, ForgetOutcome, Inspection, RetentionRule};
use azera_memory_blobs::DiskBlobs;
use azera_memory_sled::SledStore;
use azera_types::{Clock, SystemClock, Timestamp};
use serde_json::json;

use crate::bootstrap;
use crate::cli::BackupCommand;
use crate::data::{DataFolder, remove_aside};
use crate::progress::Bar;

/// After a backup, the job rests for this many times the backup's duration. Backups thus take at most a twentieth of the
/// time.
const REST_FACTOR: u32 = 19;

/// Message for when some backups could not be cleaned of forgotten content.
pub const STILL_THERE: &str = "what was forgotten may still stand in a backup; the next start tries again";

/// Wait between two cleanings of the backups, so that one covers many deletions in a row.
const FORGET_WAIT: Duration = Duration::from_secs(5 * 60);

pub fn run(config: &Config, command: Option<BackupCommand>, to: Option<PathBuf>) -> anyhow::Result<ExitCode> {
    match command {
        None => make(config, to)?,
        Some(BackupCommand::List { json }) => list(config, json)?,
        Some(BackupCommand::GiveUp { dir }) => give_up(config, &dir)?,
        Some(BackupCommand::Verify { backup }) => return verify(config, backup),
    }
    Ok(ExitCode::SUCCESS)
}

fn make(config: &Config, to: Option<PathBuf>) -> anyhow::Result<()> {
    let data = config.data_dir()?;
    let backups = bootstrap::backups(config)?;
    let folder = DataFolder::take(&data).with_context(|| {
        let every = config.backup.every_minutes;
        let own = format!("a running Azera makes backups itself, every {every} minutes if anything changed, in");
        format!("{own} {}", backups.dir().display())
    })?;
    anyhow::ensure!(folder.has_record(), "there is nothing to back up in {}", data.display());
    let store = SledStore::open(folder.record()).context("opening the record")?;
    let blobs = DiskBlobs::open(folder.blobs())?;
    let record = Record::of(&store)?.with_blobs(&blobs);
    let bar = Bar::new();
    let mut progress = |done| bar.bytes("backing up", done, None);
    let now = SystemClock.now();
    let (made, forgot) = match to {
        Some(path) => (backups.make_as(&record, now, &path, &mut progress)?, Ok(ForgetOutcome::default())),
        None => {
            let forgot = forget_in(&record, &backups, &data);
            let made = backups.make(&record, now, &mut progress)?;
            backups.prune(record.identity(), &rule(&config.backup), now)?;
            (made, forgot)
        }
    };
    drop(bar);
    println!("{}", made.path.display());
    println!("{}", line(&made));
    // The new backup stays: one unreadable file must not block new backups.
    forgot.map(drop).context(STILL_THERE)
}

fn give_up(config: &Config, dir: &Path) -> anyhow::Result<()> {
    let folder = DataFolder::take(&config.data_dir()?)?;
    anyhow::ensure!(folder.has_record(), "there is no record that was backed up");
    let store = SledStore::open(folder.record()).context("opening the record")?;
    let dir = std::path::absolute(dir).with_context(|| format!("finding {}", dir.display()))?;
    let count = Record::of(&store)?.give_up_backup_folders(&dir)?;
    anyhow::ensure!(count > 0, "no backups were made into {}", dir.display());
    println!("{} is given up; backups there keep what is forgotten", dir.display());
    Ok(())
}

/// Returns the backup folders that are no longer where they were. Empty if there is no record.
pub fn missing_folders(config: &Config, backups: &Folder) -> anyhow::Result<Vec<PathBuf>> {
    let data = config.data_dir()?;
    if !data.join("record").exists() {
        return Ok(Vec::new());
    }
    let folder = DataFolder::take(&data)?;
    let store = SledStore::open(folder.record())?;
    Ok(backups.missing_folders(&Record::of(&store)?)?)
}

fn list(config: &Config, json: bool) -> anyhow::Result<()> {
    let backups = bootstrap::backups(config)?;
    let FolderListing { backups: found, unreadable } = backups.list()?;
    if json {
        let found: Vec<_> = found
            .iter()
            .map(|backup| json!({"path": backup.path, "file_bytes": backup.file_bytes, "manifest": backup.manifest}))
            .collect();
        println!("{}", serde_json::to_string_pretty(&found)?);
    } else {
        for backup in &found {
            println!("{}  {}", name(backup), line(backup));
        }
        if found.is_empty() {
            println!("there is no backup in {}", backups.dir().display());
        }
    }
    for (_, error) in unreadable {
        eprintln!("{error}");
    }
    Ok(())
}

fn verify(config: &Config, backup: Option<PathBuf>) -> anyhow::Result<ExitCode> {
    let backups = bootstrap::backups(config)?;
    let (mut found, mut broken) = match backup {
        Some(backup) => (vec![find(&backups, &backup)?], 0),
        None => {
            let FolderListing { backups, unreadable } = backups.list()?;
            for (_, error) in &unreadable {
                println!("{error}");
            }
            (backups, unreadable.len())
        }
    };
    found.reverse();
    for backup in found {
        let bar = Bar::new();
        let inspected = backup.inspect(&mut |done| bar.bytes("checking", done, Some(backup.manifest.bytes)));
        drop(bar);
        match inspected {
            Ok(Inspection::Whole) => println!("{} is whole: {}", name(&backup), line(&backup)),
            Ok(Inspection::Removed) => println!("{} was removed meanwhile", name(&backup)),
            Ok(Inspection::FilesMissing(missing)) => {
                broken += 1;
                println!(
                    "{} has all its rows, but {missing} files of messages are missing or damaged; the next backup copies \
                     them again if Azera still has them",
                    name(&backup)
                );
            }
            Err(error) => {
                broken += 1;
                println!("{error}");
            }
        }
    }
    Ok(if broken > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Reads a whole backup and compares it with its checksum.
pub fn check(backup: &Backup) -> Result<(), azera_memory_backup::Error> {
    let bar = Bar::new();
    backup.verify(&mut |done| bar.bytes("checking", done, Some(backup.manifest.bytes)))
}

/// Finds a backup by its path, or by its name in the backup folder.
pub fn find(backups: &Folder, backup: &Path) -> anyhow::Result<Backup> {
    let named = backups.dir().join(backup);
    Ok(Backup::open(if backup.exists() || !named.exists() { backup.to_owned() } else { named })?)
}

fn name(backup: &Backup) -> String {
    backup.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns a one-line description of a backup.
pub fn line(backup: &Backup) -> String {
    let count = |table: &str| backup.manifest.rows.get(table).copied().unwrap_or(0);
    format!(
        "made {}, {} messages, {} memories, {} KB",
        backup.manifest.made_at.strftime("%F %T UTC"),
        count("messages"),
        count("memories"),
        backup.file_bytes.div_ceil(1024)
    )
}

/// Removes forgotten content from the backups, and deletes all records that a restore set aside.
pub fn forget(memory: &Memory, backups: &Folder, data: &Path) -> anyhow::Result<ForgetOutcome> {
    forget_in(&memory.record(), backups, data)
}

/// Does the same as [`forget`] for a record that nobody else uses.
pub fn forget_in(record: &Record<'_>, backups: &Folder, data: &Path) -> anyhow::Result<ForgetOutcome> {
    if record.pending_backup_forgets()?.what.is_empty() {
        return Ok(ForgetOutcome::default());
    }
    remove_aside(data, true, Timestamp::UNIX_EPOCH)?;
    Ok(backups.forget(record)?)
}

/// Returns how long to keep backups, by the configuration.
fn rule(config: &azera_config::Backup) -> RetentionRule {
    let hours = |hours: u32| Duration::from_secs(u64::from(hours) * 3_600);
    RetentionRule {
        all: hours(config.keep_all_hours),
        hourly: hours(config.keep_hourly_hours),
        daily: hours(config.keep_daily_days.saturating_mul(24)),
        max_count: config.max_count as usize,
        max_bytes: u64::from(config.max_mb) << 20,
    }
}

/// Makes backups of a record in use, deletes old ones by the retention rule and removes forgotten content from the
/// rest.
pub struct BackupJob {
    memory: Arc<Memory>,
    backups: Folder,
    data: PathBuf,
    enabled: bool,
    every: Duration,
    rule: RetentionRule,
    /// Held while the folder is written: two that write at once would remove each other's half-written files. Nobody
    /// who only asks waits for it.
    writing: Mutex<()>,
    done: Mutex<JobState>,
}

/// Results of the last runs, and when the next may start.
#[derive(Default)]
struct JobState {
    /// Time and record revision of the last backup. At first read from the folder.
    made: Option<(Timestamp, u64)>,
    /// True once the folder has been read.
    folder_read: bool,
    /// No backup is made before this time.
    not_before: Option<Timestamp>,
    /// Backups are not cleaned again before this time.
    forget_not_before: Option<Timestamp>,
}

impl BackupJob {
    pub fn new(memory: Arc<Memory>, backups: Folder, data: PathBuf, config: &azera_config::Backup) -> Self {
        Self {
            memory,
            backups,
            data,
            enabled: config.enabled,
            every: Duration::from_secs(u64::from(config.every_minutes) * 60),
            rule: rule(config),
            writing: Mutex::default(),
            done: Mutex::default(),
        }
    }

    fn run_at(&self, now: Timestamp, last: bool) -> anyhow::Result<()> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let may_forget = self.done().forget_not_before.is_none_or(|at| now >= at);
        if last || may_forget {
            match forget(&self.memory, &self.backups, &self.data) {
                Ok(outcome) if outcome == ForgetOutcome::default() => {}
                Ok(outcome) => {
                    tracing::info!(
                        rewritten = outcome.rewritten,
                        removed = outcome.removed,
                        "removed forgotten content from backups"
                    );
                    self.done().forget_not_before = Some(now + FORGET_WAIT);
                }
                Err(error) => {
                    // An unreadable file must not block new backups.
                    tracing::error!(
                        error = format!("{error:#}"),
                        "cannot remove forgotten content from all backups yet"
                    );
                    self.done().forget_not_before = Some(now + FORGET_WAIT);
                }
            }
        }
        // Delete what a restore set aside once it is old enough, even if backups are off.
        if let Err(error) = remove_aside(&self.data, false, now) {
            tracing::error!(error = format!("{error:#}"), "cannot remove the data that a restore set aside");
        }
        if last || !self.enabled {
            return Ok(());
        }
        self.read_folder()?;
        if !self.is_due(now) {
            return Ok(());
        }
        // After a failure, such as a full disk, wait the usual interval.
        self.done().not_before = Some(now + self.every);
        let (made, pruned) = self.write(now)?;
        tracing::info!(backup = %made.path.display(), bytes = made.file_bytes, pruned, "backup made");
        Ok(())
    }

    fn done(&self) -> MutexGuard<'_, JobState> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads once when the last backup was made.
    fn read_folder(&self) -> anyhow::Result<()> {
        if !self.done().folder_read {
            let newest = self.backups.of(self.memory.record().identity())?.pop();
            let mut done = self.done();
            done.made = newest.map(|backup| (backup.manifest.made_at, backup.manifest.revision));
            done.folder_read = true;
        }
        Ok(())
    }

    fn is_due(&self, now: Timestamp) -> bool {
        let done = self.done();
        // A clock that was set back must not postpone the backup.
        let clock_was_set_back = done.made.is_some_and(|(at, _)| at > now);
        self.due(&done).is_some_and(|due| due <= now || clock_was_set_back)
    }

    /// Makes a backup, and removes old ones. Returns how many those were. The caller holds `writing`.
    fn write(&self, now: Timestamp) -> anyhow::Result<(Backup, usize)> {
        let (record, started) = (self.memory.record(), Instant::now());
        let made = self.backups.make(&record, now, &mut |_| {})?;
        {
            let mut done = self.done();
            done.made = Some((now, made.manifest.revision));
            done.not_before = Some(now + started.elapsed() * REST_FACTOR);
        }
        let pruned = self.backups.prune(record.identity(), &self.rule, now)?;
        Ok((made, pruned))
    }

    /// Returns the folder of the backups.
    pub fn folder(&self) -> &Folder {
        &self.backups
    }

    /// Makes a backup now, whether one is due or not, and removes old ones.
    ///
    /// # Errors
    /// The disk or the record fails.
    #[cfg(feature = "http")]
    pub fn make_now(&self, now: Timestamp) -> anyhow::Result<Backup> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let (made, _) = self.write(now)?;
        tracing::info!(backup = %made.path.display(), bytes = made.file_bytes, "backup made, because the owner asked for it");
        Ok(made)
    }

    /// Returns when a backup is due; `None` while the record does not change.
    fn due(&self, done: &JobState) -> Option<Timestamp> {
        let due = match done.made {
            None => Timestamp::MIN,
            Some((_, of)) if of == self.memory.record().revision() => return None,
            Some((at, _)) => at + self.every,
        };
        Some(done.not_before.map_or(due, |at| at.max(due)))
    }

    async fn blocking(self: Arc<Self>, now: Timestamp, last: bool) -> Result<(), JobError> {
        Ok(tokio::task::spawn_blocking(move || self.run_at(now, last)).await??)
    }
}

/// The job, as the engine holds it.
pub struct Backups(pub Arc<BackupJob>);

#[async_trait]
impl Job for Backups {
    fn name(&self) -> &'static str {
        "backups"
    }

    fn next_due(&self) -> Option<Timestamp> {
        let job = &self.0;
        // Nothing is due before the folder has been read. The job reads it within seconds of the start.
        let done = job.done();
        (job.enabled && done.folder_read).then(|| job.due(&done)).flatten()
    }

    async fn run(&self, now: Timestamp) -> Result<(), JobError> {
        self.0.clone().blocking(now, false).await
    }

    async fn finish(&self, now: Timestamp) -> Result<(), JobError> {
        self.0.clone().blocking(now, true).await
    }
}
