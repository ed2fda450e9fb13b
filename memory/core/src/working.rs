//! The contract of working memory: values that may be lost at any time and die of themselves.

use std::time::Duration;

use azera_types::Timestamp;

use crate::Error;

/// Life of a cached embedding.
pub const EMBEDDING_TTL: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Short-lived values by key. Losing one costs time, never truth. Calls block.
pub trait Working: Send + Sync {
    /// The value, if it is there and `now` is before its end.
    fn get(&self, key: &str, now: Timestamp) -> Result<Option<Vec<u8>>, Error>;

    /// Writes a value that ends `ttl` after `now`.
    fn put(&self, key: &str, value: &[u8], ttl: Duration, now: Timestamp) -> Result<(), Error>;

    /// Removes a value.
    fn remove(&self, key: &str) -> Result<(), Error>;

    /// Removes what has ended; gives how many. One whose server does that by itself may leave it to that.
    fn sweep(&self, now: Timestamp) -> Result<usize, Error>;

    /// Removes everything, and every byte of it from disk.
    fn clear(&self) -> Result<(), Error>;
}
