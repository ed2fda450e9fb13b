//! Keeps samples that people give in chats: of each a WAV file, and a JSON file that says whose voice it is and whether
//! this person agreed. Each has an id that nobody can guess, which is also the name of its files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::files;
use crate::folder::FolderError;
use crate::prepare::PreparedSample;

/// The most samples of all people.
pub const MAX_GIVEN_SAMPLES: usize = 100;
/// The age from which a sound of which nothing is known is removed.
const STRAY_AGE: Duration = Duration::from_secs(600);
/// The most characters of an id.
const MAX_ID_CHARS: usize = 40;

/// What is known about a given sample.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct GivenSample {
    /// The name by which people choose the voice.
    pub name: String,
    /// Whose voice it is.
    pub whose: String,
    /// Who gave it.
    pub by: String,
    /// The only place that may use it; `None` for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// When it was given (RFC 3339).
    pub at: String,
    /// When the person whose voice it is agreed (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreed_at: Option<String>,
    /// How long it lasts.
    pub seconds: f32,
}

/// Leaves out names and people.
impl std::fmt::Debug for GivenSample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GivenSample[{:.1} s]", self.seconds)
    }
}

/// A folder of given samples. It need not exist yet. Clones mean the same one.
#[derive(Debug, Clone)]
pub struct GivenFolder {
    path: PathBuf,
    /// Held while a sample is added, changed or removed.
    writing: Arc<Mutex<()>>,
}

/// Says that nobody else changes the folder.
struct Writing<'a> {
    _here: MutexGuard<'a, ()>,
    _folder: Option<fs::File>,
}

impl GivenFolder {
    /// Names the folder.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), writing: Arc::default() }
    }

    /// Stores a sample under a new id. After a crash it is there whole, or not listed.
    ///
    /// # Errors
    /// [`FolderError`] for an id that is wrong or in use, a full folder or a failing disk.
    pub fn add(&self, id: &str, about: &GivenSample, sample: &PreparedSample) -> Result<(), FolderError> {
        ensure_id(id)?;
        files::create_private(&self.path).map_err(|error| failed(&self.path, error))?;
        let _writing = self.writing()?;
        let listed = self.list()?;
        if listed.iter().any(|(known, _)| known == id) {
            return Err(FolderError::Exists(id.to_owned()));
        }
        if listed.len() >= MAX_GIVEN_SAMPLES {
            return Err(FolderError::Full);
        }
        // The sample counts as stored once the second file is there.
        self.write(&self.sound(id), &sample.wav)?;
        self.put(id, about)
    }

    /// Changes what is known about a sample. One that was removed meanwhile does not come back.
    ///
    /// # Errors
    /// [`FolderError::Missing`] if there is no such sample.
    pub fn change(&self, id: &str, change: impl FnOnce(&mut GivenSample)) -> Result<(), FolderError> {
        ensure_id(id)?;
        let _writing = self.writing()?;
        let Some(Some(mut about)) = self.read(id)? else { return Err(FolderError::Missing(id.to_owned())) };
        change(&mut about);
        self.put(id, &about)
    }

    /// Returns the samples with their ids.
    ///
    /// # Errors
    /// [`FolderError::Io`] for a failing disk.
    pub fn list(&self) -> Result<Vec<(String, GivenSample)>, FolderError> {
        let mut listed = Vec::new();
        for id in self.ids()? {
            listed.extend(self.read(&id)?.flatten().map(|about| (id, about)));
        }
        listed.sort_by(|(_, a): &(_, GivenSample), (_, b)| (&a.name, &a.at).cmp(&(&b.name, &b.at)));
        Ok(listed)
    }

    /// Removes samples of which it cannot be read whose voice they are. Nobody could use, list or forget them. Returns
    /// how many that were.
    ///
    /// # Errors
    /// [`FolderError::Io`] for a failing disk.
    pub fn remove_damaged(&self) -> Result<usize, FolderError> {
        let _writing = self.writing()?;
        let mut removed = 0;
        for id in self.ids()? {
            if matches!(self.read(&id)?, Some(None)) {
                self.delete(&id)?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Returns the ids of all samples, also of those that cannot be read.
    fn ids(&self) -> Result<Vec<String>, FolderError> {
        let mut ids = Vec::new();
        for path in self.paths()? {
            let id = path.file_stem().and_then(|stem| stem.to_str()).filter(|id| ensure_id(id).is_ok());
            ids.extend(id.filter(|id| self.about(id) == path).map(str::to_owned));
        }
        Ok(ids)
    }

    /// Returns what lies in the folder.
    fn paths(&self) -> Result<Vec<PathBuf>, FolderError> {
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(&self.path, error)),
        };
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        paths.collect::<io::Result<_>>().map_err(|error| failed(&self.path, error))
    }

    /// Returns what is known about a sample: the outer `None` if it does not exist, the inner one if it is damaged.
    fn read(&self, id: &str) -> Result<Option<Option<GivenSample>>, FolderError> {
        let path = self.about(id);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes).ok())),
            // Another process may have removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(&path, error)),
        }
    }

    /// Returns the WAV file of a sample.
    ///
    /// # Errors
    /// [`FolderError::Missing`] if there is no such sample.
    pub fn wav(&self, id: &str) -> Result<Vec<u8>, FolderError> {
        ensure_id(id)?;
        if !self.about(id).exists() {
            return Err(FolderError::Missing(id.to_owned()));
        }
        fs::read(self.sound(id)).map_err(|error| failed(&self.sound(id), error))
    }

    /// Removes a sample with everything that is known about it.
    ///
    /// # Errors
    /// [`FolderError::Missing`] if there is no such sample.
    pub fn remove(&self, id: &str) -> Result<(), FolderError> {
        ensure_id(id)?;
        let _writing = self.writing()?;
        if self.delete(id)? { Ok(()) } else { Err(FolderError::Missing(id.to_owned())) }
    }

    /// Deletes a sample's files. Returns false if there are none.
    fn delete(&self, id: &str) -> Result<bool, FolderError> {
        let mut is_found = false;
        // The sound goes first: while its description is there, a failure can be made up for.
        for path in [self.sound(id), self.about(id)] {
            match fs::remove_file(&path) {
                Ok(()) => is_found = true,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(&path, error)),
            }
        }
        Ok(is_found)
    }

    /// Removes samples that are damaged, and sounds of which nothing is known, which a crash may leave. Such a sound that is
    /// younger than ten minutes may still be in the making. Closes the folder to other users of the machine.
    ///
    /// # Errors
    /// [`FolderError::Io`] for a failing disk.
    pub fn sweep(&self) -> Result<(), FolderError> {
        files::close(&self.path).map_err(|error| failed(&self.path, error))?;
        self.remove_damaged()?;
        let _writing = self.writing()?;
        for path in self.paths()? {
            let is_known = path.with_extension("json").exists() && path.extension().is_none_or(|kind| kind != "new");
            let age = fs::metadata(&path).and_then(|about| about.modified()).ok().and_then(|at| at.elapsed().ok());
            if !is_known && age.is_some_and(|age| age >= STRAY_AGE) {
                fs::remove_file(&path).map_err(|error| failed(&path, error))?;
            }
        }
        Ok(())
    }

    fn put(&self, id: &str, about: &GivenSample) -> Result<(), FolderError> {
        let bytes = serde_json::to_vec_pretty(about).map_err(|error| failed(&self.path, error.into()))?;
        self.write(&self.about(id), &bytes)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), FolderError> {
        azera_files::write(path, bytes).map_err(|error| failed(path, error))
    }

    /// Waits until nobody else changes the folder, in this process or another.
    fn writing(&self) -> Result<Writing<'_>, FolderError> {
        let here = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let locked = files::lock(&self.path).map_err(|error| failed(&self.path, error))?;
        Ok(Writing { _here: here, _folder: locked })
    }

    fn sound(&self, id: &str) -> PathBuf {
        self.path.join(format!("{id}.wav"))
    }

    fn about(&self, id: &str) -> PathBuf {
        self.path.join(format!("{id}.json"))
    }
}

fn failed(path: &Path, source: io::Error) -> FolderError {
    FolderError::Io { path: path.to_path_buf(), source }
}

fn ensure_id(id: &str) -> Result<(), FolderError> {
    let is_plain = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    if is_plain && id.len() <= MAX_ID_CHARS { Ok(()) } else { Err(FolderError::Missing(id.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(name: &str) -> GivenSample {
        GivenSample {
            name: name.to_owned(),
            whose: "discord:1".to_owned(),
            by: "discord:2".to_owned(),
            place: None,
            at: "2026-03-01T12:00:00Z".to_owned(),
            agreed_at: None,
            seconds: 4.5,
        }
    }

    #[test]
    fn a_sample_whose_description_is_damaged_goes() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = GivenFolder::new(scratch.path().join("given"));
        let sample = PreparedSample { wav: b"RIFF sound".to_vec(), seconds: 4.5, recorded_lufs: -30.0 };
        for id in ["a1", "b2", "c3"] {
            folder.add(id, &about("ann"), &sample).unwrap();
        }
        let damage =
            |id: &str| fs::write(scratch.path().join("given").join(format!("{id}.json")), b"{\"name\"").unwrap();
        damage("a1");
        assert!(matches!(folder.change("a1", |_| {}), Err(FolderError::Missing(_))));
        folder.sweep().unwrap();
        assert!(!scratch.path().join("given/a1.wav").exists() && !scratch.path().join("given/a1.json").exists());
        damage("b2");
        assert_eq!((folder.remove_damaged().unwrap(), folder.remove_damaged().unwrap()), (1, 0));
        assert!(!scratch.path().join("given/b2.wav").exists());
        assert_eq!(folder.list().unwrap().len(), 1);
    }

    #[test]
    fn a_removed_sample_does_not_come_back_when_it_is_changed() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = GivenFolder::new(scratch.path().join("given"));
        let sample = PreparedSample { wav: b"RIFF sound".to_vec(), seconds: 4.5, recorded_lufs: -30.0 };
        for _ in 0..20 {
            folder.add("a1", &about("ann"), &sample).unwrap();
            std::thread::scope(|threads| {
                threads
                    .spawn(|| folder.change("a1", |about| about.agreed_at = Some("2026-03-02T12:00:00Z".to_owned())));
                threads.spawn(|| folder.remove("a1").unwrap());
            });
            assert!(matches!(folder.change("a1", |_| {}), Err(FolderError::Missing(_))));
            assert_eq!(fs::read_dir(scratch.path().join("given")).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_given_sample_is_stored_changed_and_removed_whole() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = GivenFolder::new(scratch.path().join("given"));
        let sample = PreparedSample { wav: b"RIFF sound".to_vec(), seconds: 4.5, recorded_lufs: -30.0 };
        assert!(folder.list().unwrap().is_empty());
        folder.add("b2", &about("ann"), &sample).unwrap();
        folder.add("a1", &about("bob"), &sample).unwrap();
        assert!(matches!(folder.add("a1", &about("bob"), &sample), Err(FolderError::Exists(_))));
        let names = |folder: &GivenFolder| {
            folder.list().unwrap().into_iter().map(|(id, about)| (id, about.name)).collect::<Vec<_>>()
        };
        assert_eq!(names(&folder), [("b2".to_owned(), "ann".to_owned()), ("a1".to_owned(), "bob".to_owned())]);
        folder.change("b2", |about| about.agreed_at = Some("2026-03-02T12:00:00Z".to_owned())).unwrap();
        assert!(folder.list().unwrap()[0].1.agreed_at.is_some());
        assert_eq!(folder.wav("b2").unwrap(), b"RIFF sound");
        // A crash may leave a sound alone.
        let stray = scratch.path().join("given/c3.wav");
        fs::write(&stray, b"RIFF").unwrap();
        folder.sweep().unwrap();
        assert!(stray.exists(), "it may be in the making");
        let long_ago = std::time::SystemTime::UNIX_EPOCH;
        fs::File::options().write(true).open(&stray).unwrap().set_modified(long_ago).unwrap();
        folder.sweep().unwrap();
        assert!(!stray.exists() && folder.list().unwrap().len() == 2);
        for id in ["a1", "b2"] {
            folder.remove(id).unwrap();
            assert!(matches!(folder.wav(id), Err(FolderError::Missing(_))));
            assert!(matches!(folder.remove(id), Err(FolderError::Missing(_))));
        }
        assert_eq!(fs::read_dir(scratch.path().join("given")).unwrap().count(), 0);
        for id in ["", "../a", "A", "a/b", "a.b", &"a".repeat(41)] {
            assert!(folder.add(id, &about("ann"), &sample).is_err() && folder.remove(id).is_err(), "{id}");
        }
    }
}
