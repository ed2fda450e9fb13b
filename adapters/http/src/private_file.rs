//! Files that only their owner may read.

use std::io::Write;
use std::path::Path;

use crate::Error;

/// Writes a file, through a second one that is never readable for others.
pub(crate) fn write(path: &Path, content: &[u8]) -> Result<(), Error> {
    let new = path.with_extension("new");
    let written = || {
        // A file that is there already might be readable for others.
        match std::fs::remove_file(&new) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&new)?;
        file.write_all(content)?;
        file.sync_all()?;
        std::fs::rename(&new, path)
    };
    written().map_err(|source| Error::File { path: path.to_owned(), source })
}
