//! The cache of embeddings, so that the same text is not embedded again for a while.

use std::sync::atomic::Ordering;

use azera_types::Timestamp;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::Error;
use crate::domains::EmbeddingCache;
use crate::working::EMBEDDING_TTL;

/// Lookups and hits of the embedding cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// Texts whose vectors were looked up.
    pub lookups: u64,
    /// Lookups that found a vector.
    pub found: u64,
}

impl EmbeddingCache<'_> {
    /// Returns the cached vector of a text for the current embedding model.
    pub fn get(self, text: &str, now: Timestamp) -> Result<Option<Vec<f32>>, Error> {
        let bytes = self.0.working.get(&self.embedding_key(text), now)?.filter(|bytes| bytes.len() % 4 == 0);
        self.0.embedding_lookups.fetch_add(1, Ordering::Relaxed);
        self.0.embeddings_cached.fetch_add(u64::from(bytes.is_some()), Ordering::Relaxed);
        Ok(bytes.map(|bytes| bytes.as_chunks::<4>().0.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect()))
    }

    /// Returns the cache's lookups and hits since this memory was opened.
    pub fn usage(self) -> CacheUse {
        CacheUse {
            lookups: self.0.embedding_lookups.load(Ordering::Relaxed),
            found: self.0.embeddings_cached.load(Ordering::Relaxed),
        }
    }

    /// Caches the vector of a text for [`EMBEDDING_TTL`].
    pub fn put(self, text: &str, vector: &[f32], now: Timestamp) -> Result<(), Error> {
        let bytes: Vec<u8> = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.0.working.put(&self.embedding_key(text), &bytes, EMBEDDING_TTL, now)
    }

    /// Returns how many times something was forgotten since this memory was opened, for [`EmbeddingCache::put_known`].
    pub fn forgettings(self) -> u64 {
        self.0.forgettings.load(Ordering::SeqCst)
    }

    /// Caches the vectors of texts that were read from memory after `forgettings` was counted. If something was forgotten
    /// since then, it may be among the texts, and its vector would outlive the scrub. Then nothing is cached.
    pub fn put_known(
        self,
        texts: &[String],
        vectors: &[Vec<f32>],
        forgettings: u64,
        now: Timestamp,
    ) -> Result<(), Error> {
        if self.forgettings() != forgettings {
            return Ok(());
        }
        texts.iter().zip(vectors).try_for_each(|(text, vector)| self.put(text, vector, now))?;
        // A forgetting and its scrub may have ended while they were written.
        if self.forgettings() == forgettings { Ok(()) } else { self.0.forgetting().ask_for_scrub() }
    }

    /// Removes expired vectors and returns how many.
    pub fn sweep(self, now: Timestamp) -> Result<usize, Error> {
        self.0.working.sweep(now)
    }

    /// Returns the cache key: the first 16 hex digits of the SHA-256 over model and text.
    fn embedding_key(self, text: &str) -> String {
        let mut hash = Sha256::new();
        hash.update(self.0.config.embedder.as_bytes());
        hash.update([0]);
        hash.update(text.as_bytes());
        let digest = hash.finalize();
        format!("emb:{}", HEXLOWER.encode(&digest[..8]))
    }
}
