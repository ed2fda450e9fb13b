//! `azera hearth`: lessons, training, and what came of it.

mod lessons;
mod measure;
mod train;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use azera_config::Config;
use azera_ledger::Kind;

use crate::cli::HearthCommand;
use crate::house::{chosen, models};

pub async fn run(config: &Config, command: HearthCommand) -> anyhow::Result<ExitCode> {
    match command {
        HearthCommand::Curriculum(options) => {
            tokio::task::spawn_blocking(move || lessons::write(&options)).await??;
            Ok(ExitCode::SUCCESS)
        }
        HearthCommand::Train(options) => train::train(model_file(config, &options.model)?, options).await,
        HearthCommand::Measure(options) => {
            let model = model_file(config, &options.model)?;
            let report = tokio::task::spawn_blocking(move || measure::measure(&model, &options)).await??;
            println!("{}", serde_json::to_string_pretty(&report)?);
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The file of a model by its name, or a file of one's own.
fn model_file(config: &Config, name: &str) -> anyhow::Result<PathBuf> {
    if name.ends_with(".gguf") {
        return Ok(Path::new(name).to_owned());
    }
    let models = models(config)?;
    let name = if name == "default" { chosen(config, &models, Kind::Chat)? } else { name.to_owned() };
    let installed = models.find(&name)?;
    let installed = installed.with_context(|| format!("{name} is not here: `azera models pull {name}` fetches it"))?;
    Ok(installed.path)
}
