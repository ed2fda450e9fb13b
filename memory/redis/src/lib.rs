//! Working memory on [Redis](https://redis.io) or Dragonfly, by the [redis](https://docs.rs/redis) crate, and the house's
//! going on without it: [`FallbackWorking`] puts a local working memory behind it.
//!
//! A value stands under `PREFIX:KEY`. Before it stand the microseconds since 1970 of its end, big-endian, by the house's
//! clock, which decides; the server's own clock drops it [`EXPIRY_SLACK`] later.

mod fallback;
mod working;

pub use fallback::{FallbackWorking, MAX_OWED_KEYS};
pub use working::{EXPIRY_SLACK, LONGEST_LIFE, MAX_PREFIX_CHARS, RedisConfig, RedisWorking, ServerAbout};
