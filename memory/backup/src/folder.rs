//! A folder of backups: makes them, removes old ones, and cleans them of forgotten items.

use std::fs;
use std::path::{Path, PathBuf};

use azera_memory::{Batch, BlobStore, Forgotten, Record};
use azera_types::Timestamp;
use tempfile::NamedTempFile;

use crate::Error;
use crate::file::{Backup, BackupHeader, Embed, put, sync, write};
use crate::files;
use crate::marker;
use crate::retention::{BackupTime, RetentionRule};

/// File extension of backups.
const EXTENSION: &str = "zip";

/// Extension of files that are being written.
const PARTIAL: &str = ".partial";

/// Characters of the record's name in the file names of its backups.
const SHORT_NAME: usize = 8;

/// Most backups with the same second in their names.
const MAX_SAME_SECOND: u32 = 1_000;

/// A folder of backups.
#[derive(Debug, Clone)]
pub struct Folder {
    dir: PathBuf,
    /// The version of Azera, which is written into new backups.
    version: String,
}

/// The contents of a folder.
#[derive(Debug, Default)]
pub struct FolderListing {
    /// Backups with a readable manifest, oldest first.
    pub backups: Vec<Backup>,
    /// Files named like a backup with an unreadable manifest, and the errors.
    pub unreadable: Vec<(PathBuf, Error)>,
}

/// The result of cleaning backups of forgotten items.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ForgetOutcome {
    /// Number of backups that were rewritten without forgotten items.
    pub rewritten: usize,
    /// Number of backups that were removed because they were unreadable.
    pub removed: usize,
}

impl Folder {
    /// Returns the folder `dir`, which need not exist yet. `version` is the version of Azera.
    pub fn new(dir: impl Into<PathBuf>, version: impl Into<String>) -> Self {
        Self { dir: dir.into(), version: version.into() }
    }

    /// Returns the path of the folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Lists the folder's backups of all records.
    pub fn list(&self) -> Result<FolderListing, Error> {
        let mut listed = FolderListing::default();
        for path in self.files(|name| name.ends_with(&format!(".{EXTENSION}")))? {
            match Backup::open(&path) {
                Ok(backup) => listed.backups.push(backup),
                // Another process may have removed it meanwhile.
                Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => listed.unreadable.push((path, error)),
            }
        }
        listed.backups.sort_by(|a, b| (a.manifest.made_at, &a.path).cmp(&(b.manifest.made_at, &b.path)));
        Ok(listed)
    }

    /// Returns the backups of one record, oldest first.
    pub fn of(&self, record: &str) -> Result<Vec<Backup>, Error> {
        let mut backups = self.list()?.backups;
        backups.retain(|backup| backup.manifest.record == record);
        Ok(backups)
    }

    /// Makes a backup of the record. Others read and write meanwhile. `progress` gets the number of bytes of rows
    /// written.
    pub fn make(&self, record: &Record<'_>, now: Timestamp, progress: &mut dyn FnMut(u64)) -> Result<Backup, Error> {
        fs::create_dir_all(&self.dir).map_err(Error::io("making the folder", &self.dir))?;
        self.remove_partial(record.identity())?;
        // The record must know the folder before a backup holds anything to forget.
        let at = std::path::absolute(&self.dir).map_err(Error::io("finding the folder", &self.dir))?;
        record.add_backup_folders([(marker::name(&self.dir, record.identity())?, at)].into())?;
        let files = files::to_write(&self.dir, record.identity())?;
        self.write_to(record, now, &self.free_name(record.identity(), now)?, progress, &mut |id| {
            files::copy(record, &files, id)?;
            Ok(None)
        })
    }

    /// Makes a backup at `path`, which may be anywhere. It contains the files of messages. An existing file is replaced.
    pub fn make_as(
        &self,
        record: &Record<'_>,
        now: Timestamp,
        path: &Path,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Backup, Error> {
        self.write_to(record, now, path, progress, &mut |id| Ok(record.blob(id)?))
    }

    fn write_to(
        &self,
        record: &Record<'_>,
        now: Timestamp,
        path: &Path,
        progress: &mut dyn FnMut(u64),
        embed: &mut Embed<'_>,
    ) -> Result<Backup, Error> {
        let file = self.partial(path, record.identity())?;
        let head = BackupHeader { azera: self.version.clone(), record: record.identity().to_owned(), made_at: now };
        let dump = |take: &mut dyn FnMut(&Batch) -> Result<(), Error>| {
            let mut done = 0;
            let mut failed = None;
            let dumped = record.dump(&mut |batch| {
                done += batch.bytes() as u64;
                progress(done);
                take(&batch).map_err(|error| broken_off(&mut failed, error))
            });
            failed.map_or(dumped.map_err(Error::Record), Err)
        };
        let manifest = write(&file, head, dump, embed)?;
        put(file, path)?;
        let file_bytes = fs::metadata(path).map_err(Error::io("reading the backup", path))?.len();
        Ok(Backup { path: path.to_owned(), manifest, file_bytes })
    }

    /// Removes the record's backups that `rule` does not keep; returns how many.
    pub fn prune(&self, record: &str, rule: &RetentionRule, now: Timestamp) -> Result<usize, Error> {
        let backups = self.of(record)?;
        let made: Vec<BackupTime> =
            backups.iter().map(|backup| BackupTime { at: backup.manifest.made_at, bytes: backup.file_bytes }).collect();
        let (mut pruned, mut left) = (0, Vec::new());
        for (backup, retained) in backups.into_iter().zip(rule.keeps(&made, now)) {
            if retained {
                left.push(backup);
            } else {
                remove(&backup.path)?;
                pruned += 1;
            }
        }
        let files = files::in_folder(&self.dir, record);
        if pruned > 0 {
            files::sweep(&files, &left)?;
        }
        // The files count too; the newest backup stays with its own.
        let size = |left: &[Backup]| left.iter().map(|backup| backup.file_bytes).sum::<u64>();
        // What the newest backup needs stays, so removing older ones frees nothing of it.
        let newest = left.last().map(Backup::files).transpose()?.unwrap_or_default();
        let stays: u64 = files.list()?.iter().filter(|(id, _)| newest.contains(id)).map(|(_, bytes)| bytes).sum();
        while left.len() > 1 && size(&left).saturating_add(files::bytes(&files)?.saturating_sub(stays)) > rule.max_bytes
        {
            remove(&left.remove(0).path)?;
            pruned += 1;
            files::sweep(&files, &left)?;
        }
        if pruned > 0 {
            sync(&self.dir)?;
        }
        Ok(pruned)
    }

    /// Removes items from the record's backups that were forgotten since the last call. Damaged backups are removed,
    /// because nobody can tell what they contain.
    ///
    /// # Errors
    ///
    /// Fails if a backup could not be cleaned, if a newer version made it, or if a folder with backups of this record
    /// is missing. All other backups are cleaned, and the next call tries the rest again.
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

    /// Returns the known folders with backups of the record that are missing, for example because a disk is not
    /// mounted. Their backups cannot be cleaned.
    pub fn missing_folders(&self, record: &Record<'_>) -> Result<Vec<PathBuf>, Error> {
        Ok(self.known(record)?.1)
    }

    /// Returns the record's other backup folders that exist, and the paths of those that are missing.
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

    /// Cleans the backups of this folder. After a failure, the others are still cleaned, and then the first error is
    /// returned.
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
                    tracing::warn!(%error, "removing an unreadable backup");
                    remove(&path).map(|()| gone.removed += 1)
                }
                done => done.map(|changed| gone.rewritten += usize::from(changed)),
            };
            if let Err(error) = done {
                tracing::warn!(%error, "cannot remove forgotten items from a backup");
                failed.get_or_insert(error);
            }
        }
        if *gone != before {
            sync(&self.dir)?;
        }
        // A half-written file may hold forgotten bytes; opening the folder to write removes it.
        let files = files::to_write(&self.dir, record);
        if let Err(error) = self.of(record).and_then(|left| files::sweep(&files?, &left)) {
            failed.get_or_insert(error);
        }
        failed.map_or(Ok(()), Err)
    }

    /// Rewrites a backup without forgotten items; returns true if it contained any.
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
        let cleaned = |take: &mut dyn FnMut(&Batch) -> Result<(), Error>| {
            let mut cleaning = what.cleaning();
            backup.read(&mut |_| {}, &mut |batch| take(&cleaning.clean(&batch)?.0))?;
            Ok(manifest.revision)
        };
        write(&file, head, cleaned, &mut |id| backup.embedded(id))?;
        put(file, &backup.path)?;
        Ok(true)
    }

    /// Creates a temporary file next to `path`, to be renamed to it.
    fn partial(&self, path: &Path, record: &str) -> Result<NamedTempFile, Error> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = tempfile::Builder::new().prefix(&partial_prefix(record)).suffix(PARTIAL).tempfile_in(folder);
        file.map_err(Error::io("writing a backup into", folder))
    }

    /// Removes the temporary files of an interrupted backup of the record.
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

    /// Returns the files whose names are `wanted`; none if the folder does not exist.
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

/// Stores the cause of an aborted dump, and returns a general error for the record.
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

/// Returns true if the file is named like a backup of this record.
fn name_has(path: &Path, record: &str) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.contains(short(record)))
}

fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(Error::io("removing", path)(source)),
        _ => Ok(()),
    }
}
