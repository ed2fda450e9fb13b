//! The folder of backups: making them, keeping some, and going through them when something was forgotten.

use std::fs;
use std::path::{Path, PathBuf};

use azera_memory::{Forgotten, Record};
use azera_types::Timestamp;
use tempfile::NamedTempFile;

use crate::Error;
use crate::file::{Backup, BackupHeader, put, sync, write};
use crate::marker;
use crate::retention::{BackupTime, RetentionRule};

/// What the names of backups end with.
const EXTENSION: &str = "zip";

/// What the names of files end with that are being written.
const PARTIAL: &str = ".partial";

/// Characters of a record's name in the names of its backups.
const SHORT_NAME: usize = 8;

/// Backups made within one second that can be told apart by name.
const MAX_SAME_SECOND: u32 = 1_000;

/// A folder of backups.
#[derive(Debug, Clone)]
pub struct Folder {
    dir: PathBuf,
    /// The version of Azera, which new backups carry.
    version: String,
}

/// What lies in a folder.
#[derive(Debug, Default)]
pub struct FolderListing {
    /// Backups by their manifests, the oldest first.
    pub backups: Vec<Backup>,
    /// Files with the name of a backup whose manifest cannot be read, and why.
    pub unreadable: Vec<(PathBuf, Error)>,
}

/// What a forgetting did to backups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ForgetOutcome {
    /// Backups written anew without what was forgotten.
    pub rewritten: usize,
    /// Backups removed, because they could not be read.
    pub removed: usize,
}

impl Folder {
    /// The folder `dir`, which need not be there yet. `version` is that of Azera.
    pub fn new(dir: impl Into<PathBuf>, version: impl Into<String>) -> Self {
        Self { dir: dir.into(), version: version.into() }
    }

    /// Where it lies.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What lies in it, whichever record it belongs to.
    pub fn list(&self) -> Result<FolderListing, Error> {
        let mut listed = FolderListing::default();
        for path in self.files(|name| name.ends_with(&format!(".{EXTENSION}")))? {
            match Backup::open(&path) {
                Ok(backup) => listed.backups.push(backup),
                // Another process may have removed it since.
                Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => listed.unreadable.push((path, error)),
            }
        }
        listed.backups.sort_by(|a, b| (a.manifest.made_at, &a.path).cmp(&(b.manifest.made_at, &b.path)));
        Ok(listed)
    }

    /// The backups of one record, the oldest first.
    pub fn of(&self, record: &str) -> Result<Vec<Backup>, Error> {
        let mut backups = self.list()?.backups;
        backups.retain(|backup| backup.manifest.record == record);
        Ok(backups)
    }

    /// Makes a backup of the record as it is now. Others read and write it meanwhile. `progress` is told how many bytes
    /// of rows are written.
    pub fn make(&self, record: &Record<'_>, now: Timestamp, progress: &mut dyn FnMut(u64)) -> Result<Backup, Error> {
        fs::create_dir_all(&self.dir).map_err(Error::io("making the folder", &self.dir))?;
        self.remove_partial(record.identity())?;
        // Known before there is anything in it to forget.
        let at = std::path::absolute(&self.dir).map_err(Error::io("finding the folder", &self.dir))?;
        record.add_backup_folders([(marker::name(&self.dir, record.identity())?, at)].into())?;
        self.make_as(record, now, &self.free_name(record.identity(), now)?, progress)
    }

    /// The same under a name of the caller's, which may lie anywhere. What is there gives way.
    pub fn make_as(
        &self,
        record: &Record<'_>,
        now: Timestamp,
        path: &Path,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Backup, Error> {
        let file = self.partial(path, record.identity())?;
        let head = BackupHeader { azera: self.version.clone(), record: record.identity().to_owned(), made_at: now };
        let manifest = write(&file, head, |take| {
            let mut done = 0;
            let mut failed = None;
            let dumped = record.dump(&mut |batch| {
                done += batch.bytes() as u64;
                progress(done);
                take(&batch).map_err(|error| broken_off(&mut failed, error))
            });
            failed.map_or(dumped.map_err(Error::Record), Err)
        })?;
        put(file, path)?;
        let file_bytes = fs::metadata(path).map_err(Error::io("reading the backup", path))?.len();
        Ok(Backup { path: path.to_owned(), manifest, file_bytes })
    }

    /// Removes the record's backups that `rule` does not keep; gives how many.
    pub fn prune(&self, record: &str, rule: &RetentionRule, now: Timestamp) -> Result<usize, Error> {
        let backups = self.of(record)?;
        let made: Vec<BackupTime> =
            backups.iter().map(|backup| BackupTime { at: backup.manifest.made_at, bytes: backup.file_bytes }).collect();
        let mut pruned = 0;
        for (backup, retained) in backups.iter().zip(rule.keeps(&made, now)) {
            if !retained {
                remove(&backup.path)?;
                pruned += 1;
            }
        }
        if pruned > 0 {
            sync(&self.dir)?;
        }
        Ok(pruned)
    }

    /// Takes what was forgotten since the last time out of the record's backups. Those that are damaged go, for nobody
    /// can tell what they hold.
    ///
    /// # Errors
    ///
    /// If one of them could not be gone through, or was made by a newer version, or a folder is away that backups of this
    /// record were made into. All others were, and what was forgotten
    /// stays to be taken out by the next call.
    pub fn forget(&self, record: &Record<'_>) -> Result<ForgetOutcome, Error> {
        let unforgotten = record.pending_backup_forgets()?;
        let mut gone = ForgetOutcome::default();
        if unforgotten.what.is_empty() {
            return Ok(gone);
        }
        let (there, missing) = self.known(record)?;
        let mut failed = missing.into_iter().next().map(|path| Error::FolderMissing { path });
        for folder in [self.clone()].into_iter().chain(there) {
            if let Err(error) = folder.forget_here(record.identity(), &unforgotten.what, &mut gone) {
                failed.get_or_insert(error);
            }
        }
        match failed {
            Some(error) => Err(error),
            None => record.mark_backups_cleaned(&unforgotten).map(|()| gone).map_err(Error::Record),
        }
    }

    /// Folders that backups of the record were made into and that are not where they were, as on a disk that is not
    /// mounted: what was forgotten cannot leave them.
    pub fn missing_folders(&self, record: &Record<'_>) -> Result<Vec<PathBuf>, Error> {
        Ok(self.known(record)?.1)
    }

    /// The folders besides this one that backups of the record were made into, and where those were that are not there.
    fn known(&self, record: &Record<'_>) -> Result<(Vec<Self>, Vec<PathBuf>), Error> {
        let here = marker::read(&self.dir, record.identity())?;
        let (mut there, mut missing) = (Vec::new(), Vec::new());
        for (name, path) in record.backup_folders()? {
            if here.as_ref() == Some(&name) {
                continue;
            }
            if marker::read(&path, record.identity()).is_ok_and(|found| found.as_ref() == Some(&name)) {
                there.push(Self { dir: path, version: self.version.clone() });
            } else {
                missing.push(path);
            }
        }
        Ok((there, missing))
    }

    /// Goes through the backups of one folder; fails with the first of what could not be done, when all else is.
    fn forget_here(&self, record: &str, what: &Forgotten, gone: &mut ForgetOutcome) -> Result<(), Error> {
        let before = *gone;
        let mut failed = None;
        self.remove_partial(record)?;
        let FolderListing { backups, unreadable } = self.list()?;
        let unreadable = unreadable.into_iter().filter(|(path, _)| name_has(path, record));
        let unreadable = unreadable.map(|(path, error)| (path, Err(error)));
        let readable = backups.iter().filter(|backup| backup.manifest.record == record);
        let readable = readable.map(|backup| (backup.path.clone(), self.forget_in(backup, what)));
        for (path, done) in unreadable.chain(readable) {
            let done = match done {
                Err(error @ (Error::Damaged { .. } | Error::Record(_))) => {
                    tracing::warn!(%error, "removing a backup that cannot be read");
                    remove(&path).map(|()| gone.removed += 1)
                }
                done => done.map(|changed| gone.rewritten += usize::from(changed)),
            };
            if let Err(error) = done {
                tracing::warn!(%error, "a backup could not forget");
                failed.get_or_insert(error);
            }
        }
        if *gone != before {
            sync(&self.dir)?;
        }
        failed.map_or(Ok(()), Err)
    }

    /// Writes a backup anew without what was forgotten, if it holds any of it.
    fn forget_in(&self, backup: &Backup, what: &Forgotten) -> Result<bool, Error> {
        let (mut holds, mut cleaning) = (false, what.cleaning());
        backup.read(&mut |_| {}, &mut |batch| {
            holds |= cleaning.clean(&batch)?.1;
            Ok(())
        })?;
        if !holds {
            return Ok(false);
        }
        let manifest = &backup.manifest;
        let file = self.partial(&backup.path, &manifest.record)?;
        let head =
            BackupHeader { azera: manifest.azera.clone(), record: manifest.record.clone(), made_at: manifest.made_at };
        write(&file, head, |take| {
            let mut cleaning = what.cleaning();
            backup.read(&mut |_| {}, &mut |batch| take(&cleaning.clean(&batch)?.0))?;
            Ok(manifest.revision)
        })?;
        put(file, &backup.path)?;
        Ok(true)
    }

    /// A new file beside `path`, to become it.
    fn partial(&self, path: &Path, record: &str) -> Result<NamedTempFile, Error> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = tempfile::Builder::new().prefix(&partial_prefix(record)).suffix(PARTIAL).tempfile_in(folder);
        file.map_err(Error::io("writing a backup into", folder))
    }

    /// Removes what an interrupted backup of the record left.
    fn remove_partial(&self, record: &str) -> Result<(), Error> {
        let prefix = partial_prefix(record);
        for path in self.files(|name| name.starts_with(&prefix) && name.ends_with(PARTIAL))? {
            remove(&path)?;
        }
        Ok(())
    }

    fn free_name(&self, record: &str, now: Timestamp) -> Result<PathBuf, Error> {
        let stem = format!("azera-{}-{}", now.strftime("%Y%m%dT%H%M%SZ"), short(record));
        for number in 1..=MAX_SAME_SECOND {
            let name = if number == 1 { stem.clone() } else { format!("{stem}-{number}") };
            let path = self.dir.join(name).with_extension(EXTENSION);
            if !path.exists() {
                return Ok(path);
            }
        }
        let source = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
        Err(Error::Io { what: "naming a backup in", path: self.dir.clone(), source })
    }

    /// The files whose names are `wanted`; none where there is no folder.
    fn files(&self, wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, Error> {
        let what = "reading the folder";
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::io(what, &self.dir)(error)),
        };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry.map_err(Error::io(what, &self.dir))?;
            files.extend(entry.file_name().to_str().is_some_and(&wanted).then(|| entry.path()));
        }
        files.sort();
        Ok(files)
    }
}

/// Keeps the true reason of a dump that was broken off, and gives one that memory understands.
fn broken_off(failed: &mut Option<Error>, error: Error) -> azera_memory::Error {
    *failed = Some(error);
    azera_memory::Error::Invalid("the backup could not be written".into())
}

fn short(record: &str) -> &str {
    record.get(..SHORT_NAME).unwrap_or(record)
}

fn partial_prefix(record: &str) -> String {
    format!(".azera-{}-", short(record))
}

/// Whether a file is named as a backup of this record.
fn name_has(path: &Path, record: &str) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.contains(short(record)))
}

fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(Error::io("removing", path)(source)),
        _ => Ok(()),
    }
}
