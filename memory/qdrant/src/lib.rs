//! The vector index on a [Qdrant](https://qdrant.tech) server, through the qdrant-client crate. Begin with
//! [`MirroredVectors`]: it keeps the local index complete, copies every change to the server, and searches the server
//! while that is up to date. Without the server, the local index answers.
//!
//! For each memory, the server gets its number, its vectors, its time, and a token for persona and scope: a hash keyed
//! with a secret that stays on this machine. It gets no text, and no id of a person or place. But much of a text,
//! including names, can be guessed from its vector.
//!
//! Searches go to an alias with the configured name. The collection behind it carries the installation's marker and a
//! number. A new collection is built next to the old one and replaces it when it is complete. An installation with
//! another data folder but the same configuration is refused, so that it never gets points that it did not store.

mod collection;
mod config;
mod index;
mod mirror;
mod pending_log;
mod points;
mod target;

pub use config::{MAX_COLLECTION_CHARS, QdrantConfig, ServerInfo};
pub use index::QdrantVectors;
pub use mirror::{CLOSING_GRACE, MirroredVectors};
pub use pending_log::MAX_WAITING;
