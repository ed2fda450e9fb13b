//! `azera models`: lists, fetches, imports, selects, removes and verifies models.

use std::process::ExitCode;

use azera_config::Config;
use azera_model_registry::{Kind, ModelStatus, Models, State};
use azera_model_remote::ServerConfig;

use crate::bootstrap::{chosen, models, now_text};
use crate::cli::ModelsCommand;
use crate::progress::Bar;
use crate::reranker;
use crate::servers::configured;

/// Label of the progress bar while the classifiers are trained.
pub const LEARNING: &str = "learning to tell moods and tags";

pub async fn run(config: &Config, command: ModelsCommand) -> anyhow::Result<ExitCode> {
    let models = models(config)?;
    match command {
        ModelsCommand::List { json } => {
            let list = models.list()?;
            if json {
                let list: Vec<_> = list.iter().map(|listed| as_json(config, listed)).collect();
                println!("{}", serde_json::to_string_pretty(&list)?);
            } else {
                list.iter().for_each(|listed| print(config, listed));
                for (kind, server) in servers(config) {
                    println!(
                        "{:<22} {kind:<10} {:>8}  {:<20} at {}",
                        server.model, "", "in use, on a server", server.url
                    );
                }
            }
        }
        ModelsCommand::Recommend => crate::machine::recommend(&models)?,
        ModelsCommand::Pull { names } => pull(config, &models, names).await?,
        ModelsCommand::Import { file, name } => {
            let bar = Bar::new();
            models.import(&file, &name, None, &now_text(), &|step| bar.show(step)).await?;
            drop(bar);
            println!("{name} is installed; `azera models use {name}` chooses it");
        }
        ModelsCommand::Use { name } => {
            let entry = models.select(&name)?;
            println!("from the next start on, {name} is the {} model", entry.kind);
            if let Some(server) = configured(config, entry.kind) {
                println!("but {}.api is set, and the server comes first", server.section);
            } else if entry.kind == Kind::Embedding {
                println!("everything remembered is then embedded anew, in the background");
            }
        }
        ModelsCommand::Remove { name, force } => {
            let bytes = models.remove(&name, force)?;
            println!("{name} is removed: {} MB are free again", bytes >> 20);
        }
        ModelsCommand::Verify { name } => {
            let bar = Bar::new();
            let manifest = models.verify(&name, &|step| bar.show(step)).await?;
            drop(bar);
            println!("{name} is as it was installed: SHA-256 {}", manifest.sha256);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Fetches models by name, or those in use. The first time, it chooses the chat model for this machine.
async fn pull(config: &Config, models: &Models, names: Vec<String>) -> anyhow::Result<()> {
    let is_here = |kind: Kind| configured(config, kind).is_none();
    let first = match names.is_empty() && is_here(Kind::Chat) {
        true => crate::machine::first_choice(config, models).await?,
        false => None,
    };
    let names = if names.is_empty() {
        let kinds = [Kind::Chat, Kind::Embedding].into_iter().filter(|kind| is_here(*kind));
        let name = |kind| match (&first, kind) {
            (Some(first), Kind::Chat) => Ok(first.clone()),
            _ => chosen(config, models, kind),
        };
        kinds.map(name).collect::<anyhow::Result<_>>()?
    } else {
        names
    };
    for name in names {
        if models.find(&name)?.is_some() {
            println!("{name} is here");
            continue;
        }
        eprintln!("fetching {name}");
        let bar = Bar::new();
        let manifest = models.pull(&name, &now_text(), &|step| bar.show(step)).await?;
        drop(bar);
        println!("{name} is installed: {} MB, SHA-256 {}", manifest.size >> 20, manifest.sha256);
    }
    // The default needs no choice.
    let default = models.registry()?.default_of(Kind::Chat).map(|entry| entry.name.clone());
    if let Some(first) = first.filter(|first| Some(first) != default.as_ref()) {
        models.select(&first)?;
    }
    // Train the classifiers now. It takes half a minute that nobody has to wait for later.
    if is_here(Kind::Embedding) && models.find(&chosen(config, models, Kind::Embedding)?)?.is_some() {
        let embedder = crate::bootstrap::embedder(config).await?;
        let bar = Bar::new();
        crate::classifiers::classifiers(config, &embedder, &|done, of| bar.count(LEARNING, done, of)).await?;
    }
    Ok(())
}

/// Returns the servers that replace local models.
fn servers(config: &Config) -> impl Iterator<Item = (Kind, ServerConfig)> {
    [Kind::Chat, Kind::Embedding].into_iter().filter_map(|kind| Some((kind, configured(config, kind)?)))
}

fn in_use(config: &Config, listed: &ModelStatus) -> bool {
    let kind = listed.entry.kind;
    listed.in_use && configured(config, kind).is_none() && !(kind == Kind::Reranker && reranker::is_off(config))
}

fn state(config: &Config, listed: &ModelStatus) -> &'static str {
    match (&listed.state, in_use(config, listed)) {
        (State::Installed(_), true) => "in use",
        (State::Installed(_), false) => "installed",
        (State::Partial { .. }, _) => "partly fetched",
        (State::Damaged { .. }, _) => "damaged",
        (_, true) => "chosen, not fetched",
        (_, false) => "can be fetched",
    }
}

fn print(config: &Config, listed: &ModelStatus) {
    let (bytes, exact) = listed.size();
    let about = if exact { "" } else { "~" };
    println!(
        "{:<22} {:<10} {:>8}  {:<20} {}",
        listed.entry.name,
        listed.entry.kind,
        format!("{about}{} MB", bytes >> 20),
        state(config, listed),
        listed.entry.description
    );
}

fn as_json(config: &Config, listed: &ModelStatus) -> serde_json::Value {
    let (bytes, exact) = listed.size();
    serde_json::json!({
        "name": listed.entry.name,
        "kind": listed.entry.kind,
        "title": listed.entry.title,
        "description": listed.entry.description,
        "licence": listed.entry.licence,
        "bytes": bytes,
        "bytes_exact": exact,
        "ram_mib": listed.entry.ram_mib,
        "state": state(config, listed),
        "in_use": in_use(config, listed),
    })
}
