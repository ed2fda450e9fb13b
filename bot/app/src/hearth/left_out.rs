//! What stands in the place of training in a build without the feature `learning`.

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

/// # Errors
/// Always: nothing here trains.
pub fn trainer(_config: &Config, _models: Models) -> anyhow::Result<Arc<dyn Trainer>> {
    Err(enabled())
}

/// None: without a trainer, nothing is sent to another machine.
pub fn courier(_config: &Config, _data: &Path) -> Option<Arc<dyn OffloadTransport>> {
    None
}

/// What `azera doctor` says about learning.
pub fn check(config: &Config) -> Found {
    if config.hearth.enabled {
        return Found::Bad(enabled().to_string(), left_out::INSTALL.into());
    }
    Found::Good("off".into())
}

/// `azera hearth`.
pub async fn run(_config: &Config, _command: HearthCommand) -> anyhow::Result<ExitCode> {
    Err(left_out::error("`azera hearth` trains models", PART))
}

/// `azera bench hearth`.
pub async fn bench(_config: &Config, _options: &BenchHearth) -> anyhow::Result<Value> {
    Err(left_out::error("`azera bench hearth` trains a model", PART))
}
