//! Converts rows to bytes and back.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Batch, Error, Order, Store, Table};

/// Rows that a walk over a table reads at a time.
const PAGE: usize = 512;

pub(crate) fn encode<T: Serialize>(table: Table, row: &T) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(row).map_err(|error| Error::Damaged { table: table.name(), why: error.to_string() })
}

pub(crate) fn decode<T: DeserializeOwned>(table: Table, bytes: &[u8]) -> Result<T, Error> {
    // Line and column say where the row is damaged. Unlike serde_json's message, they can never quote content.
    serde_json::from_slice(bytes).map_err(|error| Error::Damaged {
        table: table.name(),
        why: format!("line {} column {}", error.line(), error.column()),
    })
}

pub(crate) fn get<T: DeserializeOwned>(store: &dyn Store, table: Table, key: &[u8]) -> Result<Option<T>, Error> {
    store.get(table, key)?.map(|bytes| decode(table, &bytes)).transpose()
}

pub(crate) fn put<T: Serialize>(batch: &mut Batch, table: Table, key: Vec<u8>, row: &T) -> Result<(), Error> {
    batch.put(table, key, encode(table, row)?);
    Ok(())
}

/// Calls `visit` for every entry under `prefix` in ascending order, until `visit` returns `false`.
pub(crate) fn walk(
    store: &dyn Store,
    table: Table,
    prefix: &[u8],
    mut visit: impl FnMut(&[u8], &[u8]) -> Result<bool, Error>,
) -> Result<(), Error> {
    let mut after: Option<Vec<u8>> = None;
    loop {
        let page = store.scan(table, prefix, after.as_deref(), Order::Ascending, PAGE)?;
        for (key, value) in &page {
            if !visit(key, value)? {
                return Ok(());
            }
        }
        if page.len() < PAGE {
            return Ok(());
        }
        after = page.into_iter().next_back().map(|(key, _)| key);
    }
}

/// Returns every row under `prefix` in ascending order.
pub(crate) fn rows<T: DeserializeOwned>(store: &dyn Store, table: Table, prefix: &[u8]) -> Result<Vec<T>, Error> {
    let mut all = Vec::new();
    walk(store, table, prefix, |_, value| {
        all.push(decode(table, value)?);
        Ok(true)
    })?;
    Ok(all)
}
