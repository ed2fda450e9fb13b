//! Recall: finds the memories that help to answer a question. Lexical and semantic search supply candidates; exact
//! signals are computed for each candidate and added to one linear score; near-duplicates are removed. Begin with
//! [`Recall::find`].
//!
//! The weights, the word lists and the signals were chosen on three conversations of the LoCoMo development set. Each
//! is there because removing it lowers recall on that set. `bot/docs/BENCHMARKS.md` has the figures, the command, and
//! what was tried without success.

mod arms;
mod authors;
mod candidates;
mod changes;
mod deeper;
mod duplicates;
mod fuse;
mod hit;
mod newer;
mod opinion;
mod order;
mod query;
pub(crate) mod question;
mod states;
mod talks;
mod time;
mod unindexed;

use std::collections::{BinaryHeap, HashMap};

use azera_types::{MemoryId, Text, Timestamp};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use crate::domains::Recall;
use crate::passages;
use crate::rows::{Kind, MemoryRow};
use crate::{
    DEEPEST_SEARCH, Error, LexicalHits, MAX_SEARCH_LIMIT, ReadScope, Shown, Stored, Validity, WINDOW_REACH, excerpt,
    show,
};

pub(crate) use authors::AuthorCache;
pub(crate) use duplicates::same_in_words;
pub(crate) use fuse::dot;
pub(crate) use hit::chats_in;
pub use hit::{Again, Hit, KNOWN_IN_CHATS, chats_of};
pub use opinion::{Opinion, Shortlist};
pub use query::{Limits, Query};
pub use question::{AskedEvent, AskedTalk, Question, Speaker};
pub(crate) use question::{is_filler, name_tokens};

use candidates::{Candidate, Dropped, FoundByVector, Waiting, Weighed};
use deeper::{DEEPER, Reached, just_before};
use duplicates::Chosen;
use fuse::Features;
use hit::KNOWN_RAISE;
use order::{Ranked, order_best};
use time::AskedTime;

/// Weight of a word in the turn itself, for BM25.
const OWN_TEXT_WEIGHT: f32 = 0.75;

/// Weight of a word in the turn or the two before it, for BM25.
const WINDOW_TEXT_WEIGHT: f32 = 2.0;

/// Cosine similarity from which a remembered question counts as the same question.
const ECHO: f32 = 0.8;

/// Closeness to the time of a question above which a memory counts as found by its date.
const NEAR_DATE: f32 = 0.5;

/// Candidate rows that all cores read at once. This reads more rows than needed, but finishes sooner.
const ROWS_AT_ONCE: usize = 8;

/// The result of recall.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recalled {
    /// Best first.
    pub hits: Vec<Hit>,
    /// Indexes that failed; the hits come from the others. `older memories` if a question about what was known at a time did
    /// not reach all of them.
    pub missing: Vec<&'static str>,
}

/// The hits of the lexical search, to be fused with those of the semantic search. They show nothing by themselves.
pub struct LexicalRecall(Result<Reached<Vec<LexicalHits>>, Error>);

impl std::fmt::Debug for LexicalRecall {
    /// Prints no contents: the rarity of a word would reveal places that are not shown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LexicalRecall")
    }
}

/// Limits of one search.
#[derive(Debug, Clone, Copy)]
struct Reading<'a> {
    read_scope: &'a ReadScope,
    /// The scope for hits by window: the same as `read_scope`, or narrower where there are horizons.
    windows: &'a ReadScope,
    /// Newer memories are left out.
    until: Timestamp,
    /// Only what was known before this counts.
    known_by: Option<Timestamp>,
    /// Candidates of each search.
    limit: usize,
}

/// A query with the time that it asks for.
#[derive(Debug, Clone, Copy)]
struct Asked<'a> {
    query: &'a Query,
    time: Option<&'a AskedTime>,
    /// By how much the ratings of the person who asks change scores here.
    rated: &'a HashMap<MemoryId, f32>,
}

impl Recall<'_> {
    /// Returns the memories that help to answer a question, best first. Leaves out memories that `read_scope` does not
    /// allow, that are newer than [`crate::MemoryConfig::min_age`] unless [`Query::include_latest`] is set or a person
    /// asked to keep them, or that the prompt shows. An index that fails is named in [`Recalled::missing`]; recall fails only if the record does.
    pub fn find(self, read_scope: &ReadScope, query: &Query) -> Result<Recalled, Error> {
        let (words, vectors) = self.search(read_scope, query);
        let shortlist = self.weigh(read_scope, query, words, vectors, query.results)?;
        self.finish(read_scope, query, shortlist, None)
    }

    /// Runs the lexical half of [`Recall::find`]. It does not use the query's vector, so it can run while the
    /// question is embedded.
    pub fn find_words(self, read_scope: &ReadScope, query: &Query) -> LexicalRecall {
        LexicalRecall(self.under(read_scope, query, |reading| self.words_found(reading, &query.question)))
    }

    /// Runs the semantic half, fuses it with `words`, which was found under the same read scope, and chooses the best
    /// hits: at least `wanted`, if there are as many. [`Recall::finish`] orders them for the last time.
    pub fn shortlist(
        self,
        read_scope: &ReadScope,
        query: &Query,
        words: LexicalRecall,
        wanted: usize,
    ) -> Result<Shortlist, Error> {
        let vectors = self.under(read_scope, query, |reading| self.by_vector(reading, query.vector.as_deref()));
        self.weigh(read_scope, query, words, vectors, wanted.max(query.results))
    }

    fn under<T>(self, read_scope: &ReadScope, query: &Query, read: impl FnOnce(Reading<'_>) -> T) -> T {
        let until = match query.include_latest {
            // A platform's clock may be ahead.
            true => Timestamp::MAX,
            false => query.now.checked_sub(jiff_span(self.0.config.min_age)).unwrap_or(Timestamp::MIN),
        };
        let known_by = query.question.known_by;
        // What was said later does not count.
        let until = known_by.map_or(until, |by| until.min(just_before(by)));
        // Text before a horizon must not bring up a memory after it. So windows count only from [`WINDOW_REACH`] after
        // the horizon on.
        let beyond = read_scope.after_horizons(WINDOW_REACH);
        read(Reading {
            read_scope,
            windows: beyond.as_ref().unwrap_or(read_scope),
            until,
            known_by,
            limit: searched(query),
        })
    }

    fn weigh(
        self,
        read_scope: &ReadScope,
        query: &Query,
        words: LexicalRecall,
        vectors: FoundByVector,
        wanted: usize,
    ) -> Result<Shortlist, Error> {
        let time = self.time_asked(read_scope, query)?;
        let rated = match &query.asker {
            Some(person) => self.0.memories().raises(read_scope.place(), person)?,
            None => HashMap::new(),
        };
        let asked = Asked { query, time: time.as_ref(), rated: &rated };
        let mut weighed = self.weigh_found(read_scope, asked, words, vectors, wanted)?;
        let mut limit = searched(query);
        while weighed.is_hidden(wanted, limit) {
            limit = limit.saturating_mul(DEEPER).min(DEEPEST_SEARCH);
            let query = Query { limits: Limits { candidates: limit }, ..query.clone() };
            let (words, vectors) = self.search(read_scope, &query);
            let deeper = self.weigh_found(read_scope, Asked { query: &query, ..asked }, words, vectors, wanted)?;
            if !deeper.has_more_than(&weighed) {
                break;
            }
            weighed = deeper;
        }
        let Weighed { hits, stored, missing, .. } = weighed;
        Ok(Shortlist { hits, stored, time, rated, missing })
    }

    /// Runs both searches at once.
    fn search(self, read_scope: &ReadScope, query: &Query) -> (LexicalRecall, FoundByVector) {
        rayon::join(
            || self.find_words(read_scope, query),
            || self.under(read_scope, query, |reading| self.by_vector(reading, query.vector.as_deref())),
        )
    }

    /// Chooses the best of what the searches found.
    fn weigh_found(
        self,
        read_scope: &ReadScope,
        asked: Asked<'_>,
        LexicalRecall(words): LexicalRecall,
        vectors: FoundByVector,
        wanted: usize,
    ) -> Result<Weighed, Error> {
        let query = asked.query;
        let mut missing = Vec::new();
        let candidates = candidates::all(&query.question, words, vectors, &mut missing);
        let stored = self.stored_vectors(query, &candidates, &mut missing);
        let found = candidates.len();
        let (hits, in_the_way) =
            self.under(read_scope, query, |reading| self.best(reading, asked, candidates, &stored, wanted))?;
        Ok(Weighed { hits, found, in_the_way, stored, missing })
    }

    /// Orders a shortlist for the last time, and returns as many hits as the query wants. `opinion` is what a model that
    /// read the first of [`Shortlist::texts`] thinks of them; without one, the signals alone decide. Leaves out what was
    /// changed or forgotten while the model read.
    pub fn finish(
        self,
        read_scope: &ReadScope,
        query: &Query,
        shortlist: Shortlist,
        opinion: Option<&Opinion>,
    ) -> Result<Recalled, Error> {
        let Shortlist { mut hits, stored, time, rated, missing } = shortlist;
        let asked = Asked { query, time: time.as_ref(), rated: &rated };
        if let Some(opinion) = opinion {
            opinion.mix(&mut hits);
            hits = self.still_there(read_scope, hits)?;
        }
        changes::reorder(&mut hits, asked, &stored);
        hits.truncate(query.results);
        let mut hits = self.under(read_scope, query, |reading| self.follow(reading, asked, hits))?;
        hits.truncate(query.results);
        let hits = self.with_talks(read_scope, query, hits)?;
        Ok(Recalled { hits, missing })
    }

    /// Returns the best candidates without duplicates, best first, and how many of those read were in the way. Rows are read in the order of each candidate's highest
    /// possible score, until no other can be better. The author cache gives exact bounds for most, so that about a dozen of some
    /// two hundred rows are read.
    fn best(
        self,
        reading: Reading<'_>,
        asked: Asked<'_>,
        candidates: HashMap<MemoryId, Candidate>,
        stored: &HashMap<MemoryId, Stored>,
        wanted: usize,
    ) -> Result<(Vec<Hit>, usize), Error> {
        let query = asked.query;
        let mut in_the_way = 0;
        let mut waiting: Vec<Waiting> = self.0.origins.ask(|known| {
            let waiting = |(id, candidate)| Waiting::new(id, candidate, asked, stored, known.of(id));
            candidates.into_iter().map(waiting).collect()
        });
        waiting.sort_by(|a, b| a.at_most.total_cmp(&b.at_most).then(b.id.cmp(&a.id)));
        let vector = |hit: &Hit| stored.get(&hit.memory.id).map(|stored| stored.own.as_slice());
        let cosine = |one: &Hit, other: &Hit| vector(one).zip(vector(other)).map(|(a, b)| fuse::dot(a, b));
        let mut ranked: BinaryHeap<Ranked> = BinaryHeap::new();
        let wanted = wanted.max(changes::COMPARED);
        let mut chosen = Chosen::new(wanted, self.0.config.near_duplicate, cosine);
        let mut orders: HashMap<MemoryId, f32> = HashMap::new();
        loop {
            let best = ranked.peek().map(|ranked| ranked.hit.score);
            if waiting.last().is_some_and(|next| best.is_none_or(|best| next.at_most >= best)) {
                if waiting.last().is_some_and(|next| !chosen.may_change(next.at_most)) {
                    break;
                }
                let page = waiting.split_off(waiting.len().saturating_sub(ROWS_AT_ONCE));
                let read: Result<Vec<_>, _> = page.par_iter().map(|next| self.score(reading, asked, next)).collect();
                let read = read?;
                in_the_way += read.iter().filter(|read| matches!(read, Err(Dropped::InTheWay))).count();
                ranked.extend(read.into_iter().flatten());
                continue;
            }
            let next = ranked.pop().filter(|ranked| chosen.may_change(ranked.hit.score));
            let Some(Ranked { hit, passage, order }) = next else { break };
            orders.insert(hit.memory.id, order);
            chosen.take(self.with_excerpt(hit, passage, query));
        }
        in_the_way += chosen.repeated();
        let mut hits = chosen.into_hits();
        // What was said in many chats of a place, and holds, comes forward there.
        let known = self.0.memories().known_hits(reading.read_scope, &hits)?;
        for place in &known {
            let Some(hit) = hits.get_mut(*place) else { continue };
            hit.score += KNOWN_RAISE;
            orders.entry(hit.memory.id).and_modify(|order| *order += KNOWN_RAISE);
        }
        if !known.is_empty() {
            hits.sort_by(|one, other| other.score.total_cmp(&one.score));
        }
        order_best(&mut hits, &orders);
        Ok((hits, in_the_way))
    }

    /// Leaves out hits whose memory changed since, or may no longer be shown.
    fn still_there(self, read_scope: &ReadScope, hits: Vec<Hit>) -> Result<Vec<Hit>, Error> {
        let mut left = Vec::with_capacity(hits.len());
        for hit in hits {
            let now = self.0.memories().get(read_scope, hit.memory.id)?;
            if now.is_some_and(|memory| memory.text == hit.memory.text) {
                left.push(hit);
            }
        }
        Ok(left)
    }

    /// Reads a candidate from the record, which decides whether it may be shown, and scores it.
    fn score(
        self,
        reading: Reading<'_>,
        asked: Asked<'_>,
        waiting: &Waiting,
    ) -> Result<Result<Ranked, Dropped>, Error> {
        let Asked { query, time, .. } = asked;
        let Reading { read_scope, windows, until, .. } = reading;
        let Waiting { candidate, whole, own, window, .. } = waiting;
        let Some(memory) = self.0.memories().get(read_scope, waiting.id)? else { return Ok(Err(Dropped::Unfit)) };
        if !self.was_known(query, &memory)? {
            return Ok(Err(Dropped::Unfit));
        }
        if !waiting.is_known {
            self.0.origins.learn(&memory);
        }
        // Working notes are part of their own chat's prompts, and useless elsewhere.
        if memory.kind == Kind::Note {
            return Ok(Err(Dropped::InTheWay));
        }
        // The prompt shows the message, but not the chunks of its long files.
        let shown = memory.kind != Kind::Fact && memory.sources.iter().any(|source| query.exclude.contains(source));
        if (memory.at > until && !memory.is_kept()) || shown {
            return Ok(Err(Dropped::InTheWay));
        }
        let shown = windows.allows(&memory.persona, &memory.scope, &memory.source_scopes, memory.at);
        let window =
            window.filter(|_| shown).map_or(*own, |window| waiting.passage.map_or(window, |_| window.max(*own)));
        let own = *own;
        let event = time.is_some_and(|time| time.is_event(memory.id));
        let apart = time.filter(|_| !event);
        let date = apart.map_or(0.0, |time| time.closeness(&memory, &query.question.calendar));
        let said_then = apart.map_or(0.0, |time| time.closeness_when_said(&memory));
        // What was said at the time that is asked for need not share a word or a meaning with the question.
        let is_far = !candidate.found_by_words && own.max(window) < self.0.config.similarity_floor;
        if is_far && date <= NEAR_DATE {
            return Ok(Err(Dropped::Unfit));
        }
        let rated = asked.rated.get(&memory.id).copied().unwrap_or(0.0);
        let features = Features {
            lexical: candidate.lexical,
            lexical_beside_time: candidate.lexical_beside_time,
            own,
            window,
            speaker: query.question.speaker.as_ref().is_some_and(|speaker| speaker.said(&memory.author)),
            date,
            said_then,
            rated,
            by_event: time.is_some_and(AskedTime::is_by_event),
            is_relative: time.is_some_and(AskedTime::is_relative),
            event,
            of_another: question::speaks_of_another(&query.question, &memory),
            question: question::is_question(&memory.text),
        };
        // The same question asked before is the nearest text to a question, and answers nothing. Vectors contain the author's
        // name, so that of a short question does not show it. Who searches wants to find it.
        let is_repeated = || !query.include_latest && question::asks_the_same(&query.question.embed, &memory.text);
        if features.question && (*whole >= ECHO || is_repeated()) {
            return Ok(Err(Dropped::InTheWay));
        }
        let mut signals = Vec::new();
        signals.extend(candidate.found_by_words.then_some("lexical"));
        signals.extend(candidate.found_by_vector.then_some("semantic"));
        signals.extend(features.speaker.then_some("speaker"));
        signals.extend((features.date > NEAR_DATE).then_some("date"));
        signals.extend((rated != 0.0).then_some("rated"));
        let passage = waiting.passage.filter(|(_, cosine)| *cosine >= self.0.config.similarity_floor);
        // The excerpt is chosen when the hit is: it takes longer than the score.
        let hit = Hit {
            snippet: Text::default(),
            shown: Shown::new(),
            score: features.score(),
            signals,
            memory,
            validity: Validity::default(),
            again: Vec::new(),
        };
        Ok(Ok(Ranked { hit, passage: passage.map(|(number, _)| number), order: features.order() }))
    }

    /// Returns false for what was not known yet at the time that the question asks about: "What did you know in June?" is
    /// answered from what had been said, imported and edited by then.
    fn was_known(self, query: &Query, memory: &MemoryRow) -> Result<bool, Error> {
        self.was_known_by(query.question.known_by, memory)
    }

    /// Returns from when and until when a memory holds, as far as that was known at the time that the question asks about.
    fn validity(self, read_scope: &ReadScope, query: &Query, memory: &MemoryRow) -> Result<Validity, Error> {
        let Question { calendar, known_by, .. } = &query.question;
        self.0.memories().validity_by(read_scope, memory, calendar, *known_by)
    }

    fn with_excerpt(self, hit: Hit, passage: Option<u16>, query: &Query) -> Hit {
        let passage = passage.and_then(|number| passages::passage(&hit.memory.text, number));
        let shown = excerpt(&hit.memory.text, &query.question.words, passage, self.0.config.snippet_chars);
        Hit { snippet: show(&hit.memory.text, &shown), shown, ..hit }
    }
}

/// Returns how many candidates each search contributes at first. What was imported or edited after the time of a question about
/// what was known does not count, and may fill a search.
fn searched(query: &Query) -> usize {
    query.limits.candidates.max(query.question.known_by.map_or(0, |_| MAX_SEARCH_LIMIT))
}

fn jiff_span(duration: std::time::Duration) -> azera_types::Span {
    azera_types::Span::new().seconds(i64::try_from(duration.as_secs()).unwrap_or(i64::MAX))
}
