//! What the searches of recall found, before and after its vectors are known, and before its row is read.

use std::collections::HashMap;

use azera_types::{Author, MemoryId, Timestamp};

use super::deeper::{NOT_REACHED, Reached};
use super::fuse::{self, Features};
use super::question::{Question, Speaker};
use super::time::AskedTime;
use super::{Asked, Hit};
use crate::passages::{entry, memory_and_passage};
use crate::{DEEPEST_SEARCH, Error, LexicalHits, Stored};

/// What the semantic search found; `None` if the question has no vector.
pub(super) type FoundByVector = Option<Result<Reached<Vec<MemoryId>>, Error>>;

/// Why a candidate is no hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dropped {
    /// It is near to the question, but tells nothing: the same question, what the prompt shows anyway, working notes.
    InTheWay,
    /// It may not be shown, or has nothing to do with the question.
    Unfit,
}

/// The hits of two searches, before their last order.
pub(super) struct Weighed {
    pub(super) hits: Vec<Hit>,
    /// All candidates.
    pub(super) found: usize,
    /// Candidates that were dropped as [`Dropped::InTheWay`], or say only what another one says.
    pub(super) in_the_way: usize,
    pub(super) stored: HashMap<MemoryId, Stored>,
    /// Indexes that failed.
    pub(super) missing: Vec<&'static str>,
}

impl Weighed {
    /// Returns true if what is in the way may hide hits from searches with this limit: if hits are missing, a search may
    /// have returned as many as it could, and at least half as many were in the way. A question that was asked a hundred
    /// times fills a search with itself.
    pub(super) fn is_hidden(&self, wanted: usize, limit: usize) -> bool {
        let is_full = self.found >= limit && limit < DEEPEST_SEARCH;
        is_full && self.hits.len() < wanted && 2 * self.in_the_way >= limit
    }

    /// Returns true if deeper searches than those of `other` found more, and none of them failed that had worked before.
    pub(super) fn has_more_than(&self, other: &Self) -> bool {
        self.found > other.found && self.missing.iter().all(|name| *name == NOT_REACHED || other.missing.contains(name))
    }
}

/// Puts together what both searches found. Adds the names of those that failed to `missing`.
pub(super) fn all(
    question: &Question,
    words: Result<Reached<Vec<LexicalHits>>, Error>,
    vectors: FoundByVector,
    missing: &mut Vec<&'static str>,
) -> HashMap<MemoryId, Candidate> {
    let is_cut = words.as_ref().is_ok_and(|words| words.is_cut)
        || vectors.as_ref().is_some_and(|vectors| vectors.as_ref().is_ok_and(|vectors| vectors.is_cut));
    missing.extend(is_cut.then_some(NOT_REACHED));
    let mut candidates: HashMap<MemoryId, Candidate> = HashMap::new();
    match words {
        Ok(results) => results.found.into_iter().for_each(|hits| add_lexical(&mut candidates, question, hits)),
        Err(error) => {
            tracing::warn!(%error, "lexical search failed; recall continues without it");
            missing.push("lexical");
        }
    }
    match vectors {
        Some(Ok(ids)) => {
            for (id, passage) in ids.found.into_iter().map(memory_and_passage) {
                let candidate = candidates.entry(id).or_default();
                candidate.found_by_vector = true;
                candidate.add_passage(passage);
            }
        }
        Some(Err(error)) => {
            tracing::warn!(%error, "semantic search failed; recall continues without it");
            missing.push("semantic");
        }
        None => missing.push("semantic"),
    }
    candidates
}

fn add_lexical(candidates: &mut HashMap<MemoryId, Candidate>, question: &Question, hits: LexicalHits) {
    let has_time = question.time.is_some() || question.event.is_some();
    let norm = fuse::lexical_norm(hits.idf, false);
    let norm_beside_time = fuse::lexical_norm(hits.idf, has_time);
    for found in hits.found {
        let (id, passage) = memory_and_passage(found.id);
        let candidate = candidates.entry(id).or_default();
        candidate.lexical = candidate.lexical.max(found.score * norm);
        candidate.lexical_beside_time = candidate.lexical_beside_time.max(found.score * norm_beside_time);
        candidate.found_by_words = true;
        candidate.add_passage(passage);
    }
}

/// A candidate before its row is read.
#[derive(Debug, Clone, Default)]
pub(super) struct Candidate {
    pub(super) lexical: f32,
    pub(super) lexical_beside_time: f32,
    pub(super) found_by_words: bool,
    pub(super) found_by_vector: bool,
    /// Numbers of the passages that were found.
    pub(super) passages: Vec<u16>,
}

impl Candidate {
    pub(super) fn add_passage(&mut self, number: u16) {
        if number > 0 && !self.passages.contains(&number) {
            self.passages.push(number);
        }
    }
}

/// A candidate whose row was not read yet.
pub(super) struct Waiting {
    pub(super) id: MemoryId,
    pub(super) candidate: Candidate,
    /// Cosine similarity of the whole turn; 0 if it is unknown.
    pub(super) whole: f32,
    /// The passage with the highest cosine similarity, and that.
    pub(super) passage: Option<(u16, f32)>,
    /// The higher one of the two.
    pub(super) own: f32,
    /// Cosine similarity of the turn together with the one before it.
    pub(super) window: Option<f32>,
    /// True if author and time are in the cache.
    pub(super) is_known: bool,
    /// The highest score possible, whatever the row contains.
    pub(super) at_most: f32,
}

impl Waiting {
    pub(super) fn new(
        id: MemoryId,
        candidate: Candidate,
        asked: Asked<'_>,
        stored: &HashMap<MemoryId, Stored>,
        origin: Option<(&Author, Timestamp)>,
    ) -> Self {
        let query = asked.query;
        let cosine = |number| {
            let stored = stored.get(&entry(id, number))?;
            query.vector.as_ref().map(|vector| (number, fuse::dot(vector, &stored.own)))
        };
        let whole = cosine(0).map_or(0.0, |(_, cosine)| cosine);
        let passage = candidate.passages.iter().filter_map(|number| cosine(*number));
        let passage = passage.max_by(|(_, a), (_, b)| a.total_cmp(b));
        let own = passage.map_or(whole, |(_, cosine)| cosine.max(whole));
        let window = stored.get(&id).and_then(|stored| stored.window.as_ref());
        let window = query.vector.as_ref().zip(window).map(|(vector, window)| fuse::dot(vector, window));
        let speaker = &query.question.speaker;
        let said = |speaker: &Speaker| origin.is_none_or(|(author, _)| speaker.said(author));
        let at_most = Features {
            lexical: candidate.lexical,
            lexical_beside_time: candidate.lexical_beside_time,
            own,
            window: window.map_or(own, |window| own.max(window)),
            speaker: speaker.as_ref().is_some_and(said),
            // The text may name a time of its own.
            date: if asked.time.is_some() { 1.0 } else { 0.0 },
            said_then: 0.0,
            rated: asked.rated.get(&id).copied().unwrap_or(0.0),
            by_event: asked.time.is_some_and(AskedTime::is_by_event),
            is_relative: asked.time.is_some_and(AskedTime::is_relative),
            event: false,
            of_another: false,
            question: false,
        };
        let (is_known, at_most) = (origin.is_some(), at_most.score());
        Self { id, candidate, whole, passage, own, window, is_known, at_most }
    }
}
