//! The data folder: which process uses it, what it contains, and how its record is replaced.
//!
//! ```text
//! lock  record/  blobs/  vectors/  text/  working/  personas/  backups/  aside/20260301T120500Z/{record,blobs,personas}
//! ```
//!
//! A record is replaced in steps, and a crash may happen between them. The new record is written as `record.new`. Once
//! it is whole, it is renamed to `record.next`. It then replaces the record, now or when the folder is next used.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use azera_types::Timestamp;

/// The lock file, locked while the folder is in use. It holds the user's process id, then the number of processes in a
/// row that ended while opening the indexes. It is empty after a clean end.
const LOCK: &str = "lock";

/// The mode of the lock file. Whoever can open it can lock it, and so pretend that an Azera runs here.
const LOCK_MODE: u32 = 0o600;

/// After this many processes in a row ended while opening the indexes, the indexes count as the cause. A single end may
/// have had any cause.
const MAX_ENDS_WHILE_OPENING: u32 = 2;

/// The file by which commands find the web of the process that holds the folder.
const WEB: &str = "web.json";

const RECORD: &str = "record";

/// A record that is being written.
const NEW: &str = "record.new";

/// A whole record that will replace the current one.
const NEXT: &str = "record.next";

/// Persona files.
const PERSONAS: &str = "personas";

/// Persona files that belong to [`NEXT`]. Without them, the personas are written again from the record.
const NEXT_PERSONAS: &str = "personas.next";

/// Files of messages.
const BLOBS: &str = "blobs";

/// Files of messages for a record that is being written.
const NEW_BLOBS: &str = "blobs.new";

/// Files of messages that belong to [`NEXT`].
const NEXT_BLOBS: &str = "blobs.next";

/// Folders that are rebuilt from the record.
const REBUILT: [&str; 3] = ["vectors", "text", "working"];

/// Replaced records, each in a folder named by the time of replacement.
const ASIDE: &str = "aside";

/// The entry of [`ASIDE`] that is being moved there.
const ASIDE_NEXT: &str = "next";

/// Days until a replaced record is deleted.
const ASIDE_DAYS: i64 = 7;

/// Why a data folder cannot be taken: another process holds it.
#[derive(Debug)]
pub struct Taken {
    dir: PathBuf,
    holder: String,
}

impl std::fmt::Display for Taken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "another Azera (process {}) works in {}, such as `azera run`, `azera chat` or the `azera mcp` of an assistant: \
             stop it first",
            self.holder,
            self.dir.display()
        )
    }
}

impl std::error::Error for Taken {}

/// A data folder that this process holds.
#[derive(Debug)]
pub struct DataFolder {
    dir: PathBuf,
    lock: File,
    /// Content of the lock file before this process took it.
    previous_lock: String,
    /// True until the opener of the record has recorded the unclean end.
    unrecorded: bool,
}

impl DataFolder {
    /// Takes the folder, creates it if needed, and completes what a crash interrupted. Fails with [`Taken`] if another
    /// process holds it.
    pub fn take(dir: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("making the folder {}", dir.display()))?;
        let path = dir.join(LOCK);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(LOCK_MODE);
        let open = options.open(&path);
        let mut lock = open.with_context(|| format!("opening {}", path.display()))?;
        let mut previous_lock = String::new();
        let locked = lock.try_lock();
        lock.read_to_string(&mut previous_lock).with_context(|| format!("reading {}", path.display()))?;
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = previous_lock.lines().next().unwrap_or("unknown").to_owned();
                return Err(Taken { dir: dir.to_owned(), holder }.into());
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("locking {}", path.display()));
            }
        }
        if let Err(error) = lock.set_permissions(Permissions::from_mode(LOCK_MODE)) {
            tracing::debug!(%error, "the lock file keeps its mode");
        }
        let unrecorded = !previous_lock.is_empty();
        let mut folder = Self { dir: dir.to_owned(), lock, previous_lock, unrecorded };
        folder.write_holder(folder.ends_while_opening())?;
        folder.forget_web()?;
        folder.complete_interrupted()?;
        Ok(folder)
    }

    /// Deletes what a web that was killed left. Somebody else may listen at its address now, and must not be asked.
    fn forget_web(&self) -> anyhow::Result<()> {
        let path = self.dir.join(WEB);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("removing {}", path.display()))
            }
            _ => Ok(()),
        }
    }

    /// Adds what to do to an error from opening the record.
    pub fn record_error(&self, error: &azera_memory::Error) -> anyhow::Error {
        let record = self.record();
        match error {
            // A process that gave the folder back has not closed the record yet.
            azera_memory::Error::Io { source, .. } if source.kind() == ErrorKind::ResourceBusy => {
                Taken { dir: self.dir.clone(), holder: "unknown".to_owned() }.into()
            }
            azera_memory::Error::Full { .. } => {
                anyhow!("{error}: make some in {} and start again; nothing is lost", record.display())
            }
            azera_memory::Error::Io { .. } => anyhow!("{error} ({})", record.display()),
            azera_memory::Error::Invalid(_) | azera_memory::Error::Backend { transient: true, .. } => {
                anyhow!("{error}")
            }
            _ => anyhow!(
                "the record in {} is damaged ({error}). `azera restore --replace` brings back the newest backup, `azera \
                 restore --salvage --replace` what can still be read; either puts what is there aside",
                record.display()
            ),
        }
    }

    /// Returns true if another process holds the folder. It may take it or leave it at any time, so this is a hint.
    pub fn is_taken(dir: &Path) -> bool {
        File::open(dir.join(LOCK)).is_ok_and(|lock| matches!(lock.try_lock(), Err(TryLockError::WouldBlock)))
    }

    /// Returns true if the last process did not end cleanly.
    pub fn was_left_running(&self) -> bool {
        !self.previous_lock.is_empty()
    }

    /// Marks the unclean end as recorded. Call it once the record knows.
    pub fn mark_recorded(&mut self) {
        self.unrecorded = false;
    }

    /// Returns how many processes in a row ended while opening the indexes.
    fn ends_while_opening(&self) -> u32 {
        self.previous_lock.lines().nth(1).and_then(|count| count.parse().ok()).unwrap_or(0)
    }

    /// Call before opening the indexes. Engines that map files can crash the process, and would do so at every start.
    /// Returns true if this happened so often that the indexes must be deleted.
    pub fn begin_opening(&mut self) -> anyhow::Result<bool> {
        let ends = self.ends_while_opening();
        self.write_holder(ends + 1)?;
        Ok(ends >= MAX_ENDS_WHILE_OPENING)
    }

    /// Call once the indexes are open.
    pub fn end_opening(&mut self) -> anyhow::Result<()> {
        self.write_holder(0)
    }

    /// Returns the path of the folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the path of the record.
    pub fn record(&self) -> PathBuf {
        self.dir.join(RECORD)
    }

    /// Returns the path of the files of messages.
    pub fn blobs(&self) -> PathBuf {
        self.dir.join(BLOBS)
    }

    /// Returns an empty path to write the files of a new record to.
    pub fn new_blobs(&self) -> anyhow::Result<PathBuf> {
        let path = self.dir.join(NEW_BLOBS);
        remove(&path)?;
        Ok(path)
    }

    /// Gives a new record the files at `from`. They stay there, too.
    pub fn link_blobs(&self, from: &Path) -> anyhow::Result<()> {
        link_tree(from, &self.new_blobs()?)
    }

    /// Returns true if there is a record.
    pub fn has_record(&self) -> bool {
        fs::read_dir(self.record()).is_ok_and(|mut inside| inside.next().is_some())
    }

    /// Returns an empty path to write a new record to.
    pub fn new_record(&self) -> anyhow::Result<PathBuf> {
        let path = self.dir.join(NEW);
        remove(&path)?;
        Ok(path)
    }

    /// Replaces the record with the one at [`DataFolder::new_record`], which must be whole and closed. Returns where
    /// the old record was set aside, if there was one.
    pub fn exchange(&mut self, now: Timestamp) -> anyhow::Result<Option<PathBuf>> {
        self.pass_blobs_on()?;
        rename(&self.dir.join(NEW), &self.dir.join(NEXT))?;
        self.place_next(now)
    }

    /// Marks the files of the new record as those of the next one. Without a next record, they are removed again.
    fn pass_blobs_on(&self) -> anyhow::Result<()> {
        remove(&self.dir.join(NEXT_BLOBS))?;
        if self.dir.join(NEW_BLOBS).exists() {
            rename(&self.dir.join(NEW_BLOBS), &self.dir.join(NEXT_BLOBS))?;
        }
        Ok(())
    }

    /// Returns the records set aside, oldest first.
    pub fn aside(&self) -> anyhow::Result<Vec<PathBuf>> {
        let dir = self.dir.join(ASIDE);
        let mut found = Vec::new();
        match fs::read_dir(&dir) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(found),
            entries => {
                for entry in entries.with_context(|| format!("reading {}", dir.display()))? {
                    found.push(entry.with_context(|| format!("reading {}", dir.display()))?.path());
                }
            }
        }
        found.sort();
        Ok(found)
    }

    /// Restores the record that was set aside last, and sets the current one aside. Returns where, or `None` if
    /// nothing was set aside.
    pub fn undo(&mut self, now: Timestamp) -> anyhow::Result<Option<PathBuf>> {
        let Some(last) = self.aside()?.pop() else { return Ok(None) };
        self.link_blobs(&last.join(BLOBS))?;
        self.pass_blobs_on()?;
        rename(&last.join(RECORD), &self.dir.join(NEXT))?;
        if last.join(PERSONAS).exists() {
            rename(&last.join(PERSONAS), &self.dir.join(NEXT_PERSONAS))?;
        }
        remove(&last)?;
        self.place_next(now)
    }

    /// Returns the path of the record in a folder from [`DataFolder::aside`].
    pub fn record_aside(aside: &Path) -> PathBuf {
        aside.join(RECORD)
    }

    /// Does the same as [`DataFolder::undo`], but with the whole and closed record at [`DataFolder::new_record`].
    /// Deletes everything else that was set aside.
    pub fn undo_with_new(&mut self, now: Timestamp) -> anyhow::Result<()> {
        let last = self.aside()?.pop();
        if let Some(last) = &last {
            self.link_blobs(&last.join(BLOBS))?;
        }
        self.pass_blobs_on()?;
        rename(&self.dir.join(NEW), &self.dir.join(NEXT))?;
        if let Some(personas) = last.map(|last| last.join(PERSONAS)).filter(|personas| personas.exists()) {
            rename(&personas, &self.dir.join(NEXT_PERSONAS))?;
        }
        remove_aside(&self.dir, true, now)?;
        self.place_next(now)?;
        Ok(())
    }

    /// Runs the steps that make the next record the current one. Each step may already be done.
    fn place_next(&mut self, now: Timestamp) -> anyhow::Result<Option<PathBuf>> {
        let aside = self.dir.join(ASIDE).join(ASIDE_NEXT);
        if self.dir.join(NEXT).exists() {
            fs::create_dir_all(&aside).with_context(|| format!("making the folder {}", aside.display()))?;
            for name in [RECORD, PERSONAS, BLOBS] {
                if self.dir.join(name).exists() {
                    rename(&self.dir.join(name), &aside.join(name))?;
                }
            }
            for name in REBUILT {
                remove(&self.dir.join(name))?;
            }
            // The record is replaced from here on. A crash between the next steps loses nothing.
            rename(&self.dir.join(NEXT), &self.record())?;
        }
        if self.dir.join(NEXT_PERSONAS).exists() && !self.dir.join(PERSONAS).exists() {
            rename(&self.dir.join(NEXT_PERSONAS), &self.dir.join(PERSONAS))?;
        }
        match self.dir.join(NEXT_BLOBS).exists() {
            true if self.blobs().exists() => remove(&self.dir.join(NEXT_BLOBS))?,
            true => rename(&self.dir.join(NEXT_BLOBS), &self.blobs())?,
            false => {}
        }
        if fs::read_dir(&aside).is_ok_and(|mut inside| inside.next().is_none()) {
            remove(&aside)?;
        }
        if !aside.exists() {
            return Ok(None);
        }
        let named = self.unused_name(now);
        rename(&aside, &named)?;
        Ok(Some(named))
    }

    /// Returns a folder name for the time `now`, or for a second soon after it if that name is taken.
    fn unused_name(&self, now: Timestamp) -> PathBuf {
        let mut at = now;
        loop {
            let named = self.dir.join(ASIDE).join(at.strftime("%Y%m%dT%H%M%SZ").to_string());
            if !named.exists() {
                return named;
            }
            at += jiff::SignedDuration::from_secs(1);
        }
    }

    fn complete_interrupted(&mut self) -> anyhow::Result<()> {
        remove(&self.dir.join(NEW))?;
        remove(&self.dir.join(NEW_BLOBS))?;
        let left = [
            self.dir.join(NEXT),
            self.dir.join(NEXT_PERSONAS),
            self.dir.join(NEXT_BLOBS),
            self.dir.join(ASIDE).join(ASIDE_NEXT),
        ];
        let interrupted = left.iter().any(|path| path.exists());
        if interrupted {
            tracing::warn!("a restore was interrupted; completing it");
            self.place_next(now())?;
        }
        Ok(())
    }

    fn write_holder(&mut self, ends_while_opening: u32) -> anyhow::Result<()> {
        self.write_lock(&format!("{}\n{ends_while_opening}\n", std::process::id()))
    }

    fn write_lock(&mut self, text: &str) -> anyhow::Result<()> {
        let written = self.lock.set_len(0).and_then(|()| self.lock.seek(SeekFrom::Start(0)));
        let written = written.and_then(|_| self.lock.write_all(text.as_bytes()));
        written.with_context(|| format!("writing {}", self.dir.join(LOCK).display()))
    }
}

impl Drop for DataFolder {
    fn drop(&mut self) {
        let left = if self.unrecorded { std::mem::take(&mut self.previous_lock) } else { String::new() };
        if let Err(error) = self.write_lock(&left) {
            tracing::warn!(%error, "cannot write the lock file; the next start will report a crash");
        }
    }
}

/// Deletes records that were set aside: all, or those older than [`ASIDE_DAYS`]. Returns how many.
pub fn remove_aside(dir: &Path, all: bool, now: Timestamp) -> anyhow::Result<usize> {
    let until = now - jiff::SignedDuration::from_hours(24 * ASIDE_DAYS);
    let until = until.strftime("%Y%m%dT%H%M%SZ").to_string();
    let aside = dir.join(ASIDE);
    let entries = match fs::read_dir(&aside) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error).with_context(|| format!("reading {}", aside.display())),
    };
    let mut removed = 0;
    for entry in entries {
        let entry = entry.with_context(|| format!("reading {}", aside.display()))?;
        if all || entry.file_name().to_str().is_some_and(|name| name < until.as_str()) {
            remove(&entry.path())?;
            removed += 1;
        }
    }
    Ok(removed)
}

fn now() -> Timestamp {
    azera_types::Clock::now(&azera_types::SystemClock)
}

/// Renames a path and syncs both parent folders.
fn rename(from: &Path, to: &Path) -> anyhow::Result<()> {
    let sync = |path: &Path| path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all());
    let renamed = fs::rename(from, to).and_then(|()| sync(from)).and_then(|()| sync(to));
    renamed.with_context(|| format!("renaming {} to {}", from.display(), to.display()))
}

/// Gives the files under `from` a second name under `to`. The bytes are copied where the file system has no links.
fn link_tree(from: &Path, to: &Path) -> anyhow::Result<()> {
    let reading = || format!("reading {}", from.display());
    let entries = match fs::read_dir(from) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.with_context(reading)?,
    };
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(to);
    made.with_context(|| format!("making the folder {}", to.display()))?;
    for entry in entries {
        let entry = entry.with_context(reading)?;
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().with_context(reading)?.is_dir() {
            link_tree(&path, &copy)?;
        } else if fs::hard_link(&path, &copy).is_err() {
            fs::copy(&path, &copy).with_context(|| format!("copying {}", path.display()))?;
        }
    }
    Ok(())
}

/// Deletes a folder if it exists.
fn remove(dir: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", dir.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_command_trusts_what_a_killed_web_left() {
        let scratch = tempfile::tempdir().unwrap();
        let (web, lock) = (scratch.path().join(WEB), scratch.path().join(LOCK));
        fs::write(&web, "{}").unwrap();
        fs::write(&lock, "").unwrap();
        fs::set_permissions(&lock, Permissions::from_mode(0o644)).unwrap();
        assert!(!DataFolder::is_taken(scratch.path()));
        let folder = DataFolder::take(scratch.path()).unwrap();
        assert!(!web.exists() && DataFolder::is_taken(scratch.path()));
        assert_eq!(fs::metadata(&lock).unwrap().permissions().mode() & 0o777, LOCK_MODE, "nobody else can hold it");
        drop(folder);
        assert!(!DataFolder::is_taken(scratch.path()));
    }
}
