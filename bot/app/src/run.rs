//! `azera run`: runs the configured platforms until a signal stops it.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use async_trait::async_trait;
use azera_adapter::{Avatars, Host, Platform, VoiceHost};
use azera_config::Config;
use azera_types::{PersonaId, SystemClock};
use azera_voice_call_recordings::RecordingFolder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::avatars::RecordAvatars;
use crate::bootstrap::{self, App, BootstrapOptions, ModelChoice};
use crate::catch_up;
use crate::cli::RunOptions;
use crate::discord;
use crate::health;
use crate::hook::take_in_waiting;
use crate::log_ring::LogRing;
use crate::matrix;
use crate::speech;
use crate::web;

/// A platform whose connection this process keeps up.
#[async_trait]
pub trait Connection: Send + Sync {
    /// Returns the platform as the engine sees it.
    fn platform(&self) -> Arc<dyn Platform>;

    /// Sets the source of the personas' names and pictures. Called before [`Connection::begin`].
    fn set_avatars(&self, _avatars: Arc<dyn Avatars>) {}

    /// Sets who records consent in voice channels. Called before [`Connection::begin`].
    fn set_voice_host(&self, _host: Arc<dyn VoiceHost>) {}

    /// Lets people record calls. Called before [`Connection::begin`].
    fn set_recordings(&self, _folder: &RecordingFolder) {}

    /// Takes what it needs of the opened parts. Called before [`Connection::begin`].
    fn open(&self, _app: &App) {}

    /// Loads what the platform needs before the engine delivers anything there. Waits for an unreachable server.
    async fn begin(&self) -> anyhow::Result<()>;

    /// Lets commands on this machine find it. Called right before all connections listen.
    fn announce(&self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Passes events to the host until `stop` is cancelled. Fails only for errors that waiting does not fix.
    async fn listen(&self, host: Arc<dyn Host>, stop: CancellationToken) -> anyhow::Result<()>;
}

/// Returns a connection for each configured platform.
async fn connections(config: &Config, log: &Arc<LogRing>) -> anyhow::Result<Vec<Arc<dyn Connection>>> {
    // Discord sends no request yet. So a wrong Discord setting is reported before Matrix connects.
    let discord = discord::connect(config).await?;
    let matrix = matrix::connect(config).await?;
    let web = web::connect(config, log).await?;
    Ok(matrix.into_iter().chain(discord).chain(web).collect())
}

pub async fn run(config: &Config, options: RunOptions, log: Arc<LogRing>) -> anyhow::Result<ExitCode> {
    let stop = CancellationToken::new();
    cancel_on_signal(stop.clone(), || tracing::info!("stopping"), || {})?;
    let answers = options.model.map_or(ModelChoice::Chosen, |name| ModelChoice::named(&name));
    let opening = BootstrapOptions { answers, clock: Arc::new(SystemClock), seed: None, on_trial: false };
    let connections = connections(config, &log).await?;
    if connections.is_empty() {
        bail!(
            "no platform is configured: the web is switched off or cannot be served, and neither matrix.homeserver with \
             matrix.user nor discord.token is set (`azera config` shows every key). `azera chat` talks in this terminal"
        );
    }
    let app = bootstrap::open(config, opening).await?;
    speech::give_voice(&app.engine, config).await?;
    let default_persona = PersonaId::new(&config.chat.persona).context("chat.persona")?;
    let avatars = Arc::new(RecordAvatars::new(app.memory.clone(), default_persona));
    for connection in &connections {
        connection.set_avatars(avatars.clone());
        connection.set_voice_host(Arc::new(app.engine.clone()));
        connection.set_recordings(&app.recordings);
        connection.open(&app);
        app.engine.attach(connection.platform());
        tokio::select! {
            begun = connection.begin() => begun.with_context(|| connection.platform().id().to_string())?,
            () = stop.cancelled() => return Ok(ExitCode::SUCCESS),
        }
    }
    tokio::select! {
        () = catch_up::prepare(&app) => {}
        () = stop.cancelled() => return Ok(ExitCode::SUCCESS),
    }
    app.engine.start().await?;
    for connection in &connections {
        connection.announce()?;
    }
    let mut listening = JoinSet::new();
    for connection in connections {
        let (host, stop): (Arc<dyn Host>, _) = (Arc::new(app.engine.clone()), stop.clone());
        listening.spawn(async move {
            let name = connection.platform().id().to_string();
            connection.listen(host, stop).await.context(name)
        });
    }
    let beating = health::start(config.data_dir()?, app.memory.clone(), stop.clone()).await;
    eprintln!("Azera listens. Ctrl-C stops it.");
    let mut failed = false;
    let listened = async {
        while let Some(ended) = listening.join_next().await {
            if let Err(error) = ended.context("a platform's task").and_then(|ended| ended) {
                failed = true;
                eprintln!("azera: {error:#}");
            }
        }
        stop.cancel();
    };
    tokio::join!(listened, take_in_waiting(&app, config, &stop));
    beating.await.context("the heartbeat")?;
    app.engine.stop().await;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Cancels `stop` on the first Ctrl-C or SIGTERM, after calling `notify`. A second signal calls `last` and ends the
/// process at once.
pub fn cancel_on_signal(
    stop: CancellationToken,
    notify: impl FnOnce() + Send + 'static,
    last: impl FnOnce() + Send + 'static,
) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("listening for signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listening for signals")?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        notify();
        stop.cancel();
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        last();
        std::process::exit(1);
    });
    Ok(())
}
