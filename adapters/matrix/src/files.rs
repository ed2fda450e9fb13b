//! The files of a session: secrets that their owner alone can read, written whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::Error;

/// Bytes that a file of the session may have.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// Where they are.
pub(crate) struct Files<'a>(pub(crate) &'a Path);

impl Files<'_> {
    /// What the store is encrypted with.
    pub(crate) fn key(&self) -> PathBuf {
        self.0.join("store.key")
    }

    pub(crate) fn session(&self) -> PathBuf {
        self.0.join("session.json")
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.0.join("store")
    }

    /// What brings the account's keys back when everything else is lost.
    pub(crate) fn recovery(&self) -> PathBuf {
        self.0.join("recovery.key")
    }

    /// Lies there from the moment a store is found to be lost until its rooms are taken up again.
    pub(crate) fn lost(&self) -> PathBuf {
        self.0.join("store.lost")
    }

    /// What an operator should know.
    pub(crate) fn health(&self) -> PathBuf {
        self.0.join("health.json")
    }

    /// Makes the folder, for its owner alone.
    pub(crate) fn make(&self) -> Result<(), Error> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(self.0);
        made.map_err(|source| Error::File { path: self.0.to_path_buf(), source })
    }
}

/// What a file holds, if it is there.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let mut bytes = Vec::new();
    match File::open(path).and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)) {
        Ok(_) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::File { path: path.to_path_buf(), source }),
    }
}

/// Writes a file that its owner alone can read, whole or not at all.
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

/// Removes a file or a folder, if it is there.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Error::File { path: path.to_path_buf(), source: error })
        }
        _ => Ok(()),
    }
}
