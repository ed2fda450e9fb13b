//! The words every part of Azera shares: ids, scopes, messages, feelings, time. No I/O, no logic beyond validation.
//!
//! Invariants:
//! - Ids are opaque: only the adapter that made one may look inside.
//! - `Debug` of a type that holds what somebody said shows its size, never the text.
//! - Time comes from a [`Clock`]; nothing else asks the system for it.

mod clock;
mod dimension;
mod id;
mod message;
mod place;
mod scope;

pub use clock::{Clock, ManualClock, SystemClock};
pub use dimension::Dimension;
pub use id::{ChatId, IdError, MAX_ID_BYTES, MemoryId, MessageId, PersonId, PersonaId, PlatformId, RealmId};
pub use jiff::{Span, Timestamp};
pub use message::{Author, Inbound, MAX_NAME_CHARS, MAX_TEXT_BYTES, Text};
pub use place::{Place, PlaceKind, ReadableScopes};
pub use scope::{Scope, ScopeError};
