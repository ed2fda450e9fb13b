//! The platform behind `azera replay`: a made-up world of realms, chats and people, driven by a timeline instead of a
//! network. It answers the core the way a real platform does and knows nothing of what the core does with the answers.
//!
//! A [`Timeline`] is read whole, then [`replay`] plays it line by line against the [`Host`](azera_adapter::Host) that a
//! [`Session`] opens, on a clock that the session moves. What happened comes out as JSON lines ([`Output`]).
//!
//! Invariants:
//! - Nothing is played of a timeline that has a bad line.
//! - The world outlives a restart of the core, as a real platform does: who is where, and which replies were shown.
//! - A person who cannot read a chat cannot write, edit or give a command there; the core is not even asked.

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
    ChatKind, ChatLine, CommandGiven, DeleteLine, EditLine, Event, Membership, MessageLine, RealmLine, RestartLine,
    SearchLine, Target, WaitLine,
};
pub use members::History;
pub use out::Output;
pub use platform::{PLATFORM, SimPlatform};
pub use replay::{Played, Session, SessionError, replay};
pub use timeline::{Line, LineError, MAX_LINE_BYTES, MAX_LINES, Timeline};
pub use world::{Realm, World, WorldError};
