//! The web adapter: an HTTP server on this machine. It translates between HTTP and the engine, and decides who may use it.
//!
//! Begin with [`Web`], the platform and its server. `guard` is what every request passes first, `endpoint` declares what a
//! route is (its handler, who may use it, and its documentation), and `routes` are the routes by area. `accounts` says who
//! somebody is, `oauth` lets programs ask for access, `live` passes replies on while they are
//! generated, and `events` says what happened in a person's chats.
//!
//! Invariants:
//! - A chat belongs to the account in its id. Clients name only the rest of the id, so they reach no chat of others.
//! - Every route is declared as an `Endpoint`, with the scope that it needs. A route without one does not exist.
//! - Secrets are stored as digests. Bodies and secrets are never logged.

mod accounts;
mod backups;
mod connection;
mod endpoint;
mod error;
mod events;
mod guard;
mod limits;
mod live;
mod local;
mod local_commands;
mod local_connection;
mod log;
mod mcp;
mod media;
mod oauth;
mod openapi;
mod persona_store;
mod platform;
mod private_file;
mod problem;
mod routes;
mod secrets;
mod serve;
mod settings;
mod shown;
mod store;
mod tokens;
mod turn;
mod typed;
mod voice_samples;
mod web;

pub use backups::{BackupError, BackupList, BackupState, BackupSummary, Backups};
pub use error::{Error, StoreError};
pub use local::{Local, LocalError};
pub use local_commands::{
    AccountLinkAsked, AccountLinkStep, CommandRefused, CommandReport, FileToImport, ImportProgress, ImportToUndo,
    ImportsAsked, LocalCommands, ProgressAsked, ProjectAsked,
};
pub use log::{LogLevel, LogLine};
pub use mcp::{Mcp, McpCaller};
pub use persona_store::{PersonaDraft, PersonaError, PersonaStore, PersonaVersion};
pub use platform::PLATFORM;
pub use settings::Settings;
pub use store::{AccountStore, Operations};
pub use voice_samples::{KeptSample, ListedSample, NewSample, SampleError, VoiceSamples};
pub use web::{Parts, Web};
