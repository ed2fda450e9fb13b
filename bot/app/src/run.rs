//! `azera run`: serves the platforms that are configured, until it is told to stop.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use async_trait::async_trait;
use azera_adapter::{Avatars, Host, Platform};
use azera_config::Config;
use azera_types::{PersonaId, SystemClock};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::avatars::RecordAvatars;
use crate::bootstrap::{self, BootstrapOptions, ModelChoice};
use crate::cli::RunOptions;
use crate::discord;
use crate::matrix;

/// A platform with a connection that is kept up.
#[async_trait]
pub trait Connection: Send + Sync {
    /// The platform, as the core is given it.
    fn platform(&self) -> Arc<dyn Platform>;

    /// Is told where pictures and names of personas come from, before it begins.
    fn set_avatars(&self, _portraits: Arc<dyn Avatars>) {}

    /// Learns what the platform must know before anything is delivered there. A server that is away is waited for.
    async fn begin(&self) -> anyhow::Result<()>;

    /// Hands in what happens until `stop` is cancelled; an error is one that waiting does not mend.
    async fn listen(&self, host: Arc<dyn Host>, stop: CancellationToken) -> anyhow::Result<()>;
}

/// The platforms that are configured.
async fn connections(config: &Config) -> anyhow::Result<Vec<Arc<dyn Connection>>> {
    // Discord is not asked yet, so what is wrong there is said before Matrix is.
    let discord = discord::connect(config).await?;
    let matrix = matrix::connect(config).await?;
    Ok(matrix.into_iter().chain(discord).collect())
}

pub async fn run(config: &Config, options: RunOptions) -> anyhow::Result<ExitCode> {
    let stop = CancellationToken::new();
    cancel_on_signal(stop.clone(), || tracing::info!("stopping"), || {})?;
    let answers = options.model.map_or(ModelChoice::Chosen, |name| ModelChoice::named(&name));
    let opening = BootstrapOptions { answers, clock: Arc::new(SystemClock), seed: None, on_trial: false };
    let connections = connections(config).await?;
    if connections.is_empty() {
        bail!(
            "no platform is configured: set matrix.homeserver and matrix.user, or discord.token (`azera config` shows every \
             key). `azera chat` talks in this terminal"
        );
    }
    let app = bootstrap::open(config, opening).await?;
    let usual = PersonaId::new(&config.chat.persona).context("chat.persona")?;
    let portraits = Arc::new(RecordAvatars::new(app.memory.clone(), usual));
    for connection in &connections {
        connection.set_avatars(portraits.clone());
        app.azera.attach(connection.platform());
        tokio::select! {
            begun = connection.begin() => begun.with_context(|| connection.platform().id().to_string())?,
            () = stop.cancelled() => return Ok(ExitCode::SUCCESS),
        }
    }
    app.azera.start().await?;
    let mut listening = JoinSet::new();
    for connection in connections {
        let (host, stop): (Arc<dyn Host>, _) = (Arc::new(app.azera.clone()), stop.clone());
        listening.spawn(async move {
            let name = connection.platform().id().to_string();
            connection.listen(host, stop).await.context(name)
        });
    }
    eprintln!("Azera listens. Ctrl-C stops it.");
    let mut failed = false;
    while let Some(ended) = listening.join_next().await {
        if let Err(error) = ended.context("a platform's task").and_then(|ended| ended) {
            failed = true;
            eprintln!("azera: {error:#}");
        }
    }
    app.azera.stop().await;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Ctrl-C and a service manager's wish to stop, once; the second time it ends at once, as it would without this, after what is done
/// `last`.
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
