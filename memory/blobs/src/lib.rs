//! The blob store on disk: one file for each content, named by its SHA-256. Begin with [`DiskBlobs`].
//!
//! - `ab/cdef…` holds the bytes whose digest is `abcdef…`. Only the owner of the process can read it.
//! - A file gets its name when it is whole and flushed. What a crash interrupts has another name, and goes at the next
//!   [`DiskBlobs::open`], which only the process that writes the folder may call. Readers use [`DiskBlobs::at`].
//! - A read compares the bytes with the name. It returns the right bytes or an error.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use azera_memory::{BlobStore, Error, blob_id, damaged_blob};
use azera_types::BlobId;

/// Prefix of files that are being written.
const PARTIAL: &str = ".new-";

/// Digits of an id that name the folder of the file.
const FOLDER_DIGITS: usize = 2;

/// A folder of blobs.
#[derive(Debug, Clone)]
pub struct DiskBlobs {
    dir: PathBuf,
}

impl DiskBlobs {
    /// Returns the folder `dir`, which need not exist, as it is. Another process may be writing into it.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// Opens the folder `dir`, which need not exist, for the only process that writes into it. Removes what a crash left
    /// half written.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self, Error> {
        let store = Self::at(dir);
        for name in names_in(&store.dir)? {
            if name.starts_with(PARTIAL) {
                remove(&store.dir.join(name))?;
            }
        }
        Ok(store)
    }

    /// Returns the folder and the file of an id.
    fn place(&self, id: &BlobId) -> (PathBuf, PathBuf) {
        // An id has hexadecimal digits only, so this cannot lead out of the folder.
        let (folder, name) = id.as_str().split_at(FOLDER_DIGITS);
        let folder = self.dir.join(folder);
        let file = folder.join(name);
        (folder, file)
    }

    fn make_folder(&self, folder: &Path) -> Result<(), Error> {
        if folder.is_dir() {
            return Ok(());
        }
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(Error::io("making the folder of files"))?;
        sync(&self.dir)?;
        self.dir.parent().filter(|parent| !parent.as_os_str().is_empty()).map_or(Ok(()), sync)
    }
}

impl BlobStore for DiskBlobs {
    fn put(&self, id: &BlobId, bytes: &[u8]) -> Result<(), Error> {
        // Damaged bytes are replaced.
        if matches!(self.get(id), Ok(Some(_))) {
            return Ok(());
        }
        let what = "writing a file";
        let (folder, path) = self.place(id);
        self.make_folder(&folder)?;
        let mut file = tempfile::Builder::new().prefix(PARTIAL).tempfile_in(&self.dir).map_err(Error::io(what))?;
        file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(Error::io(what))?;
        file.persist(&path).map_err(|refused| Error::io(what)(refused.error))?;
        sync(&folder)
    }

    fn get(&self, id: &BlobId) -> Result<Option<Vec<u8>>, Error> {
        match fs::read(self.place(id).1) {
            Ok(bytes) if blob_id(&bytes)? == *id => Ok(Some(bytes)),
            Ok(_) => Err(damaged_blob(id)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("reading a file")(error)),
        }
    }

    fn remove(&self, id: &BlobId) -> Result<u64, Error> {
        let (folder, path) = self.place(id);
        let bytes = match fs::metadata(&path) {
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(Error::io("removing a file")(error)),
        };
        remove(&path)?;
        sync(&folder)?;
        Ok(bytes)
    }

    fn list(&self) -> Result<Vec<(BlobId, u64)>, Error> {
        let mut found = Vec::new();
        for folder in names_in(&self.dir)?.into_iter().filter(|name| name.len() == FOLDER_DIGITS) {
            for name in names_in(&self.dir.join(&folder))? {
                let Ok(id) = BlobId::new(format!("{folder}{name}")) else { continue };
                let metadata = fs::metadata(self.place(&id).1).map_err(Error::io("reading the folder of files"))?;
                found.push((id, metadata.len()));
            }
        }
        Ok(found)
    }
}

/// Returns the names in a folder; none if it does not exist.
fn names_in(dir: &Path) -> Result<BTreeSet<String>, Error> {
    let what = "reading the folder of files";
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(BTreeSet::new());
        }
        Err(error) => return Err(Error::io(what)(error)),
    };
    let mut names = BTreeSet::new();
    for entry in entries {
        let entry = entry.map_err(Error::io(what))?;
        names.extend(entry.file_name().into_string());
    }
    Ok(names)
}

fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("removing a file")(error)),
        _ => Ok(()),
    }
}

/// Makes the names in a folder durable.
fn sync(folder: &Path) -> Result<(), Error> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(Error::io("writing the folder of files"))
}
