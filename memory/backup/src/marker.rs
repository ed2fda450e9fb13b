//! The marker file of a backup folder. It contains the folder's name, and so distinguishes the folder from an empty
//! directory in its place while the disk is not mounted.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use azera_memory::made_up_name;
use tempfile::NamedTempFile;

use crate::Error;
use crate::file::sync;

fn file(dir: &Path, record: &str) -> PathBuf {
    dir.join(format!(".azera-{record}"))
}

/// Returns the name of a folder, if it is a backup folder of the record.
pub(crate) fn read(dir: &Path, record: &str) -> Result<Option<String>, Error> {
    let path = file(dir, record);
    match fs::read_to_string(&path) {
        Ok(name) => Ok(Some(name.trim().to_owned())),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(Error::io("reading", &path)(error)),
    }
}

/// Returns the name of a folder, and names it first if needed.
pub(crate) fn name(dir: &Path, record: &str) -> Result<String, Error> {
    if let Some(name) = read(dir, record)? {
        return Ok(name);
    }
    let (path, name) = (file(dir, record), made_up_name());
    let error = |error| Error::io("writing", &path)(error);
    let mut written = NamedTempFile::new_in(dir).map_err(error)?;
    written.write_all(name.as_bytes()).and_then(|()| written.as_file().sync_all()).map_err(error)?;
    written.persist(&path).map_err(|refused| error(refused.error))?;
    sync(dir)?;
    Ok(name)
}
