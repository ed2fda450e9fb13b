//! The vector index on a [Qdrant](https://qdrant.tech) server, by qdrant-client, and the house's going on without it:
//! [`MirroredVectors`] keeps the index of this machine whole, copies every change to the server, and asks whichever of the
//! two is right at the moment.
//!
//! The server is told of a memory its number, its vectors, when it was said, and a token that stands for persona and
//! scope together: a keyed hash, made with a secret that stays on this machine. No text, and no id of a person or a
//! place; but a vector is made from a text, much of which, names included, can be guessed from it.
//!
//! What is searched is an alias, named as configured; the collection behind it has a mark of the house and a number behind
//! that name. So a collection is made anew beside the old one, and takes its place when it is whole; and a house with
//! another data folder, configured alike, is refused rather than served what it did not fill.

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
