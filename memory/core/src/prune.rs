//! Bounds the number of memories of a persona. The oldest are removed first; the conversation itself stays in the
//! record, but recall no longer finds them. Facts that a person asked to remember are neither counted nor removed, and
//! salient memories are removed last. Chunks of a long file are not counted; they are removed with the memory of their
//! message, which has only a few.

use std::collections::BTreeMap;

use azera_types::{ChatId, MemoryId, PersonaId, Scope, Timestamp};

use crate::domains::Memories;
use crate::rows::{MemoryRow, WritingRow};
use crate::{Batch, Durability, Error, Table, codec, keys};

/// Memories that one transaction removes.
const PAGE: usize = 128;

/// Divisor of the bound: one part in this many is freed in addition, so that not every turn has to prune.
const SLACK: usize = 50;

/// The result of pruning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PruneReport {
    /// Memories that were removed.
    pub removed: usize,
    /// Memories that remain.
    pub left: usize,
}

impl Memories<'_> {
    /// Removes the oldest memories of `persona` if it has more than `keep`. Within each place, memories that are
    /// salient at `now` are removed last.
    pub fn prune(self, persona: &PersonaId, keep: usize, now: Timestamp) -> Result<PruneReport, Error> {
        let mut held: Vec<(MemoryId, ChatId)> = Vec::new();
        codec::walk(self.0.store.as_ref(), Table::MemoryByChat, &keys::prefix(&[persona.as_str()]), |key, _| {
            held.push((MemoryId(keys::number("memory_by_chat", key)?), keys::chat_of_memory(persona, key)?));
            Ok(true)
        })?;
        codec::walk(self.0.store.as_ref(), Table::Writings, &keys::prefix(&[persona.as_str()]), |_, value| {
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
                let _writing = self.0.writing(&chat)?;
                let mut batch = Batch::new();
                for id in page {
                    // A memory that was forgotten meanwhile is gone already.
                    let Some(memory) = self.raw_memory(*id)? else { continue };
                    for piece in self.sibling_chunks(&memory)? {
                        self.0.turns().remove_memory(&mut batch, &piece)?;
                        removed += 1;
                    }
                    self.0.turns().remove_memory(&mut batch, &memory)?;
                    removed += 1;
                }
                // After a crash, the next pruning repeats this.
                self.0.store.commit(batch, Durability::Soon)?;
            }
        }
        Ok(PruneReport { removed, left: count.saturating_sub(going) })
    }

    /// Chooses `going` memories of `held`, which is sorted by age. Age alone decides how many each place loses, so that
    /// messages in one place do not influence what another place keeps. Age and salience decide which ones of a place
    /// are removed.
    fn choose(
        self,
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
            if self.as_kept_in_place(memory)?.lasts(now) {
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
