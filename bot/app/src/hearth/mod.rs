//! `azera hearth`: lessons, training, and what came of it.

mod elsewhere;
mod learn;
mod lessons;
mod measure;
mod merge;
mod sealed;
mod secret;
mod train;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use azera_chat::{COURSE, Courier, Hearth, Trainer};
use azera_config::Config;
use azera_hearth::Place;
use azera_ledger::{Kind, Models};
use azera_types::PlatformId;

use crate::cli::HearthCommand;
use crate::house::{chosen, models};

use elsewhere::ByHand;
pub use learn::OnThisMachine;
pub use train::{bar, show};

/// The folder of what was learnt, in the data folder.
const FOLDER: &str = "hearth";

/// Why nothing is learnt from what is said on Discord, unless the operator says that it may be.
pub const DISCORD_FORBIDS: &str =
    "Discord's Developer Policy forbids to train models on what people say there, unless Discord permitted it.";

/// What personas learn with, if the operator lets them or did before.
pub fn hearth(config: &Config, models: Models, data: &Path) -> anyhow::Result<Option<Hearth>> {
    let folder = data.join(FOLDER);
    if !config.hearth.enabled && !folder.exists() {
        return Ok(None);
    }
    let mut barred = BTreeMap::new();
    if !config.hearth.discord {
        barred.insert(PlatformId::new(azera_adapter_discord::PLATFORM)?, DISCORD_FORBIDS.to_owned());
    } else if config.hearth.enabled {
        tracing::warn!("hearth.discord is on: {DISCORD_FORBIDS}");
    }
    let courier =
        config.hearth.elsewhere.then(|| Arc::new(ByHand::new(data, config.hearth.clone())) as Arc<dyn Courier>);
    Ok(Some(Hearth {
        // What was learnt before is unlearnt all the same.
        trainer: config.hearth.enabled.then(|| Arc::new(trainer(config, models)) as Arc<dyn Trainer>),
        courier,
        folder,
        exchanges: config.hearth.exchanges as usize,
        barred,
        max_bytes: u64::from(config.hearth.max_disk_mb) << 20,
    }))
}

/// What trains here, or says for which models another machine may.
fn trainer(config: &Config, models: Models) -> OnThisMachine {
    let mut config = config.clone();
    if config.hearth.elsewhere {
        // The limit is for this machine's processor.
        config.hearth.largest_model_mb = u32::MAX;
    }
    OnThisMachine::new(config, models)
}

/// Whether a model that is installed can learn as the configuration has it.
pub fn can_learn(config: &Config, models: Models, model: &str) -> bool {
    trainer(config, models).ground(model).is_some()
}

pub async fn run(config: &Config, command: HearthCommand) -> anyhow::Result<ExitCode> {
    match command {
        HearthCommand::Curriculum(options) => {
            tokio::task::spawn_blocking(move || lessons::write(&options)).await??;
            Ok(ExitCode::SUCCESS)
        }
        HearthCommand::Train(options) if options.lessons.extension().is_some_and(|it| it == COURSE) => {
            elsewhere::train_course(config, &options).await
        }
        HearthCommand::Pack(options) => elsewhere::pack(config, &options),
        HearthCommand::Install(options) => elsewhere::install(config, &options),
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
fn place(config: &Config) -> Place {
    if config.models.gpu_layers == Some(0) {
        return Place::processor();
    }
    Place::best().unwrap_or_else(|error| {
        tracing::warn!(%error, "this build is one for GPUs and none answers: the processor trains");
        Place::processor()
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
