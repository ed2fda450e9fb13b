//! Marks of places in which a memory left its theme, because it was forgotten or edited: what is left is to be grouped again.
//! A key in [`Table::Meta`] holds a hash and no name. The value is the memory that left last, so that a mark which is set
//! while a place is grouped is not cleared with the one before.

use std::collections::BTreeSet;

use azera_types::MemoryId;
use sha2::{Digest, Sha256};

use crate::{Batch, Durability, Error, Store, Table, codec};

/// What the keys of marks begin with.
const PREFIX: &[u8] = b"themes_due/";

/// Bytes of a hash that tell places apart.
const HASH_BYTES: usize = 16;

/// Returns the key of the mark of a place.
pub(super) fn key(place: &[u8]) -> Vec<u8> {
    let digest = Sha256::digest(place);
    [PREFIX, digest.get(..HASH_BYTES).unwrap_or(&digest)].concat()
}

/// Returns true for the key of a mark.
pub(crate) fn is_mark(key: &[u8]) -> bool {
    key.starts_with(PREFIX)
}

/// Marks a place.
pub(super) fn put(batch: &mut Batch, place: &[u8], left: MemoryId) -> Result<(), Error> {
    codec::put(batch, Table::Meta, key(place), &left)
}

/// Returns the mark of a place, if it has one.
pub(super) fn get(store: &dyn Store, place: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    store.get(Table::Meta, &key(place))
}

/// Removes a mark, unless it was set again.
pub(super) fn clear(store: &dyn Store, place: &[u8], mark: &[u8]) -> Result<(), Error> {
    if get(store, place)?.as_deref() != Some(mark) {
        return Ok(());
    }
    let mut batch = Batch::new();
    batch.remove(Table::Meta, key(place));
    store.commit(batch, Durability::Soon)
}

/// Returns the keys of all marks.
pub(super) fn all(store: &dyn Store) -> Result<BTreeSet<Vec<u8>>, Error> {
    let mut keys = BTreeSet::new();
    codec::walk(store, Table::Meta, PREFIX, |key, _| {
        keys.insert(key.to_vec());
        Ok(true)
    })?;
    Ok(keys)
}
