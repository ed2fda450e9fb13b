//! Telling the folder of the backups from what stands in its place while its disk is not there: a small file in it says
//! which folder it is.

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

/// The name of a folder that holds backups of the record, if it is one.
pub(crate) fn read(dir: &Path, record: &str) -> Result<Option<String>, Error> {
    let path = file(dir, record);
    match fs::read_to_string(&path) {
        Ok(name) => Ok(Some(name.trim().to_owned())),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(Error::io("reading", &path)(error)),
    }
}

/// The same; a folder that has no name gets one.
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
