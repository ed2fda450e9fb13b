//! Recall: candidates from every arm, exact features for each of them, one linear score, near-duplicates out.
//!
//! The weights, the word lists and the choice of features were read off three conversations of the LoCoMo development
//! set; each is kept because taking it away costs recall there. The figures and the command stand in
//! `bot/docs/BENCHMARKS.md`. What was tried and did not pay is named there too.

mod authors;
mod dates;
mod duplicates;
mod fuse;
mod question;

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap, HashSet};

use azera_types::{Author, MemoryId, MessageId, Text, Timestamp};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use crate::rows::{Kind, MemoryRow};
use crate::{Error, Facet, FacetWeights, LexicalHits, Memory, ReadScope, Stored, TextIndexKind, WINDOW_REACH};

pub(crate) use authors::AuthorCache;
pub use dates::DateSpan;
pub(crate) use question::name_tokens;
pub use question::{Question, Speaker};

use fuse::Features;

/// Weight of a word in the turn itself, for BM25.
const OWN_TEXT_WEIGHT: f32 = 0.75;

/// Weight of a word in the turn or the two before it, for BM25.
const WINDOW_TEXT_WEIGHT: f32 = 2.0;

/// Cosine similarity from which a question remembered is the question asked.
const ECHO: f32 = 0.8;

/// Rows of candidates read at once, by all cores: more than are needed in the end, and sooner.
const ROWS_AT_ONCE: usize = 8;

/// How deep recall looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Candidates each arm contributes before the arms are fused.
    pub candidates: usize,
}

impl Default for Limits {
    /// At 50 a hundredth of recall is lost, at 200 nothing is gained.
    fn default() -> Self {
        Self { candidates: 100 }
    }
}

/// What is looked for.
#[derive(Debug, Clone)]
pub struct Query {
    /// The question as memory understands it.
    pub question: Question,
    /// Vector of [`Question::embed`]; `None` if the embedding model is down.
    pub vector: Option<Vec<f32>>,
    /// The time now.
    pub now: Timestamp,
    /// Messages the prompt shows already.
    pub exclude: HashSet<MessageId>,
    /// How deep to look.
    pub limits: Limits,
    /// Hits wanted.
    pub results: usize,
}

/// A memory found, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The memory.
    pub memory: MemoryRow,
    /// Its text, cut to the snippet length.
    pub snippet: Text,
    /// Fused score; comparable within one recall.
    pub score: f32,
    /// The signals that found it.
    pub signals: Vec<&'static str>,
}

/// What recall found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recalled {
    /// Best first.
    pub hits: Vec<Hit>,
    /// Layers that did not answer; the hits come from the others.
    pub missing: Vec<&'static str>,
}

/// What the words of a question found, to be weighed with what its meaning finds. Shows nothing by itself.
pub struct LexicalRecall(Result<Vec<LexicalHits>, Error>);

impl std::fmt::Debug for LexicalRecall {
    /// How rare a word is would tell of places that are not shown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LexicalRecall")
    }
}

/// What the arms may look at.
#[derive(Debug, Clone, Copy)]
struct Reading<'a> {
    read_scope: &'a ReadScope,
    /// The right to be found by one's window: the same, or narrower where there are horizons.
    windows: &'a ReadScope,
    /// Nothing younger.
    until: Timestamp,
    /// Candidates of each arm.
    limit: usize,
}

/// A candidate on its way to a score.
#[derive(Debug, Clone, Copy, Default)]
struct Candidate {
    lexical: f32,
    found_by_words: bool,
    found_by_vector: bool,
}

impl Memory {
    /// Finds what helps to answer a question, best first: only what `read_scope` allows, nothing younger than
    /// [`crate::MemoryConfig::min_age`], nothing the prompt shows. A layer that fails is named in
    /// [`Recalled::missing`]; only the record itself is indispensable.
    pub fn recall(&self, read_scope: &ReadScope, query: &Query) -> Result<Recalled, Error> {
        let (words, vectors) = rayon::join(
            || self.recall_lexical(read_scope, query),
            || self.under(read_scope, query, |reading| self.by_vector(reading, query.vector.as_deref())),
        );
        self.weigh(read_scope, query, words, vectors)
    }

    /// The first half of a [`Memory::recall`], which can be done while the question is embedded: the query's vector is not
    /// looked at.
    pub fn recall_lexical(&self, read_scope: &ReadScope, query: &Query) -> LexicalRecall {
        LexicalRecall(self.under(read_scope, query, |reading| self.words_found(reading, &query.question)))
    }

    /// The second half: what its words found under the same right is given.
    pub fn recall_with(&self, read_scope: &ReadScope, query: &Query, words: LexicalRecall) -> Result<Recalled, Error> {
        let vectors = self.under(read_scope, query, |reading| self.by_vector(reading, query.vector.as_deref()));
        self.weigh(read_scope, query, words, vectors)
    }

    fn under<T>(&self, read_scope: &ReadScope, query: &Query, read: impl FnOnce(Reading<'_>) -> T) -> T {
        let until = query.now.checked_sub(jiff_span(self.config.min_age)).unwrap_or(azera_types::Timestamp::MIN);
        let limit = query.limits.candidates;
        // What stood before a horizon must not bring up what came after it: there, windows count only beyond its reach.
        let beyond = read_scope.behind_horizons(WINDOW_REACH);
        read(Reading { read_scope, windows: beyond.as_ref().unwrap_or(read_scope), until, limit })
    }

    fn weigh(
        &self,
        read_scope: &ReadScope,
        query: &Query,
        LexicalRecall(words): LexicalRecall,
        vectors: Option<Result<Vec<MemoryId>, Error>>,
    ) -> Result<Recalled, Error> {
        let mut missing = Vec::new();
        let mut candidates: HashMap<MemoryId, Candidate> = HashMap::new();
        match words {
            Ok(shelves) => {
                for text_index in shelves {
                    let norm = fuse::lexical_norm(text_index.idf);
                    for found in text_index.found {
                        let candidate = candidates.entry(found.id).or_default();
                        candidate.lexical = found.score * norm;
                        candidate.found_by_words = true;
                    }
                }
            }
            Err(error) => {
                tracing::warn!(%error, "recall goes on without the lexical layer");
                missing.push("lexical");
            }
        }
        match vectors {
            Some(Ok(ids)) => {
                for id in ids {
                    candidates.entry(id).or_default().found_by_vector = true;
                }
            }
            Some(Err(error)) => {
                tracing::warn!(%error, "recall goes on without the semantic layer");
                missing.push("semantic");
            }
            None => missing.push("semantic"),
        }
        let stored = self.stored_vectors(query, &candidates, &mut missing);
        let hits = self.under(read_scope, query, |reading| self.best(reading, query, candidates, &stored))?;
        Ok(Recalled { hits, missing })
    }

    fn words_found(&self, reading: Reading<'_>, question: &Question) -> Result<Vec<LexicalHits>, Error> {
        if question.words.is_empty() {
            return Ok(Vec::new());
        }
        let Reading { read_scope, windows, until, limit } = reading;
        let both = FacetWeights { own: OWN_TEXT_WEIGHT, window: WINDOW_TEXT_WEIGHT };
        let mut shelves = Vec::with_capacity(2);
        for text_index in [TextIndexKind::Chats, TextIndexKind::Memories] {
            let search =
                |read_scope, weights| self.text.search(read_scope, text_index, &question.words, weights, until, limit);
            let mut found = search(windows, both)?;
            if windows != read_scope {
                let known: HashSet<MemoryId> = found.found.iter().map(|found| found.id).collect();
                let by_own_words = search(read_scope, FacetWeights { window: 0.0, ..both })?.found;
                found.found.extend(by_own_words.into_iter().filter(|found| !known.contains(&found.id)));
            }
            shelves.push(found);
        }
        Ok(shelves)
    }

    fn by_vector(&self, reading: Reading<'_>, vector: Option<&[f32]>) -> Option<Result<Vec<MemoryId>, Error>> {
        let vector = vector?;
        let Reading { read_scope, windows, until, limit } = reading;
        let search = |facet, read_scope| self.vectors.search(read_scope, facet, vector, until, limit);
        let (own, windows) = rayon::join(|| search(Facet::Own, read_scope), || search(Facet::Window, windows));
        Some(own.and_then(|own| Ok(own.into_iter().chain(windows?).map(|found| found.id).collect())))
    }

    /// The vectors of all candidates, so that those found by words alone are scored by meaning too.
    fn stored_vectors(
        &self,
        query: &Query,
        candidates: &HashMap<MemoryId, Candidate>,
        missing: &mut Vec<&'static str>,
    ) -> HashMap<MemoryId, Stored> {
        if query.vector.is_none() || missing.contains(&"semantic") {
            return HashMap::new();
        }
        let ids: Vec<MemoryId> = candidates.keys().copied().collect();
        let (left, read_scope) = ids.split_at(ids.len() / 2);
        match rayon::join(|| self.vectors.vectors(left), || self.vectors.vectors(read_scope)) {
            (Ok(left), Ok(read_scope)) => {
                left.into_iter().chain(read_scope).map(|stored| (stored.id, stored)).collect()
            }
            (Err(error), _) | (_, Err(error)) => {
                tracing::warn!(%error, "recall goes on without the semantic layer");
                missing.push("semantic");
                HashMap::new()
            }
        }
    }

    /// The best candidates, each thing once. Rows are read in the order of what each candidate could score at most, until
    /// no other can be better. Of those that were read lately it is known what they score, so that no more than a dozen of
    /// some two hundred are read again.
    fn best(
        &self,
        reading: Reading<'_>,
        query: &Query,
        candidates: HashMap<MemoryId, Candidate>,
        stored: &HashMap<MemoryId, Stored>,
    ) -> Result<Vec<Hit>, Error> {
        let mut waiting: Vec<Waiting> = self.origins.ask(|known| {
            let waiting = |(id, candidate)| Waiting::new(id, candidate, query, stored.get(&id), known.of(id));
            candidates.into_iter().map(waiting).collect()
        });
        waiting.sort_by(|a, b| a.at_most.total_cmp(&b.at_most).then(b.id.cmp(&a.id)));
        let mut ranked: BinaryHeap<Ranked> = BinaryHeap::new();
        let mut chosen: Vec<Hit> = Vec::with_capacity(query.results);
        while chosen.len() < query.results {
            let best = ranked.peek().map(|ranked| ranked.0.score);
            if waiting.last().is_some_and(|next| best.is_none_or(|best| next.at_most >= best)) {
                let page = waiting.split_off(waiting.len().saturating_sub(ROWS_AT_ONCE));
                let read: Result<Vec<_>, _> = page.par_iter().map(|next| self.score(reading, query, next)).collect();
                ranked.extend(read?.into_iter().flatten().map(Ranked));
                continue;
            }
            let Some(Ranked(hit)) = ranked.pop() else { break };
            let vector = |hit: &Hit| stored.get(&hit.memory.id).map(|stored| stored.own.as_slice());
            let twin = chosen.iter().any(|other| {
                let cosine = vector(&hit).zip(vector(other)).map(|(a, b)| fuse::dot(a, b));
                duplicates::same(&hit.memory, &other.memory, cosine, self.config.near_duplicate)
            });
            if !twin {
                chosen.push(hit);
            }
        }
        Ok(chosen)
    }

    /// Reads a candidate from the record, which has the last word on who may see it, and scores it.
    fn score(&self, reading: Reading<'_>, query: &Query, waiting: &Waiting) -> Result<Option<Hit>, Error> {
        let Reading { read_scope, windows, until, .. } = reading;
        let Waiting { candidate, own, window, .. } = waiting;
        let Some(memory) = self.memory(read_scope, waiting.id)? else { return Ok(None) };
        if !waiting.is_known {
            self.origins.learn(&memory);
        }
        // Notes stand in the prompts of their own chat, and are of no use elsewhere.
        if memory.kind == Kind::Note {
            return Ok(None);
        }
        // What a conversation shows of a message is not what else came with it.
        let shown = memory.kind != Kind::Fact && memory.sources.iter().any(|source| query.exclude.contains(source));
        if memory.at > until || shown {
            return Ok(None);
        }
        let shown = windows.allows(&memory.persona, &memory.scope, &memory.source_scopes, memory.at);
        let (own, window) = (*own, window.filter(|_| shown).unwrap_or(*own));
        if !candidate.found_by_words && own.max(window) < self.config.similarity_floor {
            return Ok(None);
        }
        let features = Features {
            lexical: candidate.lexical,
            own,
            window,
            speaker: query.question.speaker.as_ref().is_some_and(|speaker| speaker.said(&memory.author)),
            date: query.question.span.as_ref().map_or(0.0, |span| span.closeness(memory.at)),
            question: question::is_question(&memory.text),
        };
        // The same question asked before is the nearest thing to a question, and answers nothing.
        if features.question && own >= ECHO {
            return Ok(None);
        }
        let mut signals = Vec::new();
        signals.extend(candidate.found_by_words.then_some("lexical"));
        signals.extend(candidate.found_by_vector.then_some("semantic"));
        signals.extend(features.speaker.then_some("speaker"));
        signals.extend((features.date > 0.5).then_some("date"));
        let snippet = snippet(&memory.text, self.config.snippet_chars);
        Ok(Some(Hit { snippet, score: features.score(), signals, memory }))
    }
}

/// A candidate whose row was not read yet.
struct Waiting {
    id: MemoryId,
    candidate: Candidate,
    /// Cosine similarity of the turn, 0 if it is not known.
    own: f32,
    /// Cosine similarity of the turn with the one before it.
    window: Option<f32>,
    /// Whether it is known who said it and when.
    is_known: bool,
    /// The most it can score, whatever its row says.
    at_most: f32,
}

impl Waiting {
    fn new(
        id: MemoryId,
        candidate: Candidate,
        query: &Query,
        stored: Option<&Stored>,
        origin: Option<(&Author, Timestamp)>,
    ) -> Self {
        let (own, window) = match (&query.vector, stored) {
            (Some(vector), Some(stored)) => {
                let window = stored.window.as_ref().map(|window| fuse::dot(vector, window));
                (fuse::dot(vector, &stored.own), window)
            }
            _ => (0.0, None),
        };
        let Question { speaker, span, .. } = &query.question;
        let said = |speaker: &Speaker| origin.is_none_or(|(author, _)| speaker.said(author));
        let closeness = |span: &DateSpan| origin.map_or(1.0, |(_, at)| span.closeness(at));
        let at_most = Features {
            lexical: candidate.lexical,
            own,
            window: window.map_or(own, |window| own.max(window)),
            speaker: speaker.as_ref().is_some_and(said),
            date: span.as_ref().map_or(0.0, closeness),
            question: false,
        };
        Self { id, candidate, own, window, is_known: origin.is_some(), at_most: at_most.score() }
    }
}

/// A hit, in the order of recall: by score, and of equal scores the older memory first, so that the order is always the
/// same.
struct Ranked(Hit);

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.score.total_cmp(&other.0.score).then(other.0.memory.id.cmp(&self.0.memory.id))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}

/// The beginning of a text, at most `chars` characters, cut between words where that is possible.
fn snippet(text: &Text, chars: usize) -> Text {
    let Some((end, _)) = text.char_indices().nth(chars) else { return text.clone() };
    let cut = text.get(..end).unwrap_or(text);
    let whole = cut.rsplit_once(char::is_whitespace).map_or(cut, |(head, _)| head);
    Text::new(if whole.len() * 2 > cut.len() { whole } else { cut })
}

fn jiff_span(duration: std::time::Duration) -> azera_types::Span {
    azera_types::Span::new().seconds(i64::try_from(duration.as_secs()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snippet_is_cut_between_words_and_characters() {
        assert_eq!(snippet(&Text::new("short"), 400).as_str(), "short");
        assert_eq!(snippet(&Text::new("one two three"), 9).as_str(), "one two");
        assert_eq!(snippet(&Text::new("é".repeat(500)), 400).chars().count(), 400);
    }
}
