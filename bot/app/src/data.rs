//! The data folder: who uses it, what lies in it, and how its record is exchanged for another one.
//!
//! ```text
//! lock  record/  vectors/  text/  working/  personas/  backups/  aside/20260301T120500Z/{record,personas}
//! ```
//!
//! A record is exchanged in steps that a crash may part: the new one is written as `record.new`, and once it is whole and
//! renamed to `record.next` it takes its place, now or when the folder is next used.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use azera_types::Timestamp;

/// File that is locked while the folder is in use. It holds the user's process id, behind it how often in a row opening
/// the indexes was begun and did not end, and nothing after an orderly end.
const LOCK: &str = "lock";

/// Processes in a row that ended while they opened the indexes, from which on those are taken for the cause. One may
/// have been ended by anybody.
const MAX_ENDS_WHILE_OPENING: u32 = 2;

/// The record.
const RECORD: &str = "record";

/// A record being written.
const NEW: &str = "record.new";

/// A whole record that is to take the place of the present one.
const NEXT: &str = "record.next";

/// Persona files.
const PERSONAS: &str = "personas";

/// Persona files that belong to [`NEXT`]; without them they come back from the record.
const NEXT_PERSONAS: &str = "personas.next";

/// What is made anew from the record.
const REBUILT: [&str; 3] = ["vectors", "text", "working"];

/// Records that were exchanged, each under the time of that.
const ASIDE: &str = "aside";

/// What is under way into [`ASIDE`].
const ASIDE_NEXT: &str = "next";

/// Days for which an exchanged record is retained.
const ASIDE_DAYS: i64 = 7;

/// A data folder in the hands of this process.
#[derive(Debug)]
pub struct DataFolder {
    dir: PathBuf,
    lock: File,
    /// What the process before left in the lock.
    before: String,
    /// Whether what that means still has to be told to somebody who opens the record.
    untold: bool,
}

impl DataFolder {
    /// Takes the folder, making it if there is none, and ends what a crash interrupted. Fails if another process has it.
    pub fn take(dir: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("making the folder {}", dir.display()))?;
        let path = dir.join(LOCK);
        let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut lock = open.with_context(|| format!("opening {}", path.display()))?;
        let mut before = String::new();
        let locked = lock.try_lock();
        lock.read_to_string(&mut before).with_context(|| format!("reading {}", path.display()))?;
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = before.lines().next().unwrap_or("unknown");
                bail!("another Azera (process {holder}) works in {}: stop it first", dir.display())
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("locking {}", path.display()));
            }
        }
        let untold = !before.is_empty();
        let mut folder = Self { dir: dir.to_owned(), lock, before, untold };
        folder.write_holder(folder.ends_while_opening())?;
        folder.end_interrupted()?;
        Ok(folder)
    }

    /// Whether the process that had it last did not come to an orderly end.
    pub fn was_left_running(&self) -> bool {
        !self.before.is_empty()
    }

    /// To be called when the record knows that.
    pub fn noted(&mut self) {
        self.untold = false;
    }

    /// How many processes in a row did not survive opening the indexes.
    fn ends_while_opening(&self) -> u32 {
        self.before.lines().nth(1).and_then(|count| count.parse().ok()).unwrap_or(0)
    }

    /// To be called before the indexes are opened: engines that map files can take the process with them, and would at
    /// every start. Gives whether that happened so often that the indexes must go.
    pub fn begin_opening(&mut self) -> anyhow::Result<bool> {
        let ends = self.ends_while_opening();
        self.write_holder(ends + 1)?;
        Ok(ends >= MAX_ENDS_WHILE_OPENING)
    }

    /// To be called when they are open.
    pub fn end_opening(&mut self) -> anyhow::Result<()> {
        self.write_holder(0)
    }

    /// Where the record lies.
    pub fn record(&self) -> PathBuf {
        self.dir.join(RECORD)
    }

    /// Whether there is a record.
    pub fn has_record(&self) -> bool {
        fs::read_dir(self.record()).is_ok_and(|mut inside| inside.next().is_some())
    }

    /// The folder for a record to be written into, empty.
    pub fn new_record(&self) -> anyhow::Result<PathBuf> {
        let path = self.dir.join(NEW);
        remove(&path)?;
        Ok(path)
    }

    /// Puts what [`DataFolder::new_record`] gave, whole and closed, in the place of the record, which goes aside; gives
    /// where to, if there was one.
    pub fn exchange(&mut self, now: Timestamp) -> anyhow::Result<Option<PathBuf>> {
        rename(&self.dir.join(NEW), &self.dir.join(NEXT))?;
        self.place_next(now)
    }

    /// Records that went aside, the latest last.
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

    /// Puts the record that went aside last back in its place; the present one goes aside. Gives where to, or `None` if
    /// nothing lies aside.
    pub fn undo(&mut self, now: Timestamp) -> anyhow::Result<Option<PathBuf>> {
        let Some(last) = self.aside()?.pop() else { return Ok(None) };
        rename(&last.join(RECORD), &self.dir.join(NEXT))?;
        if last.join(PERSONAS).exists() {
            rename(&last.join(PERSONAS), &self.dir.join(NEXT_PERSONAS))?;
        }
        remove(&last)?;
        self.place_next(now)
    }

    /// Where the record lies in a folder that [`DataFolder::aside`] gave.
    pub fn record_aside(aside: &Path) -> PathBuf {
        aside.join(RECORD)
    }

    /// [`DataFolder::undo`] with what [`DataFolder::new_record`] gave, whole and closed, in the place of the record that
    /// went aside last. Whatever else lies aside goes.
    pub fn undo_with_new(&mut self, now: Timestamp) -> anyhow::Result<()> {
        let last = self.aside()?.pop();
        rename(&self.dir.join(NEW), &self.dir.join(NEXT))?;
        if let Some(personas) = last.map(|last| last.join(PERSONAS)).filter(|personas| personas.exists()) {
            rename(&personas, &self.dir.join(NEXT_PERSONAS))?;
        }
        remove_aside(&self.dir, true, now)?;
        self.place_next(now)?;
        Ok(())
    }

    /// The steps from a whole next record to its being the record. Each may have been done already.
    fn place_next(&mut self, now: Timestamp) -> anyhow::Result<Option<PathBuf>> {
        let aside = self.dir.join(ASIDE).join(ASIDE_NEXT);
        if self.dir.join(NEXT).exists() {
            fs::create_dir_all(&aside).with_context(|| format!("making the folder {}", aside.display()))?;
            for name in [RECORD, PERSONAS] {
                if self.dir.join(name).exists() {
                    rename(&self.dir.join(name), &aside.join(name))?;
                }
            }
            for name in REBUILT {
                remove(&self.dir.join(name))?;
            }
            // With this the record is exchanged. Nothing below is lost by a crash in between.
            rename(&self.dir.join(NEXT), &self.record())?;
        }
        if self.dir.join(NEXT_PERSONAS).exists() && !self.dir.join(PERSONAS).exists() {
            rename(&self.dir.join(NEXT_PERSONAS), &self.dir.join(PERSONAS))?;
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

    /// A folder for what goes aside now, under the time or, if two go within a second, one soon after it.
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

    fn end_interrupted(&mut self) -> anyhow::Result<()> {
        remove(&self.dir.join(NEW))?;
        let left = [self.dir.join(NEXT), self.dir.join(NEXT_PERSONAS), self.dir.join(ASIDE).join(ASIDE_NEXT)];
        let interrupted = left.iter().any(|path| path.exists());
        if interrupted {
            tracing::warn!("a restore was interrupted and is ended now");
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
        let left = if self.untold { std::mem::take(&mut self.before) } else { String::new() };
        if let Err(error) = self.write_lock(&left) {
            tracing::warn!(%error, "the next start will take this end for a crash");
        }
    }
}

/// Removes records that went aside: all of them, or those older than [`ASIDE_DAYS`]; gives how many.
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

/// Renames durably.
fn rename(from: &Path, to: &Path) -> anyhow::Result<()> {
    let sync = |path: &Path| path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all());
    let renamed = fs::rename(from, to).and_then(|()| sync(from)).and_then(|()| sync(to));
    renamed.with_context(|| format!("renaming {} to {}", from.display(), to.display()))
}

/// Removes a folder, if it is there.
fn remove(dir: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", dir.display()))
        }
        _ => Ok(()),
    }
}
