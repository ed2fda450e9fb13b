//! The models folder: where files lie, and how they appear there whole or not at all.
//!
//! ```text
//! ledger.toml            models that people add (theirs to edit)
//! selection.toml         which models are in use
//! NAME/model.gguf        an installed model
//! NAME/manifest.toml     what it is and where it came from
//! .staging/NAME.lock     held while NAME is being changed
//! .staging/NAME/         what has arrived of NAME so far
//! ```
//!
//! A model's folder is made in the staging area, brought to the disk, and then renamed, so that a crash at any moment
//! leaves either the whole model or none.

use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    error::{Error, IoContext},
    manifest::{Manifest, sync_folder, write_toml},
    progress::{Progress, Step},
};

/// The name of the model file in its folder.
pub(crate) const MODEL_FILE: &str = "model.gguf";
/// The name of the manifest in a model's folder.
const MANIFEST_FILE: &str = "manifest.toml";
/// What incomplete files end in.
pub(crate) const PARTIAL_SUFFIX: &str = ".part";
/// How often a pull looks whether another process is done with the same model.
const LOCK_POLL: Duration = Duration::from_millis(200);
/// The most models that are looked for in the folder.
const MAX_INSTALLED: usize = 10_000;

/// What is there of a model.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum State {
    /// Nothing yet: it can be pulled.
    Available,
    /// A pull began and did not end; the next one goes on from there.
    Partial {
        /// Bytes that have arrived.
        bytes: u64,
    },
    /// Ready for use.
    Installed(Box<Manifest>),
    /// A folder that cannot be used as it is.
    Damaged {
        /// What is wrong, in words.
        reason: String,
    },
}

/// A lock on one model, released when dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    /// Closing the file releases the lock.
    _file: File,
}

/// The folder that models live in.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    root: PathBuf,
}

impl Store {
    /// Opens the folder at `root`, making it if needed.
    pub(crate) fn open(root: &Path) -> Result<Self, Error> {
        let store = Self { root: root.to_owned() };
        let staging = store.staging_root();
        fs::create_dir_all(&staging).at(&staging)?;
        Ok(store)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn selection_file(&self) -> PathBuf {
        self.root.join("selection.toml")
    }

    /// Where the model's file is, or will be.
    pub(crate) fn model_file(&self, name: &str) -> PathBuf {
        self.root.join(name).join(MODEL_FILE)
    }

    pub(crate) fn staging_root(&self) -> PathBuf {
        self.root.join(".staging")
    }

    /// Where files of the model gather until it is whole.
    pub(crate) fn staging(&self, name: &str) -> PathBuf {
        self.staging_root().join(name)
    }

    /// Locks the model, or says that it is busy.
    pub(crate) fn try_lock(&self, name: &str) -> Result<Lock, Error> {
        let path = self.staging_root().join(format!("{name}.lock"));
        let file = File::create(&path).at(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Lock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(Error::Busy { name: name.to_owned() }),
            Err(TryLockError::Error(source)) => Err(Error::Io { path, source }),
        }
    }

    /// Locks the model, waiting for whoever holds it.
    pub(crate) async fn lock(&self, name: &str, progress: Progress<'_>) -> Result<Lock, Error> {
        // The system's own waiting cannot be given up when the caller does, so this asks again and again.
        let mut poll = tokio::time::interval(LOCK_POLL);
        loop {
            poll.tick().await;
            match self.try_lock(name) {
                Err(Error::Busy { .. }) => progress(Step::Waiting),
                locked => return locked,
            }
        }
    }

    /// The manifests of all model folders, in order of name. Folders without a readable one are left out.
    pub(crate) fn manifests(&self) -> Result<Vec<Manifest>, Error> {
        let mut found = Vec::new();
        for folder in fs::read_dir(&self.root).at(&self.root)?.take(MAX_INSTALLED) {
            let folder = folder.at(&self.root)?;
            match Manifest::read(&folder.path().join(MANIFEST_FILE)) {
                Ok(Some(manifest)) if folder.file_name() == manifest.model.name.as_str() => found.push(manifest),
                Ok(Some(manifest)) => {
                    let (name, folder) = (manifest.model.name, folder.file_name());
                    tracing::warn!(name, ?folder, "a model's folder was renamed; give it the model's name again");
                }
                Ok(None) => {}
                // A plain file beside the folders has no manifest "in" it.
                Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotADirectory => {}
                Err(error) => tracing::warn!(%error, "a model's manifest is not readable"),
            }
        }
        found.sort_by(|a, b| a.model.name.cmp(&b.model.name));
        Ok(found)
    }

    /// What is there of the model.
    pub(crate) fn state(&self, name: &str) -> Result<State, Error> {
        let folder = self.root.join(name);
        if !folder.exists() {
            let bytes = bytes_below(&self.staging(name))?;
            return Ok(if bytes > 0 { State::Partial { bytes } } else { State::Available });
        }
        let damaged = |reason: String| Ok(State::Damaged { reason });
        let manifest = match Manifest::read(&folder.join(MANIFEST_FILE)) {
            Ok(Some(manifest)) => manifest,
            Ok(None) => return damaged(format!("its {MANIFEST_FILE} is missing")),
            Err(error) => return damaged(error.to_string()),
        };
        match fs::metadata(self.model_file(name)) {
            Ok(file) if file.len() == manifest.size => Ok(State::Installed(Box::new(manifest))),
            Ok(file) => damaged(format!("{MODEL_FILE} has {} bytes instead of {}", file.len(), manifest.size)),
            Err(error) => damaged(format!("{MODEL_FILE}: {error}")),
        }
    }

    /// Makes `file`, which lies in the model's staging folder, the installed model. Whatever was installed under its
    /// name is replaced. The caller holds the lock.
    pub(crate) fn install(&self, file: &Path, manifest: &Manifest) -> Result<(), Error> {
        let name = &manifest.model.name;
        let staging = self.staging(name);
        let (ready, replaced, target) = (staging.join("ready"), staging.join("replaced"), self.root.join(name));
        remove_folder(&ready)?;
        remove_folder(&replaced)?;
        fs::create_dir_all(&ready).at(&ready)?;
        File::open(file).and_then(|file| file.sync_all()).at(file)?;
        let model = ready.join(MODEL_FILE);
        fs::rename(file, &model).at(&model)?;
        write_toml(&ready.join(MANIFEST_FILE), manifest)?;
        sync_folder(&ready)?;
        if target.exists() {
            fs::rename(&target, &replaced).at(&target)?;
        }
        fs::rename(&ready, &target).at(&target)?;
        sync_folder(&self.root)?;
        remove_folder(&staging)
    }

    /// Deletes the model and what a pull left of it, and returns the bytes that became free. The caller holds the lock.
    pub(crate) fn remove(&self, name: &str) -> Result<u64, Error> {
        let (folder, staging) = (self.root.join(name), self.staging(name));
        fs::create_dir_all(&staging).at(&staging)?;
        if folder.exists() {
            // Gone from sight first, so that a crash while deleting leaves no half a model.
            let removed = staging.join("removed");
            remove_folder(&removed)?;
            fs::rename(&folder, &removed).at(&folder)?;
            sync_folder(&self.root)?;
        }
        let bytes = bytes_below(&staging)?;
        remove_folder(&staging)?;
        Ok(bytes)
    }
}

/// Deletes a folder with all in it; one that is not there is fine.
pub(crate) fn remove_folder(folder: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).at(folder),
        _ => Ok(()),
    }
}

/// Bytes that deleting `folder` frees; none where there is no such folder.
fn bytes_below(folder: &Path) -> Result<u64, Error> {
    let files = match fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        files => files.at(folder)?,
    };
    let mut bytes = 0;
    for file in files {
        let path = file.at(folder)?.path();
        match fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_dir() => bytes += bytes_below(&path)?,
            Ok(metadata) if is_only_name(&metadata) => bytes += taken(&metadata),
            Ok(_) => {}
            // A pull that is under way moves its files between two looks.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).at(&path),
        }
    }
    Ok(bytes)
}

/// The bytes that a file takes: one with holes, as that of a model's shape beside it, looks larger.
#[cfg(unix)]
fn taken(metadata: &fs::Metadata) -> u64 {
    const BLOCK: u64 = 512;
    metadata.len().min(std::os::unix::fs::MetadataExt::blocks(metadata) * BLOCK)
}

/// Elsewhere holes are not known.
#[cfg(not(unix))]
fn taken(metadata: &fs::Metadata) -> u64 {
    metadata.len()
}

/// Whether a file has no other name that keeps its bytes: an import may share them with the file it came from.
#[cfg(unix)]
fn is_only_name(metadata: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(metadata) == 1
}

/// Elsewhere the number of names is not known.
#[cfg(not(unix))]
fn is_only_name(_: &fs::Metadata) -> bool {
    true
}
