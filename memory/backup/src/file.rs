//! One backup file.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use azera_memory::Batch;
use tempfile::NamedTempFile;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::Error;
use crate::manifest::{FORMAT, Manifest};
use crate::rows::{RowReader, RowWriter};

/// Archive entry with the rows.
const RECORD: &str = "record";

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

/// Writes a backup into `file` and flushes it. `rows` passes all rows to the closure it gets, and returns their
/// revision.
pub(crate) fn write(
    file: &NamedTempFile,
    head: BackupHeader,
    rows: impl FnOnce(&mut dyn FnMut(&Batch) -> Result<(), Error>) -> Result<u64, Error>,
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
