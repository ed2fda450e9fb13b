//! Files that only their owner may read.

use std::path::Path;

use crate::Error;

/// Writes a file whole or not at all.
pub(crate) fn write(path: &Path, content: &[u8]) -> Result<(), Error> {
    azera_files::write(path, content).map_err(|source| Error::File { path: path.to_owned(), source })
}
