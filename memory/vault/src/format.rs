//! The bytes of a sealed vault:
//!
//! ```text
//! magic  id of the master  sealed data key  length of the sealed index  sealed index  sealed values, one after the other
//! ```
//!
//! The index names the entries. Its associated data holds the digest of the values, so that they belong together.

use sha2::{Digest, Sha256};

use crate::Error;
use crate::cipher::{KEY_BYTES, OVERHEAD_BYTES};
use crate::master::{ID_BYTES, MasterId};
use crate::vault::MAX_VAULT_BYTES;

/// The beginning of every sealed vault, without the number of the format.
const MAGIC: &[u8] = b"AZVAULT";

/// The number of the format.
const FORMAT: u8 = 1;

/// Bytes of a sealed data key.
const SEALED_KEY_BYTES: usize = KEY_BYTES + OVERHEAD_BYTES;

/// Largest sealed vault, in bytes: its values, and an index that names all of its entries.
pub(crate) const MAX_SEALED_BYTES: u64 = 2 * MAX_VAULT_BYTES as u64;

/// The parts of a sealed vault.
pub(crate) struct Parts<'a> {
    pub(crate) master: MasterId,
    pub(crate) data_key: &'a [u8],
    pub(crate) index: &'a [u8],
    pub(crate) values: &'a [u8],
}

impl<'a> Parts<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut rest = bytes;
        let mut take = |count: usize| {
            let (part, left) = rest.split_at_checked(count).ok_or(Error::Damaged("it is cut"))?;
            rest = left;
            Ok::<&[u8], Error>(part)
        };
        if take(MAGIC.len())? != MAGIC {
            return Err(Error::Damaged("it does not begin like a vault"));
        }
        match take(1)? {
            [FORMAT] => {}
            [newer] if *newer > FORMAT => return Err(Error::Newer),
            _ => return Err(Error::Damaged("it does not begin like a vault")),
        }
        let master = take(ID_BYTES)?.try_into().map_err(|_| Error::Damaged("it is cut"))?;
        let data_key = take(SEALED_KEY_BYTES)?;
        let length = take(4)?.try_into().map_err(|_| Error::Damaged("it is cut"))?;
        let index = take(u32::from_le_bytes(length) as usize)?;
        Ok(Self { master: MasterId(master), data_key, index, values: rest })
    }

    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let length = u32::try_from(self.index.len()).map_err(|_| Error::Full)?;
        Ok([MAGIC, &[FORMAT], &self.master.0, self.data_key, &length.to_le_bytes(), self.index, self.values].concat())
    }
}

/// Returns the digest of all values.
pub(crate) fn digest(values: &[u8]) -> [u8; 32] {
    Sha256::digest(values).into()
}
