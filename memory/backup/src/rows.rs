//! The binary format of rows in a backup: a sequence of changes. Each has its kind, its table, its key and its value.
//! The length of key and value comes before them in four bytes, little-endian.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};

use azera_memory::{Batch, Change, MAX_KEY_BYTES, MAX_VALUE_BYTES, Table, blob_of};
use azera_types::BlobId;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

const PUT: u8 = 1;
const REMOVE: u8 = 2;

/// Bytes of rows read into one batch.
const BATCH_BYTES: usize = 256 * 1024;

/// Writes changes and counts them.
pub(crate) struct RowWriter<W> {
    to: W,
    hash: Sha256,
    bytes: u64,
    rows: BTreeMap<String, u64>,
    /// Keys of the rows of files.
    files: BTreeSet<Vec<u8>>,
}

/// Counts and checksum of what was written.
pub(crate) struct Written {
    pub(crate) rows: BTreeMap<String, u64>,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
    /// The files that belong to messages.
    pub(crate) files: BTreeSet<BlobId>,
}

impl<W: Write> RowWriter<W> {
    pub(crate) fn new(to: W) -> Self {
        Self { to, hash: Sha256::new(), bytes: 0, rows: BTreeMap::new(), files: BTreeSet::new() }
    }

    pub(crate) fn write(&mut self, batch: &Batch) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(batch.bytes() + batch.changes().len() * 10);
        for change in batch.changes() {
            match change {
                Change::Put(table, key, value) => {
                    bytes.extend([PUT, *table as u8]);
                    push(&mut bytes, key);
                    push(&mut bytes, value);
                    if *table == Table::Blobs {
                        self.files.insert(key.clone());
                    }
                    *self.rows.entry(table.name().to_owned()).or_default() += 1;
                }
                Change::Remove(table, key) => {
                    if *table == Table::Blobs {
                        self.files.remove(key);
                    }
                    bytes.extend([REMOVE, *table as u8]);
                    push(&mut bytes, key);
                }
            }
        }
        self.hash.update(&bytes);
        self.bytes += bytes.len() as u64;
        self.to.write_all(&bytes)
    }

    pub(crate) fn finish(mut self) -> io::Result<Written> {
        self.to.flush()?;
        let files = self.files.iter().filter_map(|key| blob_of(key)).collect();
        Ok(Written { rows: self.rows, bytes: self.bytes, sha256: HEXLOWER.encode(&self.hash.finalize()), files })
    }
}

fn push(bytes: &mut Vec<u8>, part: &[u8]) {
    // `Batch::check` limits keys and values to far below four gigabytes.
    bytes.extend((part.len() as u32).to_le_bytes());
    bytes.extend(part);
}

/// Reads changes and checks them.
pub(crate) struct RowReader<R> {
    from: R,
    hash: Sha256,
    /// Bytes left to read.
    left: u64,
}

impl<R: Read> RowReader<R> {
    /// Starts to read `bytes` bytes of rows.
    pub(crate) fn new(from: R, bytes: u64) -> Self {
        Self { from, hash: Sha256::new(), left: bytes }
    }

    /// Returns the number of bytes left to read.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Returns the next changes; `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Batch>> {
        if self.left == 0 {
            return Ok(None);
        }
        let mut batch = Batch::new();
        let mut bytes = 0;
        while self.left > 0 && bytes < BATCH_BYTES {
            let [kind, table] = self.array()?;
            let table = Table::from_number(table).ok_or_else(|| wrong("a row of an unknown table"))?;
            let key = self.part(MAX_KEY_BYTES)?;
            bytes += key.len();
            match kind {
                PUT => {
                    let value = self.part(MAX_VALUE_BYTES)?;
                    bytes += value.len();
                    batch.put(table, key, value);
                }
                REMOVE => {
                    batch.remove(table, key);
                }
                _ => return Err(wrong("a row of an unknown kind")),
            }
        }
        Ok(Some(batch))
    }

    /// Returns the SHA-256 of everything read.
    pub(crate) fn sha256(self) -> String {
        HEXLOWER.encode(&self.hash.finalize())
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn part(&mut self, most: usize) -> io::Result<Vec<u8>> {
        let length = u32::from_le_bytes(self.array()?) as usize;
        if length > most {
            return Err(wrong("a row larger than any"));
        }
        let mut bytes = vec![0; length];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        let left = self.left.checked_sub(bytes.len() as u64).ok_or_else(|| wrong("it ends within a row"))?;
        self.from.read_exact(bytes)?;
        self.hash.update(&*bytes);
        self.left = left;
        Ok(())
    }
}

fn wrong(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
