//! `azera hearth` and the Hearth's trainer.
//!
//! `train_local` trains on this machine, `offload` hands training jobs to another one. The other modules are the
//! subcommands. Begin with `train_local`.

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

/// Returns the trainer. It trains on this machine, or says which models another machine may train.
pub fn trainer(config: &Config, models: Models) -> anyhow::Result<Arc<dyn Trainer>> {
    Ok(Arc::new(local_trainer(config, models)))
}

/// Returns the transport of training jobs to another machine, if the configuration enables it.
pub fn offload_transport(config: &Config, data: &Path) -> Option<Arc<dyn OffloadTransport>> {
    config
        .hearth
        .elsewhere
        .then(|| Arc::new(FolderTransport::new(data, config.hearth.clone())) as Arc<dyn OffloadTransport>)
}

fn local_trainer(config: &Config, models: Models) -> LocalTrainer {
    let mut config = config.clone();
    if config.hearth.elsewhere {
        // The size limit is for this machine's processor.
        config.hearth.largest_model_mb = u32::MAX;
    }
    LocalTrainer::new(config, models)
}

/// Returns true if an installed model can learn with this configuration.
fn can_learn(config: &Config, models: Models, model: &str) -> bool {
    local_trainer(config, models).base_fingerprint(model).is_some()
}

/// Runs `azera hearth`.
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
            train::train(model_file(config, &options.model)?, device(config), options).await
        }
        HearthCommand::Merge(options) => {
            let model = model_file(config, &options.model)?;
            let report = tokio::task::spawn_blocking(move || merge::merge(&model, &options)).await??;
            println!("{report}");
            Ok(ExitCode::SUCCESS)
        }
        HearthCommand::Measure(options) => {
            let model = model_file(config, &options.model)?;
            let device = device(config);
            let report = tokio::task::spawn_blocking(move || measure::measure(&model, &device, &options)).await??;
            println!("{}", serde_json::to_string_pretty(&report)?);
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Returns the device that trains: the first GPU in a GPU build, unless the configuration keeps models off the GPU.
fn device(config: &Config) -> ComputeDevice {
    if config.models.gpu_layers == Some(0) {
        return ComputeDevice::processor();
    }
    ComputeDevice::best().unwrap_or_else(|error| {
        tracing::warn!(%error, "this build supports GPUs, but none is available: training on the processor");
        ComputeDevice::processor()
    })
}

/// Returns the file of a model, by its name or its path.
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
