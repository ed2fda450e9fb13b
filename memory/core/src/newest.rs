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

    /// Returns what [`Memories::newest`] returns, at most `limit`, among the newest `rows` memories that `read_scope`
    /// allows, accepted or not.
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
            let page = self.0.store.scan(Table::Memories, b"", after.as_deref(), Order::Descending, PAGE)?;
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            for (_, value) in page {
                let memory: MemoryRow = codec::decode(Table::Memories, &value)?;
                let allowed = read_scope.allows(&memory.persona, &memory.scope, &memory.source_scopes, memory.at);
                // What is said elsewhere must not change what is found here, so it does not count.
                if !allowed || rows == 0 {
                    continue;
                }
                rows -= 1;
                if accepts(&memory) {
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
    use crate::{Memory, NewFact, RamStore};

    fn realm(name: &str) -> RealmId {
        RealmId::new(name).unwrap()
    }

    fn read_scope() -> ReadScope {
        let place = Place { chat: ChatId::new("hall").unwrap(), kind: PlaceKind::Public(realm("town")), since: None };
        ReadScope::in_place(PersonaId::new("azera").unwrap(), &place, &ReadableScopes::default())
    }

    fn keep(memory: &Memory, persona: &str, place: &str, text: &str) {
        let author = Author::Person { id: PersonId::new("ann").unwrap(), name: "Ann".into() };
        let (persona, chat) = (PersonaId::new(persona).unwrap(), ChatId::new("hall").unwrap());
        let (scope, at) = (Scope::Realm(realm(place)), Timestamp::UNIX_EPOCH);
        memory.memories().store_fact(NewFact { persona, chat, scope, author, text: text.into(), at }).unwrap();
    }

    #[test]
    fn only_accepted_memories_count_towards_the_limit() {
        let memory = record(Arc::new(RamStore::new()));
        let read_scope = read_scope();
        for text in ["key 1", "key 2", "key 3", "noise", "noise", "noise", "noise"] {
            keep(&memory, "azera", "town", text);
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

    #[test]
    fn what_may_not_be_read_takes_no_room_from_what_may() {
        let memory = record(Arc::new(RamStore::new()));
        keep(&memory, "azera", "town", "key");
        for _ in 0..=PAGE {
            keep(&memory, "azera", "village", "noise");
            keep(&memory, "areza", "town", "noise");
        }
        keep(&memory, "azera", "town", "newer");
        let found = |rows| {
            let found = memory.memories().newest_within(&read_scope(), |_| true, None, (9, rows)).unwrap();
            found.iter().map(|row| row.text.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(found(2), ["newer", "key"]);
        assert_eq!(found(1), ["newer"]);
    }
}
