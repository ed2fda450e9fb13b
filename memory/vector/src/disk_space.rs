//! Room on the disk. The engine writes through mapped files that take up their space as they are written to: where there
//! is none left the kernel ends the process (SIGBUS) instead of telling anybody. So there is a look before each change.

use std::fs::{self, Metadata};
use std::path::Path;

use azera_memory::Error;

/// Bytes that stay free, for what the engine writes besides the points themselves, and for everybody else's writing
/// between the look and the change.
const MARGIN_BYTES: u64 = 16 * 1024 * 1024;

/// Fails where `bytes` and the margin do not fit on the disk of `dir`.
pub(crate) fn ensure_disk_space(what: &'static str, dir: &Path, bytes: u64) -> Result<(), Error> {
    if free_bytes(dir).map_err(Error::io(what))? < bytes.saturating_add(MARGIN_BYTES) {
        Err(Error::Full { what })
    } else {
        Ok(())
    }
}

/// Bytes the files under `dir` take up. Most of a mapped file's length takes none.
pub(crate) fn disk_bytes(dir: &Path) -> Result<u64, Error> {
    let what = "measuring the vector index";
    let mut bytes = 0;
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        entries => entries.map_err(Error::io(what))?,
    };
    for entry in entries {
        let entry = entry.map_err(Error::io(what))?;
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes += disk_bytes(&entry.path())?,
            Ok(metadata) => bytes += taken(&metadata),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io(what)(error)),
        }
    }
    Ok(bytes)
}

#[cfg(unix)]
fn free_bytes(dir: &Path) -> std::io::Result<u64> {
    let disk = rustix::fs::statvfs(dir)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Not known elsewhere.
#[cfg(not(unix))]
fn free_bytes(_: &Path) -> std::io::Result<u64> {
    Ok(u64::MAX)
}

/// Bytes a file takes up. `stat` counts blocks of 512 bytes, whatever the file system.
#[cfg(unix)]
fn taken(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(metadata) * 512
}

#[cfg(not(unix))]
fn taken(metadata: &Metadata) -> u64 {
    metadata.len()
}
