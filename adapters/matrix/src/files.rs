//! The files of a session: secrets that only their owner can read, written atomically.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::Error;

/// Largest file of the session in bytes.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// The folder of the session.
pub(crate) struct Files<'a>(pub(crate) &'a Path);

impl Files<'_> {
    /// Returns the path of the store's encryption key.
    pub(crate) fn key(&self) -> PathBuf {
        self.0.join("store.key")
    }

    pub(crate) fn session(&self) -> PathBuf {
        self.0.join("session.json")
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.0.join("store")
    }

    /// Returns the path of the recovery key, which restores the account's keys if everything else is lost.
    pub(crate) fn recovery(&self) -> PathBuf {
        self.0.join("recovery.key")
    }

    /// Returns the path of the marker that exists from when the store was found to be lost until its rooms are
    /// restored.
    pub(crate) fn lost(&self) -> PathBuf {
        self.0.join("store.lost")
    }

    /// Returns the path of the health report.
    pub(crate) fn health(&self) -> PathBuf {
        self.0.join("health.json")
    }

    /// Creates the folder for its owner only.
    pub(crate) fn make(&self) -> Result<(), Error> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(self.0);
        made.map_err(|source| Error::File { path: self.0.to_path_buf(), source })
    }
}

/// Returns the contents of a file, if it exists.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let mut bytes = Vec::new();
    match File::open(path).and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)) {
        Ok(_) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::File { path: path.to_path_buf(), source }),
    }
}

/// Writes a file atomically that only its owner can read.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let new = path.with_extension("new");
    let written = || -> std::io::Result<()> {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    };
    written().map_err(|source| Error::File { path: path.to_path_buf(), source })
}

/// Removes a file or folder, if it exists.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Error::File { path: path.to_path_buf(), source: error })
        }
        _ => Ok(()),
    }
}
