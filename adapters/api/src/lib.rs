//! How a platform and the core meet. An adapter implements [`Platform`] (what the core asks of it) and calls [`Host`]
//! (what it may ask of the core). It translates and does nothing else: it keeps no history, decides no reply and
//! knows no memory.
//!
//! Invariants:
//! - Types of a platform never leave its adapter; ids are made unique by it and opaque to everyone else.
//! - A platform's word about who may read what holds for the moment it is given and is never cached by the core.
//! - [`Platform::deliver`] is idempotent by the reply's id: delivering twice shows it once.

mod avatar;
mod chart;
mod command;
mod event;
mod given;
mod host;
mod outbound;
mod platform;
mod reaction;

pub use avatar::{Avatars, Picture};
pub use chart::{Bar, Chart, Column, Theme};
pub use command::{Command, CommandOption, Form, MessageAction, OptionKind};
pub use event::{Making, StreamEvent};
pub use given::{MAX_GIVEN_BYTES, given};
pub use host::{
    AutocompleteOption, AutocompleteRequest, ChatInfo, Choice, CommandAnswer, CommandLine, Hit, Host, HostError,
    MAX_AUTOCOMPLETE_OPTIONS, MemoryIdText, Outcome, SearchRequest, SkipReason, Turn, TurnUsage,
};
pub use outbound::{CUT_MARK, Outbound, Post, REPLY_MARK, State, answered};
pub use platform::{Access, Platform, PlatformError, RealmPreferences, Streaming};
pub use reaction::command_of;
