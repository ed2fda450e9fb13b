//! The simulated platform of `azera replay`: a world of realms, chats and people, driven by a timeline instead of a
//! network. It answers the engine as a real platform does, and knows nothing about the engine.
//!
//! Begin with [`Timeline`], which is read completely first, and [`replay`], which plays it line by line. A [`Session`]
//! opens the [`Host`](azera_adapter::Host) and moves the clock. The output is JSON lines ([`Output`]).
//!
//! Invariants:
//! - A timeline with a bad line is not played at all.
//! - The world survives a restart of the engine, as a real platform does: its members, and which replies were shown.
//! - A person who cannot read a chat cannot write, edit or run commands there; the engine is not even called.

mod error;
mod event;
mod members;
mod out;
mod platform;
mod replay;
mod timeline;
mod world;

pub use error::Error;
pub use event::{
    ChatKind, ChatLine, CommandGiven, DeleteLine, EditLine, Event, FileLine, Membership, MessageLine, RealmLine,
    RestartLine, SearchLine, Target, WaitLine,
};
pub use members::History;
pub use out::{OutFile, Output};
pub use platform::{PLATFORM, SimPlatform};
pub use replay::{Played, Session, SessionError, replay};
pub use timeline::{Line, LineError, MAX_LINE_BYTES, MAX_LINES, Timeline};
pub use world::{Realm, World, WorldError};
