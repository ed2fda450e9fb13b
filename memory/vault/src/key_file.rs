//! The file with the master keys, apart from the data that they protect.

use std::path::{Path, PathBuf};

use crate::Error;
use crate::atomic::{self, Content};
use crate::master::{MasterId, Masters};

/// Largest key file, in bytes. Nine masters and the head have half of it.
const MAX_BYTES: u64 = 4_096;

/// Permission bits of a group and of others.
const OF_OTHERS: u32 = 0o077;

/// The file in the data folder that names the master. It shows that there are vaults that need this master.
const KNOWN: &str = "master";

/// Most bytes of that file.
const MAX_KNOWN_BYTES: u64 = 64;

/// Where the master keys come from.
pub trait MasterKeys: Send + Sync {
    /// Returns the masters.
    ///
    /// # Errors
    /// [`Error::KeyMissing`] if there are none; other variants if they cannot be read or are not those of this data folder.
    fn masters(&self) -> Result<Masters, Error>;

    /// Returns the masters, and makes the first one if no vault needs one yet. `has_vaults` tells of sealed vaults that the
    /// keys do not know about.
    ///
    /// # Errors
    /// Those of [`MasterKeys::masters`], and what writing gives.
    fn masters_for_writing(&self, has_vaults: bool) -> Result<Masters, Error>;
}

/// A key file of mode 600.
#[derive(Debug, Clone)]
pub struct KeyFile {
    path: PathBuf,
    /// The folder in the data folder that holds [`KNOWN`].
    folder: PathBuf,
}

impl KeyFile {
    /// Returns the key file at `path`, for the vaults of the data folder whose vault folder is `folder`.
    pub fn new(path: impl Into<PathBuf>, folder: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), folder: folder.into() }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn known_path(&self) -> PathBuf {
        self.folder.join(KNOWN)
    }

    /// Returns the master that the vaults of this data folder need.
    fn known(&self) -> Result<Option<MasterId>, Error> {
        let path = self.known_path();
        let Some(content) = atomic::read(&path, MAX_KNOWN_BYTES)? else { return Ok(None) };
        let id = std::str::from_utf8(&content.bytes).ok().and_then(|text| MasterId::parse(text.trim_end()));
        id.map(Some).ok_or_else(|| Error::io("reading", &path)(std::io::Error::other("it names no master key")))
    }

    /// Notes which master the vaults need from now on.
    fn note(&self, id: MasterId) -> Result<(), Error> {
        if self.known()? == Some(id) {
            return Ok(());
        }
        atomic::make_folder(&self.folder)?;
        atomic::replace(&self.known_path(), format!("{id}\n").as_bytes())
    }

    /// Reads the file; `None` if it is not there.
    fn read(&self) -> Result<Option<Masters>, Error> {
        let Some(Content { bytes, mode }) = atomic::read(&self.path, MAX_BYTES)? else { return Ok(None) };
        if mode & OF_OTHERS != 0 {
            return Err(Error::KeyAccess { path: self.path.clone(), mode });
        }
        let damaged = || Error::KeyDamaged { path: self.path.clone() };
        let text = std::str::from_utf8(&bytes).map_err(|_| damaged())?;
        let masters = Masters::parse(text)?.ok_or_else(damaged)?;
        match self.known()? {
            Some(id) if masters.find(id).is_none() => Err(Error::WrongMaster(id)),
            _ => Ok(Some(masters)),
        }
    }

    fn missing(&self) -> Error {
        Error::KeyMissing { path: self.path.clone() }
    }

    /// Makes a new master, which seals from now on, and retires the one before.
    pub(crate) fn renew(&self) -> Result<Masters, Error> {
        let renewed = self.masters()?.with_a_new_one()?;
        atomic::replace(&self.path, renewed.to_text().as_bytes())?;
        self.note(renewed.current_id())?;
        Ok(renewed)
    }
}

impl MasterKeys for KeyFile {
    fn masters(&self) -> Result<Masters, Error> {
        self.read()?.ok_or_else(|| self.missing())
    }

    fn masters_for_writing(&self, has_vaults: bool) -> Result<Masters, Error> {
        let masters = match self.read()? {
            Some(masters) => masters,
            None if has_vaults || self.known()?.is_some() => return Err(self.missing()),
            None => {
                let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
                parent.map_or(Ok(()), atomic::make_folder)?;
                // Another process may have made it meanwhile.
                let first = Masters::generate()?;
                match atomic::create(&self.path, first.to_text().as_bytes())? {
                    true => first,
                    false => self.masters()?,
                }
            }
        };
        self.note(masters.current_id())?;
        Ok(masters)
    }
}
