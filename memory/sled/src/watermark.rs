use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use azera_memory::Error;

/// File next to sled's own that holds the number of the last batch known to be durable.
const FLUSHED: &str = "flushed";

const WHAT: &str = "reading the watermark of the store";

/// The number of the last durable batch, stored outside of sled. When sled finds damage in its log, it continues with
/// the part before it, as if the rest had never been written. This number distinguishes damage from a crash, after
/// which no flushed batch is missing.
///
/// The file is written after each flush and not flushed itself. An outdated number is only less strict.
pub(crate) struct Watermark {
    file: File,
}

impl Watermark {
    /// Opens the watermark in the directory of a generation whose last batch is `last`.
    pub(crate) fn open(dir: &Path, last: u64) -> Result<Self, Error> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(dir.join(FLUSHED))
            .map_err(Error::io(WHAT))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(Error::io(WHAT))?;
        let flushed = bytes.as_slice().try_into().map_or(0, u64::from_be_bytes);
        if flushed > last {
            let missing = flushed - last;
            let why = format!("its log is damaged: {missing} flushed changes are missing; restore a backup");
            return Err(Error::Backend { what: "opening the store", why, transient: false });
        }
        Ok(Self { file })
    }

    /// Records that everything up to this batch is durable.
    pub(crate) fn raise(&mut self, batch: u64) -> Result<(), Error> {
        let written = self.file.seek(SeekFrom::Start(0)).and_then(|_| self.file.write_all(&batch.to_be_bytes()));
        written.map_err(Error::io("writing the watermark of the store"))
    }
}
