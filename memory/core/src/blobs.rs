//! The trait of the blob store, which holds the bytes of files by their SHA-256. It knows no people and no places:
//! the rows of [`crate::Table::Blobs`] say which messages the bytes belong to, and only [`crate::Memory`] reads them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use azera_types::BlobId;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::Error;

/// Stores bytes by their digest. Calls block.
pub trait BlobStore: Send + Sync {
    /// Stores bytes whose digest is `id`, and makes them durable before it returns. Storing them again changes nothing.
    fn put(&self, id: &BlobId, bytes: &[u8]) -> Result<(), Error>;

    /// Returns the bytes, if they are stored.
    ///
    /// # Errors
    ///
    /// Fails if the stored bytes have another digest.
    fn get(&self, id: &BlobId) -> Result<Option<Vec<u8>>, Error>;

    /// Removes the bytes, if they are stored; returns how many they were.
    fn remove(&self, id: &BlobId) -> Result<u64, Error>;

    /// Returns the id and the size of everything stored.
    fn list(&self) -> Result<Vec<(BlobId, u64)>, Error>;
}

/// Returns the id of some bytes.
pub fn blob_id(bytes: &[u8]) -> Result<BlobId, Error> {
    BlobId::new(HEXLOWER.encode(&Sha256::digest(bytes))).map_err(|error| Error::Invalid(error.to_string()))
}

/// Returns the error for stored bytes with another digest than their name says.
pub fn damaged_blob(id: &BlobId) -> Error {
    Error::Damaged { table: "blobs", why: format!("the bytes of {id} are not what was stored") }
}

/// A blob store in RAM. A clone is another handle on the same bytes.
#[derive(Clone, Default)]
pub struct RamBlobs(Arc<Mutex<BTreeMap<BlobId, Vec<u8>>>>);

impl RamBlobs {
    fn held(&self) -> MutexGuard<'_, BTreeMap<BlobId, Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BlobStore for RamBlobs {
    fn put(&self, id: &BlobId, bytes: &[u8]) -> Result<(), Error> {
        self.held().insert(id.clone(), bytes.to_vec());
        Ok(())
    }

    fn get(&self, id: &BlobId) -> Result<Option<Vec<u8>>, Error> {
        match self.held().get(id) {
            Some(bytes) if blob_id(bytes)? != *id => Err(damaged_blob(id)),
            bytes => Ok(bytes.cloned()),
        }
    }

    fn remove(&self, id: &BlobId) -> Result<u64, Error> {
        Ok(self.held().remove(id).map_or(0, |bytes| bytes.len() as u64))
    }

    fn list(&self) -> Result<Vec<(BlobId, u64)>, Error> {
        Ok(self.held().iter().map(|(id, bytes)| (id.clone(), bytes.len() as u64)).collect())
    }
}
