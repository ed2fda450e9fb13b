//! The turn: receive, decide, recall, compose, generate, deliver, remember; and the commands that go with it. Platforms,
//! models and stores are known by contract alone.
//!
//! Invariants:
//! - One turn at a time in a chat, in order of arrival; many chats at once.
//! - A message is in the record, flushed, before anything else is done about it; a reply and all that follows from it are
//!   written in one transaction; a reply is shown from the outbox, so a crash loses none and doubles none.
//! - Nothing is recalled, listed or exported without a [`azera_memory::Right`] made from the platform's word of that
//!   moment.
//! - No stage knows which platform it serves, nor whether its clock is the machine's.

mod azera;
mod called;
mod carried;
mod classifiers;
mod commands;
mod config;
mod customs;
mod decide;
mod deliver;
mod error;
mod gardener;
mod generate;
mod hearth;
mod host;
mod jobs;
mod judge;
mod lap;
mod links;
mod live;
mod minds;
mod overlap;
mod queue;
mod recall;
mod remember;
mod reply_id;
mod report;
mod shelf;
mod sources;
mod surprise;
mod turn;
mod vectors;

pub use azera::{Azera, Parts};
pub use commands::{COMMANDS, MESSAGE_ACTIONS};
pub use config::ChatConfig;
pub use decide::{Addressing, calls, decide};
pub use error::Error;
pub use gardener::{Claim, Gardener, Writes, asked_for_claim, asked_to_write};
pub use hearth::{
    AWAY, Back, COURSE, Change, Courier, Course, Examined, Hearth, LEARNT, LearnError, Lesson, MayGoOn, Trained,
    Trainer, Unreceived,
};
pub use jobs::{Job, JobError};
pub use shelf::{ModelShelf, ShelvedModel};
