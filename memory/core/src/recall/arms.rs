//! The searches of recall: by words and by meaning, and the vectors of what they found.

use std::collections::{HashMap, HashSet};

use azera_types::{MemoryId, Timestamp};

use super::deeper::{Reached, just_before};
use super::{Candidate, OWN_TEXT_WEIGHT, Query, Question, Reading, WINDOW_TEXT_WEIGHT};
use crate::domains::Recall;
use crate::passages::entry;
use crate::{Error, Facet, FacetWeights, Found, LexicalHits, Stored, TextIndexKind};

impl Recall<'_> {
    pub(super) fn words_found(
        self,
        reading: Reading<'_>,
        question: &Question,
    ) -> Result<Reached<Vec<LexicalHits>>, Error> {
        if question.words.is_empty() {
            return Ok(Reached { found: Vec::new(), is_cut: false });
        }
        let Reading { read_scope, windows, until, known_by, .. } = reading;
        let kept_until = known_by.map_or(Timestamp::MAX, just_before);
        let both = FacetWeights { own: OWN_TEXT_WEIGHT, window: WINDOW_TEXT_WEIGHT };
        let (mut results, mut is_cut) = (Vec::with_capacity(2), false);
        // The newest memories may hold what a person just asked to keep. Scoring leaves out the others.
        for (text_index, newest) in [(TextIndexKind::Chats, until), (TextIndexKind::Memories, kept_until)] {
            let search = |read_scope, weights| {
                let search =
                    |limit| self.0.text.search(read_scope, text_index, &question.words, weights, newest, limit);
                self.reach(reading, search, |hits: &mut LexicalHits| &mut hits.found)
            };
            let Reached { mut found, is_cut: cut } = search(windows, both)?;
            is_cut |= cut;
            if windows != read_scope {
                let known: HashSet<MemoryId> = found.found.iter().map(|found| found.id).collect();
                let by_own_words = search(read_scope, FacetWeights { window: 0.0, ..both })?;
                is_cut |= by_own_words.is_cut;
                found.found.extend(by_own_words.found.found.into_iter().filter(|found| !known.contains(&found.id)));
            }
            results.push(found);
        }
        Ok(Reached { found: results, is_cut })
    }

    pub(super) fn by_vector(
        self,
        reading: Reading<'_>,
        vector: Option<&[f32]>,
    ) -> Option<Result<Reached<Vec<MemoryId>>, Error>> {
        let vector = vector?;
        let Reading { read_scope, windows, until, .. } = reading;
        let search = |facet, read_scope| {
            let search = |limit| self.0.vectors.search(read_scope, facet, vector, until, limit);
            self.reach(reading, search, |found: &mut Vec<Found>| found)
        };
        let (own, windows) = rayon::join(|| search(Facet::Own, read_scope), || search(Facet::Window, windows));
        Some(own.and_then(|own| {
            let windows = windows?;
            let found = own.found.into_iter().chain(windows.found).map(|found| found.id).collect();
            Ok(Reached { found, is_cut: own.is_cut || windows.is_cut })
        }))
    }

    /// Returns the vectors of all candidates, so that lexical hits are scored by meaning, too.
    pub(super) fn stored_vectors(
        self,
        query: &Query,
        candidates: &HashMap<MemoryId, Candidate>,
        missing: &mut Vec<&'static str>,
    ) -> HashMap<MemoryId, Stored> {
        if query.vector.is_none() || missing.contains(&"semantic") {
            return HashMap::new();
        }
        let of = |(id, candidate): (&MemoryId, &Candidate)| {
            let id = *id;
            std::iter::once(0).chain(candidate.passages.clone()).map(move |number| entry(id, number))
        };
        let ids: Vec<MemoryId> = candidates.iter().flat_map(of).collect();
        let (left, right) = ids.split_at(ids.len() / 2);
        match rayon::join(|| self.0.vectors.vectors(left), || self.0.vectors.vectors(right)) {
            (Ok(left), Ok(right)) => left.into_iter().chain(right).map(|stored| (stored.id, stored)).collect(),
            (Err(error), _) | (_, Err(error)) => {
                tracing::warn!(%error, "semantic search failed; recall continues without it");
                missing.push("semantic");
                HashMap::new()
            }
        }
    }
}
