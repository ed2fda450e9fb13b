//! The cache of vectors: what was embedded once is not embedded again for a while.

use std::sync::atomic::Ordering;

use azera_types::Timestamp;
use sha2::{Digest, Sha256};

use crate::working::EMBEDDING_TTL;
use crate::{Error, Memory};

/// How often the cache of vectors was asked for one, and held it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// Texts whose vectors were asked for.
    pub lookups: u64,
    /// Those that were there.
    pub found: u64,
}

impl Memory {
    /// The cached vector of a text under the present embedding model.
    pub fn cached_embedding(&self, text: &str, now: Timestamp) -> Result<Option<Vec<f32>>, Error> {
        let bytes = self.working.get(&self.embedding_key(text), now)?.filter(|bytes| bytes.len() % 4 == 0);
        self.embedding_lookups.fetch_add(1, Ordering::Relaxed);
        self.embeddings_cached.fetch_add(u64::from(bytes.is_some()), Ordering::Relaxed);
        Ok(bytes.map(|bytes| bytes.as_chunks::<4>().0.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect()))
    }

    /// What the cache was good for since this was opened.
    pub fn embedding_cache(&self) -> CacheUse {
        CacheUse {
            lookups: self.embedding_lookups.load(Ordering::Relaxed),
            found: self.embeddings_cached.load(Ordering::Relaxed),
        }
    }

    /// Keeps the vector of a text for [`EMBEDDING_TTL`].
    pub fn cache_embedding(&self, text: &str, vector: &[f32], now: Timestamp) -> Result<(), Error> {
        let bytes: Vec<u8> = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.working.put(&self.embedding_key(text), &bytes, EMBEDDING_TTL, now)
    }

    /// Drops cached vectors whose time is over; gives how many.
    pub fn sweep_cache(&self, now: Timestamp) -> Result<usize, Error> {
        self.working.sweep(now)
    }

    /// 16 hex characters of the SHA-256 over model and text.
    fn embedding_key(&self, text: &str) -> String {
        let mut hash = Sha256::new();
        hash.update(self.config.embedder.as_bytes());
        hash.update([0]);
        hash.update(text.as_bytes());
        let digest = hash.finalize();
        let hex: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        format!("emb:{hex}")
    }
}
