//! The types that every part of Azera shares: ids, scopes, places, messages, feelings and time. This crate does no I/O
//! and has no logic beyond validation. Start with [`Inbound`], [`Scope`] and [`Place`].
//!
//! Invariants:
//! - Ids are opaque. Only the adapter that made an id may look inside it.
//! - A type that holds a message's text shows only the size in `Debug`, never the text.
//! - Time comes from a [`Clock`]. Nothing else asks the system for it.

mod clock;
mod dimension;
mod id;
mod message;
mod part;
mod place;
mod project;
mod scope;
mod voice_note;

pub use clock::{Clock, ManualClock, SystemClock};
pub use dimension::Dimension;
pub use id::{ChatId, IdError, MAX_ID_BYTES, MemoryId, MessageId, PersonId, PersonaId, PlatformId, RealmId};
pub use jiff::tz::TimeZone;
pub use jiff::{Span, Timestamp};
pub use message::{Author, Inbound, MAX_NAME_CHARS, MAX_TEXT_BYTES, Text, composed};
pub use part::{
    BlobId, FetchError, Fetching, InboundPart, MAX_PART_NAME_CHARS, MAX_PARTS, Part, PartKind, PartSource, Recording,
};
pub use place::{Place, PlaceKind, ReadableScopes};
pub use project::folded_project_name;
pub use scope::{Scope, ScopeError};
pub use voice_note::VoiceNote;
