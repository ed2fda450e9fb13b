//! Searches for the newest documents that contain every word of a query, also words that are not typed to their end.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use azera_memory::{Facet, MIN_BEGINNING_CHARS, ReadScope};
use azera_types::{MemoryId, Timestamp};
use tantivy::query::{BooleanQuery, EnableScoring, Occur, Query};
use tantivy::{Searcher, Term};

use crate::schema::{AT, Fields, ID, Sought};
use crate::search::{MAX_QUERY_WORDS, Places};

/// Words of one segment that a beginning stands for, first in the alphabet first. A beginning of more words is hardly a
/// word yet.
const MAX_ENDINGS: usize = 256;

/// One search in one index.
pub(crate) struct Containing<'a> {
    pub(crate) fields: &'a Fields,
    pub(crate) read_scope: &'a ReadScope,
    pub(crate) query: &'a str,
    pub(crate) until: Timestamp,
    pub(crate) limit: usize,
}

impl Containing<'_> {
    /// Returns the documents, newest first.
    pub(crate) fn run(&self, searcher: &Searcher) -> tantivy::Result<Vec<MemoryId>> {
        let places = Places::new(self.read_scope, self.until);
        let Some(query) = self.query(searcher, &places)? else { return Ok(Vec::new()) };
        let weight = query.weight(EnableScoring::disabled_from_searcher(searcher))?;
        // The oldest of the newest is on top.
        let mut newest = BinaryHeap::with_capacity(self.limit.saturating_add(1));
        for reader in searcher.segment_readers() {
            let Some(allowed) = places.in_segment(reader)? else { continue };
            let (ids, times) = (reader.fast_fields().u64(ID)?, reader.fast_fields().i64(AT)?);
            weight.for_each_no_score(reader, &mut |docs| {
                for doc in docs {
                    if !reader.is_deleted(*doc)
                        && allowed.allows(*doc)
                        && let (Some(id), Some(at)) = (ids.first(*doc), times.first(*doc))
                    {
                        newest.push(Reverse((at, id)));
                        if newest.len() > self.limit {
                            newest.pop();
                        }
                    }
                }
            })?;
        }
        Ok(newest.into_sorted_vec().into_iter().map(|Reverse((_, id))| MemoryId(id)).collect())
    }

    /// Returns the documents of these places with every word; `None` if there are none.
    fn query(&self, searcher: &Searcher, places: &Places) -> tantivy::Result<Option<BooleanQuery>> {
        let sought = Fields::sought(self.query);
        if sought.is_empty() || self.limit == 0 {
            return Ok(None);
        }
        let mut clauses: Vec<(Occur, Box<dyn Query>)> = vec![(Occur::Must, Box::new(places.query(self.fields)))];
        for word in sought.into_iter().take(MAX_QUERY_WORDS) {
            let terms = self.terms(searcher, &word)?;
            if terms.is_empty() {
                return Ok(None);
            }
            clauses.push((Occur::Must, Box::new(BooleanQuery::new_multiterms_query(terms))));
        }
        Ok(Some(BooleanQuery::new(clauses)))
    }

    /// Returns the terms that a word of the query may stand for.
    fn terms(&self, searcher: &Searcher, word: &Sought) -> tantivy::Result<Vec<Term>> {
        let own = |text: &str| self.fields.term(Facet::Own, text);
        let mut terms: BTreeSet<Term> = BTreeSet::new();
        if let Some(exact) = &word.term {
            let term = own(exact);
            if searcher.doc_freq(&term)? > 0 {
                terms.insert(term);
            }
        }
        if word.typed.chars().count() >= MIN_BEGINNING_CHARS {
            let from = own(&word.typed);
            for reader in searcher.segment_readers() {
                let index = reader.inverted_index(from.field())?;
                let mut endings = index.terms().range().ge(word.typed.as_bytes()).into_stream()?;
                let mut taken = 0;
                while taken < MAX_ENDINGS && endings.advance() && endings.key().starts_with(word.typed.as_bytes()) {
                    if let Ok(ending) = std::str::from_utf8(endings.key()) {
                        terms.insert(own(ending));
                    }
                    taken += 1;
                }
            }
        }
        Ok(terms.into_iter().collect())
    }
}
