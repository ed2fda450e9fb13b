//! The models folder: its layout, and how models appear in it completely or not at all.
//!
//! ```text
//! ledger.toml            models that people add (theirs to edit)
//! selection.toml         the models in use
//! NAME/model.gguf        an installed model; model.onnx for models of speech
//! NAME/manifest.toml     its entry, source and checksum
//! .staging/NAME.lock     held while NAME is being changed
//! .staging/NAME/         files of NAME that have arrived so far
//! ```
//!
//! A model's folder is built in the staging area, synced to disk, and then renamed. So a crash at any moment leaves
//! either the complete model or none.

use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    error::{Error, IoContext},
    kind::Kind,
    manifest::{Manifest, sync_folder, write_toml},
    progress::{Progress, Step},
};

/// The name of a model file of any format in the staging area. It stays the same, so that a pull that an earlier version
/// of this program began goes on.
pub(crate) const STAGED_FILE: &str = "model.gguf";
/// The name of the manifest in a model's folder.
const MANIFEST_FILE: &str = "manifest.toml";
/// The suffix of incomplete files.
pub(crate) const PARTIAL_SUFFIX: &str = ".part";
/// The interval at which a pull checks whether another process has finished with the same model.
const LOCK_POLL: Duration = Duration::from_millis(200);
/// The most entries of the folder that are read.
const MAX_INSTALLED: usize = 10_000;

/// The state of a model on this machine.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum State {
    /// Not here; it can be pulled.
    Available,
    /// A pull has begun and not finished; the next one resumes it.
    Partial {
        /// The bytes that have arrived.
        bytes: u64,
    },
    /// Ready for use.
    Installed(Box<Manifest>),
    /// The folder is unusable.
    Damaged {
        /// What is wrong, in words.
        reason: String,
    },
}

/// A lock on one model, released on drop.
#[derive(Debug)]
pub(crate) struct Lock {
    /// Closing the file releases the lock.
    _file: File,
}

/// The models folder.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    root: PathBuf,
}

impl Store {
    /// Opens the folder at `root`, and creates it if needed.
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

    /// Returns the path of the model's file, which need not exist yet.
    pub(crate) fn model_file(&self, name: &str, kind: Kind) -> PathBuf {
        self.root.join(name).join(kind.format().file_name())
    }

    pub(crate) fn staging_root(&self) -> PathBuf {
        self.root.join(".staging")
    }

    /// Returns the folder for the model's files until it is complete.
    pub(crate) fn staging(&self, name: &str) -> PathBuf {
        self.staging_root().join(name)
    }

    /// Locks the model, or returns [`Error::Busy`].
    pub(crate) fn try_lock(&self, name: &str) -> Result<Lock, Error> {
        let path = self.staging_root().join(format!("{name}.lock"));
        let file = File::create(&path).at(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Lock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(Error::Busy { name: name.to_owned() }),
            Err(TryLockError::Error(source)) => Err(Error::Io { path, source }),
        }
    }

    /// Locks the model, and waits for its present owner.
    pub(crate) async fn lock(&self, name: &str, progress: Progress<'_>) -> Result<Lock, Error> {
        // A blocking wait for the lock could not be cancelled with the caller, so this polls.
        let mut poll = tokio::time::interval(LOCK_POLL);
        loop {
            poll.tick().await;
            match self.try_lock(name) {
                Err(Error::Busy { .. }) => progress(Step::Waiting),
                locked => return locked,
            }
        }
    }

    /// Returns the manifests of all model folders, ordered by name. Folders without a readable manifest are skipped.
    pub(crate) fn manifests(&self) -> Result<Vec<Manifest>, Error> {
        let mut found = Vec::new();
        for folder in fs::read_dir(&self.root).at(&self.root)?.take(MAX_INSTALLED) {
            let folder = folder.at(&self.root)?;
            match Manifest::read(&folder.path().join(MANIFEST_FILE)) {
                Ok(Some(manifest)) if folder.file_name() == manifest.model.name.as_str() => found.push(manifest),
                Ok(Some(manifest)) => {
                    let (name, folder) = (manifest.model.name, folder.file_name());
                    tracing::warn!(name, ?folder, "a model's folder was renamed; rename it to the model's name");
                }
                Ok(None) => {}
                // A plain file beside the folders cannot contain a manifest.
                Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotADirectory => {}
                Err(error) => tracing::warn!(%error, "cannot read a model's manifest"),
            }
        }
        found.sort_by(|a, b| a.model.name.cmp(&b.model.name));
        Ok(found)
    }

    /// Returns the state of the model.
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
        let file_name = manifest.model.kind.format().file_name();
        match fs::metadata(folder.join(file_name)) {
            Ok(file) if file.len() == manifest.size => Ok(State::Installed(Box::new(manifest))),
            Ok(file) => damaged(format!("{file_name} has {} bytes instead of {}", file.len(), manifest.size)),
            Err(error) => damaged(format!("{file_name}: {error}")),
        }
    }

    /// Makes `file`, from the model's staging folder, the installed model, and replaces an earlier one with the same
    /// name. The caller holds the lock.
    pub(crate) fn install(&self, file: &Path, manifest: &Manifest) -> Result<(), Error> {
        let name = &manifest.model.name;
        let staging = self.staging(name);
        let (ready, replaced, target) = (staging.join("ready"), staging.join("replaced"), self.root.join(name));
        remove_folder(&ready)?;
        remove_folder(&replaced)?;
        fs::create_dir_all(&ready).at(&ready)?;
        File::open(file).and_then(|file| file.sync_all()).at(file)?;
        let model = ready.join(manifest.model.kind.format().file_name());
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

    /// Deletes the model and the rest of unfinished pulls. Returns the freed bytes. The caller holds the lock.
    pub(crate) fn remove(&self, name: &str) -> Result<u64, Error> {
        let (folder, staging) = (self.root.join(name), self.staging(name));
        fs::create_dir_all(&staging).at(&staging)?;
        if folder.exists() {
            // Rename the folder first, so that a crash during the deletion leaves no half a model.
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

/// Deletes a folder with its contents, if it exists.
pub(crate) fn remove_folder(folder: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).at(folder),
        _ => Ok(()),
    }
}

/// Returns the bytes that deleting `folder` frees; 0 if it does not exist.
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
            // A running pull may move its files meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).at(&path),
        }
    }
    Ok(bytes)
}

/// Returns the disk space of a file. A sparse file, such as the one with a model's shape, looks larger than it is.
#[cfg(unix)]
fn taken(metadata: &fs::Metadata) -> u64 {
    const BLOCK: u64 = 512;
    metadata.len().min(std::os::unix::fs::MetadataExt::blocks(metadata) * BLOCK)
}

/// On other systems, sparse files are not detected.
#[cfg(not(unix))]
fn taken(metadata: &fs::Metadata) -> u64 {
    metadata.len()
}

/// Returns true if the file has no other hard link. An import may share its bytes with the original file.
#[cfg(unix)]
fn is_only_name(metadata: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(metadata) == 1
}

/// On other systems, the number of links is not known.
#[cfg(not(unix))]
fn is_only_name(_: &fs::Metadata) -> bool {
    true
}
