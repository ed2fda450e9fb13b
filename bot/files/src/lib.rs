//! Files that are written whole or not at all. After a crash or a full disk, the old content is there or the new one.
//!
//! Only the owner may read them: what Azera stores is about people.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// The ending of a file that is being written, in the place of its own.
const STAGED: &str = "new";

/// Writes a file through one beside it, whose ending is `new`, and returns once the disk holds it.
///
/// # Errors
/// The disk fails. The old content is there then, or the new one, and never a part of one.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_through(&path.with_extension(STAGED), path, bytes)
}

/// Does the same as [`write()`] through a given file of the same folder. What is there already is replaced.
///
/// # Errors
/// As for [`write()`].
pub fn write_through(staged: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let written = create(staged).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(staged, path)
    });
    if written.is_err() {
        // The first error is the one to report.
        fs::remove_file(staged).ok();
        return written;
    }
    sync_folder(path)
}

/// Creates a file that others cannot read. One that is there might be readable for them.
fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Lets the disk hold the names of a file's folder, too.
fn sync_folder(path: &Path) -> io::Result<()> {
    // Other systems open no folder as a file.
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("about.json");
        write(&path, b"a longer text").unwrap();
        // What a crash left.
        fs::write(folder.path().join("about.new"), b"half of anoth").unwrap();
        write(&path, b"short").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"short");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_cannot_be_written_leaves_the_old_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("about.json");
        // Nothing takes the place of a folder that holds something.
        fs::create_dir_all(path.join("inside")).unwrap();
        write(&path, b"text").unwrap_err();
        assert!(path.join("inside").exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no file is left beside it");
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_reads_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("about.json");
        fs::write(folder.path().join("about.new"), b"readable for others").unwrap();
        write(&path, b"text").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
