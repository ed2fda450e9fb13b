//! Reading at an offset, and the directory of the index.

use std::fs::File;
use std::io;
use std::path::Path;

/// Fills `buffer` from `offset` on. Threads may read one file at the same time.
#[cfg(unix)]
pub(crate) fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

/// Fills `buffer` from `offset` on. Threads may read one file at the same time.
#[cfg(windows)]
pub(crate) fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buffer, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                buffer = buffer.split_at_mut(read).1;
                offset += read as u64;
            }
        }
    }
    Ok(())
}

/// Makes the names in a directory durable.
pub(crate) fn sync_names(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Removes a file, if it is there.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
