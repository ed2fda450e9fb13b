//! Working memory on [Redis](https://redis.io) or Dragonfly, by the [redis](https://docs.rs/redis) crate, and the house's
//! going on without it: [`FallbackWorking`] puts a local working memory behind it.
//!
//! A value stands under `PREFIX:HOUSE:SPACE:KEY`. HOUSE and KEY are hashes keyed with a secret of the data folder, so that
//! houses that share a server and a prefix share nothing, and nobody who reads the server's keys can guess a text that was
//! embedded. SPACE is a number made by chance: another one is what a clearing begins with. Before the value stand the
//! microseconds since 1970 of its end, big-endian, by the house's clock, which decides; the server's own clock drops it
//! [`EXPIRY_SLACK`] later.

mod fallback;
mod remote;
mod server_state;
mod working;

pub use fallback::{CLOSING_GRACE, FallbackWorking, MAX_OWED_KEYS, leave};
pub use remote::RemoteWorking;
pub use working::{EXPIRY_SLACK, LONGEST_LIFE, MAX_PREFIX_CHARS, RedisConfig, RedisWorking, ServerInfo};
