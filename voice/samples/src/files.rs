//! Folders that no other user of the machine may read.

use std::fs::{self, DirBuilder, File};
use std::io;
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

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn no_other_user_sees_what_is_in_the_folder() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("samples");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        create_private(&folder).unwrap();
        assert_eq!(mode(&folder), 0o700);
        close(&scratch.path().join("none")).unwrap();
    }
}
