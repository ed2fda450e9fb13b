//! The engine: runs turns (`turn`), commands (`commands`), background jobs (`background`, `jobs`) and training
//! (`hearth`). It knows platforms, models and stores only by their interfaces. [`Engine`] wires its components together; each
//! one holds only those that it uses. Begin there, then read `turn`, which lists the stages of a turn in order.
//!
//! Invariants:
//! - One turn at a time in a chat, in order of arrival; many chats at once.
//! - A message is written and flushed to the record before anything else happens to it. A reply and everything that
//!   follows from it are written in one transaction. Replies are delivered from the outbox, so a crash loses none and
//!   doubles none.
//! - Nothing is recalled, listed or exported without a [`azera_memory::ReadScope`] made from what the platform reports
//!   at that moment.
//! - No stage knows which platform it serves, or whether its clock is the machine's.

mod access;
mod addressee;
mod background;
mod call_recordings;
mod carried;
mod chat_names;
mod classifiers;
mod clones;
mod coding_sessions;
mod commands;
mod config;
mod conversations;
mod display_names;
mod engine;
mod error;
mod files;
mod foreground_gate;
mod forgetting;
mod grouping;
mod hearth;
mod host;
mod indexing;
mod interruptions;
mod jobs;
mod learning_stages;
mod lifecycle;
mod links;
mod measurements;
mod minds;
mod model_catalog;
mod mood_host;
mod other_projects;
mod outbox;
mod overrides;
mod persona_ids;
mod picture_gallery;
mod picture_host;
mod pictures;
mod place_host;
mod project_context;
mod queue;
mod reading;
mod reading_memories;
mod recall;
mod references;
mod report;
mod reranking;
mod sentences;
mod services;
mod sight;
mod speech;
mod speech_host;
mod stage_timer;
mod surprise;
#[cfg(test)]
mod test_rows;
mod turn;
mod vault_host;
mod vectors;
mod voice;
mod zones;

pub use background::{BackgroundWriter, Claim, ItemCounts, ModelExtraction, WritingKind, claim_prompt, writing_prompt};
pub use call_recordings::{exported_recordings, forgotten_calls};
pub use clones::exported_samples;
pub use commands::{COMMANDS, LinkStep, MESSAGE_ACTIONS};
pub use config::ChatConfig;
pub use engine::{Engine, EngineDependencies};
pub use error::Error;
pub use hearth::{
    Evaluation, Hearth, JOB_EXTENSION, KeepGoing, LossChange, OFFLOAD_FOLDER, OffloadError, OffloadResult,
    OffloadTransport, RESULT_EXTENSION, TrainError, Trainer, TrainingExample, TrainingJob, TrainingResult,
};
pub use jobs::{Job, JobError};
pub use learning_stages::{LearningSnapshot, LearningStage, StageSnapshot};
pub use measurements::{BUCKETS_MS, HistogramSnapshot, MeasurementsSnapshot};
pub use model_catalog::{CatalogModel, ModelCatalog};
pub use other_projects::Elsewhere;
pub use persona_ids::{PersonaPlace, free_persona_id, persona_place};
pub use pictures::PictureSettings;
pub use project_context::project_context;
pub use speech::Voice;
pub use turn::{Addressing, calls, decide};
pub use vault_host::exported_vault;
