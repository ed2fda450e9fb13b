//! The turn: receive, decide, recall, compose, generate, deliver, remember; and the commands that go with it. Platforms,
//! models and stores are known by contract alone.
//!
//! Invariants:
//! - One turn at a time in a chat, in order of arrival; many chats at once.
//! - A message is in the record, flushed, before anything else is done about it; a reply and all that follows from it are
//!   written in one transaction; a reply is shown from the outbox, so a crash loses none and doubles none.
//! - Nothing is recalled, listed or exported without a [`azera_memory::ReadScope`] made from the platform's word of that
//!   moment.
//! - No stage knows which platform it serves, nor whether its clock is the machine's.

mod addressee;
mod background;
mod carried;
mod classifiers;
mod commands;
mod config;
mod decide;
mod deliver;
mod engine;
mod error;
mod foreground_gate;
mod generate;
mod hearth;
mod host;
mod jobs;
mod judge;
mod links;
mod minds;
mod model_catalog;
mod overlap;
mod overrides;
mod queue;
mod recall;
mod remember;
mod reply_id;
mod report;
mod sources;
mod stage_timer;
mod surprise;
mod turn;
mod vectors;

pub use background::{BackgroundWriter, Claim, WritingKind, claim_prompt, writing_prompt};
pub use commands::{COMMANDS, MESSAGE_ACTIONS};
pub use config::ChatConfig;
pub use decide::{Addressing, calls, decide};
pub use engine::{Engine, EngineParts};
pub use error::Error;
pub use hearth::{
    Evaluation, Hearth, JOB_EXTENSION, KeepGoing, LossChange, OFFLOAD_FOLDER, OffloadError, OffloadResult,
    OffloadTransport, RESULT_EXTENSION, TrainError, Trainer, TrainingExample, TrainingJob, TrainingResult,
};
pub use jobs::{Job, JobError};
pub use model_catalog::{CatalogModel, ModelCatalog};
