//! Recall: embeds the question, then searches the memory. `crate::turn::recall` chooses from the result what a prompt
//! shows.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use azera_memory::{Calendar, Hit, Memory, Opinion, Query, ReadScope, Recalled, Shortlist};
use azera_model_api::{Priority, Purpose};
use azera_types::{MessageId, PersonId, Text, Timestamp};

use crate::error::Error;
use crate::indexing::Indexer;
use crate::reranking::{Reranked, Reranking};
use crate::services::Services;

/// Searches the memory for the people who may see what is found.
pub(crate) struct RecallService {
    services: Arc<Services>,
    indexer: Arc<Indexer>,
    reranking: Reranking,
    /// Whether a failed index was already marked for a check.
    checked: AtomicBool,
}

/// What recall found, and how long it took.
#[derive(Debug, Default)]
pub(crate) struct Recall {
    pub(crate) hits: Vec<Hit>,
    /// The parts of recall that did not work: search indexes, and the reranker.
    pub(crate) missing: Vec<&'static str>,
    /// The question's vector; `None` if it could not be embedded.
    pub(crate) vector: Option<Vec<f32>>,
    /// True if the vector embeds the unchanged text.
    pub(crate) plain: bool,
    pub(crate) took_ms: f64,
}

/// Who asks whom, and when and where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asking<'a> {
    pub(crate) person: &'a PersonId,
    /// The name of the persona, which is no word to search for.
    pub(crate) persona: &'a str,
    pub(crate) calendar: &'a Calendar,
    /// The moment after which nothing counts, if it is asked for what was known then. The question may name one itself.
    pub(crate) known_by: Option<Timestamp>,
    pub(crate) trace: Trace,
}

/// Whether embedding a text may leave its vector in the cache on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trace {
    Cached,
    /// The text is not said to its end, and nothing of it is stored.
    None,
}

impl RecallService {
    pub(crate) fn new(services: Arc<Services>, indexer: Arc<Indexer>) -> Self {
        let reranking = Reranking::new(Arc::clone(&services));
        Self { services, indexer, reranking, checked: AtomicBool::new(false) }
    }

    /// Returns how many recalled lines a prompt of the current model holds.
    pub(crate) fn default_results(&self) -> usize {
        let form = azera_prompt::form_of(self.services.model().info());
        self.services.config.recalled.unwrap_or(form.recalled_lines)
    }

    /// Returns memories that help to answer `text`, best first, without those of `exclude`. If an index is down, recall
    /// names it in `missing` and goes on with the others.
    pub(crate) async fn recall(
        &self,
        read_scope: &ReadScope,
        text: &Text,
        asking: Asking<'_>,
        exclude: HashSet<MessageId>,
        results: usize,
    ) -> Result<Recall, Error> {
        let (recall, query) = self.find(read_scope, text, asking, exclude, results, false).await?;
        self.with_unindexed(read_scope, recall, query).await
    }

    /// Returns what a person searches for, best first. Other than [`RecallService::recall`], this finds the latest
    /// memories, too.
    pub(crate) async fn search(
        &self,
        read_scope: &ReadScope,
        text: &Text,
        asking: Asking<'_>,
        results: usize,
    ) -> Result<Recall, Error> {
        let (recall, query) = self.find(read_scope, text, asking, HashSet::new(), results, true).await?;
        self.with_unindexed(read_scope, recall, query).await
    }

    /// Puts what is not indexed yet before the other hits.
    async fn with_unindexed(&self, read_scope: &ReadScope, mut recall: Recall, query: Query) -> Result<Recall, Error> {
        let (read_scope, results) = (read_scope.clone(), query.results);
        let mut hits =
            self.services.blocking(move |memory| memory.recall().find_unindexed(&read_scope, &query)).await?;
        hits.retain(|hit| recall.hits.iter().all(|indexed| indexed.memory.id != hit.memory.id));
        // Nothing tells how well they answer, and they are what was said last.
        let best = recall.hits.first().map_or(0.0, |best| best.score);
        hits.iter_mut().for_each(|hit| hit.score = best);
        hits.append(&mut recall.hits);
        hits.truncate(results);
        Ok(Recall { hits, ..recall })
    }

    async fn find(
        &self,
        read_scope: &ReadScope,
        text: &Text,
        asking: Asking<'_>,
        exclude: HashSet<MessageId>,
        results: usize,
        include_latest: bool,
    ) -> Result<(Recall, Query), Error> {
        let started = Instant::now();
        let mut question = {
            let (read_scope, text, asker) = (read_scope.clone(), text.clone(), asking.person.clone());
            let (persona, calendar) = (asking.persona.to_owned(), asking.calendar.clone());
            self.services
                .blocking(move |memory| memory.recall().question(&read_scope, &text, &asker, &persona, &calendar))
                .await?
        };
        question.known_by = asking.known_by.or(question.known_by);
        let plain = question.embed == text.as_str() && !self.services.embedder.info().asks_otherwise;
        let text = question.embed.clone();
        let now = self.services.clock.now();
        let event = question.event.as_ref().map(|event| event.embed.clone());
        let limits = self.services.config.limits;
        let asker = Some(asking.person.clone());
        let mut query =
            Query { question, vector: None, event_vector: None, asker, now, include_latest, exclude, limits, results };
        let words = {
            let (read_scope, query) = (read_scope.clone(), query.clone());
            self.services.blocking(move |memory| Ok(memory.recall().find_words(&read_scope, &query)))
        };
        // The lexical search runs while the question is embedded.
        let (words, vector) = tokio::join!(words, self.embed(&text, Purpose::Query, asking.trace));
        let words = words?;
        query.vector = match vector {
            Ok(vector) => Some(vector),
            Err(error) => {
                tracing::warn!(%error, "recall goes on without the semantic index");
                None
            }
        };
        if let (Some(event), Some(_)) = (event, &query.vector) {
            query.event_vector = self.embed(&event, Purpose::Query, asking.trace).await.ok();
        }
        let embedded = query.vector.is_some();
        let wanted = self.reranking.candidates();
        let shortlist = {
            let (read_scope, query) = (read_scope.clone(), query.clone());
            self.services.blocking(move |memory| memory.recall().shortlist(&read_scope, &query, words, wanted)).await?
        };
        // Without a vector, the semantic index counts as missing even though it did not fail.
        let failed = shortlist.failed().any(|layer| layer == "lexical" || embedded);
        if failed && !self.checked.swap(true, Ordering::AcqRel) {
            self.indexer.mark_indexes_suspect().await;
        }
        // Words that nobody sent yet go to no server that reranks.
        let recalled = self.finish(read_scope, &query, shortlist, asking.trace != Trace::None).await?;
        let took_ms = started.elapsed().as_secs_f64() * 1_000.0;
        let vector = query.vector.clone();
        Ok((Recall { hits: recalled.hits, missing: recalled.missing, vector, plain, took_ms }, query))
    }

    /// Lets the reranker have its say, if there is one and it may see the question, and returns the hits. Without its answer
    /// the order stays as it is.
    async fn finish(
        &self,
        read_scope: &ReadScope,
        query: &Query,
        shortlist: Shortlist,
        is_sent: bool,
    ) -> Result<Recalled, Error> {
        let reranked = match is_sent {
            true => self.reranking.ask(&query.question.embed, &shortlist).await,
            false => Reranked::Unasked,
        };
        let (opinion, missing) = match reranked {
            Reranked::Unasked => (None, None),
            Reranked::By(opinion) => (Some(opinion), None),
            // Without an opinion nothing moves, but something may have been forgotten meanwhile.
            Reranked::Missing(name) => (Some(Opinion::default()), Some(name)),
        };
        let (read_scope, query) = (read_scope.clone(), query.clone());
        let finish = move |memory: &Memory| memory.recall().finish(&read_scope, &query, shortlist, opinion.as_ref());
        let mut recalled = self.services.blocking(finish).await?;
        recalled.missing.extend(missing);
        Ok(recalled)
    }

    /// Embeds a text that somebody waits for.
    pub(crate) async fn embed_foreground(&self, text: &str, purpose: Purpose) -> Result<Vec<f32>, Error> {
        self.embed(text, purpose, Trace::Cached).await
    }

    /// Embeds a text that somebody waits for, and leaves the trace that it may leave.
    pub(crate) async fn embed(&self, text: &str, purpose: Purpose, trace: Trace) -> Result<Vec<f32>, Error> {
        let now = self.services.clock.now();
        let key = match purpose {
            Purpose::Query => format!("query\u{1f}{text}"),
            Purpose::Document => text.to_owned(),
        };
        let cached = {
            let key = key.clone();
            self.services.blocking(move |memory| memory.embeddings().get(&key, now)).await
        };
        if let Ok(Some(vector)) = cached {
            return Ok(vector);
        }
        let texts = vec![text.to_owned()];
        let mut vectors = self.services.embedder.embed(texts, purpose, Priority::Foreground).await?;
        let vector = vectors.pop().ok_or(Error::Interrupted)?;
        if trace == Trace::None {
            return Ok(vector);
        }
        let to_cache = vector.clone();
        if let Err(error) = self.services.blocking(move |memory| memory.embeddings().put(&key, &to_cache, now)).await {
            tracing::warn!(%error, "cannot write to the embedding cache");
        }
        Ok(vector)
    }
}
