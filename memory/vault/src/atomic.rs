//! Files that are replaced as a whole: a crash leaves the old file or the new one.

use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use tempfile::NamedTempFile;
use zeroize::Zeroizing;

use crate::Error;

/// The beginning of the names of files that are being written.
const PARTIAL: &str = ".new-";

/// Returns the folder of a file.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes a folder that only its owner may enter, if it is not there.
pub(crate) fn make_folder(dir: &Path) -> Result<(), Error> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(Error::io("making the folder", dir))
}

/// Writes a new file beside `path`, flushed. Only its owner may read it (mode 600).
fn written(path: &Path, bytes: &[u8]) -> Result<NamedTempFile, Error> {
    let what = "writing";
    let mut file = tempfile::Builder::new().prefix(PARTIAL).tempfile_in(folder(path)).map_err(Error::io(what, path))?;
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(Error::io(what, path))?;
    Ok(file)
}

/// Replaces a file, durably.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let file = written(path, bytes)?;
    file.persist(path).map_err(|refused| Error::io("writing", path)(refused.error))?;
    sync(folder(path))
}

/// Makes a file that is not there yet, durably. Returns false if it is there.
pub(crate) fn create(path: &Path, bytes: &[u8]) -> Result<bool, Error> {
    let file = written(path, bytes)?;
    match file.persist_noclobber(path) {
        Ok(_) => sync(folder(path)).map(|()| true),
        Err(refused) if refused.error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(refused) => Err(Error::io("writing", path)(refused.error)),
    }
}

/// Removes what a crash left half written in a folder. The caller is the only one that writes there.
pub(crate) fn remove_partial(dir: &Path) -> Result<(), Error> {
    let what = "reading the folder";
    for entry in fs::read_dir(dir).map_err(Error::io(what, dir))? {
        let entry = entry.map_err(Error::io(what, dir))?;
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(PARTIAL)) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes a file, durably. Returns false if it was not there.
pub(crate) fn remove(path: &Path) -> Result<bool, Error> {
    match fs::remove_file(path) {
        Ok(()) => sync(folder(path)).map(|()| true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io("removing", path)(error)),
    }
}

/// What a file holds.
pub(crate) struct Content {
    pub(crate) bytes: Zeroizing<Vec<u8>>,
    /// Its permission bits.
    pub(crate) mode: u32,
}

/// Reads a file of at most `most` bytes; `None` if it is not there.
pub(crate) fn read(path: &Path, most: u64) -> Result<Option<Content>, Error> {
    let what = "reading";
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(what, path)(error)),
    };
    // Of the opened file, so that nobody can put another one in its place.
    let mode = file.metadata().map_err(Error::io(what, path))?.permissions().mode() & 0o777;
    let mut bytes = Zeroizing::new(Vec::new());
    file.take(most + 1).read_to_end(&mut bytes).map_err(Error::io(what, path))?;
    if bytes.len() as u64 > most {
        return Err(Error::io(what, path)(std::io::Error::other(format!("it has more than {most} bytes"))));
    }
    Ok(Some(Content { bytes, mode }))
}

/// Makes the names in a folder durable.
fn sync(dir: &Path) -> Result<(), Error> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(Error::io("writing the folder", dir))
}
