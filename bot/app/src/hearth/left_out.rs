//! Replaces `learning` in a build without the feature `learning`.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use azera_config::Config;
use azera_engine::{OffloadTransport, Trainer};
use azera_model_registry::Models;
use serde_json::Value;

use crate::cli::{BenchHearth, HearthCommand};
use crate::doctor::Found;
use crate::left_out;

const PART: &str = "training";

fn enabled() -> anyhow::Error {
    left_out::error("hearth.enabled is set", PART)
}

/// Fails, because nothing here trains.
///
/// # Errors
///
/// Always.
pub fn trainer(_config: &Config, _models: Models) -> anyhow::Result<Arc<dyn Trainer>> {
    Err(enabled())
}

/// Returns `None`: without a trainer, nothing goes to another machine.
pub fn offload_transport(_config: &Config, _data: &Path) -> Option<Arc<dyn OffloadTransport>> {
    None
}

/// Runs the Hearth's check of `azera doctor`.
pub fn check(config: &Config) -> Found {
    if config.hearth.enabled {
        return Found::Bad(enabled().to_string(), left_out::INSTALL.into());
    }
    Found::Good("off".into())
}

/// Fails: `azera hearth` needs the feature.
pub async fn run(_config: &Config, _command: HearthCommand) -> anyhow::Result<ExitCode> {
    Err(left_out::error("`azera hearth` trains models", PART))
}

/// Fails: `azera bench hearth` needs the feature.
pub async fn bench(_config: &Config, _options: &BenchHearth) -> anyhow::Result<Value> {
    Err(left_out::error("`azera bench hearth` trains a model", PART))
}
