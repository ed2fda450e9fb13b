//! The embedded vector index: nearest neighbours under a filter, in this process. Exact, but where more than 131,072
//! vectors are visible at once.
//!
//! - [`EmbeddedVectors`] (`index`) implements the contract of `azera_memory::VectorIndex` and owns the locks.
//! - `log` is the only file: an append-only sequence of checksummed records (`record`). `load` replays it.
//! - `points` is the same content in memory, grouped by persona and scope (`table`), with one byte (`code`) and one bit
//!   (`sketch`) a dimension.
//! - `search` scans the groups that the reader may see, then compares the best candidates by their full vectors, which it
//!   reads from the file.
//!
//! Start with `index`. `bot/docs/decisions/0001-embedded-vector-index.md` says why this is no graph.

mod code;
mod config;
mod file;
mod index;
mod load;
mod log;
mod points;
mod record;
mod search;
mod sketch;
mod table;

pub use config::VectorConfig;
pub use index::EmbeddedVectors;
