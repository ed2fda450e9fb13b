//! The file with the master keys, apart from the data that they protect.

use std::path::{Component, Path, PathBuf};

use crate::Error;
use crate::atomic::{self, Content};
use crate::format::Parts;
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
    /// Folders in which it must not be.
    protected: Vec<PathBuf>,
}

/// Returns where a path leads: without `..` and, as far as it exists, without links.
fn resolved(path: &Path) -> Result<PathBuf, Error> {
    let mut found = PathBuf::new();
    for part in std::path::absolute(path).map_err(Error::io("finding", path))?.components() {
        match part {
            Component::ParentDir => drop(found.pop()),
            part => found.push(part),
        }
        if let Ok(real) = found.canonicalize() {
            found = real;
        }
    }
    Ok(found)
}

impl KeyFile {
    /// Returns the key file at `path`, for the vaults of the data folder whose vault folder is `folder`.
    pub fn new(path: impl Into<PathBuf>, folder: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), folder: folder.into(), protected: Vec::new() }
    }

    /// Returns this key file, which must not be in any of these folders. That is checked once a key is needed.
    #[must_use]
    pub fn kept_out_of(self, protected: impl Into<Vec<PathBuf>>) -> Self {
        Self { protected: protected.into(), ..self }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn known_path(&self) -> PathBuf {
        self.folder.join(KNOWN)
    }

    /// Fails if the file is, or would be made, in a folder that it must not be in.
    fn check_place(&self) -> Result<(), Error> {
        let name = self.path.file_name().unwrap_or_default();
        let folder = self.path.parent().unwrap_or(Path::new(""));
        // Reading follows a link, and replacing puts a file in its place.
        let places = [resolved(&self.path)?, resolved(folder)?.join(name)];
        for protected in &self.protected {
            let real = resolved(protected)?;
            if places.iter().any(|place| place.starts_with(&real)) {
                return Err(Error::KeyPlace { path: self.path.clone(), protected: protected.clone() });
            }
        }
        Ok(())
    }

    /// Returns the master that the vaults of this data folder need, as far as that is noted.
    ///
    /// # Errors
    /// The note cannot be read.
    pub fn noted(&self) -> Result<Option<MasterId>, Error> {
        let path = self.known_path();
        let Some(content) = atomic::read(&path, MAX_KNOWN_BYTES)? else { return Ok(None) };
        let id = std::str::from_utf8(&content.bytes).ok().and_then(|text| MasterId::parse(text.trim_end()));
        id.map(Some).ok_or_else(|| Error::io("reading", &path)(std::io::Error::other("it names no master key")))
    }

    /// Notes the master that a sealed vault needs, unless one is noted. Call it for vaults that came with a backup: as long as
    /// nothing is noted, a new key could be made, with which they do not open.
    ///
    /// # Errors
    /// The bytes are no sealed vault, or the note cannot be read or written.
    pub fn note_for(&self, sealed: &[u8]) -> Result<(), Error> {
        match self.noted()? {
            Some(_) => Ok(()),
            None => self.note(Parts::parse(sealed)?.master),
        }
    }

    /// Notes which master the vaults need from now on.
    fn note(&self, id: MasterId) -> Result<(), Error> {
        if self.noted()? == Some(id) {
            return Ok(());
        }
        atomic::make_folder(&self.folder)?;
        atomic::replace(&self.known_path(), format!("{id}\n").as_bytes())
    }

    /// Reads the file; `None` if it is not there.
    pub(crate) fn read(&self) -> Result<Option<Masters>, Error> {
        self.check_place()?;
        let Some(Content { bytes, mode }) = atomic::read(&self.path, MAX_BYTES)? else { return Ok(None) };
        if mode & OF_OTHERS != 0 {
            return Err(Error::KeyAccess { path: self.path.clone(), mode });
        }
        let damaged = || Error::KeyDamaged { path: self.path.clone() };
        let text = std::str::from_utf8(&bytes).map_err(|_| damaged())?;
        let masters = Masters::parse(text)?.ok_or_else(damaged)?;
        match self.noted()? {
            Some(id) if masters.find(id).is_none() => Err(Error::WrongMaster(id)),
            _ => Ok(Some(masters)),
        }
    }

    pub(crate) fn missing(&self) -> Error {
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
            None if has_vaults || self.noted()?.is_some() => return Err(self.missing()),
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
