//! The vector index on [qdrant-edge](https://docs.rs/qdrant-edge), Qdrant's engine inside this process.
//!
//! Each memory is a point with two named vectors (`own`, and `window` if it has turns around it) and two payload
//! fields: `key`, persona and scope in one string, and `at`, microseconds since 1970. Points of one key lie side by
//! side and have a graph of their own once they are many; a search asks each place of its right in turn, small ones
//! exactly.
//!
//! What is worth knowing of the engine:
//! - It never replays its own log. After a crash the index holds what the last [`flush`] saw; the record's queue brings
//!   the rest again.
//! - It never shortens its log either. Old parts are removed here whenever the shard is opened, and the shard is
//!   reopened when the log has grown (`shard`).
//! - It panics where a flush fails. Every call is guarded: an error comes out, never a panic.
//! - Reorganising builds new segments beside the old ones, which are searched and written to meanwhile; flushing waits
//!   for it, since deletions of that time become durable only with its end.
//!
//! [`flush`]: azera_memory::VectorIndex::flush

mod config;
mod disk_space;
mod filter;
mod index;
mod search;
mod shard;

pub use config::VectorConfig;
pub use index::EdgeVectors;
