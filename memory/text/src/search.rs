use std::cmp::Ordering;
use std::collections::BinaryHeap;

use azera_memory::{Facet, FacetWeights, Found, LexicalHits, ReadScope};
use azera_types::{MemoryId, Timestamp};
use tantivy::columnar::Column;
use tantivy::query::{BooleanQuery, BoostQuery, ConstScoreQuery, EnableScoring, Occur, Query, TermQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, Score, Searcher, SegmentReader};

use crate::schema::{AT, Fields, ID, KEY, key, micros};

/// Words of a query that count, rarest first. The common words of a very long message add time but little else.
pub(crate) const MAX_QUERY_WORDS: usize = 32;

/// Threshold for searching all documents. If at least one in this many documents is within the read scope, tantivy
/// searches all and skips those outside, which lets it skip blocks without good documents. Otherwise the search walks
/// the documents within.
const WIDE_SHARE: u64 = 16;

/// One search in one index.
pub(crate) struct Search<'a> {
    pub(crate) fields: &'a Fields,
    pub(crate) read_scope: &'a ReadScope,
    pub(crate) query: &'a str,
    pub(crate) weights: FacetWeights,
    pub(crate) until: Timestamp,
    pub(crate) limit: usize,
}

impl Search<'_> {
    /// Returns the best documents, best first; among equal scores, the oldest memory first.
    pub(crate) fn run(&self, searcher: &Searcher) -> tantivy::Result<LexicalHits> {
        let words = self.words(searcher)?;
        let idf = words.iter().map(|word| word.idf).sum();
        let clauses = self.clauses(searcher, words)?;
        if clauses.is_empty() || self.limit == 0 {
            return Ok(LexicalHits { found: Vec::new(), idf });
        }
        let scoring = EnableScoring::enabled_from_searcher(searcher);
        let everywhere = BooleanQuery::new(clauses);
        let places = Places::new(self.read_scope, self.until);
        let wide = places.documents(self.fields, searcher)? * WIDE_SHARE >= searcher.num_docs();
        let weight = if wide {
            everywhere.weight(scoring)?
        } else {
            let inside = ConstScoreQuery::new(Box::new(places.query(self.fields)), 0.0);
            BooleanQuery::new(vec![(Occur::Must, Box::new(inside)), (Occur::Must, Box::new(everywhere))])
                .weight(scoring)?
        };
        let mut best = Best { limit: self.limit, heap: BinaryHeap::new() };
        for reader in searcher.segment_readers() {
            let Some(allowed) = places.in_segment(reader)? else { continue };
            let ids = reader.fast_fields().u64(ID)?;
            weight.for_each_pruning(best.threshold(), reader, &mut |doc, score| {
                if !reader.is_deleted(doc)
                    && allowed.allows(doc)
                    && let Some(id) = ids.first(doc)
                {
                    best.push(Found { id: MemoryId(id), score });
                }
                best.threshold()
            })?;
        }
        Ok(LexicalHits { found: best.into_sorted(), idf })
    }

    /// Returns the words of the query, rarest first, at most [`MAX_QUERY_WORDS`].
    fn words(&self, searcher: &Searcher) -> tantivy::Result<Vec<Word>> {
        let documents: u64 = searcher.segment_readers().iter().map(|reader| u64::from(reader.max_doc())).sum();
        let mut words = Vec::new();
        for text in Fields::words(self.query) {
            let holding = searcher.doc_freq(&self.fields.term(Facet::Own, &text))?;
            words.push(Word { idf: idf(holding, documents), text });
        }
        words.sort_by(|a, b| b.idf.total_cmp(&a.idf).then_with(|| a.text.cmp(&b.text)));
        words.truncate(MAX_QUERY_WORDS);
        Ok(words)
    }

    /// Returns the words to search in each text of a document, without words that no document contains.
    fn clauses(&self, searcher: &Searcher, words: Vec<Word>) -> tantivy::Result<Vec<(Occur, Box<dyn Query>)>> {
        let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::with_capacity(2 * words.len());
        for word in words {
            for (facet, weight) in [(Facet::Own, self.weights.own), (Facet::Window, self.weights.window)] {
                let term = self.fields.term(facet, &word.text);
                if weight > 0.0 && searcher.doc_freq(&term)? > 0 {
                    let query = TermQuery::new(term, IndexRecordOption::WithFreqs);
                    clauses.push((Occur::Should, Box::new(BoostQuery::new(Box::new(query), weight))));
                }
            }
        }
        Ok(clauses)
    }
}

/// A word of a query and its rarity.
struct Word {
    text: String,
    idf: f32,
}

/// Returns the rarity of a word: BM25's inverse document frequency as in Lucene and tantivy, never negative.
fn idf(holding: u64, documents: u64) -> f32 {
    let holding = holding.min(documents);
    (1.0 + ((documents - holding) as f32 + 0.5) / (holding as f32 + 0.5)).ln()
}

/// The read scope in the index's terms.
pub(crate) struct Places {
    keys: Vec<PlaceKey>,
    until: i64,
}

struct PlaceKey {
    key: String,
    /// Documents before this are not allowed.
    since: i64,
}

impl Places {
    pub(crate) fn new(read_scope: &ReadScope, until: Timestamp) -> Self {
        // A time in the same microsecond as the horizon counts as before it, so that nothing outside the read scope is
        // shown.
        let horizon = |since: Timestamp| micros(since) + i64::from(since.as_nanosecond().rem_euclid(1_000) != 0);
        let place = |grant: &azera_memory::Grant| PlaceKey {
            key: key(read_scope.persona(), &grant.scope),
            since: grant.since.map_or(i64::MIN, horizon),
        };
        Self { keys: read_scope.grants().iter().map(place).collect(), until: micros(until) }
    }

    /// Returns the documents of these scopes, of any time.
    pub(crate) fn query(&self, fields: &Fields) -> BooleanQuery {
        BooleanQuery::new_multiterms_query(self.keys.iter().map(|place| fields.key_term(&place.key)).collect())
    }

    /// Returns the number of documents in these scopes, including deleted ones.
    fn documents(&self, fields: &Fields, searcher: &Searcher) -> tantivy::Result<u64> {
        let mut documents = 0;
        for place in &self.keys {
            documents += searcher.doc_freq(&fields.key_term(&place.key))?;
        }
        Ok(documents)
    }

    /// Returns the documents allowed in one segment; `None` if it has no documents of these scopes.
    pub(crate) fn in_segment(&self, reader: &SegmentReader) -> tantivy::Result<Option<Allowed>> {
        let columns = reader.fast_fields();
        let Some(keys) = columns.str(KEY)? else { return Ok(None) };
        let mut places = Vec::new();
        for place in &self.keys {
            if let Some(ord) = keys.dictionary().term_ord(&place.key)? {
                places.push((ord, place.since));
            }
        }
        if places.is_empty() {
            return Ok(None);
        }
        let allowed = Allowed { places, keys: keys.ords().clone(), at: columns.i64(AT)?, until: self.until };
        Ok(Some(allowed))
    }
}

/// The documents allowed in one segment.
pub(crate) struct Allowed {
    /// Number of a scope in the segment, and the time from which it is allowed.
    places: Vec<(u64, i64)>,
    keys: Column<u64>,
    at: Column<i64>,
    until: i64,
}

impl Allowed {
    /// Returns true if a document is allowed. Documents without scope or time are not.
    pub(crate) fn allows(&self, doc: DocId) -> bool {
        let (Some(key), Some(at)) = (self.keys.first(doc), self.at.first(doc)) else { return false };
        at <= self.until && self.places.iter().any(|(place, since)| *place == key && at >= *since)
    }
}

/// The best documents so far. The top of the heap is the worst of them.
struct Best {
    limit: usize,
    heap: BinaryHeap<Ranked>,
}

struct Ranked(Found);

impl Best {
    /// Returns the score that a document must exceed.
    fn threshold(&self) -> Score {
        match self.heap.peek() {
            Some(worst) if self.heap.len() >= self.limit => worst.0.score,
            _ => Score::MIN,
        }
    }

    fn push(&mut self, found: Found) {
        self.heap.push(Ranked(found));
        if self.heap.len() > self.limit {
            self.heap.pop();
        }
    }

    fn into_sorted(self) -> Vec<Found> {
        self.heap.into_sorted_vec().into_iter().map(|ranked| ranked.0).collect()
    }
}

impl Ord for Ranked {
    /// Orders worse documents as greater.
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.score.total_cmp(&self.0.score).then(self.0.id.cmp(&other.0.id))
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
