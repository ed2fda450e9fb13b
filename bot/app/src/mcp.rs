//! `azera mcp`: speaks the Model Context Protocol over standard input and output.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use azera_adapter_console::{Console, Format, PLATFORM, Person, chat_id};
use azera_adapter_http::Local;
use azera_adapter_mcp::{Contracts, Rights, Server, Session, Upstream};
use azera_config::Config;
use azera_types::{PersonaId, PlatformId, SystemClock};
use tokio::io::{stdin, stdout};

use crate::bootstrap::{self, App, BootstrapOptions, ModelChoice};
use crate::catch_up::catch_up;
use crate::cli::McpOptions;
use crate::data::DataFolder;

/// How often new memories are indexed, and forgotten bytes overwritten.
const TIDY_INTERVAL: Duration = Duration::from_secs(60);

/// How to make a key.
const MAKE_KEY: &str = "make one with `azera web key create NAME --scope mcp --scope chat --scope memory:read --scope \
                        memory:write`, and set it as AZERA_MCP_KEY";

pub async fn run(config: &Config, options: McpOptions) -> anyhow::Result<ExitCode> {
    let data = config.data_dir()?;
    // Somebody else may listen where a web that was killed did.
    let running = Local::read(&data).ok().filter(|local| DataFolder::is_taken(&data) && local.is_running());
    let url = options.url.clone().or_else(|| running.map(|local| format!("{}/mcp", local.address)));
    match url {
        Some(url) => pass_on(config, &options, &url).await?,
        None => speak(config, &options).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Passes everything on to a running Azera.
async fn pass_on(config: &Config, options: &McpOptions, url: &str) -> anyhow::Result<()> {
    let Some(key) = config.mcp_key() else {
        let vault = if options.vault { ", with `--scope vault` for --vault" } else { "" };
        bail!("an Azera runs at {url}, and needs a key: {MAKE_KEY}{vault}");
    };
    if options.vault {
        eprintln!(
            "an Azera runs at {url}, so the key decides, and not --vault: vault_get needs a key with `--scope vault`"
        );
    }
    Upstream::new(url, key, options.viewer.persona.as_deref())?.pass_on(stdin(), stdout()).await?;
    Ok(())
}

/// Opens the data folder, and speaks for the person at this machine.
async fn speak(config: &Config, options: &McpOptions) -> anyhow::Result<()> {
    let opening =
        BootstrapOptions { answers: ModelChoice::Scripted, clock: Arc::new(SystemClock), seed: None, on_trial: false };
    let app = bootstrap::open(config, opening).await?;
    if let Err(error) = catch_up(&app).await {
        tracing::warn!("not all memories are indexed yet: {error:#}");
    }
    let person = Person::new(&options.viewer.name).context("--as")?;
    let persona = options.viewer.persona.as_deref().unwrap_or(&config.chat.persona);
    let persona = PersonaId::new(persona).context("--persona")?;
    let known = app.memory.personas().get(None, &persona)?;
    known.with_context(|| format!("there is no persona {persona}; `azera persona list` names them"))?;
    // Nothing but the protocol may be written to the output.
    let nowhere = || Box::new(std::io::sink());
    let console = Console::new(person.clone(), Format::Plain, nowhere(), nowhere(), Arc::new(SystemClock))?;
    app.engine.attach(Arc::new(console));
    let session = Session {
        platform: PlatformId::new(PLATFORM)?,
        // A chat of its own, so that nothing changes in the chats in which people talk.
        chat: chat_id(&person.id, &format!("mcp-{persona}"))?,
        person: person.id,
        name: person.name,
        persona: Some(persona),
        // This command loads no chat model.
        rights: Rights { chats: true, read: true, write: true, compose: false, vault: options.vault },
    };
    let server = Server::new(contracts(&app), session);
    let ended = tokio::select! {
        ended = server.serve(stdin(), stdout()) => ended,
        () = keep_tidy(&app) => Ok(()),
    };
    tidy(&app).await?;
    Ok(ended?)
}

/// Returns the engine as the protocol's server sees it.
pub fn contracts(app: &App) -> Contracts {
    Contracts {
        host: Arc::new(app.engine.clone()),
        reader: Arc::new(app.engine.clone()),
        memories: Arc::new(app.engine.clone()),
        known: Arc::new(app.engine.clone()),
        sessions: Arc::new(app.engine.clone()),
        vault: Arc::new(app.engine.clone()),
    }
}

/// Does what a running bot does in the background, as often as needed.
async fn keep_tidy(app: &App) {
    loop {
        tokio::time::sleep(TIDY_INTERVAL).await;
        if let Err(error) = tidy(app).await {
            tracing::warn!("memories are indexed and overwritten later: {error:#}");
        }
        app.engine.find_themes_if_due().await;
    }
}

/// Indexes new memories, withdraws what was trained on forgotten ones, and removes these from disk and backups.
async fn tidy(app: &App) -> anyhow::Result<()> {
    app.engine.index_all().await?;
    if app.memory.record().pending_backup_forgets()?.what.is_empty() {
        return Ok(());
    }
    app.engine.withdraw_unfounded(None).await;
    app.engine.scrub().await?;
    crate::backup::forget(&app.memory, app.backups.folder(), &app.data).context(crate::backup::STILL_THERE)?;
    Ok(())
}
