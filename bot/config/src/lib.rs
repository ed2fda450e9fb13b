//! Azera's configuration: one TOML file, and overrides from the environment.
//!
//! A key is declared once, as a field of a section struct, with its documentation, default, type and range. The JSON
//! schema of these structs drives the checks, the overrides, the error messages and `azera.example.toml`. Start with
//! [`Config::load`]; the sections are in `sections.rs` and in files of their own.
//!
//! Invariants:
//! - Only this crate reads the environment, and only in [`Config::from_process_env`].
//! - An unknown key is an error, and so is a value out of range. Each error names its line or variable, and one load
//!   reports all of them. A wrong value in the section of a server that Azera works without leaves that section out.
//! - A [`Secret`] never appears in `Debug`, in an error or in a serialized configuration.

mod config;
mod discord;
mod error;
mod example;
mod gardener;
mod hearth;
mod http;
mod images;
mod keys;
mod known;
mod left_out;
mod matrix;
mod mind;
mod projects;
mod read;
mod rerank;
mod secret;
mod sections;
mod speech;
mod surroundings;
mod telemetry;
mod tuning;
mod value;
mod vault;
mod vision;
mod voice;

pub use config::{Config, MAX_FILE_BYTES};
pub use discord::Discord;
pub use error::{Error, Origin, Problem};
pub use gardener::{ExtractWithModel, Gardener};
pub use hearth::Hearth;
pub use http::Http;
pub use images::{Images, ImagesKind};
pub use left_out::LeftOut;
pub use matrix::{Matrix, MatrixInvites};
pub use mind::Mind;
pub use projects::Projects;
pub use rerank::{RerankApi, RerankServer, Reranker};
pub use secret::Secret;
pub use sections::{
    Answer, Backup, Chat, ChatServer, Data, EmbeddingServer, Log, LogFormat, LogLevel, Memory, Models, Sampling,
    ServerApi,
};
pub use speech::{RecognitionApi, RecognitionServer, SpeechApi, SpeechFormat, SpeechServer};
pub use surroundings::{TerminalHints, is_in_environment};
pub use telemetry::Telemetry;
pub use tuning::{Tunable, Tuning};
pub use vault::{Vault, VaultReference};
pub use vision::VisionServer;
pub use voice::{Voice, VoiceReplies};
