//! An index of speakers by the words of their names: one row for each memory and word. The rows are added and removed
//! with the memory.

use azera_types::{Author, MemoryId};

use crate::domains::Memories;
use crate::recall::name_tokens;
use crate::rows::MemoryRow;
use crate::{Error, Order, ReadScope, Table};

/// Returns the keys of a memory's rows: persona, scope, word of the speaker's name, memory.
pub(crate) fn keys(memory: &MemoryRow) -> Vec<Vec<u8>> {
    if memory.author == Author::Forgotten {
        return Vec::new();
    }
    let scope = memory.scope.to_string();
    name_tokens(memory.author.name())
        .map(|token| crate::keys::numbered(&[memory.persona.as_str(), &scope, &token], memory.id.0))
        .collect()
}

impl Memories<'_> {
    /// Returns true if a speaker whose name contains `token` said something that `read_scope` allows.
    pub(crate) fn is_a_speaker(self, read_scope: &ReadScope, token: &str) -> Result<bool, Error> {
        for grant in read_scope.grants() {
            let prefix = crate::keys::prefix(&[read_scope.persona().as_str(), &grant.scope.to_string(), token]);
            let newest = self.0.store.scan(Table::Names, &prefix, None, Order::Descending, 1)?;
            let Some((key, _)) = newest.first() else { continue };
            let id = MemoryId(crate::keys::number("names", key)?);
            if grant.since.is_none() || self.get(read_scope, id)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
