use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use azera_memory::Error;

/// File that names the generation in use. It is replaced by renaming, so it always names the old or the new one.
const CURRENT: &str = "current";

/// Name of the new `current` file before it is renamed.
const CURRENT_NEW: &str = "current.new";

/// File that is locked while the directory is in use.
const LOCK: &str = "lock";

/// A directory of generations. Each generation is a whole database in a directory of its own; one is in use.
///
/// ```text
/// lock  current -> "g2"  g1/ (old: removed at the next opening)  g2/ (in use)
/// ```
pub(crate) struct Generations {
    dir: PathBuf,
    current: u64,
    /// The lock is held until this is dropped.
    _lock: File,
}

impl Generations {
    /// Locks the directory, creates it and its first generation if needed, and removes the remains of an interrupted
    /// change of generation.
    pub(crate) fn open(dir: &Path) -> Result<Self, Error> {
        fs::create_dir_all(dir).map_err(Error::io("making the directory of a store"))?;
        let lock = File::create(dir.join(LOCK)).map_err(Error::io("opening the lock of a store"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                // Nothing is damaged: whoever has it may close it at any time.
                let why = format!("{} is in use by another Azera", dir.display());
                let source = std::io::Error::new(std::io::ErrorKind::ResourceBusy, why);
                return Err(Error::Io { what: "locking the store", source });
            }
            Err(TryLockError::Error(source)) => return Err(Error::Io { what: "locking the store", source }),
        }
        let current = read_current(dir)?;
        let mut generations = Self { dir: dir.to_owned(), current: current.unwrap_or(0), _lock: lock };
        for found in generations.found()? {
            if Some(found) != current {
                generations.remove(found)?;
            }
        }
        if current.is_none() {
            let (first, _) = generations.next()?;
            generations.adopt(first)?;
        }
        if !generations.path().is_dir() {
            return Err(damaged(format!("{} is missing", generations.path().display())));
        }
        Ok(generations)
    }

    /// Returns the directory of the generation in use.
    pub(crate) fn path(&self) -> PathBuf {
        self.path_of(self.current)
    }

    /// Creates the empty directory of the next generation.
    pub(crate) fn next(&self) -> Result<(u64, PathBuf), Error> {
        let next = self.current + 1;
        self.remove(next)?;
        let path = self.path_of(next);
        fs::create_dir(&path).map_err(Error::io("making a generation of a store"))?;
        Ok((next, path))
    }

    /// Switches to a generation whose files are all on disk, and returns the one before. Remove that one only after
    /// [`Generations::sync`], because until then a crash may bring it back.
    pub(crate) fn adopt(&mut self, generation: u64) -> Result<u64, Error> {
        let what = "changing the generation of a store";
        let new = self.dir.join(CURRENT_NEW);
        fs::write(&new, format!("g{generation}\n")).map_err(Error::io(what))?;
        File::open(&new).and_then(|file| file.sync_all()).map_err(Error::io(what))?;
        sync_dir(&self.path_of(generation))?;
        fs::rename(&new, self.dir.join(CURRENT)).map_err(Error::io(what))?;
        Ok(std::mem::replace(&mut self.current, generation))
    }

    /// Makes the switch to another generation durable.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        sync_dir(&self.dir)
    }

    /// Removes a generation that is not in use, if it exists.
    pub(crate) fn remove(&self, generation: u64) -> Result<(), Error> {
        let path = self.path_of(generation);
        match fs::remove_dir_all(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::Io { what: "removing an old generation of a store", source })
            }
            _ => Ok(()),
        }
    }

    fn path_of(&self, generation: u64) -> PathBuf {
        self.dir.join(format!("g{generation}"))
    }

    /// Returns the generations on disk.
    fn found(&self) -> Result<Vec<u64>, Error> {
        let what = "reading the directory of a store";
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.dir).map_err(Error::io(what))? {
            let name = entry.map_err(Error::io(what))?.file_name();
            found.extend(name.to_str().and_then(number));
        }
        Ok(found)
    }
}

pub(crate) fn number(name: &str) -> Option<u64> {
    name.strip_prefix('g')?.parse().ok()
}

/// Returns the number in `current`. Without that file the store is new. But if there are rows, the file is lost, and
/// the rows must not be removed as remains.
fn read_current(dir: &Path) -> Result<Option<u64>, Error> {
    match fs::read_to_string(dir.join(CURRENT)) {
        Ok(text) => number(text.trim()).map(Some).ok_or_else(|| damaged("the file `current` names nothing".into())),
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => {
            let rows = |entry: &fs::DirEntry| {
                let generation = entry.file_name().to_str().and_then(number).is_some();
                generation && fs::read_dir(entry.path()).is_ok_and(|mut inside| inside.next().is_some())
            };
            let lost =
                fs::read_dir(dir).map_err(Error::io("reading the directory of a store"))?.flatten().any(|it| rows(&it));
            if lost { Err(damaged("the file `current` is missing".into())) } else { Ok(None) }
        }
        Err(source) => Err(Error::Io { what: "reading the generation of a store", source }),
    }
}

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), Error> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(Error::io("flushing a directory"))
}

fn damaged(why: String) -> Error {
    Error::Backend { what: "opening the store", why, transient: false }
}
