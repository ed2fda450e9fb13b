//! Keeping a persona's memories within a bound: the oldest go first. The conversation itself stays in the record; what
//! goes is found by recall no more. What a person asked to keep is neither counted nor taken, and what is worth keeping goes
//! last. The pieces of what came with a message are not counted, and go with its memory: of one message there are few.

use std::collections::BTreeMap;

use azera_types::{ChatId, MemoryId, PersonaId, Scope, Timestamp};

use crate::rows::{MemoryRow, WritingRow};
use crate::{Batch, Durability, Error, Memory, Table, codec, keys};

/// Memories removed in one transaction.
const PAGE: usize = 128;

/// Part of the bound that is freed besides what is over it, so that not every turn has to.
const SLACK: usize = 50;

/// What was done to hold a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PruneReport {
    /// Memories that went.
    pub removed: usize,
    /// Memories there are now.
    pub left: usize,
}

impl Memory {
    /// Removes the oldest memories of `persona` if it has more than `keep`, of each place those that are worth keeping at `now`
    /// last.
    pub fn prune(&self, persona: &PersonaId, keep: usize, now: Timestamp) -> Result<PruneReport, Error> {
        let mut held: Vec<(MemoryId, ChatId)> = Vec::new();
        codec::walk(self.store.as_ref(), Table::MemoryByChat, &keys::prefix(&[persona.as_str()]), |key, _| {
            held.push((MemoryId(keys::number("memory_by_chat", key)?), keys::chat_of_memory(persona, key)?));
            Ok(true)
        })?;
        codec::walk(self.store.as_ref(), Table::Writings, &keys::prefix(&[persona.as_str()]), |_, value| {
            let writing: WritingRow = codec::decode(Table::Writings, value)?;
            if let Some(MemoryRow { id, chat: Some(chat), .. }) = self.raw_memory(writing.memory)? {
                held.push((id, chat));
            }
            Ok(true)
        })?;
        let Some(over) = held.len().checked_sub(keep).filter(|over| *over > 0) else {
            return Ok(PruneReport { removed: 0, left: held.len() });
        };
        let count = held.len();
        // Ids ascend with time.
        held.sort_unstable();
        let going = over + keep / SLACK;
        let by_chat = self.choose(&held, going, now)?;
        let mut removed = 0;
        for (chat, ids) in by_chat {
            for page in ids.chunks(PAGE) {
                let _writing = self.writing(&chat)?;
                let mut batch = Batch::new();
                for id in page {
                    // What was forgotten meanwhile is gone already.
                    let Some(memory) = self.raw_memory(*id)? else { continue };
                    for piece in self.sibling_chunks(&memory)? {
                        self.remove_memory(&mut batch, &piece)?;
                        removed += 1;
                    }
                    self.remove_memory(&mut batch, &memory)?;
                    removed += 1;
                }
                // Pruned again after a crash.
                self.store.commit(batch, Durability::Soon)?;
            }
        }
        Ok(PruneReport { removed, left: count.saturating_sub(going) })
    }

    /// Those of `held`, the oldest first, of which so many go. How many of each place go is decided by age alone: what is kept in one
    /// place must not depend on what was said in another. Which of a place's own they are, by what is worth keeping, too.
    fn choose(
        &self,
        held: &[(MemoryId, ChatId)],
        going: usize,
        now: Timestamp,
    ) -> Result<BTreeMap<ChatId, Vec<MemoryId>>, Error> {
        let mut wanted: BTreeMap<(ChatId, Scope), usize> = BTreeMap::new();
        for (id, chat) in held.iter().take(going) {
            if let Some(memory) = self.raw_memory(*id)? {
                *wanted.entry((chat.clone(), memory.scope)).or_default() += 1;
            }
        }
        let mut lasting: BTreeMap<(ChatId, Scope), Vec<MemoryId>> = BTreeMap::new();
        let mut chosen: BTreeMap<ChatId, Vec<MemoryId>> = BTreeMap::new();
        for (id, chat) in held {
            if wanted.values().all(|count| *count == 0) {
                break;
            }
            let Some(memory) = self.raw_memory(*id)? else { continue };
            let place = (chat.clone(), memory.scope.clone());
            let Some(count) = wanted.get_mut(&place).filter(|count| **count > 0) else { continue };
            if memory.lasts(now) {
                lasting.entry(place).or_default().push(*id);
            } else {
                *count -= 1;
                chosen.entry(chat.clone()).or_default().push(*id);
            }
        }
        for (place, count) in wanted {
            let rest = lasting.remove(&place).unwrap_or_default();
            chosen.entry(place.0).or_default().extend(rest.into_iter().take(count));
        }
        Ok(chosen)
    }
}
