//! Lists memories by age.

use azera_types::MemoryId;

use crate::domains::Memories;
use crate::rows::MemoryRow;
use crate::store::{Order, Table};
use crate::{Error, ReadScope, codec, keys};

/// Number of rows read at once.
const PAGE: usize = 256;

impl Memories<'_> {
    /// Returns the accepted memories that `read_scope` allows, newest first, at most `limit`. With `before`, returns
    /// only those that were stored before that memory, which need not exist.
    pub fn newest(
        self,
        read_scope: &ReadScope,
        accepts: impl Fn(&MemoryRow) -> bool,
        before: Option<MemoryId>,
        limit: usize,
    ) -> Result<Vec<MemoryRow>, Error> {
        self.newest_within(read_scope, accepts, before, (limit, usize::MAX))
    }

    /// Returns what [`Memories::newest`] returns, at most `limit`, and reads at most `rows` rows, accepted or not.
    pub(crate) fn newest_within(
        self,
        read_scope: &ReadScope,
        accepts: impl Fn(&MemoryRow) -> bool,
        before: Option<MemoryId>,
        (limit, mut rows): (usize, usize),
    ) -> Result<Vec<MemoryRow>, Error> {
        let mut after = before.map(keys::memory);
        let mut found = Vec::new();
        while found.len() < limit && rows > 0 {
            let most = PAGE.min(rows);
            let page = self.0.store.scan(Table::Memories, b"", after.as_deref(), Order::Descending, most)?;
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            rows = rows.saturating_sub(page.len());
            for (_, value) in page {
                let memory: MemoryRow = codec::decode(Table::Memories, &value)?;
                let allowed = read_scope.allows(&memory.persona, &memory.scope, &memory.source_scopes, memory.at);
                if allowed && accepts(&memory) {
                    found.push(memory);
                }
            }
        }
        found.truncate(limit);
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use azera_types::{
        Author, ChatId, PersonId, PersonaId, Place, PlaceKind, ReadableScopes, RealmId, Scope, Timestamp,
    };

    use super::*;
    use crate::conformance::record;
    use crate::{NewFact, RamStore};

    #[test]
    fn only_accepted_memories_count_towards_the_limit() {
        let memory = record(Arc::new(RamStore::new()));
        let (persona, realm) = (PersonaId::new("azera").unwrap(), RealmId::new("town").unwrap());
        let chat = ChatId::new("hall").unwrap();
        let place = Place { chat: chat.clone(), kind: PlaceKind::Public(realm.clone()), since: None };
        let read_scope = ReadScope::in_place(persona.clone(), &place, &ReadableScopes::default());
        for text in ["key 1", "key 2", "key 3", "noise", "noise", "noise", "noise"] {
            let author = Author::Person { id: PersonId::new("ann").unwrap(), name: "Ann".into() };
            let (scope, at) = (Scope::Realm(realm.clone()), Timestamp::UNIX_EPOCH);
            let (persona, chat, text) = (persona.clone(), chat.clone(), text.into());
            memory.memories().store_fact(NewFact { persona, chat, scope, author, text, at }).unwrap();
        }
        let found = |bounds| {
            let is_key = |row: &MemoryRow| row.text.starts_with("key");
            let found = memory.memories().newest_within(&read_scope, is_key, None, bounds).unwrap();
            found.iter().map(|row| row.text.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(found((2, usize::MAX)), ["key 3", "key 2"], "newer memories of another kind hide none");
        assert_eq!(found((2, 5)), ["key 3"], "it reads no more rows than it may");
        assert_eq!(found((2, 4)), [""; 0]);
    }
}
