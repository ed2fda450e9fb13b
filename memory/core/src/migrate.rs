//! Migrates a record of an older layout. Layouts 2 to 8 need no migration here: layout 2 has no files of messages, layout 3
//! no pictures that people asked for, layout 4 no graph, which is built in the background, layout 5 no imported chats,
//! layout 6 no commands of coding sessions, which the next import of the same transcript adds, layout 7 no themes, which are
//! made in the background, and layout 8 no index of kept facts, which `kept` completes.

use azera_types::MessageId;

use crate::rows::MemoryRow;
use crate::{Batch, Durability, Error, Store, Table, codec, keys, names};

/// Rows that one transaction rewrites.
const PAGE: usize = 1_024;

/// Migrates layout 1. That layout kept one row for each speaker even after their messages were gone, and filed the
/// replies built on a fact under a message's id. An interrupted migration starts again and gives the same result.
pub(crate) fn upgrade(store: &dyn Store) -> Result<(), Error> {
    name_anew(store)?;
    let mut batch = Batch::new();
    codec::walk(store, Table::Memories, b"", |_, value| {
        let memory: MemoryRow = codec::decode(Table::Memories, value)?;
        if memory.sources.is_empty() {
            let old = keys::prefix(&[&memory.id.to_string()]);
            for reply in codec::rows::<MessageId>(store, Table::Derived, &old)? {
                codec::put(&mut batch, Table::Derived, keys::derived_from_fact(memory.id, &reply), &reply)?;
            }
        }
        page(store, &mut batch)
    })?;
    store.commit(batch, Durability::Flushed)
}

/// Rebuilds the rows of [`Table::Names`] from the memories.
pub(crate) fn name_anew(store: &dyn Store) -> Result<(), Error> {
    let mut batch = Batch::new();
    codec::walk(store, Table::Names, b"", |key, _| {
        batch.remove(Table::Names, key);
        page(store, &mut batch)
    })?;
    codec::walk(store, Table::Memories, b"", |_, value| {
        for key in names::keys(&codec::decode(Table::Memories, value)?) {
            batch.put(Table::Names, key, []);
        }
        page(store, &mut batch)
    })?;
    store.commit(batch, Durability::Flushed)
}

fn page(store: &dyn Store, batch: &mut Batch) -> Result<bool, Error> {
    if batch.changes().len() >= PAGE {
        store.commit(std::mem::take(batch), Durability::Flushed)?;
    }
    Ok(true)
}
