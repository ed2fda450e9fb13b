use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use azera_model_api::Error;
use sha2::{Digest, Sha256};

use crate::prompt::PrefixKey;

const EXTENSION: &str = "kv";
const DIGEST_BYTES: u64 = 32;

/// Evaluated prefixes on disk. Each has a file, named by its key, that ends with the SHA-256 of its content. Files are
/// written under a temporary name and then renamed. A file with a wrong checksum is deleted, and written again later.
#[derive(Debug)]
pub(crate) struct PrefixDisk {
    dir: PathBuf,
    limit_bytes: u64,
}

impl PrefixDisk {
    pub(crate) fn open(dir: PathBuf, limit_bytes: u64) -> io::Result<Self> {
        fs::create_dir_all(&dir)?;
        let disk = Self { dir, limit_bytes };
        for entry in fs::read_dir(&disk.dir)? {
            let path = entry?.path();
            // The remains of a killed process.
            if path.extension().is_some_and(|extension| extension == "tmp") {
                fs::remove_file(path)?;
            }
        }
        Ok(disk)
    }

    /// Returns true if the prefix has a file.
    pub(crate) fn has(&self, key: &PrefixKey) -> bool {
        self.path(key).is_file()
    }

    /// Returns the file of a prefix, if it exists and is intact.
    pub(crate) fn find(&self, key: &PrefixKey) -> Option<PathBuf> {
        let path = self.path(key);
        match is_whole(&path) {
            Ok(true) => {
                if let Err(error) = self.touch(&path) {
                    tracing::warn!(%error, "cannot mark a prefix file as used");
                }
                Some(path)
            }
            Ok(false) => {
                tracing::warn!(path = %path.display(), "a prefix file is damaged; it will be written again");
                self.discard(key);
                None
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "cannot read a prefix file");
                None
            }
        }
    }

    /// Deletes the file of a prefix.
    pub(crate) fn discard(&self, key: &PrefixKey) {
        if let Err(error) = fs::remove_file(self.path(key))
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "cannot delete a prefix file");
        }
    }

    /// Writes the file of a prefix with `write`. Then deletes the least recently used files above the limit.
    pub(crate) fn save(&self, key: &PrefixKey, write: impl FnOnce(&Path) -> Result<(), Error>) -> Result<(), Error> {
        let failed = |error: io::Error| Error::Engine(format!("the prefix file could not be written: {error}"));
        let path = self.path(key);
        let partial = path.with_extension("tmp");
        write(&partial).and_then(|()| self.seal(&partial, &path).map_err(failed)).inspect_err(|_| {
            // The first error matters; the rest of the file is deleted at the next start.
            fs::remove_file(&partial).ok();
        })
    }

    fn seal(&self, partial: &Path, path: &Path) -> io::Result<()> {
        let digest = digest(File::open(partial)?)?;
        let mut file = OpenOptions::new().append(true).open(partial)?;
        file.write_all(&digest)?;
        file.sync_all()?;
        fs::rename(partial, path)?;
        self.touch(path)?;
        self.prune()
    }

    /// Makes a file the most recently used one. The modification times serve as a counter: the new one is just after
    /// the newest, whatever the clock says.
    fn touch(&self, path: &Path) -> io::Result<()> {
        let newest = self.files()?.into_iter().map(|file| file.used).max().unwrap_or(SystemTime::UNIX_EPOCH);
        OpenOptions::new().append(true).open(path)?.set_modified(newest + Duration::from_millis(1))
    }

    fn prune(&self) -> io::Result<()> {
        let mut files = self.files()?;
        files.sort_by_key(|file| file.used);
        let mut total: u64 = files.iter().map(|file| file.bytes).sum();
        for file in files {
            if total <= self.limit_bytes {
                break;
            }
            fs::remove_file(&file.path)?;
            total -= file.bytes;
        }
        Ok(())
    }

    fn files(&self) -> io::Result<Vec<PrefixFile>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == EXTENSION) {
                let metadata = fs::metadata(&path)?;
                files.push(PrefixFile { path, bytes: metadata.len(), used: metadata.modified()? });
            }
        }
        Ok(files)
    }

    fn path(&self, key: &PrefixKey) -> PathBuf {
        self.dir.join(key.to_string()).with_extension(EXTENSION)
    }
}

struct PrefixFile {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

fn is_whole(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let Some(body) = file.metadata()?.len().checked_sub(DIGEST_BYTES) else { return Ok(false) };
    let found = digest((&mut file).take(body))?;
    let mut expected = Vec::new();
    file.read_to_end(&mut expected)?;
    Ok(expected == found)
}

fn digest(mut from: impl Read) -> io::Result<Vec<u8>> {
    let mut hasher = Sha256::new();
    io::copy(&mut from, &mut hasher)?;
    Ok(hasher.finalize().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u8) -> PrefixKey {
        PrefixKey::new("model", None, &[llama_cpp_2::token::LlamaToken::new(n.into())])
    }

    fn put(disk: &PrefixDisk, n: u8, bytes: usize) {
        disk.save(&key(n), |path| {
            fs::write(path, vec![n; bytes]).unwrap();
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn intact_files_are_found_and_damaged_ones_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let disk = PrefixDisk::open(dir.path().join("deep"), 1_000).unwrap();
        assert_eq!(disk.find(&key(1)), None);
        put(&disk, 1, 100);
        let path = disk.find(&key(1)).unwrap();

        let mut bytes = fs::read(&path).unwrap();
        bytes[50] ^= 1;
        fs::write(&path, &bytes).unwrap();
        assert_eq!(disk.find(&key(1)), None);
        assert!(!path.exists());

        fs::write(&path, b"short").unwrap();
        assert_eq!(disk.find(&key(1)), None);
        put(&disk, 1, 100);
        assert!(disk.find(&key(1)).is_some());
    }

    #[test]
    fn the_least_recently_used_file_is_deleted_first() {
        let dir = tempfile::tempdir().unwrap();
        let disk = PrefixDisk::open(dir.path().to_owned(), 300).unwrap();
        put(&disk, 1, 100);
        put(&disk, 2, 100);
        assert!(disk.find(&key(1)).is_some());
        put(&disk, 3, 100);
        let left: Vec<bool> = [1, 2, 3].map(|n| disk.has(&key(n))).into();
        assert_eq!(left, [true, false, true]);
    }

    #[test]
    fn a_failed_write_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let disk = PrefixDisk::open(dir.path().to_owned(), 300).unwrap();
        disk.save(&key(1), |path| {
            fs::write(path, b"partial").unwrap();
            Err(Error::Engine("full".into()))
        })
        .unwrap_err();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
