//! The file of the index: a header, then records. It only ever grows; a rewriting puts another file in its place.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use azera_memory::Error;

use crate::file::{remove, sync_names};
use crate::record::Records;

/// The file in use.
const CURRENT: &str = "points.log";

/// A file being written, to become [`CURRENT`].
const NEXT: &str = "points.log.next";

/// Bytes before the first record: magic, version, dimension, and a CRC-32 of these.
pub(crate) const HEADER_BYTES: u64 = 20;

const MAGIC: [u8; 8] = *b"AZERAVEC";

const VERSION: u32 = 1;

/// The file, open for appending. Its owner appends alone; others may read meanwhile.
pub(crate) struct Log {
    dir: PathBuf,
    file: Arc<File>,
    /// Where the next record goes.
    end: u64,
    /// Whether records were appended since the last flush.
    changed: bool,
    /// Whether something may lie behind the end, of an append that failed.
    torn: bool,
}

/// What the header of a file says.
pub(crate) enum Header {
    /// The dimension of the vectors.
    Dimension(usize),
    /// Another version of the format.
    Version(u32),
    Damaged,
}

impl Log {
    /// Opens the file in `dir`, making it if there is none. What lies behind the header is not looked at.
    pub(crate) fn open(dir: &Path, dimension: usize) -> Result<Self, Error> {
        let what = "opening the vector index";
        std::fs::create_dir_all(dir).map_err(Error::io(what))?;
        remove(&dir.join(NEXT)).map_err(Error::io(what))?;
        let path = dir.join(CURRENT);
        match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(file) => {
                let end = file.metadata().map_err(Error::io(what))?.len();
                Ok(Self { dir: dir.to_owned(), file: Arc::new(file), end, changed: false, torn: false })
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let mut log = Self::next(dir, dimension)?;
                log.flush()?;
                log.replace_live()?;
                log.sync_names()?;
                Ok(log)
            }
            Err(error) => Err(Error::io(what)(error)),
        }
    }

    /// Makes a file without records, to replace the one in use with [`Log::replace_live`].
    pub(crate) fn next(dir: &Path, dimension: usize) -> Result<Self, Error> {
        let make = || {
            let path = dir.join(NEXT);
            let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
            file.write_all(&header(dimension))?;
            Ok(file)
        };
        let file = make().map_err(Error::io("making a file of the vector index"))?;
        Ok(Self { dir: dir.to_owned(), file: Arc::new(file), end: HEADER_BYTES, changed: true, torn: false })
    }

    /// Puts this file in the place of the one in use: at any moment, one or the other is there.
    pub(crate) fn replace_live(&self) -> Result<(), Error> {
        std::fs::rename(self.dir.join(NEXT), self.dir.join(CURRENT)).map_err(Error::io("replacing the vector index"))
    }

    pub(crate) fn sync_names(&self) -> Result<(), Error> {
        sync_names(&self.dir).map_err(Error::io("replacing the vector index"))
    }

    /// Removes a file that did not come to replace the one in use.
    pub(crate) fn remove_next(dir: &Path) {
        if let Err(error) = remove(&dir.join(NEXT)) {
            tracing::warn!(%error, "cannot remove an unfinished file of the vector index: the next start does");
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn file(&self) -> &Arc<File> {
        &self.file
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Cuts off what lies behind `end`.
    pub(crate) fn cut(&mut self, end: u64) -> Result<(), Error> {
        self.file.set_len(end).map_err(Error::io("cutting the file of the vector index"))?;
        self.end = end;
        Ok(())
    }

    /// Records to be appended next.
    pub(crate) fn records(&self) -> Records {
        Records::at(self.end)
    }

    /// Appends records: all of them, or none.
    pub(crate) fn append(&mut self, records: &Records) -> Result<(), Error> {
        if self.torn {
            self.cut(self.end)?;
            self.torn = false;
        }
        let mut file = self.file.as_ref();
        let written = file.seek(SeekFrom::Start(self.end)).and_then(|_| file.write_all(records.bytes()));
        if let Err(error) = written {
            // Half a batch must not be taken for a whole one after a restart.
            self.torn = file.set_len(self.end).is_err();
            return Err(Error::io("writing to the vector index")(error));
        }
        self.end += records.bytes().len() as u64;
        self.changed = true;
        Ok(())
    }

    /// Makes everything appended so far durable.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        if !self.changed {
            return Ok(());
        }
        let mut records = self.records();
        records.flushed();
        self.append(&records)?;
        self.file.sync_data().map_err(Error::io("flushing the vector index"))?;
        self.changed = false;
        Ok(())
    }
}

fn header(dimension: usize) -> [u8; HEADER_BYTES as usize] {
    let mut header = [0; HEADER_BYTES as usize];
    let dimension = u32::try_from(dimension).unwrap_or(u32::MAX);
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&dimension.to_le_bytes());
    let checksum = crc32fast::hash(&header[..16]);
    header[16..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// Reads the header of a file.
pub(crate) fn read_header(bytes: &[u8]) -> Header {
    let parts = || {
        let (magic, rest) = bytes.split_first_chunk::<8>()?;
        let (version, rest) = rest.split_first_chunk::<4>()?;
        let (dimension, rest) = rest.split_first_chunk::<4>()?;
        let (said, checksum) = (bytes.get(..16)?, rest.first_chunk::<4>()?);
        let sound = *magic == MAGIC && u32::from_le_bytes(*checksum) == crc32fast::hash(said);
        sound.then_some((u32::from_le_bytes(*version), u32::from_le_bytes(*dimension)))
    };
    match parts() {
        Some((VERSION, dimension)) => usize::try_from(dimension).map_or(Header::Damaged, Header::Dimension),
        Some((version, _)) => Header::Version(version),
        None => Header::Damaged,
    }
}
