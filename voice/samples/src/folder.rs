//! Keeps samples of voices in a folder: of each a WAV file, and a JSON file with what is known about it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::files;
use crate::prepare::PreparedSample;

/// The most samples.
pub const MAX_SAMPLES: usize = 100;
/// The most characters of a name.
const MAX_NAME_CHARS: usize = 40;
/// The most characters of a consent.
const MAX_CONSENT_CHARS: usize = 200;

/// A stored sample.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredSample {
    /// The voice's name, by which people choose it.
    pub name: String,
    /// Whose voice it is, and that this person agreed.
    pub consent: String,
    /// How long it lasts.
    pub seconds: f32,
    /// When it was added.
    pub added_at: String,
}

/// Leaves out whose voice it is.
impl std::fmt::Debug for StoredSample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StoredSample[{} s, added {}]", self.seconds, self.added_at)
    }
}

/// Why a sample cannot be kept, listed or removed.
#[derive(Debug, Error)]
pub enum FolderError {
    /// The name has other characters.
    #[error(
        "a name has 1 to {MAX_NAME_CHARS} of the characters a to z, 0 to 9, - and _, and begins with a letter or digit"
    )]
    Name,
    /// Nobody is named who agreed.
    #[error("say in 1 to {MAX_CONSENT_CHARS} characters whose voice it is and that this person agreed")]
    Consent,
    /// The name is in use.
    #[error("there is a sample {0} already; remove it first, or choose another name")]
    Exists(String),
    /// There is no such sample.
    #[error("there is no sample {0}")]
    Missing(String),
    /// The folder is full.
    #[error("there are {MAX_SAMPLES} samples already; remove one first")]
    Full,
    /// The disk fails.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// A folder of samples. It need not exist yet.
#[derive(Debug, Clone)]
pub struct SampleFolder {
    path: PathBuf,
}

impl SampleFolder {
    /// Names the folder.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Stores a sample. After a crash it is there whole, or not listed.
    ///
    /// # Errors
    /// [`FolderError`] for a name that is wrong or in use, a missing consent, or a failing disk.
    pub fn add(
        &self,
        name: &str,
        consent: &str,
        sample: &PreparedSample,
        added_at: &str,
    ) -> Result<StoredSample, FolderError> {
        ensure_name(name)?;
        let consent = consent.trim();
        if !(1..=MAX_CONSENT_CHARS).contains(&consent.chars().count()) || consent.contains(char::is_control) {
            return Err(FolderError::Consent);
        }
        let listed = self.list()?;
        if listed.iter().any(|stored| stored.name == name) {
            return Err(FolderError::Exists(name.to_owned()));
        }
        if listed.len() >= MAX_SAMPLES {
            return Err(FolderError::Full);
        }
        let stored = StoredSample {
            name: name.to_owned(),
            consent: consent.to_owned(),
            seconds: sample.seconds,
            added_at: added_at.to_owned(),
        };
        let about = serde_json::to_vec_pretty(&stored).map_err(|error| self.failed(&self.path, error.into()))?;
        files::create_private(&self.path).map_err(|error| self.failed(&self.path, error))?;
        // The sample counts as stored once the second file is there.
        self.write(&self.sound(name), &sample.wav)?;
        self.write(&self.about(name), &about)?;
        Ok(stored)
    }

    /// Returns the samples by their names.
    ///
    /// # Errors
    /// [`FolderError::Io`] for a failing disk.
    pub fn list(&self) -> Result<Vec<StoredSample>, FolderError> {
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.failed(&self.path, error)),
        };
        let mut listed = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| self.failed(&self.path, error))?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let bytes = fs::read(&path).map_err(|error| self.failed(&path, error))?;
            // A file of another kind is none of ours.
            let stored = serde_json::from_slice::<StoredSample>(&bytes).ok();
            listed
                .extend(stored.filter(|stored| ensure_name(&stored.name).is_ok() && self.about(&stored.name) == path));
        }
        listed.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(listed)
    }

    /// Returns the WAV file of a sample.
    ///
    /// # Errors
    /// [`FolderError::Missing`] if there is no such sample.
    pub fn wav(&self, name: &str) -> Result<Vec<u8>, FolderError> {
        ensure_name(name)?;
        if !self.about(name).exists() {
            return Err(FolderError::Missing(name.to_owned()));
        }
        fs::read(self.sound(name)).map_err(|error| self.failed(&self.sound(name), error))
    }

    /// Removes a sample with everything that is known about it.
    ///
    /// # Errors
    /// [`FolderError::Missing`] if there is no such sample.
    pub fn remove(&self, name: &str) -> Result<(), FolderError> {
        ensure_name(name)?;
        let mut is_found = false;
        for path in [self.about(name), self.sound(name)] {
            match fs::remove_file(&path) {
                Ok(()) => is_found = true,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(self.failed(&path, error)),
            }
        }
        if is_found { Ok(()) } else { Err(FolderError::Missing(name.to_owned())) }
    }

    /// Closes a folder that an earlier version left open to other users of the machine.
    ///
    /// # Errors
    /// [`FolderError::Io`] for a failing disk.
    pub fn protect(&self) -> Result<(), FolderError> {
        files::close(&self.path).map_err(|error| self.failed(&self.path, error))
    }

    /// Writes a file beside its final place and puts it there when it is whole.
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), FolderError> {
        azera_files::write(path, bytes).map_err(|error| self.failed(path, error))
    }

    fn sound(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.wav"))
    }

    fn about(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.json"))
    }

    fn failed(&self, path: &Path, source: io::Error) -> FolderError {
        FolderError::Io { path: path.to_path_buf(), source }
    }
}

fn ensure_name(name: &str) -> Result<(), FolderError> {
    let is_plain = name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'));
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if is_plain && begins_well && name.len() <= MAX_NAME_CHARS { Ok(()) } else { Err(FolderError::Name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> PreparedSample {
        PreparedSample { wav: b"RIFF sound".to_vec(), seconds: 4.5, recorded_lufs: -30.0 }
    }

    #[test]
    fn a_sample_is_stored_listed_and_removed_whole() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = SampleFolder::new(scratch.path().join("samples"));
        assert!(folder.list().unwrap().is_empty());
        let stored = folder.add("ann", " Ann agreed ", &sample(), "2026-03-01T12:00:00Z").unwrap();
        folder.add("bob", "Bob agreed", &sample(), "2026-03-02T12:00:00Z").unwrap();
        let names: Vec<String> = folder.list().unwrap().into_iter().map(|stored| stored.name).collect();
        assert_eq!((names, &*stored.consent), (vec!["ann".to_owned(), "bob".to_owned()], "Ann agreed"));
        assert!(!format!("{stored:?}").contains("Ann"), "{stored:?}");
        assert_eq!(folder.wav("ann").unwrap(), b"RIFF sound");
        assert!(matches!(folder.add("ann", "Ann", &sample(), ""), Err(FolderError::Exists(_))));
        folder.remove("ann").unwrap();
        assert!(matches!(folder.wav("ann"), Err(FolderError::Missing(_))));
        assert!(matches!(folder.remove("ann"), Err(FolderError::Missing(_))));
        folder.remove("bob").unwrap();
        assert_eq!(fs::read_dir(scratch.path().join("samples")).unwrap().count(), 0);
    }

    #[test]
    fn a_name_leads_out_of_no_folder_and_consent_is_needed() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = SampleFolder::new(scratch.path());
        for name in ["", "../ann", "Ann", "a/b", "-rf", "a.b", &"a".repeat(41)] {
            assert!(matches!(folder.add(name, "yes", &sample(), ""), Err(FolderError::Name)), "{name}");
            assert!(folder.remove(name).is_err() && folder.wav(name).is_err());
        }
        for consent in ["", "  ", "a\nb", &"a".repeat(201)] {
            assert!(matches!(folder.add("ann", consent, &sample(), ""), Err(FolderError::Consent)), "{consent}");
        }
    }

    #[test]
    fn half_a_sample_is_not_listed_and_can_be_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = SampleFolder::new(scratch.path());
        fs::write(scratch.path().join("ann.wav"), b"RIFF").unwrap();
        fs::write(scratch.path().join("notes.json"), b"{}").unwrap();
        assert!(folder.list().unwrap().is_empty());
        folder.remove("ann").unwrap();
        assert!(!scratch.path().join("ann.wav").exists());
    }
}
