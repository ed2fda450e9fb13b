//! Keeps samples that people give in chats: of each a WAV file, and a JSON file that says whose voice it is and whether
//! this person agreed. Each has an id that nobody can guess, which is also the name of its files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

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

/// A folder of given samples. It need not exist yet.
#[derive(Debug, Clone)]
pub struct GivenFolder {
    path: PathBuf,
}

impl GivenFolder {
    /// Names the folder.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Stores a sample under a new id. After a crash it is there whole, or not listed.
    ///
    /// # Errors
    /// [`FolderError`] for an id that is wrong or in use, a full folder or a failing disk.
    pub fn add(&self, id: &str, about: &GivenSample, sample: &PreparedSample) -> Result<(), FolderError> {
        ensure_id(id)?;
        let listed = self.list()?;
        if listed.iter().any(|(known, _)| known == id) {
            return Err(FolderError::Exists(id.to_owned()));
        }
        if listed.len() >= MAX_GIVEN_SAMPLES {
            return Err(FolderError::Full);
        }
        fs::create_dir_all(&self.path).map_err(|error| failed(&self.path, error))?;
        // The sample counts as stored once the second file is there.
        write(&self.sound(id), &sample.wav)?;
        self.put(id, about)
    }

    /// Changes what is known about a sample.
    ///
    /// # Errors
    /// [`FolderError::Missing`] if there is no such sample.
    pub fn change(&self, id: &str, change: impl FnOnce(&mut GivenSample)) -> Result<(), FolderError> {
        let known = self.list()?.into_iter().find(|(known, _)| known == id);
        let (_, mut about) = known.ok_or_else(|| FolderError::Missing(id.to_owned()))?;
        change(&mut about);
        self.put(id, &about)
    }

    /// Returns the samples with their ids.
    ///
    /// # Errors
    /// [`FolderError::Io`] for a failing disk.
    pub fn list(&self) -> Result<Vec<(String, GivenSample)>, FolderError> {
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(&self.path, error)),
        };
        let mut listed = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| failed(&self.path, error))?.path();
            let Some(id) = path.file_stem().and_then(|stem| stem.to_str()).filter(|id| ensure_id(id).is_ok()) else {
                continue;
            };
            if self.about(id) != path {
                continue;
            }
            let bytes = match fs::read(&path) {
                Ok(bytes) => bytes,
                // Another process removed it meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(failed(&path, error)),
            };
            // A file of another kind is none of ours.
            listed.extend(serde_json::from_slice(&bytes).ok().map(|about| (id.to_owned(), about)));
        }
        listed.sort_by(|(_, a): &(_, GivenSample), (_, b)| (&a.name, &a.at).cmp(&(&b.name, &b.at)));
        Ok(listed)
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
        let mut is_found = false;
        for path in [self.about(id), self.sound(id)] {
            match fs::remove_file(&path) {
                Ok(()) => is_found = true,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(&path, error)),
            }
        }
        if is_found { Ok(()) } else { Err(FolderError::Missing(id.to_owned())) }
    }

    /// Removes sounds of which nothing is known, which a crash may leave. What is younger than ten minutes may still be in the
    /// making.
    ///
    /// # Errors
    /// [`FolderError::Io`] for a failing disk.
    pub fn sweep(&self) -> Result<(), FolderError> {
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(&self.path, error)),
        };
        for entry in entries {
            let path = entry.map_err(|error| failed(&self.path, error))?.path();
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
        write(&self.about(id), &bytes)
    }

    fn sound(&self, id: &str) -> PathBuf {
        self.path.join(format!("{id}.wav"))
    }

    fn about(&self, id: &str) -> PathBuf {
        self.path.join(format!("{id}.json"))
    }
}

/// Writes a file beside its final place and puts it there when it is whole.
fn write(path: &Path, bytes: &[u8]) -> Result<(), FolderError> {
    let new = path.with_extension("new");
    let written = fs::write(&new, bytes).and_then(|()| fs::rename(&new, path));
    written.map_err(|error| failed(path, error))
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
