//! Files and folders that no other user of the machine may read.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// Creates a folder with those above it, or closes an existing one to others.
pub fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    close(folder)
}

/// Closes a folder to other users, if it exists.
pub fn close(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        let only_owner = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        match fs::set_permissions(folder, only_owner) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

/// Waits until no other process holds a folder, and holds it until the result is dropped. Returns `None` if it does not
/// exist, and on systems that cannot lock a folder.
pub fn lock(folder: &Path) -> io::Result<Option<File>> {
    if !cfg!(unix) {
        return Ok(None);
    }
    match File::open(folder) {
        Ok(folder) => folder.lock().map(|()| Some(folder)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a file beside its final place and puts it there when the disk holds it.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    sync_folder(path)
}

/// Lets the disk hold the names of a file's folder, too.
fn sync_folder(path: &Path) -> io::Result<()> {
    // Other systems open no folder as a file.
    match path.parent() {
        Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn no_other_user_reads_what_is_written() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("samples");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        create_private(&folder).unwrap();
        write(&folder.join("a.wav"), b"RIFF").unwrap();
        assert_eq!((mode(&folder), mode(&folder.join("a.wav"))), (0o700, 0o600));
        close(&scratch.path().join("none")).unwrap();
    }
}
