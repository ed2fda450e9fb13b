//! `azera mcp`: speaks the Model Context Protocol over standard input and output.
//!
//! One process has the data folder. It is the first `azera mcp`, which serves the others of the same user over a socket
//! (`guests`) and answers what hooks ask (`ask`), or an `azera run`, whose web they use with a key. When an `azera mcp` ends,
//! one of the others takes the folder over, and every session goes on (`relay` of `azera_adapter_mcp`). A session stays with
//! whom it speaks for: one that began with the name of its command never goes on with a key, and one that began with a key
//! never goes on without.

mod ask;
mod guests;

use std::cell::Cell;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use async_trait::async_trait;
use azera_adapter_console::{Console, Format, PLATFORM, Person, chat_id};
use azera_adapter_http::Local;
use azera_adapter_mcp::{Contracts, Link, Rights, Server, Servers, Session, Upstream, relay};
use azera_config::Config;
use azera_memory::Memory;
use azera_types::{PersonaId, PlatformId, SystemClock};
use serde::{Deserialize, Serialize};
use tokio::io::{duplex, split, stdin, stdout};
use tokio::sync::Mutex;
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::bootstrap::{self, App, BootstrapOptions, ModelChoice};
use crate::catch_up::catch_up;
use crate::cli::{McpOptions, Viewer};
use crate::data::{DataFolder, Taken};
use crate::hook::take_in_all;

pub use ask::project_context;
use guests::{Guests, PIPE_BYTES, join};

/// How often transcripts of hooks are imported, new memories indexed, and forgotten bytes overwritten.
const TIDY_INTERVAL: Duration = Duration::from_secs(30);

/// How often, and how many times, the data folder is looked at while another program has it. A hook has it for a moment.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
const MAX_LOOKS: usize = 20;

/// How long the end waits for calls and background work that still use the memory, and how often it looks.
const LAST_CALLS: Duration = Duration::from_secs(30);
const CALL_CHECK: Duration = Duration::from_millis(20);

/// How to make a key.
const MAKE_KEY: &str = "make one with `azera web key create NAME --scope mcp --scope chat --scope memory:read --scope \
                        memory:write`, and set it as AZERA_MCP_KEY";

pub async fn run(config: &Config, options: McpOptions) -> anyhow::Result<ExitCode> {
    if let Some(url) = &options.url {
        upstream(config, &options, url)?.pass_on(stdin(), stdout()).await?;
        return Ok(ExitCode::SUCCESS);
    }
    // What looks after the data folder stays on this thread.
    LocalSet::new().run_until(share(config, options)).await?;
    Ok(ExitCode::SUCCESS)
}

/// Speaks through whichever process has the data folder.
async fn share(config: &Config, options: McpOptions) -> anyhow::Result<()> {
    let data = config.data_dir()?;
    let speaker = Speaker { vault: options.vault, ..Speaker::of(config, &options.viewer) };
    let ways =
        Ways { config: config.clone(), options, data, speaker, held: Mutex::default(), is_local: Cell::new(false) };
    let first = ways.find().await?;
    let relayed = relay(stdin(), stdout(), first, &ways).await;
    if let Some(held) = ways.held.into_inner() {
        held.end().await?;
    }
    Ok(relayed?)
}

/// Whom a session speaks for, as its command says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Speaker {
    name: String,
    persona: String,
    /// Whether the client may read the values of the person's vault.
    vault: bool,
}

impl Speaker {
    /// Returns whom a command speaks for, without the vault.
    fn of(config: &Config, viewer: &Viewer) -> Self {
        let persona = viewer.persona.clone().unwrap_or_else(|| config.chat.persona.clone());
        Self { name: viewer.name.clone(), persona, vault: false }
    }
}

/// The ways to the memory.
struct Ways {
    config: Config,
    options: McpOptions,
    data: PathBuf,
    speaker: Speaker,
    /// The data folder, if this process has it.
    held: Mutex<Option<Held>>,
    /// True once the session spoke for the person of its command.
    is_local: Cell<bool>,
}

#[async_trait(?Send)]
impl Servers for Ways {
    async fn connect(&self) -> Result<Link, String> {
        self.find().await.map_err(|error| format!("{error:#}"))
    }
}

impl Ways {
    /// Connects with whoever has the data folder: this process if the folder is free, another `azera mcp`, or the web of an
    /// `azera run`.
    ///
    /// # Errors
    ///
    /// Fails if another program keeps the folder and serves nobody, or serves this session only as somebody else.
    async fn find(&self) -> anyhow::Result<Link> {
        let mut held = self.held.lock().await;
        if let Some(held) = &*held {
            return held.host.link(&self.speaker);
        }
        let locally = |link: Link| -> anyhow::Result<Link> {
            self.is_local.set(true);
            Ok(link)
        };
        for _ in 0..MAX_LOOKS {
            match DataFolder::take(&self.data) {
                Ok(folder) => match Held::open(&self.config, folder, &self.speaker).await {
                    Ok(opened) => return held.insert(opened).host.link(&self.speaker).and_then(locally),
                    // Whoever had the folder before has the record open for a moment longer.
                    Err(error) if error.is::<Taken>() => {}
                    Err(error) => return Err(error),
                },
                Err(error) if error.is::<Taken>() => {}
                Err(error) => return Err(error),
            }
            if let Some(link) = join(&self.data, &self.speaker).await? {
                return locally(link);
            }
            // Somebody else may listen where a web that was killed did, but whoever takes the folder removes its file.
            if let Some(local) = Local::read(&self.data).ok().filter(Local::is_running) {
                if self.is_local.get() {
                    bail!(
                        "an `azera run` has the data folder now. This session spoke for {}, and a key may speak for somebody \
                         else, so it does not go on there. Start the assistant anew",
                        self.speaker.name
                    );
                }
                return pass_on(upstream(&self.config, &self.options, &format!("{}/mcp", local.address))?);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        bail!(
            "another program has the data folder {} and serves nobody: an `azera chat`, an `azera run` that is starting or has \
             http.enabled = false, or an `azera mcp` of another user or an older version. One program at a time can open a data \
             folder. End that program",
            self.data.display()
        )
    }
}

/// Returns the way to a running Azera.
fn upstream(config: &Config, options: &McpOptions, url: &str) -> anyhow::Result<Upstream> {
    let Some(key) = config.mcp_key() else {
        let vault = if options.vault { ", with `--scope vault` for --vault" } else { "" };
        bail!("an Azera runs at {url}, and needs a key: {MAKE_KEY}{vault}");
    };
    if options.vault {
        eprintln!(
            "an Azera runs at {url}, so the key decides, and not --vault: vault_get needs a key with `--scope vault`"
        );
    }
    Ok(Upstream::new(url, key, options.viewer.persona.as_deref())?)
}

/// Passes everything on to a running Azera.
fn pass_on(upstream: Upstream) -> anyhow::Result<Link> {
    let (near, far) = duplex(PIPE_BYTES);
    let (input, output) = split(far);
    tokio::spawn(async move {
        if let Err(error) = upstream.pass_on(input, output).await {
            tracing::warn!("the way to the running Azera broke: {error}");
        }
    });
    Ok(link(near))
}

fn link(stream: tokio::io::DuplexStream) -> Link {
    let (input, output) = split(stream);
    Link { input: Box::new(input), output: Box::new(output) }
}

/// Makes the servers of sessions in the process that has the data folder.
#[derive(Clone)]
struct Host {
    contracts: Contracts,
    memory: Arc<Memory>,
    config: Arc<Config>,
    /// The sessions of this process.
    sessions: TaskTracker,
}

impl Host {
    /// Returns the session of a person of this machine.
    fn session(&self, speaker: &Speaker) -> anyhow::Result<Session> {
        let person = Person::new(&speaker.name).context("--as")?;
        let persona = PersonaId::new(&*speaker.persona).context("--persona")?;
        let known = self.memory.personas().get(None, &persona)?;
        known.with_context(|| format!("there is no persona {persona}; `azera persona list` names them"))?;
        Ok(Session {
            platform: PlatformId::new(PLATFORM)?,
            // A chat of its own, so that nothing changes in the chats in which people talk.
            chat: chat_id(&person.id, &format!("mcp-{persona}"))?,
            person: person.id,
            name: person.name,
            persona: Some(persona),
            // This command loads no chat model.
            rights: Rights { chats: true, read: true, write: true, compose: false, vault: speaker.vault },
        })
    }

    fn server(&self, session: Session) -> Server {
        Server::new(self.contracts.clone(), session)
    }

    /// Begins a session of this process.
    fn link(&self, speaker: &Speaker) -> anyhow::Result<Link> {
        let server = self.server(self.session(speaker)?);
        let (near, far) = duplex(PIPE_BYTES);
        let (input, output) = split(far);
        self.sessions.spawn(async move {
            if let Err(error) = server.serve(input, output).await {
                tracing::warn!("the session broke: {error}");
            }
        });
        Ok(link(near))
    }
}

/// The data folder, open in this process.
struct Held {
    host: Host,
    stop: CancellationToken,
    /// Looks after the folder and serves guests, until `stop` is cancelled.
    keeping: JoinHandle<anyhow::Result<()>>,
}

impl Held {
    async fn open(config: &Config, folder: DataFolder, speaker: &Speaker) -> anyhow::Result<Self> {
        let guests = Guests::listen(folder.dir());
        let opening = BootstrapOptions {
            answers: ModelChoice::Scripted,
            clock: Arc::new(SystemClock),
            seed: None,
            on_trial: false,
        };
        let app = bootstrap::open_in(config, folder, opening).await?;
        if let Err(error) = catch_up(&app).await {
            tracing::warn!("not all memories are indexed yet: {error:#}");
        }
        // Nothing but the protocol may be written to the output.
        let nowhere = || Box::new(std::io::sink());
        let person = Person::new(&speaker.name).context("--as")?;
        let console = Console::new(person, Format::Plain, nowhere(), nowhere(), Arc::new(SystemClock))?;
        app.engine.attach(Arc::new(console));
        let (memory, sessions) = (app.memory.clone(), TaskTracker::new());
        let host = Host { contracts: contracts(&app), memory, config: Arc::new(config.clone()), sessions };
        let stop = CancellationToken::new();
        let keeping = spawn_local(keep(app, config.clone(), guests, host.clone(), stop.clone()));
        Ok(Self { host, stop, keeping })
    }

    /// Ends the sessions of guests, and frees the folder.
    async fn end(self) -> anyhow::Result<()> {
        let Self { host, stop, keeping } = self;
        drop(host);
        stop.cancel();
        keeping.await?
    }
}

/// Looks after the folder and serves guests until `stop` is cancelled. Then it frees the folder, and lets guests know.
async fn keep(
    app: App,
    config: Config,
    guests: Option<Guests>,
    host: Host,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let serving = async {
        if let Some(guests) = &guests {
            guests.serve(&host, &stop).await;
        }
    };
    tokio::join!(keep_tidy(&app, &config, &stop), serving);
    let tidied = tidy(&app).await;
    // Nothing may hold the stores open once the folder is free.
    host.sessions.close();
    host.sessions.wait().await;
    drop(host);
    let (memory, folder) = app.into_memory();
    until_unused(&memory).await;
    drop(memory);
    // Whoever comes from here on looks at the folder.
    if let Some(guests) = &guests {
        guests.remove();
    }
    drop(folder);
    // Whoever still waits at the socket looks at the folder now, and finds it free.
    drop(guests);
    tidied
}

/// Waits until nothing else has the memory. A change whose client left is still made, and background work that was ended ends
/// at its next step.
async fn until_unused(memory: &Arc<Memory>) {
    let unused = async {
        while Arc::strong_count(memory) > 1 {
            tokio::time::sleep(CALL_CHECK).await;
        }
    };
    if tokio::time::timeout(LAST_CALLS, unused).await.is_err() {
        tracing::warn!("the memory is still in use {} s after the end of the last session", LAST_CALLS.as_secs());
    }
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
    let indexed = app.engine.index_all().await.map(drop);
    if !app.memory.record().pending_backup_forgets()?.what.is_empty() {
        app.engine.withdraw_unfounded(None).await;
    }
    // This stays due after the backups are cleaned, until it could be done. It does nothing if it is not due.
    let overwritten = if indexed.is_ok() { app.engine.scrub().await.map(drop) } else { Ok(()) };
    // Backups are cleaned even if nothing can be embedded now, and so nothing overwritten.
    crate::backup::forget(&app.memory, app.backups.folder(), &app.data).context(crate::backup::STILL_THERE)?;
    indexed?;
    overwritten?;
    Ok(())
}
