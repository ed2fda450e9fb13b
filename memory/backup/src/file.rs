//! One backup file.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use azera_memory::{Batch, BlobStore, blob_id};
use azera_types::BlobId;
use tempfile::NamedTempFile;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::Error;
use crate::files;
use crate::manifest::{FORMAT, Manifest};
use crate::rows::{RowReader, RowWriter};

/// Archive entry with the rows.
const RECORD: &str = "record";

/// Archive entry with the ids of the files of messages, one a line. The files themselves lie beside the backup
/// ([`crate::files`]), or in entries named by their ids in [`FILES_FOLDER`].
const FILES: &str = "files.txt";

/// Archive folder of the files that the backup itself contains.
const FILES_FOLDER: &str = "files";

/// Most bytes of [`FILES`].
const MAX_FILES_BYTES: u64 = 64 << 20;

/// Archive entry with the manifest.
const MANIFEST: &str = "manifest.json";

/// Largest manifest in bytes.
const MAX_MANIFEST_BYTES: u64 = 64 * 1024;

/// Compression level, 1 to 9. Rows are JSON, and level 1 gains most of the possible compression.
const LEVEL: i64 = 1;

/// Bytes of rows that are collected before compression.
const BUFFER_BYTES: usize = 128 * 1024;

/// A backup on disk whose manifest was read. [`Backup::verify`] checks the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// The file.
    pub path: PathBuf,
    /// The manifest.
    pub manifest: Manifest,
    /// Size of the file in bytes.
    pub file_bytes: u64,
}

impl Backup {
    /// Reads the manifest of a file.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let what = "reading the backup";
        let file = File::open(&path).map_err(Error::io(what, &path))?;
        let file_bytes = file.metadata().map_err(Error::io(what, &path))?.len();
        let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|error| Error::archive(what, &path, error))?;
        let entry = archive.by_name(MANIFEST).map_err(|error| Error::archive(what, &path, error))?;
        let mut text = Vec::new();
        entry.take(MAX_MANIFEST_BYTES).read_to_end(&mut text).map_err(Error::io(what, &path))?;
        let damaged = |error: serde_json::Error| Error::damaged(&path, format!("its manifest: {error}"));
        // Only the format is read first, because a newer manifest may have other fields.
        let format: Format = serde_json::from_slice(&text).map_err(damaged)?;
        if format.format > FORMAT {
            return Err(Error::Newer { path, format: format.format });
        }
        let manifest = serde_json::from_slice(&text).map_err(damaged)?;
        Ok(Self { path, manifest, file_bytes })
    }

    /// Reads every row and compares it with the manifest. `progress` gets the number of bytes done, out of
    /// [`Manifest::bytes`].
    pub fn verify(&self, progress: &mut dyn FnMut(u64)) -> Result<(), Error> {
        self.read(progress, &mut |_| Ok(()))
    }

    /// Reads every row and every file of a message, and compares them with their SHA-256. A running Azera may remove the
    /// backup meanwhile, or rewrite it without forgotten content; a rewritten one is read again. `progress` is the same
    /// as for [`Backup::verify`].
    pub fn inspect(&self, progress: &mut dyn FnMut(u64)) -> Result<Inspection, Error> {
        let mut backup = self.clone();
        loop {
            let found = backup.verify(progress).and_then(|()| backup.missing_files());
            match Self::open(&backup.path) {
                Ok(now) if now != backup => backup = now,
                Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                    return Ok(Inspection::Removed);
                }
                _ => {
                    return found.map(|missing| match missing {
                        0 => Inspection::Whole,
                        missing => Inspection::FilesMissing(missing),
                    });
                }
            }
        }
    }

    /// Returns how many files of messages cannot be read from this backup.
    fn missing_files(&self) -> Result<usize, Error> {
        let files = self.files()?;
        Ok(files.iter().filter(|id| !matches!(self.file(id), Ok(Some(_)))).count())
    }

    /// Passes all rows to `take`, in order. Use them only if this succeeds: the SHA-256 is checked at the end.
    pub fn read(
        &self,
        progress: &mut dyn FnMut(u64),
        take: &mut dyn FnMut(Batch) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (what, path) = ("reading the backup", &self.path);
        let file = File::open(path).map_err(Error::io(what, path))?;
        let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|error| Error::archive(what, path, error))?;
        let mut entry = archive.by_name(RECORD).map_err(|error| Error::archive(what, path, error))?;
        if entry.size() != self.manifest.bytes {
            return Err(Error::damaged(path, "its rows have another length than its manifest says"));
        }
        let mut rows = RowReader::new(BufReader::with_capacity(BUFFER_BYTES, &mut entry), self.manifest.bytes);
        while let Some(batch) = rows.next().map_err(Error::io(what, path))? {
            progress(self.manifest.bytes - rows.left());
            take(batch)?;
        }
        if rows.sha256() != self.manifest.sha256 {
            return Err(Error::damaged(path, "the SHA-256 of its rows is another than its manifest says"));
        }
        Ok(())
    }

    /// Returns the ids of the files of messages in this backup.
    pub fn files(&self) -> Result<BTreeSet<BlobId>, Error> {
        let text = self.entry(FILES, MAX_FILES_BYTES)?.unwrap_or_default();
        let text = String::from_utf8(text).map_err(|_| Error::damaged(&self.path, "its list of files is no text"))?;
        let ids = text.lines().map(BlobId::new).collect::<Result<_, _>>();
        ids.map_err(|error| Error::damaged(&self.path, format!("its list of files: {error}")))
    }

    /// Returns the bytes of a file of this backup; `None` if they are missing.
    ///
    /// # Errors
    ///
    /// Fails if they are not the bytes of that id.
    pub fn file(&self, id: &BlobId) -> Result<Option<Vec<u8>>, Error> {
        match self.embedded(id)? {
            Some(bytes) => Ok(Some(bytes)),
            None => Ok(files::beside(&self.path, &self.manifest.record).get(id)?),
        }
    }

    /// Returns the bytes of a file that the archive itself contains.
    pub(crate) fn embedded(&self, id: &BlobId) -> Result<Option<Vec<u8>>, Error> {
        let Some(bytes) = self.entry(&format!("{FILES_FOLDER}/{id}"), u64::MAX)? else { return Ok(None) };
        if blob_id(&bytes)? != *id {
            return Err(Error::damaged(&self.path, format!("the bytes of the file {id} are others")));
        }
        Ok(Some(bytes))
    }

    fn entry(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, Error> {
        let (what, path) = ("reading the backup", &self.path);
        let file = File::open(path).map_err(Error::io(what, path))?;
        let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|error| Error::archive(what, path, error))?;
        let entry = match archive.by_name(name) {
            Ok(entry) => entry,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(error) => return Err(Error::archive(what, path, error)),
        };
        let mut bytes = Vec::new();
        entry.take(most).read_to_end(&mut bytes).map_err(Error::io(what, path))?;
        Ok(Some(bytes))
    }
}

/// The result of [`Backup::inspect`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inspection {
    /// Every row and every file is there and unchanged.
    Whole,
    /// The rows are whole, and so many files of messages are missing or damaged.
    FilesMissing(usize),
    /// Azera removed the backup meanwhile.
    Removed,
}

#[derive(serde::Deserialize)]
struct Format {
    format: u32,
}

/// Data of a backup that is known before its rows are written.
pub(crate) struct BackupHeader {
    pub(crate) azera: String,
    pub(crate) record: String,
    pub(crate) made_at: azera_types::Timestamp,
}

/// Returns the bytes of a file of a message that the archive itself is to contain.
pub(crate) type Embed<'a> = dyn FnMut(&BlobId) -> Result<Option<Vec<u8>>, Error> + 'a;

/// Writes a backup into `file` and flushes it. `rows` passes all rows to the closure it gets, and returns their
/// revision. `embed` gets the id of each file of a message, and returns its bytes if the archive is to contain them.
pub(crate) fn write(
    file: &NamedTempFile,
    head: BackupHeader,
    rows: impl FnOnce(&mut dyn FnMut(&Batch) -> Result<(), Error>) -> Result<u64, Error>,
    embed: &mut Embed<'_>,
) -> Result<Manifest, Error> {
    let (what, path) = ("writing the backup", file.path());
    let archive_error = |error| Error::archive(what, path, error);
    let mut archive = ZipWriter::new(file.as_file());
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .compression_level(Some(LEVEL))
        .large_file(true);
    archive.start_file(RECORD, options).map_err(archive_error)?;
    let mut writer = RowWriter::new(BufWriter::with_capacity(BUFFER_BYTES, &mut archive));
    let revision = rows(&mut |batch| writer.write(batch).map_err(Error::io(what, path)))?;
    let written = writer.finish().map_err(Error::io(what, path))?;
    if !written.files.is_empty() {
        let list: String = written.files.iter().map(|id| format!("{id}\n")).collect();
        archive.start_file(FILES, options).map_err(archive_error)?;
        archive.write_all(list.as_bytes()).map_err(Error::io(what, path))?;
    }
    for id in &written.files {
        if let Some(bytes) = embed(id)? {
            archive.start_file(format!("{FILES_FOLDER}/{id}"), options).map_err(archive_error)?;
            archive.write_all(&bytes).map_err(Error::io(what, path))?;
        }
    }
    let manifest = Manifest {
        format: FORMAT,
        azera: head.azera,
        record: head.record,
        made_at: head.made_at,
        revision,
        rows: written.rows,
        bytes: written.bytes,
        sha256: written.sha256,
    };
    archive.start_file(MANIFEST, options.large_file(false)).map_err(archive_error)?;
    let text = serde_json::to_vec_pretty(&manifest).map_err(|error| Error::io(what, path)(error.into()))?;
    archive.write_all(&text).map_err(Error::io(what, path))?;
    archive.finish().map_err(archive_error)?;
    file.as_file().sync_all().map_err(Error::io(what, path))?;
    Ok(manifest)
}

/// Moves a written file to `path`, durably.
pub(crate) fn put(file: NamedTempFile, path: &Path) -> Result<(), Error> {
    let what = "writing the backup";
    file.persist(path).map_err(|error| Error::io(what, path)(error.error))?;
    sync(path.parent().unwrap_or(Path::new(".")))
}

/// Makes the names in a folder durable.
pub(crate) fn sync(folder: &Path) -> Result<(), Error> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(Error::io("writing the folder", folder))
}
