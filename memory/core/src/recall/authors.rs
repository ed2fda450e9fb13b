//! A cache of the author and time of memories that were read lately. With it, recall knows everything but the text that
//! a candidate's score depends on, and most rows need not be read again. It only speeds up ranking: shown text is
//! always read from the record.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use azera_types::{Author, MemoryId, Timestamp};

use crate::rows::MemoryRow;

/// Most memories in the cache, about 10 MB. When it is full, it is emptied.
const MAX_KNOWN: usize = 200_000;

/// The cache. Author and time of a memory never change.
#[derive(Default)]
pub(crate) struct AuthorCache(RwLock<CachedAuthor>);

#[derive(Default)]
pub(super) struct CachedAuthor {
    authors: Vec<Author>,
    numbers: HashMap<Author, u32>,
    memories: HashMap<MemoryId, (u32, Timestamp)>,
}

impl AuthorCache {
    /// Calls `ask` with the cache, for many lookups under one lock.
    pub(super) fn ask<T>(&self, ask: impl FnOnce(&CachedAuthor) -> T) -> T {
        ask(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn learn(&self, memory: &MemoryRow) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.memories.len() >= MAX_KNOWN || known.authors.len() >= MAX_KNOWN {
            *known = CachedAuthor::default();
        }
        let number = match known.numbers.get(&memory.author) {
            Some(number) => *number,
            None => {
                let number = u32::try_from(known.authors.len()).unwrap_or(u32::MAX);
                known.authors.push(memory.author.clone());
                known.numbers.insert(memory.author.clone(), number);
                number
            }
        };
        known.memories.insert(memory.id, (number, memory.at));
    }

    /// Empties the cache, with the names in it.
    pub(crate) fn clear(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = CachedAuthor::default();
    }
}

impl CachedAuthor {
    /// Returns the author and time of a memory; `None` if it was not read lately.
    pub(super) fn of(&self, id: MemoryId) -> Option<(&Author, Timestamp)> {
        let (author, at) = self.memories.get(&id)?;
        Some((self.authors.get(usize::try_from(*author).ok()?)?, *at))
    }
}
