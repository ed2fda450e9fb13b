//! The trait of working memory: values that expire and may be lost at any time.

use std::time::Duration;

use azera_types::Timestamp;

use crate::Error;

/// How long an embedding stays cached.
pub const EMBEDDING_TTL: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Short-lived values by key. Losing one costs time, but no data. Calls block.
pub trait Working: Send + Sync {
    /// Returns the value, if it exists and `now` is before it expires.
    fn get(&self, key: &str, now: Timestamp) -> Result<Option<Vec<u8>>, Error>;

    /// Stores a value that expires `ttl` after `now`.
    fn put(&self, key: &str, value: &[u8], ttl: Duration, now: Timestamp) -> Result<(), Error>;

    /// Removes a value.
    fn remove(&self, key: &str) -> Result<(), Error>;

    /// Removes expired values and returns how many. A server that expires values on its own may do nothing here.
    fn sweep(&self, now: Timestamp) -> Result<usize, Error>;

    /// Removes all values, and every byte of them from disk.
    fn clear(&self) -> Result<(), Error>;
}
