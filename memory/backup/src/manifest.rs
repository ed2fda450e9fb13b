use std::collections::BTreeMap;

use azera_types::Timestamp;
use serde::{Deserialize, Serialize};

/// The format of the archive this version writes, and the newest it reads.
pub const FORMAT: u32 = 1;

/// What a backup says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The format of the archive.
    pub format: u32,
    /// The version of Azera that made it.
    pub azera: String,
    /// The record's own name ([`azera_memory::Record::identity`]).
    pub record: String,
    /// When it was made.
    pub made_at: Timestamp,
    /// How many changes the record had seen.
    pub revision: u64,
    /// Rows by table. A row that changed while the backup was made counts each time.
    pub rows: BTreeMap<String, u64>,
    /// Bytes of all rows, before they are packed.
    pub bytes: u64,
    /// SHA-256 of all rows in lower-case hexadecimal, before they are packed.
    pub sha256: String,
}
