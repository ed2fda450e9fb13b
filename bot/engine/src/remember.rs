//! Stage *remember*: what the record holds is embedded and indexed, after the reply and without delaying it.

use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use azera_memory::{Embedded, IndexWork};
use azera_model_api::{Priority, Purpose};
use azera_types::{MemoryId, PersonaId};

use crate::engine::Engine;
use crate::error::Error;
use crate::vectors::cosine;

/// Memories embedded at a time.
const BATCH: usize = 64;

/// Texts embedded between two looks at whether somebody waits for an answer: a tenth of a second on one core.
const TEXTS_AT_ONCE: usize = 8;

/// Time for which those who wait for an answer hold up these. On a busy server twenty texts a second are embedded all the
/// same.
const LONGEST_LULL: Duration = Duration::from_millis(250);

/// Memories indexed in one go between two reorganisations of the vector index, which keeps each of them short.
const OPTIMIZE_EVERY: usize = 50_000;

/// Time after which the log tells how far indexing is: a new embedding model keeps it busy for hours.
const TELL_EVERY: Duration = Duration::from_secs(30);

/// Time between something said and its indexing, so that what is said meanwhile is indexed with it: each round costs a
/// commit of both indexes. Nothing that young is recalled anyway.
const GATHER: Duration = Duration::from_secs(1);

/// Time the last round of indexing may take when the core stops; what is left waits for the next start.
const LAST_ROUND: Duration = Duration::from_secs(5);

/// Cosine similarity of a vector with another one of the same text: what a text is embedded with moves its last digits.
const SAME_TEXT: f32 = 0.99;

/// Wait after a failure before the queue is tried again; doubled with each further failure, up to [`LONGEST_PAUSE`].
const PAUSE: Duration = Duration::from_secs(5);

/// The longest such wait.
const LONGEST_PAUSE: Duration = Duration::from_secs(5 * 60);

/// Queued memories whose words are indexed in one go while nothing can be embedded.
const WORDS_BATCH: usize = 1_024;

/// A text no model refuses for what it says, for it says nothing.
const WORDLESS: &str = ".";

/// Memories one turn may leave: what was said, and the reply.
const TURN_MEMORIES: usize = 2;

/// When texts are embedded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// As soon as can be.
    AtOnce,
    /// When nobody waits for an answer.
    InLulls,
}

/// How many memories a persona may have.
#[derive(Debug)]
pub(crate) struct Bound {
    keep: usize,
    /// Memories it may get before they have to be counted again, which means walking over all of them.
    room: usize,
}

impl Engine {
    /// Indexes whatever is queued until nothing is; gives how many memories that were.
    pub async fn index_all(&self) -> Result<usize, Error> {
        self.index_queued(Pace::AtOnce).await
    }

    async fn index_queued(&self, pace: Pace) -> Result<usize, Error> {
        let _indexing = self.0.indexing.lock().await;
        if self.blocking(azera_memory::Memory::indexes_are_suspect).await? {
            let mended = self.blocking(azera_memory::Memory::mend).await?;
            if mended > 0 {
                tracing::warn!(memories = mended, "the indexes differed from the record and are mended");
            }
        }
        let (mut indexed, mut since_optimized) = (0, 0);
        let begun = Instant::now();
        let mut logged_at = begun;
        loop {
            // Nobody who stops Azera waits for a thousand memories to be embedded; the next start goes on.
            if self.0.stopping.is_cancelled() && begun.elapsed() > LAST_ROUND {
                return Err(Error::Interrupted);
            }
            let work = self.blocking(|memory| memory.index_work(BATCH)).await?;
            if work.is_empty() {
                if self.blocking(azera_memory::Memory::queued).await? == 0 && self.prune().await? == 0 {
                    return Ok(indexed);
                }
                continue;
            }
            indexed += work.len();
            since_optimized += work.len();
            let embedded = self.embed_work(work, pace).await?;
            self.blocking(move |memory| memory.index(embedded)).await?;
            if logged_at.elapsed() >= TELL_EVERY {
                logged_at = Instant::now();
                let left = self.blocking(azera_memory::Memory::queued).await?;
                let left_s = begun.elapsed().as_secs_f64() / indexed as f64 * left as f64;
                tracing::info!(indexed, left, left_s = left_s.round(), "indexing");
            }
            if since_optimized >= OPTIMIZE_EVERY {
                since_optimized = 0;
                self.blocking(azera_memory::Memory::optimize).await?;
            }
        }
    }

    /// Notes that a persona got a memory, for the bound it may have.
    pub(crate) fn bound(&self, persona: PersonaId, keep: Option<u64>) {
        if let Some(keep) = keep {
            let keep = usize::try_from(keep).unwrap_or(usize::MAX);
            let mut bounded = self.bounded();
            let bound = bounded.entry(persona).or_insert(Bound { keep, room: 0 });
            // A turn leaves two memories at most. A bound that changed is looked at anew.
            bound.room = if bound.keep == keep { bound.room.saturating_sub(TURN_MEMORIES) } else { 0 };
            bound.keep = keep;
        }
    }

    fn bounded(&self) -> MutexGuard<'_, HashMap<PersonaId, Bound>> {
        self.0.bounded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds the personas that got memories to their bounds; gives how many memories went.
    async fn prune(&self) -> Result<usize, Error> {
        let full: Vec<(PersonaId, usize)> = {
            let bounded = self.bounded();
            let full = bounded.iter().filter(|(_, bound)| bound.room == 0);
            full.map(|(persona, bound)| (persona.clone(), bound.keep)).collect()
        };
        let mut removed = 0;
        for (persona, keep) in full {
            let of = persona.clone();
            let now = self.0.clock.now();
            let pruned = self.blocking(move |memory| memory.prune(&of, keep, now)).await?;
            removed += pruned.removed;
            if let Some(bound) = self.bounded().get_mut(&persona) {
                bound.room = keep.saturating_sub(pruned.left);
            }
        }
        Ok(removed)
    }

    /// The indexes may differ from the record: they are compared, and mended, before anything else is indexed.
    pub(crate) async fn mark_indexes_suspect(&self) {
        if let Err(error) = self.blocking(azera_memory::Memory::mark_indexes_suspect).await {
            tracing::warn!(%error, "that the indexes may differ from the record cannot be noted");
        }
        self.0.index_wanted.notify_one();
    }

    async fn embed_work(&self, work: Vec<IndexWork>, pace: Pace) -> Result<Vec<Embedded>, Error> {
        let now = self.0.clock.now();
        let mut texts = Vec::with_capacity(work.len() * 2);
        for item in &work {
            texts.push(item.own.clone());
            texts.extend(item.window.clone());
        }
        let wanted = texts.clone();
        let cached =
            self.blocking(move |memory| wanted.iter().map(|text| memory.cached_embedding(text, now)).collect()).await;
        let mut vectors: Vec<Option<Vec<f32>>> = cached.unwrap_or_else(|_: Error| vec![None; texts.len()]);
        let missing: Vec<usize> = (0..texts.len()).filter(|index| vectors[*index].is_none()).collect();
        if !missing.is_empty() {
            let unknown: Vec<String> = missing.iter().map(|index| texts[*index].clone()).collect();
            let mut fresh = Vec::with_capacity(unknown.len());
            for texts in unknown.chunks(if pace == Pace::InLulls { TEXTS_AT_ONCE } else { unknown.len() }) {
                if pace == Pace::InLulls {
                    self.0.foreground.until_quiet(LONGEST_LULL).await;
                }
                fresh.extend(self.embed(texts.to_vec()).await?);
            }
            for (index, vector) in missing.iter().zip(&fresh) {
                vectors[*index] = Some(vector.clone());
            }
            let retained = self.blocking(move |memory| {
                unknown.iter().zip(&fresh).try_for_each(|(text, vector)| memory.cache_embedding(text, vector, now))
            });
            if let Err(error) = retained.await {
                tracing::warn!(%error, "the embedding cache does not take vectors");
            }
        }
        let mut vectors = vectors.into_iter().flatten();
        let mut embedded = Vec::with_capacity(work.len());
        for work in work {
            let own = vectors.next().ok_or(Error::Interrupted)?;
            let window = match &work.window {
                Some(_) => Some(vectors.next().ok_or(Error::Interrupted)?),
                None => None,
            };
            embedded.push(Embedded { work, own, window });
        }
        Ok(embedded)
    }

    /// Embeds texts. One that the model refuses while it takes others gets the vector of a text without a word, and is found
    /// by its words: one message of somebody's must not keep everybody else's from being remembered.
    pub(crate) async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, Error> {
        let embed = |texts| self.0.embedder.embed(texts, Purpose::Document, Priority::Background);
        let refused = match embed(texts.clone()).await {
            Ok(vectors) => return Ok(vectors),
            Err(error) => Error::Model(error),
        };
        if refused.is_transient() {
            return Err(refused);
        }
        // A model that refuses even that is set up wrongly.
        let Ok(stands_in) = embed(vec![WORDLESS.to_owned()]).await else { return Err(refused) };
        let mut vectors = Vec::with_capacity(texts.len());
        for text in texts {
            let bytes = text.len();
            match embed(vec![text]).await.map_err(Error::Model) {
                Err(error) if error.is_transient() => return Err(error),
                Err(error) => {
                    tracing::warn!(%error, bytes, "the embedding model refuses a text: words alone find it");
                    vectors.extend_from_slice(&stands_in);
                }
                Ok(vector) => vectors.extend(vector),
            }
        }
        Ok(vectors)
    }

    /// Indexes the words of what is queued behind a ticket, while nothing can be embedded; gives the last ticket.
    async fn index_words(&self, mut after: Option<Vec<u8>>) -> Result<Option<Vec<u8>>, Error> {
        let _indexing = self.0.indexing.lock().await;
        loop {
            let from = after.clone();
            match self.blocking(move |memory| memory.index_words(from.as_deref(), WORDS_BATCH)).await? {
                Some(last) => after = Some(last),
                None => return Ok(after),
            }
        }
    }

    /// Embeds every text again and compares it with the vectors of the index; gives the memories whose vectors are those of
    /// other texts, or of none. Those without vectors are not among them.
    pub async fn compare_vectors(&self) -> Result<Vec<MemoryId>, Error> {
        let mut differ = Vec::new();
        let mut after = None;
        loop {
            let page = self.blocking(move |memory| memory.indexed(after, BATCH)).await?;
            let Some((last, _)) = page.last() else { return Ok(differ) };
            after = Some(last.id);
            let texts = page.iter().flat_map(|(work, _)| std::iter::once(&work.own).chain(&work.window)).cloned();
            let mut vectors = self.embed(texts.collect()).await?.into_iter();
            for (work, stored) in page {
                let own = vectors.next();
                let window = work.window.as_ref().and_then(|_| vectors.next());
                let Some(stored) = stored else { continue };
                if !same(own.as_deref(), Some(&stored.own)) || !same(window.as_deref(), stored.window.as_deref()) {
                    differ.push(work.id);
                }
            }
        }
    }

    /// Overwrites on disk what was forgotten, if anything was. Everything queued is indexed first.
    pub async fn scrub(&self) -> Result<bool, Error> {
        if !self.blocking(azera_memory::Memory::scrub_due).await? {
            return Ok(false);
        }
        self.index_all().await?;
        let _indexing = self.0.indexing.lock().await;
        self.blocking(azera_memory::Memory::scrub).await
    }

    /// Waits until something is said, and a little longer.
    async fn more_to_index(&self) {
        self.0.index_wanted.notified().await;
        tokio::time::sleep(GATHER).await;
    }

    /// Keeps the indexes up with the record until the core stops.
    pub(crate) async fn keep_indexed(self) {
        let stopping = self.0.stopping.clone();
        let mut rebuilt = false;
        // How far words were indexed for want of vectors.
        let mut words = None;
        loop {
            tokio::select! {
                () = stopping.cancelled() => break,
                () = self.more_to_index() => {}
            }
            let mut pause = PAUSE;
            while let Err(error) = self.index_queued(Pace::InLulls).await {
                tracing::warn!(%error, "indexing failed, trying again");
                match &error {
                    Error::Model(_) => match self.index_words(words.clone()).await {
                        Ok(last) => words = last,
                        Err(error) => tracing::warn!(%error, "words could not be indexed either"),
                    },
                    // What would fail each time may be damage, which making the indexes anew mends; if it is not, once is
                    // enough to know.
                    Error::Memory(error) if !error.is_transient() && !std::mem::replace(&mut rebuilt, true) => {
                        match self.blocking(azera_memory::Memory::rebuild).await {
                            Ok(memories) => tracing::warn!(memories, "the indexes are built anew from the record"),
                            Err(error) => tracing::error!(%error, "the indexes will be built anew at the next start"),
                        }
                    }
                    _ => {}
                }
                tokio::select! {
                    () = stopping.cancelled() => break,
                    () = tokio::time::sleep(pause) => {}
                    // What is said meanwhile is to be found by its words soon.
                    () = self.more_to_index() => {}
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            if !stopping.is_cancelled() {
                self.tidy().await;
            }
        }
        match tokio::time::timeout(LAST_ROUND, self.index_all()).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(%error, "what was said last will be indexed at the next start"),
            Err(_) => tracing::info!("what was said last will be indexed at the next start"),
        }
    }

    /// What keeps stores small and fast: graphs, expired cache entries, forgotten bytes.
    async fn tidy(&self) {
        // For the log alone: to somebody in a chat it would tell what is said elsewhere.
        let azera_memory::CacheUse { question, found } = self.0.memory.embedding_cache();
        tracing::debug!(question, found, "vectors that were looked for in the cache");
        if let Err(error) = self.blocking(azera_memory::Memory::optimize).await {
            tracing::warn!(%error, "the vector index could not be reorganised");
        }
        let now = self.0.clock.now();
        if let Err(error) = self.blocking(move |memory| memory.sweep_cache(now)).await {
            tracing::warn!(%error, "working memory could not be swept");
        }
        if let Err(error) = self.scrub().await {
            tracing::warn!(%error, "forgotten bytes could not be overwritten yet");
        }
    }
}

/// Whether two vectors of length 1 are of the same text; nothing is like nothing.
fn same(left: Option<&[f32]>, read_scope: Option<&[f32]>) -> bool {
    match (left, read_scope) {
        (Some(left), Some(read_scope)) => left.len() == read_scope.len() && cosine(left, read_scope) >= SAME_TEXT,
        (left, read_scope) => left.is_none() && read_scope.is_none(),
    }
}
