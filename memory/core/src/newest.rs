//! Lists memories by age.

use azera_types::MemoryId;

use crate::domains::Memories;
use crate::rows::{Kind, MemoryRow};
use crate::store::{Order, Table};
use crate::{Error, ReadScope, codec, keys};

/// Number of rows read at once.
const PAGE: usize = 256;

impl Memories<'_> {
    /// Returns the memories of accepted kinds that `read_scope` allows, newest first, at most `limit`. With `before`, returns
    /// only those that were stored before that memory, which need not exist.
    pub fn newest(
        self,
        read_scope: &ReadScope,
        accepts: impl Fn(Kind) -> bool,
        before: Option<MemoryId>,
        limit: usize,
    ) -> Result<Vec<MemoryRow>, Error> {
        let mut after = before.map(keys::memory);
        let mut found = Vec::new();
        while found.len() < limit {
            let page = self.0.store.scan(Table::Memories, b"", after.as_deref(), Order::Descending, PAGE)?;
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            for (_, value) in page {
                let memory: MemoryRow = codec::decode(Table::Memories, &value)?;
                let allowed = read_scope.allows(&memory.persona, &memory.scope, &memory.source_scopes, memory.at);
                if allowed && accepts(memory.kind) {
                    found.push(memory);
                }
            }
        }
        found.truncate(limit);
        Ok(found)
    }
}
