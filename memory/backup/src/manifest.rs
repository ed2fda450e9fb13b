use std::collections::BTreeMap;

use azera_types::Timestamp;
use serde::{Deserialize, Serialize};

/// Format of the archive that this version writes, and the newest that it reads.
pub const FORMAT: u32 = 1;

/// The manifest of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Format of the archive.
    pub format: u32,
    /// The version of Azera that made it.
    pub azera: String,
    /// Name of the record ([`azera_memory::Record::identity`]).
    pub record: String,
    /// When it was made.
    pub made_at: Timestamp,
    /// Revision of the record at that time.
    pub revision: u64,
    /// Number of rows by table. A row that changed during the backup counts each time.
    pub rows: BTreeMap<String, u64>,
    /// Size of all rows in bytes, uncompressed.
    pub bytes: u64,
    /// SHA-256 of all uncompressed rows in lower-case hexadecimal.
    pub sha256: String,
}
