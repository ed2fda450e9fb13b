//! Offloaded jobs, as files: a sealed job lies in a folder until the operator has carried it off and put its result
//! beside it. [`OffloadTransport`] seals and opens the files; `offload` decides when a job is written and what becomes
//! of its result.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Duration;

use azera_memory::Provenance;
use azera_types::{ChatId, PersonaId, Scope, Timestamp};
use serde::{Deserialize, Serialize};

use super::lora_store::LoraRecord;
use super::{HearthState, TrainError, TrainingExample, TrainingJob, TrainingResult};
use crate::background::{PersonaPlace, after};

/// The folder of offloaded jobs, inside the Hearth's folder.
pub const OFFLOAD_FOLDER: &str = "away";

/// Extension of a job file.
pub const JOB_EXTENSION: &str = "course";

/// Extension of a result file.
pub const RESULT_EXTENSION: &str = "learnt";

/// Extension of the record that describes a job.
const RECORD: &str = "json";

/// Time between two checks of offloaded jobs.
const CHECK_EVERY: Duration = Duration::from_secs(30 * 60);

/// An opened result.
#[derive(Debug)]
pub struct OffloadResult {
    /// The examples that were trained on.
    pub training_examples: Vec<TrainingExample>,
    /// The examples whose loss must not grow.
    pub older: Vec<TrainingExample>,
    /// The LoRA, which lies in a file.
    pub trained: TrainingResult,
}

/// Seals jobs for another machine, and opens the results.
pub trait OffloadTransport: Send + Sync {
    /// Writes a job to a file, sealed under the file's name.
    ///
    /// # Errors
    /// If it cannot be sealed or written.
    fn send(&self, job: &TrainingJob, base_fingerprint: &str, file: &Path) -> Result<(), TrainError>;

    /// Opens the result of a job, and writes its LoRA to `to`.
    ///
    /// # Errors
    /// See [`OffloadError`].
    fn receive(&self, job: &Path, learned: &Path, to: &Path) -> Result<OffloadResult, OffloadError>;
}

/// Why a result is rejected.
#[derive(Debug, thiserror::Error)]
pub enum OffloadError {
    /// It is not a result of this job.
    #[error("it is not what its course becomes: {0}")]
    NotOfIt(io::Error),
    /// The job can no longer be opened, so its result cannot be checked.
    #[error("its course cannot be opened any more: {0}")]
    NoJob(io::Error),
    /// A file could not be read or written, which may pass.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// An offloaded job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OffloadedJob {
    /// The name of its files, which is random.
    pub(super) name: String,
    /// The chat in which it was written.
    pub(super) chat: ChatId,
    /// The record of the LoRA it becomes, which has no id yet.
    #[serde(rename = "learnt")]
    pub(super) learned: LoraRecord,
    /// The sources of the job: those of the LoRA, and those of the examples that are only compared.
    pub(super) holds: Provenance,
    /// The LoRA in service when it was written, beside which it trains.
    pub(super) beside: Option<LoraRecord>,
    pub(super) exchanges: usize,
}

/// All offloaded jobs.
pub(crate) struct OffloadedJobs {
    folder: PathBuf,
    jobs: RwLock<Vec<OffloadedJob>>,
    /// When they were last checked.
    looked: Mutex<Option<Timestamp>>,
    /// Since when a job's result could not be used, by the job's name; lost at a restart.
    of_no_use: Mutex<HashMap<String, Timestamp>>,
}

impl OffloadedJobs {
    /// Opens a folder. Removes files without a job and its record, and all files if offloading is off.
    pub(crate) fn open(folder: &Path, wanted: bool) -> io::Result<Self> {
        let (folder, mut jobs) = (folder.join(OFFLOAD_FOLDER), Vec::<OffloadedJob>::new());
        if wanted {
            fs::create_dir_all(&folder)?;
        } else if !folder.exists() {
            return Ok(Self::new(folder, Vec::new()));
        }
        let files: Vec<PathBuf> = fs::read_dir(&folder)?.map(|file| Ok(file?.path())).collect::<io::Result<_>>()?;
        for path in files.iter().filter(|path| wanted && ends(path, RECORD)) {
            let read = fs::read(path).ok().and_then(|bytes| serde_json::from_slice::<OffloadedJob>(&bytes).ok());
            let is_whole = |offloaded_job: &OffloadedJob| {
                path.file_stem().is_some_and(|stem| *stem == *offloaded_job.name)
                    && path.with_extension(JOB_EXTENSION).exists()
            };
            jobs.extend(read.filter(is_whole));
        }
        for path in &files {
            let known = path.file_stem().and_then(|stem| stem.to_str());
            let known = known.is_some_and(|stem| jobs.iter().any(|offloaded_job| offloaded_job.name == stem));
            // Other files, such as the key, stay.
            let ours = [RECORD, JOB_EXTENSION, RESULT_EXTENSION].iter().any(|extension| ends(path, extension));
            // Somebody may be putting a result here at this moment.
            if (ends(path, "part") || ours && !known)
                && let Err(error) = fs::remove_file(path)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::error!(file = %path.display(), %error, "cannot remove the files of an offloaded job");
            }
        }
        if !wanted && files.iter().any(|path| ends(path, JOB_EXTENSION)) {
            tracing::warn!("hearth.elsewhere is off; giving up the offloaded jobs");
        }
        Ok(Self::new(folder, jobs))
    }

    fn new(folder: PathBuf, jobs: Vec<OffloadedJob>) -> Self {
        Self { folder, jobs: RwLock::new(jobs), looked: Mutex::default(), of_no_use: Mutex::default() }
    }

    pub(super) fn file(&self, name: &str, extension: &str) -> PathBuf {
        self.folder.join(format!("{name}.{extension}"))
    }

    pub(crate) fn all(&self) -> Vec<OffloadedJob> {
        self.jobs.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the offloaded job of a persona in a place.
    pub(crate) fn of(&self, persona: &PersonaId, place: &Scope) -> Option<OffloadedJob> {
        let jobs = self.jobs.read().unwrap_or_else(PoisonError::into_inner);
        jobs.iter()
            .find(|offloaded_job| offloaded_job.learned.persona == *persona && offloaded_job.learned.place == *place)
            .cloned()
    }

    /// Returns true if a job is still waited for.
    pub(super) fn has(&self, offloaded_job: &OffloadedJob) -> bool {
        self.jobs.read().unwrap_or_else(PoisonError::into_inner).iter().any(|it| it.name == offloaded_job.name)
    }

    /// Returns when to check the jobs next.
    pub(crate) fn next_look(&self, now: Timestamp) -> Option<Timestamp> {
        if self.jobs.read().unwrap_or_else(PoisonError::into_inner).is_empty() {
            return None;
        }
        // A check later than now comes from a clock that was wrong.
        let looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner).filter(|looked| *looked <= now);
        Some(looked.map_or(now, |looked| after(looked, CHECK_EVERY)))
    }

    /// Returns since when a job's result could not be used; records `now` if that is new.
    pub(super) fn of_no_use_since(&self, offloaded_job: &OffloadedJob, now: Timestamp) -> Timestamp {
        let mut of_no_use = self.of_no_use.lock().unwrap_or_else(PoisonError::into_inner);
        *of_no_use.entry(offloaded_job.name.clone()).or_insert(now)
    }

    /// Records that the jobs were checked.
    pub(super) fn note_look(&self, now: Timestamp) {
        *self.looked.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }

    /// Adds a job whose file is in place.
    pub(super) fn keep(&self, offloaded_job: OffloadedJob) -> io::Result<()> {
        let named = |extension: &str| self.file(&offloaded_job.name, extension);
        azera_files::write_through(&named("part"), &named(RECORD), &serde_json::to_vec(&offloaded_job)?)?;
        self.jobs.write().unwrap_or_else(PoisonError::into_inner).push(offloaded_job);
        Ok(())
    }

    /// Stops waiting for a job; its files stay. Returns true if it was waited for.
    pub(super) fn drop_one(&self, offloaded_job: &OffloadedJob) -> bool {
        let mut jobs = self.jobs.write().unwrap_or_else(PoisonError::into_inner);
        let before = jobs.len();
        jobs.retain(|it| it.name != offloaded_job.name);
        self.of_no_use.lock().unwrap_or_else(PoisonError::into_inner).remove(&offloaded_job.name);
        jobs.len() < before
    }

    /// Removes the files of a job.
    pub(super) fn remove_files(&self, offloaded_job: &OffloadedJob) -> io::Result<()> {
        // Without the record, the other files are removed at the next start at the latest.
        for extension in [RECORD, JOB_EXTENSION, RESULT_EXTENSION, "part"] {
            match fs::remove_file(self.file(&offloaded_job.name, extension)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

fn ends(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|it| it == extension)
}

impl OffloadedJob {
    pub(super) fn home(&self) -> PersonaPlace {
        let LoraRecord { platform, place, persona, .. } = &self.learned;
        PersonaPlace { platform: platform.clone(), place: place.clone(), persona: persona.clone() }
    }
}

impl HearthState {
    /// Returns when the offloaded job of a persona in a place was written.
    pub(crate) fn offloaded_since(&self, home: &PersonaPlace) -> Option<Timestamp> {
        Some(self.offloaded_jobs.of(&home.persona, &home.place)?.learned.at)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use azera_types::{PersonId, PlatformId};

    use super::*;

    fn job_named(name: &str) -> OffloadedJob {
        let learned = LoraRecord {
            platform: PlatformId::new("sim").unwrap(),
            persona: PersonaId::new("azera").unwrap(),
            place: Scope::Dm(PersonId::new(name).unwrap()),
            number: 1,
            base_fingerprint: "model".into(),
            id: String::new(),
            provenance: Provenance::default(),
            said: BTreeSet::new(),
            at: Timestamp::UNIX_EPOCH,
        };
        OffloadedJob {
            name: name.into(),
            chat: ChatId::new("dm").unwrap(),
            learned,
            holds: Provenance::default(),
            beside: None,
            exchanges: 4,
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let files = fs::read_dir(folder.join(OFFLOAD_FOLDER)).unwrap();
        let mut names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn offloaded_jobs_survive_a_restart_and_incomplete_ones_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let offloaded_jobs = OffloadedJobs::open(folder.path(), true).unwrap();
        for name in ["one", "two", "three"] {
            fs::write(offloaded_jobs.file(name, JOB_EXTENSION), "sealed").unwrap();
        }
        offloaded_jobs.keep(job_named("one")).unwrap();
        offloaded_jobs.keep(job_named("two")).unwrap();
        fs::remove_file(offloaded_jobs.file("two", JOB_EXTENSION)).unwrap();
        fs::write(offloaded_jobs.file("one", RESULT_EXTENSION), "sealed").unwrap();
        fs::write(offloaded_jobs.file("four", RESULT_EXTENSION), "sealed").unwrap();
        fs::write(offloaded_jobs.file("one", "part"), "half").unwrap();
        fs::write(folder.path().join(OFFLOAD_FOLDER).join("key"), "secret").unwrap();
        let again = OffloadedJobs::open(folder.path(), true).unwrap();
        assert_eq!(again.all(), [job_named("one")]);
        assert_eq!(names(folder.path()), ["key", "one.course", "one.json", "one.learnt"]);
        // Offloading is turned off.
        let none = OffloadedJobs::open(folder.path(), false).unwrap();
        assert_eq!((none.all(), names(folder.path())), (Vec::new(), vec!["key".to_owned()]));
    }
}
