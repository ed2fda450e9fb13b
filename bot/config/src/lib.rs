//! Azera's configuration: one TOML file, overrides from the environment, and nothing else.
//!
//! A key is declared once, as a field of a section: its documentation, default, type and range. The checks, the
//! overrides, the error messages and `azera.example.toml` are all read from that declaration through its JSON schema.
//!
//! Invariants:
//! - This crate alone reads the environment, and in one place: [`Config::from_process_env`].
//! - A key nobody knows is an error. So is a value out of range. Each names its line or variable, and all are reported
//!   at once.
//! - A [`Secret`] never shows in `Debug`, in an error or in a serialized configuration.

mod config;
mod discord;
mod error;
mod example;
mod gardener;
mod hearth;
mod keys;
mod matrix;
mod mind;
mod read;
mod secret;
mod sections;
mod surroundings;
mod tuning;
mod value;

pub use config::{Config, MAX_FILE_BYTES};
pub use discord::Discord;
pub use error::{Error, Origin, Problem};
pub use gardener::Gardener;
pub use hearth::Hearth;
pub use matrix::{Matrix, MatrixInvites};
pub use mind::Mind;
pub use secret::Secret;
pub use sections::{
    Answer, Backup, Chat, ChatServer, Data, EmbeddingServer, Log, LogFormat, LogLevel, Memory, Models, Sampling,
    ServerApi,
};
pub use surroundings::is_in_environment;
pub use tuning::{Tunable, Tuning};
