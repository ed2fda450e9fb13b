//! Lessons, training, and what came of it: on this machine or on another.

mod bench;
mod canary;
mod check;
mod examples;
mod measure;
mod merge;
mod offload;
mod sealed;
mod train;
mod train_local;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use azera_config::Config;
use azera_engine::{JOB_EXTENSION, OffloadTransport, Trainer};
use azera_model_registry::{Kind, Models};
use azera_model_training::ComputeDevice;

use crate::bootstrap::{chosen, models};
use crate::cli::HearthCommand;

pub use bench::bench;
pub use check::check;
use offload::FolderTransport;
use train_local::LocalTrainer;

/// Trains on this machine, or says for which models another machine may.
pub fn trainer(config: &Config, models: Models) -> anyhow::Result<Arc<dyn Trainer>> {
    Ok(Arc::new(on_this_machine(config, models)))
}

/// Carries courses to another machine, if the configuration has them learnt there.
pub fn courier(config: &Config, data: &Path) -> Option<Arc<dyn OffloadTransport>> {
    config
        .hearth
        .elsewhere
        .then(|| Arc::new(FolderTransport::new(data, config.hearth.clone())) as Arc<dyn OffloadTransport>)
}

fn on_this_machine(config: &Config, models: Models) -> LocalTrainer {
    let mut config = config.clone();
    if config.hearth.elsewhere {
        // The limit is for this machine's processor.
        config.hearth.largest_model_mb = u32::MAX;
    }
    LocalTrainer::new(config, models)
}

/// Whether a model that is installed can learn as the configuration has it.
fn can_learn(config: &Config, models: Models, model: &str) -> bool {
    on_this_machine(config, models).base_fingerprint(model).is_some()
}

/// `azera hearth`.
pub async fn run(config: &Config, command: HearthCommand) -> anyhow::Result<ExitCode> {
    match command {
        HearthCommand::Curriculum(options) => {
            tokio::task::spawn_blocking(move || examples::write(&options)).await??;
            Ok(ExitCode::SUCCESS)
        }
        HearthCommand::Train(options) if options.lessons.extension().is_some_and(|it| it == JOB_EXTENSION) => {
            offload::train_job(config, &options).await
        }
        HearthCommand::Pack(options) => offload::pack(config, &options),
        HearthCommand::Install(options) => offload::install(config, &options),
        HearthCommand::Train(options) => {
            train::train(model_file(config, &options.model)?, place(config), options).await
        }
        HearthCommand::Merge(options) => {
            let model = model_file(config, &options.model)?;
            let report = tokio::task::spawn_blocking(move || merge::merge(&model, &options)).await??;
            println!("{report}");
            Ok(ExitCode::SUCCESS)
        }
        HearthCommand::Measure(options) => {
            let model = model_file(config, &options.model)?;
            let place = place(config);
            let report = tokio::task::spawn_blocking(move || measure::measure(&model, &place, &options)).await??;
            println!("{}", serde_json::to_string_pretty(&report)?);
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Where this machine trains: with its first GPU in a build for one, unless models are to stay with the processor.
fn place(config: &Config) -> ComputeDevice {
    if config.models.gpu_layers == Some(0) {
        return ComputeDevice::processor();
    }
    ComputeDevice::best().unwrap_or_else(|error| {
        tracing::warn!(%error, "this build is one for GPUs and none answers: the processor trains");
        ComputeDevice::processor()
    })
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
