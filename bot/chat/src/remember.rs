//! Stage *remember*: what the record holds is embedded and indexed, after the reply and without delaying it.

use std::sync::PoisonError;
use std::time::Duration;

use azera_memory::{Embedded, IndexWork};
use azera_model::{Priority, Purpose};
use azera_types::PersonaId;

use crate::azera::Azera;
use crate::error::Error;

/// Memories embedded at a time.
const BATCH: usize = 64;

/// Memories indexed in one go between two reorganisations of the vector index, which keeps each of them short.
const OPTIMIZE_EVERY: usize = 50_000;

/// Time between something said and its indexing, so that what is said meanwhile is indexed with it: each round costs a
/// commit of both indexes. Nothing that young is recalled anyway.
const GATHER: Duration = Duration::from_secs(1);

/// Time the last round of indexing may take when the core stops; what is left waits for the next start.
const LAST_ROUND: Duration = Duration::from_secs(5);

/// Wait after a failure before the queue is tried again.
const PAUSE: Duration = Duration::from_secs(5);

impl Azera {
    /// Indexes whatever is queued until nothing is; gives how many memories that were.
    pub async fn index_all(&self) -> Result<usize, Error> {
        let _indexing = self.0.indexing.lock().await;
        let (mut indexed, mut since_optimized) = (0, 0);
        loop {
            let work = self.blocking(|memory| memory.index_work(BATCH)).await?;
            if work.is_empty() {
                if self.blocking(azera_memory::Memory::queued).await? == 0 && self.prune().await? == 0 {
                    return Ok(indexed);
                }
                continue;
            }
            indexed += work.len();
            since_optimized += work.len();
            let embedded = self.embed_work(work).await?;
            self.blocking(move |memory| memory.index(embedded)).await?;
            if since_optimized >= OPTIMIZE_EVERY {
                since_optimized = 0;
                self.blocking(azera_memory::Memory::optimize).await?;
            }
        }
    }

    /// Notes that a persona got a memory, for the bound it may have.
    pub(crate) fn bound(&self, persona: PersonaId, keep: Option<u64>) {
        if let Some(keep) = keep {
            let mut bounded = self.0.bounded.lock().unwrap_or_else(PoisonError::into_inner);
            bounded.insert(persona, usize::try_from(keep).unwrap_or(usize::MAX));
        }
    }

    /// Holds the personas that got memories to their bounds; gives how many memories went.
    async fn prune(&self) -> Result<usize, Error> {
        let bounded = std::mem::take(&mut *self.0.bounded.lock().unwrap_or_else(PoisonError::into_inner));
        let mut pruned = 0;
        for (persona, keep) in bounded {
            pruned += self.blocking(move |memory| memory.prune(&persona, keep)).await?;
        }
        Ok(pruned)
    }

    async fn embed_work(&self, work: Vec<IndexWork>) -> Result<Vec<Embedded>, Error> {
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
            let fresh = self.0.embedder.embed(unknown.clone(), Purpose::Document, Priority::Background).await?;
            for (index, vector) in missing.iter().zip(&fresh) {
                vectors[*index] = Some(vector.clone());
            }
            let kept = self.blocking(move |memory| {
                unknown.iter().zip(&fresh).try_for_each(|(text, vector)| memory.cache_embedding(text, vector, now))
            });
            if let Err(error) = kept.await {
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

    /// Overwrites on disk what was forgotten, if anything was. Everything queued is indexed first.
    pub async fn scrub(&self) -> Result<bool, Error> {
        if !self.blocking(azera_memory::Memory::scrub_due).await? {
            return Ok(false);
        }
        self.index_all().await?;
        let _indexing = self.0.indexing.lock().await;
        self.blocking(azera_memory::Memory::scrub).await
    }

    /// Keeps the indexes up with the record until the core stops.
    pub(crate) async fn keep_indexed(self) {
        let stopping = self.0.stopping.clone();
        loop {
            tokio::select! {
                () = stopping.cancelled() => break,
                () = self.0.index_wanted.notified() => {}
            }
            tokio::select! {
                () = stopping.cancelled() => break,
                () = tokio::time::sleep(GATHER) => {}
            }
            while let Err(error) = self.index_all().await {
                tracing::warn!(%error, "indexing failed, trying again");
                tokio::select! {
                    () = stopping.cancelled() => break,
                    () = tokio::time::sleep(PAUSE) => {}
                }
            }
            self.tidy().await;
        }
        match tokio::time::timeout(LAST_ROUND, self.index_all()).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(%error, "what was said last will be indexed at the next start"),
            Err(_) => tracing::info!("what was said last will be indexed at the next start"),
        }
    }

    /// What keeps stores small and fast: graphs, expired cache entries, forgotten bytes.
    async fn tidy(&self) {
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
