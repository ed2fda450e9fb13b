//! The knowledge graph: who and what people name, and how they say that it belongs together. Every node and every edge
//! is read from the words of one memory, so it is forgotten with that memory and read only where the memory may be read.
//! The stored rows are an index over the memories ([`rows`]); no row is shown without its memory. Begin with
//! [`crate::domains::Graph::about`].

mod build;
mod ended;
mod extract;
mod joins;
mod lexicon;
#[cfg(any(test, feature = "conformance"))]
mod measured;
mod mentions;
mod new_names;
mod read;
mod related;
mod relations;
mod resolve;
mod rows;
mod sentences;
mod shown;
mod spread;
mod statement;

#[cfg(any(test, feature = "conformance"))]
pub use measured::{MentionOf, mentions};
pub use new_names::{NewName, NewNames};
pub use read::{Entity, EntityKind, EntityLink, MAX_LINKS, MAX_SUGGESTED, Names};
pub use relations::Label;
pub use statement::{different, same};

pub(crate) use build::{PROGRESS, begin_anew, is_whole};
pub(crate) use extract::said;
pub(crate) use mentions::names_in;
pub(crate) use rows::{change, put, remove, rows_of};
