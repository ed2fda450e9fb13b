//! Search by words in the newest memories that wait to be indexed.

use std::collections::BTreeSet;

use azera_types::MemoryId;

use super::{Hit, Query};
use crate::domains::Recall;
use crate::excerpt::matching_words;
use crate::indexing::queued_id;
use crate::rows::Kind;
use crate::{Error, Order, ReadScope, Shown, Table, excerpt, show};

/// Entries of the index queue that one search reads, newest first.
const MAX_QUEUED: usize = 256;

/// The part of a query's words that a memory must contain: one in this many.
const WORDS_SHARE: usize = 2;

/// Name of the signal of these hits.
const SIGNAL: &str = "unindexed";

impl Recall<'_> {
    /// Returns the newest memories that wait to be indexed and contain at least half of the query's words, those with
    /// most words first, and then the newest. Leaves out memories that `read_scope` does not allow. Unless
    /// [`Query::include_latest`] is set, it returns only what a person asked to keep. Indexing may take a while, and
    /// people expect to find what they just said.
    pub fn find_unindexed(self, read_scope: &ReadScope, query: &Query) -> Result<Vec<Hit>, Error> {
        let store = self.0.store.as_ref();
        let queue = store.scan(Table::IndexQueue, b"", None, Order::Descending, MAX_QUEUED)?;
        let ids: BTreeSet<MemoryId> = queue.iter().map(|(ticket, _)| queued_id(ticket)).collect::<Result<_, _>>()?;
        let words = &query.question.words;
        let mut hits = Vec::new();
        for id in ids.into_iter().rev() {
            let Some(memory) = self.0.memories().get(read_scope, id)? else { continue };
            if !self.was_known(query, &memory)? || !query.include_latest && !memory.is_kept() {
                continue;
            }
            let (found, all) = matching_words(&memory.text, words);
            if found == 0 || found * WORDS_SHARE < all || memory.kind == Kind::Note {
                continue;
            }
            let validity = self.validity(read_scope, query, &memory)?;
            let hit = Hit {
                snippet: Default::default(),
                shown: Shown::new(),
                score: 0.0,
                signals: vec![SIGNAL],
                memory,
                validity,
                again: Vec::new(),
            };
            hits.push((found, hit));
        }
        // The sort keeps the newest first among equals.
        hits.sort_by_key(|(found, _)| std::cmp::Reverse(*found));
        let hits = hits.into_iter().take(query.results);
        Ok(hits
            .map(|(_, hit)| {
                let shown = excerpt(&hit.memory.text, words, None, self.0.config.snippet_chars);
                Hit { snippet: show(&hit.memory.text, &shown), shown, ..hit }
            })
            .collect())
    }
}
