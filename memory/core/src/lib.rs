//! Memory: the record of what was said, two search indexes over it, recall, forgetting, export. It never calls a model
//! (vectors are given to it) and never knows a platform.
//!
//! Invariants:
//! - The record is the truth; vectors and text indexes are rebuilt from it at any time ([`Memory::rebuild`]).
//! - Nothing is acknowledged before it is flushed.
//! - Every read that shows what was said takes a [`Right`]; a `Right` comes from the platform's word at that moment. No
//!   right, no result. What was built on other places needs the right to each of them.
//! - Personas never share memories.

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

mod chats;
mod check;
mod codec;
mod embeddings;
mod error;
mod export;
mod facts;
mod forget;
mod forgotten;
mod history;
mod index;
mod indexing;
mod keys;
mod layout;
mod links;
mod memory;
mod minds;
mod names;
mod outbox;
mod personas;
mod pieces;
mod prune;
mod ram;
mod recall;
mod record;
mod relink;
mod replay;
mod right;
mod rows;
mod settings;
mod stats;
mod store;
mod surprise;
mod turns;
mod working;
mod worth;
mod writings;

pub use chats::{ChatChange, MAX_BRANCH_NAME_CHARS, MAX_BRANCHES, NewChat};
pub use check::Checked;
pub use embeddings::CacheUse;
pub use error::Error;
pub use export::Subject;
pub use facts::NewFact;
pub use forget::{Forget, Receipt};
pub use forgotten::{Cleaning, Forgotten, Unforgotten};
pub use history::MAX_HISTORY;
pub use index::{
    Doc, Facet, FacetWeights, Found, Label, Lexical, MAX_SEARCH_LIMIT, Point, PointSource, Shelf, Stored, TextIndex,
    VectorIndex,
};
pub use indexing::{Audit, Embedded, IndexWork, TEXT_WINDOW, VECTOR_WINDOW, WINDOW_REACH, rebuild_wanted};
pub use links::{Account, Linked, MAX_LINKED};
pub use memory::{Layers, Memory, MemoryConfig};
pub use minds::{BondRow, MindRow};
pub use personas::{MAX_PERSONA_VERSIONS, MAX_PERSONAS, MAX_PICTURE_BYTES, NewPersona, persona_file, persona_identity};
pub use prune::Pruned;
pub use ram::{RamStore, RamWorking};
pub use recall::{ByWords, DateSpan, Hit, Limits, Query, Question, Recalled, Speaker};
pub use record::{Record, made_up_name, restore};
pub use relink::{Relinked, relink};
pub use replay::{Lived, Roots};
pub use right::{Grant, Right};
pub use rows::{
    Answering, BranchRow, ChatRow, InboxRow, Kind, MAIN_BRANCH, MemoryRow, MessageRow, NOTES, Need, OutboxRow,
    PersonaRow, Posted, Provenance, WhyHit, WhyRow, WritingRow,
};
pub use settings::{CheckIns, JournalChannel, Keeping, Sifted, Stirred, Tended, Willing};
pub use stats::{Stats, week_begins, week_of};
pub use store::{Batch, Change, Durability, Entry, MAX_KEY_BYTES, MAX_VALUE_BYTES, Order, Store, Table};
pub use surprise::Surprise;
pub use turns::{NewReply, Received, Whose};
pub use working::{EMBEDDING_TTL, Working};
pub use worth::{Superseded, Worth};
pub use writings::{MAX_SOURCES, NewWriting, Publication};
