//! Indexing: embeds new memories and adds them to both indexes, after the reply and without delaying it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use azera_memory::{Embedded, IndexWork};
use azera_model_api::{Priority, Purpose};
use azera_types::{MemoryId, PersonaId};
use tokio::sync::Notify;

use crate::error::Error;
use crate::grouping::Grouping;
use crate::learning_stages::{LearningStage, StageClock};
use crate::services::Services;
use crate::vectors::cosine;

/// Embeds and indexes memories.
pub(crate) struct Indexer {
    pub(crate) services: Arc<Services>,
    /// Personas with a limit on their memories that may have got new ones.
    bounded: Mutex<HashMap<PersonaId, Bound>>,
    /// Held while one round of indexing runs.
    running: tokio::sync::Mutex<()>,
    wanted: Notify,
    /// How far memories are grouped into themes.
    pub(crate) grouping: Grouping,
}

/// Memories embedded in one batch.
pub(crate) const BATCH: usize = 64;

/// Texts embedded before indexing checks again whether somebody waits for an answer; they take about a tenth of a
/// second on one core.
const TEXTS_AT_ONCE: usize = 8;

/// Longest time that live chat delays one group of texts. On a busy server, indexing still embeds about twenty texts a
/// second.
pub(crate) const LONGEST_LULL: Duration = Duration::from_millis(250);

/// Memories indexed between two optimisations of the vector index; this keeps each optimisation short.
const OPTIMIZE_EVERY: usize = 50_000;

/// Time between two progress messages in the log. A new embedding model keeps indexing busy for hours.
const LOG_EVERY: Duration = Duration::from_secs(30);

/// Time that indexing waits after a message, so that it indexes what follows in the same round: each round costs a
/// commit of both indexes. Recall leaves such young memories out anyway.
const GATHER: Duration = Duration::from_secs(1);

/// Time limit for the last round of indexing when the engine stops. The next start indexes the rest.
const LAST_ROUND: Duration = Duration::from_secs(5);

/// Minimum cosine similarity of two vectors of the same text. The other texts of a batch change a vector's last digits.
const SAME_TEXT: f32 = 0.99;

/// Wait before the first retry after a failure. It doubles with each failure, up to [`LONGEST_PAUSE`].
const PAUSE: Duration = Duration::from_secs(5);

const LONGEST_PAUSE: Duration = Duration::from_secs(5 * 60);

/// Queued memories whose words are indexed in one batch while nothing can be embedded.
const WORDS_BATCH: usize = 1_024;

/// A text without words, which no working model refuses.
const WORDLESS: &str = ".";

/// Memories that one turn may add: the message and the reply.
const TURN_MEMORIES: usize = 2;

/// Texts of one request to the embedding model. It refuses requests for more than some thousands, and no retry would help.
const TEXTS_OF_A_REQUEST: usize = 1_024;

/// When to embed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// At once.
    AtOnce,
    /// Only while nobody waits for an answer.
    InLulls,
}

/// The limit on a persona's memories.
#[derive(Debug)]
pub(crate) struct Bound {
    keep: usize,
    /// Memories it may still get before a new count, which has to walk over all of them.
    room: usize,
}

impl Indexer {
    pub(crate) fn new(services: Arc<Services>) -> Self {
        Self {
            services,
            bounded: Mutex::default(),
            running: tokio::sync::Mutex::default(),
            wanted: Notify::new(),
            grouping: Grouping::default(),
        }
    }

    /// Says that something may be queued.
    pub(crate) fn wake(&self) {
        self.wanted.notify_one();
    }

    /// Indexes everything that is queued. Returns the number of memories indexed.
    pub(crate) async fn index_all(&self) -> Result<usize, Error> {
        self.index_queued(Pace::AtOnce).await
    }

    /// Indexes the words of everything that is queued, which is fast. The meaning stays queued.
    pub(crate) async fn index_all_words(&self) -> Result<(), Error> {
        self.index_words(None).await.map(drop)
    }

    async fn index_queued(&self, pace: Pace) -> Result<usize, Error> {
        let _indexing = self.running.lock().await;
        if self.services.blocking(|memory| memory.indexing().indexes_are_suspect()).await? {
            let mended = self.services.blocking(|memory| memory.indexing().mend()).await?;
            if mended > 0 {
                tracing::warn!(memories = mended, "the indexes differed from the record and were repaired");
            }
        }
        self.build_graph(pace).await?;
        let (mut indexed, mut since_optimized) = (0, 0);
        let begun = Instant::now();
        let mut logged_at = begun;
        loop {
            // Stopping does not wait for a thousand memories to be embedded; the next start goes on.
            if self.services.stopping.is_cancelled() && begun.elapsed() > LAST_ROUND {
                return Err(Error::Interrupted);
            }
            let work = self.services.blocking(|memory| memory.indexing().work(BATCH)).await?;
            if work.is_empty() {
                if self.services.blocking(|memory| memory.indexing().queued()).await? == 0 && self.prune().await? == 0 {
                    return Ok(indexed);
                }
                continue;
            }
            indexed += work.len();
            since_optimized += work.len();
            let embedded = self.embed_work(work, pace).await?;
            let clock = StageClock::start(&self.services.measurements.learning, LearningStage::Index);
            self.services.blocking(move |memory| memory.indexing().index(embedded)).await?;
            clock.done();
            if logged_at.elapsed() >= LOG_EVERY {
                logged_at = Instant::now();
                let left = self.services.blocking(|memory| memory.indexing().queued()).await?;
                let left_s = begun.elapsed().as_secs_f64() / indexed as f64 * left as f64;
                tracing::info!(indexed, left, left_s = left_s.round(), "indexing");
            }
            if since_optimized >= OPTIMIZE_EVERY {
                since_optimized = 0;
                self.services.blocking(|memory| memory.indexing().optimize()).await?;
            }
        }
    }

    /// Adds memories to the graph that were stored before there was one. Later starts go on where this one ends.
    async fn build_graph(&self, pace: Pace) -> Result<(), Error> {
        loop {
            let clock = StageClock::start(&self.services.measurements.learning, LearningStage::Graph);
            let goes_on = self.services.blocking(|memory| memory.graph().build(BATCH)).await?;
            clock.done();
            if !goes_on {
                return Ok(());
            }
            if self.services.stopping.is_cancelled() {
                return Err(Error::Interrupted);
            }
            if pace == Pace::InLulls {
                self.services.foreground.until_quiet(LONGEST_LULL).await;
            }
        }
    }

    /// Records that a persona got a memory, if its memories are limited.
    pub(crate) fn bound(&self, persona: PersonaId, keep: Option<u64>) {
        if let Some(keep) = keep {
            let keep = usize::try_from(keep).unwrap_or(usize::MAX);
            let mut bounded = self.bounded();
            let bound = bounded.entry(persona).or_insert(Bound { keep, room: 0 });
            // A changed limit forces a new count.
            bound.room = if bound.keep == keep { bound.room.saturating_sub(TURN_MEMORIES) } else { 0 };
            bound.keep = keep;
        }
    }

    fn bounded(&self) -> MutexGuard<'_, HashMap<PersonaId, Bound>> {
        self.bounded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes memories of personas that exceed their limit. Returns how many were removed.
    async fn prune(&self) -> Result<usize, Error> {
        let full: Vec<(PersonaId, usize)> = {
            let bounded = self.bounded();
            let full = bounded.iter().filter(|(_, bound)| bound.room == 0);
            full.map(|(persona, bound)| (persona.clone(), bound.keep)).collect()
        };
        let mut removed = 0;
        for (persona, keep) in full {
            let of = persona.clone();
            let now = self.services.clock.now();
            let pruned = self.services.blocking(move |memory| memory.memories().prune(&of, keep, now)).await?;
            removed += pruned.removed;
            if let Some(bound) = self.bounded().get_mut(&persona) {
                bound.room = keep.saturating_sub(pruned.left);
            }
        }
        Ok(removed)
    }

    /// Marks the indexes as suspect, so that they are compared with the record and repaired before anything else is
    /// indexed.
    pub(crate) async fn mark_indexes_suspect(&self) {
        if let Err(error) = self.services.blocking(|memory| memory.indexing().mark_indexes_suspect()).await {
            tracing::warn!(%error, "cannot mark the indexes for a comparison with the record");
        }
        self.wanted.notify_one();
    }

    async fn embed_work(&self, work: Vec<IndexWork>, pace: Pace) -> Result<Vec<Embedded>, Error> {
        let clock = StageClock::start(&self.services.measurements.learning, LearningStage::Embed);
        let texts: Vec<String> = work.iter().flat_map(IndexWork::to_embed).cloned().collect();
        let mut vectors = self.embed_cached(texts, pace, None).await?.into_iter();
        let embedded = work.into_iter().map(|work| work.with_vectors(&mut vectors).ok_or(Error::Interrupted)).collect();
        clock.done();
        embedded
    }

    /// Embeds texts of which most were embedded before, such as earlier statements that new ones are compared with. The
    /// cache keeps their vectors, and loses them with each forgetting. `forgettings` was counted before the texts were read.
    pub(crate) async fn embed_known(&self, texts: Vec<String>, forgettings: u64) -> Result<Vec<Vec<f32>>, Error> {
        self.embed_cached(texts, Pace::AtOnce, Some(forgettings)).await
    }

    /// Embeds the texts whose vectors are not cached, and caches them: always while no scrub can run, or else if nothing was
    /// forgotten since `forgettings` was counted.
    async fn embed_cached(
        &self,
        texts: Vec<String>,
        pace: Pace,
        forgettings: Option<u64>,
    ) -> Result<Vec<Vec<f32>>, Error> {
        let now = self.services.clock.now();
        let wanted = texts.clone();
        let cached = self
            .services
            .blocking(move |memory| wanted.iter().map(|text| memory.embeddings().get(text, now)).collect())
            .await;
        let mut vectors: Vec<Option<Vec<f32>>> = cached.unwrap_or_else(|_: Error| vec![None; texts.len()]);
        let missing: Vec<usize> = (0..texts.len()).filter(|index| vectors[*index].is_none()).collect();
        if !missing.is_empty() {
            let unknown: Vec<String> = missing.iter().map(|index| texts[*index].clone()).collect();
            let mut fresh = Vec::with_capacity(unknown.len());
            for texts in unknown.chunks(if pace == Pace::InLulls { TEXTS_AT_ONCE } else { unknown.len() }) {
                if pace == Pace::InLulls {
                    self.services.foreground.until_quiet(LONGEST_LULL).await;
                }
                fresh.extend(self.embed(texts.to_vec()).await?);
            }
            for (index, vector) in missing.iter().zip(&fresh) {
                vectors[*index] = Some(vector.clone());
            }
            let stored = self.services.blocking(move |memory| {
                let cache = memory.embeddings();
                match forgettings {
                    Some(forgettings) => cache.put_known(&unknown, &fresh, forgettings, now),
                    None => unknown.iter().zip(&fresh).try_for_each(|(text, vector)| cache.put(text, vector, now)),
                }
            });
            if let Err(error) = stored.await {
                tracing::warn!(%error, "cannot write to the embedding cache");
            }
        }
        vectors.into_iter().collect::<Option<_>>().ok_or(Error::Interrupted)
    }

    /// Embeds texts. A text that the model refuses while it accepts others gets the vector of a wordless text, so that
    /// search finds it by its words alone. Otherwise one message would keep all others from being indexed.
    pub(crate) async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, Error> {
        let mut vectors = Vec::with_capacity(texts.len());
        for texts in texts.chunks(TEXTS_OF_A_REQUEST) {
            vectors.extend(self.request(texts.to_vec()).await?);
        }
        Ok(vectors)
    }

    async fn request(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, Error> {
        let embed = |texts| self.services.embedder.embed(texts, Purpose::Document, Priority::Background);
        let refused = match embed(texts.clone()).await {
            Ok(vectors) => return Ok(vectors),
            Err(error) => Error::Model(error),
        };
        if refused.is_transient() {
            return Err(refused);
        }
        // A model that refuses even the wordless text is misconfigured.
        let Ok(stands_in) = embed(vec![WORDLESS.to_owned()]).await else { return Err(refused) };
        let mut vectors = Vec::with_capacity(texts.len());
        for text in texts {
            let bytes = text.len();
            match embed(vec![text]).await.map_err(Error::Model) {
                Err(error) if error.is_transient() => return Err(error),
                Err(error) => {
                    tracing::warn!(%error, bytes, "the embedding model refuses a text; only the lexical index will find it");
                    vectors.extend_from_slice(&stands_in);
                }
                Ok(vector) => vectors.extend(vector),
            }
        }
        Ok(vectors)
    }

    /// Indexes the words of memories queued after a ticket, while nothing can be embedded. Returns the last ticket.
    async fn index_words(&self, mut after: Option<Vec<u8>>) -> Result<Option<Vec<u8>>, Error> {
        let _indexing = self.running.lock().await;
        loop {
            let from = after.clone();
            match self
                .services
                .blocking(move |memory| memory.indexing().index_words(from.as_deref(), WORDS_BATCH))
                .await?
            {
                Some(last) => after = Some(last),
                None => return Ok(after),
            }
        }
    }

    /// Embeds every text again and compares it with the index. Returns the memories whose stored vectors differ.
    /// Memories without vectors are left out.
    pub(crate) async fn compare_vectors(&self) -> Result<Vec<MemoryId>, Error> {
        let mut differ = Vec::new();
        let mut after = None;
        loop {
            let page = self.services.blocking(move |memory| memory.indexing().indexed(after, BATCH)).await?;
            let Some((last, _)) = page.last() else { return Ok(differ) };
            after = Some(last.id);
            let texts = page.iter().flat_map(|(work, _)| work.to_embed()).cloned();
            let mut vectors = self.embed(texts.collect()).await?.into_iter();
            for (work, stored) in page {
                let Some(fresh) = work.with_vectors(&mut vectors) else { return Err(Error::Interrupted) };
                let Some(whole) = stored.first() else { continue };
                let window = same(fresh.window.as_deref(), whole.window.as_deref());
                let fresh_texts = std::iter::once(&fresh.own).chain(&fresh.passages);
                let all = fresh.passages.len() + 1 == stored.len();
                if !window || !all || fresh_texts.zip(&stored).any(|(own, stored)| !same(Some(own), Some(&stored.own)))
                {
                    differ.push(fresh.work.id);
                }
            }
        }
    }

    /// Overwrites forgotten bytes on disk, if there are any. Indexes everything queued first.
    pub(crate) async fn scrub(&self) -> Result<bool, Error> {
        if !self.services.blocking(|memory| memory.forgetting().scrub_due()).await? {
            return Ok(false);
        }
        self.index_all().await?;
        let _indexing = self.running.lock().await;
        self.services.blocking(|memory| memory.forgetting().scrub()).await
    }

    /// Waits for new work, and a little longer so that more can join it.
    async fn more_to_index(&self) {
        self.wanted.notified().await;
        tokio::time::sleep(GATHER).await;
    }

    /// Keeps the indexes up to date with the record until the engine stops.
    pub(crate) async fn keep_indexed(self: Arc<Self>) {
        let stopping = self.services.stopping.clone();
        let mut rebuilt = false;
        // The last ticket whose words were indexed without vectors.
        let mut words = None;
        loop {
            tokio::select! {
                () = stopping.cancelled() => break,
                () = self.more_to_index() => {}
            }
            let mut pause = PAUSE;
            while let Err(error) = self.index_queued(Pace::InLulls).await {
                tracing::warn!(%error, "indexing failed; retrying");
                match &error {
                    Error::Model(_) => match self.index_words(words.clone()).await {
                        Ok(last) => words = last,
                        Err(error) => tracing::warn!(%error, "cannot index words either"),
                    },
                    // An error that is not transient may mean damage, which a rebuild repairs. If it does not, one
                    // rebuild is enough to know.
                    Error::Memory(error) if !error.is_transient() && !std::mem::replace(&mut rebuilt, true) => {
                        match self.services.blocking(|memory| memory.indexing().rebuild()).await {
                            Ok(memories) => tracing::warn!(memories, "rebuilding the indexes from the record"),
                            Err(error) => {
                                tracing::error!(%error, "cannot rebuild the indexes now; the next start will")
                            }
                        }
                    }
                    _ => {}
                }
                tokio::select! {
                    () = stopping.cancelled() => break,
                    () = tokio::time::sleep(pause) => {}
                    // New messages should soon be found by their words.
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
            Ok(Err(error)) => tracing::warn!(%error, "the newest messages will be indexed at the next start"),
            Err(_) => tracing::info!("the newest messages will be indexed at the next start"),
        }
    }

    /// Keeps the stores small and fast: optimises the vector index, sweeps expired cache entries, overwrites forgotten
    /// bytes.
    async fn tidy(&self) {
        // Only the log shows this: in a chat, it would reveal what is said in other places.
        let azera_memory::CacheUse { lookups, found } = self.services.memory.embeddings().usage();
        tracing::debug!(lookups, found, "use of the embedding cache");
        if let Err(error) = self.services.blocking(|memory| memory.indexing().optimize()).await {
            tracing::warn!(%error, "cannot optimise the vector index");
        }
        let now = self.services.clock.now();
        if let Err(error) = self.services.blocking(move |memory| memory.embeddings().sweep(now)).await {
            tracing::warn!(%error, "cannot sweep working memory");
        }
        if let Err(error) = self.scrub().await {
            tracing::warn!(%error, "cannot overwrite forgotten bytes yet");
        }
        self.find_themes_if_due().await;
    }
}

/// Returns true if two unit vectors belong to the same text, or if both are missing.
fn same(left: Option<&[f32]>, right: Option<&[f32]>) -> bool {
    match (left, right) {
        (Some(left), Some(right)) => left.len() == right.len() && cosine(left, right) >= SAME_TEXT,
        (left, right) => left.is_none() && right.is_none(),
    }
}
