//! The rows of [`Table::Kept`]: what each person asked to keep, newest last. Without them a search for these facts would read
//! the memories of all people. A key is person, label and memory. Each fact has a row without a label. One that begins with a
//! word and a name in quotation marks, such as `Checkpoint "Move the gate"`, has another row with this word as its label.
//! The rows are written and removed with their memories.

use azera_types::{MemoryId, PersonId};

use crate::rows::MemoryRow;
use crate::{Batch, Durability, Error, Store, Table, codec, keys};

/// Key in [`Table::Meta`]: the version of the rows.
pub(crate) const MARK: &[u8] = b"kept";

/// The version of the rows. Raise it after every change of what has one, and of what a label is.
const VERSION: u32 = 1;

/// Most letters of a label.
const MAX_LABEL_BYTES: usize = 16;

/// Rows that one transaction writes or removes.
const PAGE: usize = 4_096;

/// Returns the label of a statement, if it has one.
fn label(text: &str) -> Option<&str> {
    let (word, _) = text.split_once(" \"")?;
    let is_word = word.len() <= MAX_LABEL_BYTES && word.bytes().all(|byte| byte.is_ascii_alphabetic());
    Some(word).filter(|word| is_word && !word.is_empty())
}

/// Returns the beginning of the keys of what a person asked to keep, all of it or what has a label.
pub(crate) fn prefix(person: &PersonId, label: Option<&str>) -> Vec<u8> {
    keys::prefix(&[person.as_str(), label.unwrap_or_default()])
}

/// Returns the key of one memory among these.
pub(crate) fn key(person: &PersonId, label: Option<&str>, id: MemoryId) -> Vec<u8> {
    keys::numbered(&[person.as_str(), label.unwrap_or_default()], id.0)
}

/// Returns the keys of a memory's rows; none if nobody asked to keep it.
pub(crate) fn keys_of(memory: &MemoryRow) -> Vec<Vec<u8>> {
    let Some(person) = memory.author.person().filter(|_| memory.is_kept()) else { return Vec::new() };
    let label = label(&memory.text).map(Some);
    std::iter::once(None).chain(label).map(|label| key(person, label, memory.id)).collect()
}

/// Adds the rows of a memory.
pub(crate) fn put(batch: &mut Batch, memory: &MemoryRow) {
    for key in keys_of(memory) {
        batch.put(Table::Kept, key, []);
    }
}

/// Removes the rows of a memory.
pub(crate) fn remove(batch: &mut Batch, memory: &MemoryRow) {
    for key in keys_of(memory) {
        batch.remove(Table::Kept, key);
    }
}

/// Adds the rows of a record that lacks them or has those of another version. After a crash it begins again, with the same
/// result.
pub(crate) fn complete(store: &dyn Store) -> Result<(), Error> {
    if codec::get::<u32>(store, Table::Meta, MARK)? == Some(VERSION) {
        return Ok(());
    }
    let mut batch = Batch::new();
    codec::walk(store, Table::Kept, b"", |key, _| {
        batch.remove(Table::Kept, key);
        page(store, &mut batch)
    })?;
    codec::walk(store, Table::Memories, b"", |_, value| {
        // A damaged row is a matter of the record's check.
        if let Ok(memory) = codec::decode::<MemoryRow>(Table::Memories, value) {
            put(&mut batch, &memory);
        }
        page(store, &mut batch)
    })?;
    codec::put(&mut batch, Table::Meta, MARK.to_vec(), &VERSION)?;
    store.commit(batch, Durability::Flushed)
}

fn page(store: &dyn Store, batch: &mut Batch) -> Result<bool, Error> {
    if batch.changes().len() >= PAGE {
        store.commit(std::mem::take(batch), Durability::Soon)?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn a_label_is_a_word_before_a_quoted_name() {
        assert_eq!(label("Checkpoint \"Move the gate\"\nNext: \"it\""), Some("Checkpoint"));
        for other in
            ["", "Checkpoint", "\"Move\" it", " \"Move\"", "The gate \"is\" red", "Gate: \"red\"", "Ärger \"x\""]
        {
            assert_eq!(label(other), None, "{other}");
        }
        assert_eq!(label("Abcdefghijklmnopq \"x\""), None, "it is too long");
    }
}
