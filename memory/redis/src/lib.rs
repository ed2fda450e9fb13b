//! Working memory on [Redis](https://redis.io) or Dragonfly, through the [redis](https://docs.rs/redis) crate. Begin
//! with [`FallbackWorking`], which combines it with a local working memory for times without the server.
//!
//! A value has the key `PREFIX:INSTALLATION:SPACE:KEY`. INSTALLATION and KEY are hashes keyed with a secret in the data
//! folder. So installations that share a server and a prefix share no values, and nobody who reads the keys can guess
//! an embedded text. SPACE is random; clearing begins a new one. Each value begins with its expiry time by the local
//! clock, which decides: microseconds since 1970, big-endian. The server's own clock removes it [`EXPIRY_SLACK`] later.

mod fallback;
mod remote;
mod server_state;
mod working;

pub use fallback::{CLOSING_GRACE, FallbackWorking, MAX_OWED_KEYS, leave};
pub use remote::RemoteWorking;
pub use working::{EXPIRY_SLACK, LONGEST_LIFE, MAX_PREFIX_CHARS, RedisConfig, RedisWorking, ServerInfo};
