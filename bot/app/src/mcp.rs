//! `azera mcp`: speaks the Model Context Protocol over standard input and output.

use std::path::Path;
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
use tokio_util::sync::CancellationToken;

use crate::bootstrap::{self, App, BootstrapOptions, ModelChoice};
use crate::catch_up::catch_up;
use crate::cli::McpOptions;
use crate::data::DataFolder;
use crate::hook::take_in_all;

/// How often transcripts of hooks are imported, new memories indexed, and forgotten bytes overwritten.
const TIDY_INTERVAL: Duration = Duration::from_secs(30);

/// How often, and how many times, the data folder is looked at while another program has it. A hook has it for a moment.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
const MAX_LOOKS: usize = 20;

/// How to make a key.
const MAKE_KEY: &str = "make one with `azera web key create NAME --scope mcp --scope chat --scope memory:read --scope \
                        memory:write`, and set it as AZERA_MCP_KEY";

pub async fn run(config: &Config, options: McpOptions) -> anyhow::Result<ExitCode> {
    let url = match options.url.clone() {
        Some(url) => Some(url),
        None => find_running(&config.data_dir()?).await?.map(|local| format!("{}/mcp", local.address)),
    };
    match url {
        Some(url) => pass_on(config, &options, &url).await?,
        None => speak(config, &options).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the web of the Azera that has the data folder; `None` if the folder is free.
///
/// # Errors
///
/// Fails if another program keeps the folder and serves no web.
async fn find_running(data: &Path) -> anyhow::Result<Option<Local>> {
    for _ in 0..MAX_LOOKS {
        // Somebody else may listen where a web that was killed did.
        if !DataFolder::is_taken(data) {
            return Ok(None);
        }
        if let Some(local) = Local::read(data).ok().filter(Local::is_running) {
            return Ok(Some(local));
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    bail!(
        "another program has the data folder {} and serves no web that could answer: another assistant's `azera mcp`, an \
         `azera chat`, or an `azera run` that is starting or has http.enabled = false. One program at a time can open a data \
         folder. End that program. To use several assistants at once, start `azera run` then: it serves all of them, and \
         each `azera mcp` passes on to it with a key: {MAKE_KEY}",
        data.display()
    )
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
    let (server, stop) = (Server::new(contracts(&app), session), CancellationToken::new());
    let serving = async {
        let ended = server.serve(stdin(), stdout()).await;
        stop.cancel();
        ended
    };
    let (ended, ()) = tokio::join!(serving, keep_tidy(&app, config, &stop));
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

/// Does what a running bot does in the background, as often as needed, until `stop` is cancelled. No hook can open the
/// folder meanwhile, so their transcripts are imported here.
async fn keep_tidy(app: &App, config: &Config, stop: &CancellationToken) {
    while !stop.is_cancelled() {
        take_in_all(app, config, stop).await;
        let tidying = async {
            if let Err(error) = tidy(app).await {
                tracing::warn!("memories are indexed and overwritten later: {error:#}");
            }
            app.engine.find_themes_if_due().await;
            tokio::time::sleep(TIDY_INTERVAL).await;
        };
        tokio::select! {
            () = tidying => {}
            () = stop.cancelled() => {}
        }
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
