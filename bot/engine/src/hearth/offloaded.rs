//! Courses that are away, as files: a course lies sealed in a folder until whoever runs this has carried it off and laid what came of
//! it beside it. Who learns there, and how it is sealed, is another's matter ([`OffloadTransport`]); when a course is laid out, and what becomes of
//! what comes back, that of `offload`.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Duration;

use azera_memory::Provenance;
use azera_types::{ChatId, PersonaId, Scope, Timestamp};
use serde::{Deserialize, Serialize};

use super::lora_store::LoraRecord;
use super::{HearthState, TrainError, TrainingExample, TrainingJob, TrainingResult};
use crate::background::{PersonaPlace, after};

/// The folder of courses that are away, in the hearth's.
pub const OFFLOAD_FOLDER: &str = "away";

/// How the file of a course ends.
pub const JOB_EXTENSION: &str = "course";

/// How the file of what came of it ends.
pub const RESULT_EXTENSION: &str = "learnt";

/// How the file ends that says what a course is.
const RECORD: &str = "json";

/// Time between two looks at what is away.
const LOOK_EVERY: Duration = Duration::from_secs(30 * 60);

/// What came back of a course.
#[derive(Debug)]
pub struct OffloadResult {
    /// What was to be learnt.
    pub training_examples: Vec<TrainingExample>,
    /// What must not suffer by it.
    pub older: Vec<TrainingExample>,
    /// The adapter, which lies in a file.
    pub trained: TrainingResult,
}

/// Seals courses for another machine, and opens what it made of them.
pub trait OffloadTransport: Send + Sync {
    /// Writes a course to a file, sealed under the file's name.
    ///
    /// # Errors
    /// If it cannot be sealed or written.
    fn send(&self, job: &TrainingJob, base_fingerprint: &str, file: &Path) -> Result<(), TrainError>;

    /// Opens what came back of a course, and writes the adapter to `to`.
    ///
    /// # Errors
    /// See [`OffloadError`].
    fn receive(&self, job: &Path, learnt: &Path, to: &Path) -> Result<OffloadResult, OffloadError>;
}

/// Why what came back is not taken in.
#[derive(Debug, thiserror::Error)]
pub enum OffloadError {
    /// It is not what the course becomes.
    #[error("it is not what its course becomes: {0}")]
    NotOfIt(io::Error),
    /// The course cannot be opened any more, so that nothing can be known of what came of it.
    #[error("its course cannot be opened any more: {0}")]
    NoJob(io::Error),
    /// A file could not be read or written, which may pass.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A course that is away.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OffloadedJob {
    /// What its files are called: it tells nothing.
    pub(super) name: String,
    /// The chat in which it was laid out.
    pub(super) chat: ChatId,
    /// What it becomes; its adapter has no name yet.
    pub(super) learnt: LoraRecord,
    /// What the course rests on: beside what it becomes, what is only to be compared.
    pub(super) holds: Provenance,
    /// What served as it was sent, and what it learns beside.
    pub(super) beside: Option<LoraRecord>,
    pub(super) exchanges: usize,
}

/// All there are.
pub(crate) struct OffloadedJobs {
    folder: PathBuf,
    held: RwLock<Vec<OffloadedJob>>,
    /// When they were looked at last.
    looked: Mutex<Option<Timestamp>>,
    /// Since when what came back of one, by its name, could not be examined; forgotten at a restart.
    of_no_use: Mutex<HashMap<String, Timestamp>>,
}

impl OffloadedJobs {
    /// Reads a folder. What is no pair of a course and its record is removed; and all there is, if nothing is learnt elsewhere.
    pub(crate) fn open(folder: &Path, wanted: bool) -> io::Result<Self> {
        let (folder, mut held) = (folder.join(OFFLOAD_FOLDER), Vec::<OffloadedJob>::new());
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
            held.extend(read.filter(is_whole));
        }
        for path in &files {
            let known = path.file_stem().and_then(|stem| stem.to_str());
            let known = known.is_some_and(|stem| held.iter().any(|offloaded_job| offloaded_job.name == stem));
            // Anything else is not of this: the key, for one.
            let ours = [RECORD, JOB_EXTENSION, RESULT_EXTENSION].iter().any(|extension| ends(path, extension));
            // Somebody may be bringing something back at this moment.
            if (ends(path, "part") || ours && !known)
                && let Err(error) = fs::remove_file(path)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::error!(file = %path.display(), %error, "what is left of a course could not be removed");
            }
        }
        if !wanted && files.iter().any(|path| ends(path, JOB_EXTENSION)) {
            tracing::warn!("hearth.elsewhere is off: courses that were away are given up");
        }
        Ok(Self::new(folder, held))
    }

    fn new(folder: PathBuf, held: Vec<OffloadedJob>) -> Self {
        Self { folder, held: RwLock::new(held), looked: Mutex::default(), of_no_use: Mutex::default() }
    }

    pub(super) fn file(&self, name: &str, extension: &str) -> PathBuf {
        self.folder.join(format!("{name}.{extension}"))
    }

    /// All there are.
    pub(crate) fn all(&self) -> Vec<OffloadedJob> {
        self.held.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Of a persona in a place.
    pub(crate) fn of(&self, persona: &PersonaId, place: &Scope) -> Option<OffloadedJob> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        held.iter()
            .find(|offloaded_job| offloaded_job.learnt.persona == *persona && offloaded_job.learnt.place == *place)
            .cloned()
    }

    /// Whether one is still waited for.
    pub(super) fn has(&self, offloaded_job: &OffloadedJob) -> bool {
        self.held.read().unwrap_or_else(PoisonError::into_inner).iter().any(|it| it.name == offloaded_job.name)
    }

    /// When they are to be looked at next.
    pub(crate) fn next_look(&self, now: Timestamp) -> Option<Timestamp> {
        if self.held.read().unwrap_or_else(PoisonError::into_inner).is_empty() {
            return None;
        }
        // A look later than now was noted by a clock that was wrong.
        let looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner).filter(|looked| *looked <= now);
        Some(looked.map_or(now, |looked| after(looked, LOOK_EVERY)))
    }

    /// Since when what came back of one is of no use, which is seen now.
    pub(super) fn of_no_use_since(&self, offloaded_job: &OffloadedJob, now: Timestamp) -> Timestamp {
        let mut of_no_use = self.of_no_use.lock().unwrap_or_else(PoisonError::into_inner);
        *of_no_use.entry(offloaded_job.name.clone()).or_insert(now)
    }

    /// They were looked at.
    pub(super) fn note_look(&self, now: Timestamp) {
        *self.looked.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }

    /// Takes one in whose course is in its place.
    pub(super) fn keep(&self, offloaded_job: OffloadedJob) -> io::Result<()> {
        let staged = self.file(&offloaded_job.name, "part");
        let mut file = File::create(&staged)?;
        file.write_all(&serde_json::to_vec(&offloaded_job)?)?;
        file.sync_all()?;
        fs::rename(&staged, self.file(&offloaded_job.name, RECORD))?;
        self.held.write().unwrap_or_else(PoisonError::into_inner).push(offloaded_job);
        Ok(())
    }

    /// Waits for one no more; its files stay. Whether it was waited for.
    pub(super) fn drop_one(&self, offloaded_job: &OffloadedJob) -> bool {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        let before = held.len();
        held.retain(|it| it.name != offloaded_job.name);
        self.of_no_use.lock().unwrap_or_else(PoisonError::into_inner).remove(&offloaded_job.name);
        held.len() < before
    }

    /// Removes what one left on disk.
    pub(super) fn remove_files(&self, offloaded_job: &OffloadedJob) -> io::Result<()> {
        // Without the record, the others go at the next start at the latest.
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
        let LoraRecord { platform, place, persona, .. } = &self.learnt;
        PersonaPlace { platform: platform.clone(), place: place.clone(), persona: persona.clone() }
    }
}

impl HearthState {
    /// Since when something of a home is away.
    pub(crate) fn offloaded_since(&self, home: &PersonaPlace) -> Option<Timestamp> {
        Some(self.offloaded_jobs.of(&home.persona, &home.place)?.learnt.at)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use azera_types::{PersonId, PlatformId};

    use super::*;

    fn away(name: &str) -> OffloadedJob {
        let learnt = LoraRecord {
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
            learnt,
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
    fn what_is_away_is_known_after_a_restart_and_what_is_half_there_goes() {
        let folder = tempfile::tempdir().unwrap();
        let offloaded_jobs = OffloadedJobs::open(folder.path(), true).unwrap();
        for name in ["one", "two", "three"] {
            fs::write(offloaded_jobs.file(name, JOB_EXTENSION), "sealed").unwrap();
        }
        offloaded_jobs.keep(offloaded_job("one")).unwrap();
        offloaded_jobs.keep(offloaded_job("two")).unwrap();
        fs::remove_file(offloaded_jobs.file("two", JOB_EXTENSION)).unwrap();
        fs::write(offloaded_jobs.file("one", RESULT_EXTENSION), "sealed").unwrap();
        fs::write(offloaded_jobs.file("four", RESULT_EXTENSION), "sealed").unwrap();
        fs::write(offloaded_jobs.file("one", "part"), "half").unwrap();
        fs::write(folder.path().join(OFFLOAD_FOLDER).join("key"), "secret").unwrap();
        let again = OffloadedJobs::open(folder.path(), true).unwrap();
        assert_eq!(again.all(), [away("one")]);
        assert_eq!(names(folder.path()), ["key", "one.course", "one.json", "one.learnt"]);
        // Nothing is learnt elsewhere any more.
        let none = OffloadedJobs::open(folder.path(), false).unwrap();
        assert_eq!((none.all(), names(folder.path())), (Vec::new(), vec!["key".to_owned()]));
    }
}
