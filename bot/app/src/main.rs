//! Azera's binary: parses the command line and wires the parts together. Each command has a module of its own;
//! `bootstrap` opens the stores and models that most of them need. Begin with `cli` and `bootstrap`.

mod avatars;
mod backup;
mod bootstrap;
mod call_recordings;
mod catch_up;
mod chat;
mod chat_config;
mod chosen;
mod classifiers;
mod cli;
mod data;
#[cfg(feature = "discord")]
mod discord;
#[cfg(not(feature = "discord"))]
#[path = "discord_left_out.rs"]
mod discord;
mod doctor;
mod health;
mod hearing;
mod hearth;
mod hook;
mod images;
mod import;
mod lab;
#[cfg(not(all(
    feature = "discord",
    feature = "http",
    feature = "learning",
    feature = "matrix",
    feature = "qdrant",
    feature = "redis"
)))]
mod left_out;
mod link;
mod local_speech;
#[cfg_attr(not(any(feature = "http", test)), expect(dead_code, reason = "only the web shows the newest lines"))]
mod log_ring;
mod loras;
mod machine;
#[cfg(feature = "matrix")]
mod matrix;
#[cfg(not(feature = "matrix"))]
#[path = "matrix_left_out.rs"]
mod matrix;
#[cfg(feature = "http")]
mod mcp;
#[cfg(not(feature = "http"))]
#[path = "mcp_left_out.rs"]
mod mcp;
mod memory;
mod model_catalog;
mod model_choice;
mod models;
mod persona;
mod persona_add;
mod persona_folder;
mod progress;
mod reranker;
mod restart;
mod restore;
mod room;
mod run;
mod say;
mod servers;
mod set_aside;
mod speech;
mod speech_servers;
mod stores;
mod talk;
mod tour;
mod transcribe;
mod trust;
mod vault;
mod vision;
#[cfg(feature = "voice")]
mod voice;
mod voice_clones;
mod voice_engines;
mod voice_samples;
#[cfg(feature = "http")]
mod web;
#[cfg(not(feature = "http"))]
#[path = "web_left_out.rs"]
mod web;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use azera_config::{Config, LogFormat};
use azera_telemetry::{Exporter, SpanLayer, telemetry};
use clap::Parser;
use tokio_util::sync::CancellationToken;
use tracing::Subscriber;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer};

use cli::{Cli, Command, DiscordCommand, VoiceCommand, VoiceOptions};
use lab::{bench, eval, replay};
use log_ring::{LogRing, RingLayer};

fn main() -> ExitCode {
    restart::restart_with_variables();
    let cli = Cli::parse();
    match start(cli) {
        Ok(code) => code,
        Err(error) => {
            // `{error:#}` prints the whole chain of causes in one line.
            eprintln!("azera: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start(cli: Cli) -> anyhow::Result<ExitCode> {
    let mut config = Config::from_process_env(cli.config.as_deref())?;
    if let Some(dir) = cli.command.data() {
        config.data.dir = Some(dir.to_path_buf());
    }
    if cli.no_lora {
        config.models.adapter = Some(loras::NONE.into());
    }
    chosen::ensure_family(&config)?;
    let Logged { lines, exporter } = log(&config, cli.command.quiet())?;
    set_aside::check(&config, &cli.command)?;
    let missing = vault::resolve(&mut config, &cli.command)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("starting the runtime")?;
    runtime.block_on(async {
        let stop = CancellationToken::new();
        let exporting = exporter.map(|exporter| tokio::spawn(exporter.run(stop.clone())));
        let ended = match cli.command {
            Command::Chat(options) => chat::run(&config, options).await,
            Command::Run(options) => run::run(&config, options, lines).await,
            Command::Tour(options) => tour::run(&config, options).await,
            Command::Say(options) => say::run(&config, options).await,
            Command::Discord { command: DiscordCommand::Invite } => discord::invite(&config).await,
            Command::Transcribe(options) => transcribe::run(&config, options).await,
            Command::Voice(VoiceOptions { command: Some(VoiceCommand::Samples { command }), .. }) => {
                voice_samples::run(&config, command).await
            }
            Command::Voice(VoiceOptions { command: None, talk }) => talk::run(&config, talk).await,
            Command::Replay(options) => replay::run(&config, options).await,
            Command::Models { command } => models::run(&config, command).await,
            Command::Persona { command, .. } => persona::run(&config, command).await,
            Command::Memory { command, .. } => memory::run(&config, command).await,
            Command::Eval { command } => eval::run(&config, command).await,
            Command::Hearth { command } => hearth::run(&config, command).await,
            Command::Bench { command } => bench::run(&config, cli.config.as_deref(), command).await,
            Command::Backup { command, to, .. } => backup::run(&config, command, to),
            Command::Restore(options) => restore::run(&config, &options).await,
            Command::Doctor(_) => doctor::run(&config, &missing).await,
            Command::Health(_) => health::run(&config),
            Command::Import(options) => import::run(&config, options).await,
            Command::Hook(options) => hook::run(&config, options.command).await,
            Command::Link(options) => link::run(&config, options).await,
            Command::Mcp(options) => mcp::run(&config, options).await,
            Command::Web(options) => web::run(&config, options),
            Command::Vault(options) => vault::run(&config, options),
            Command::Config => {
                print!("{}", Config::example());
                Ok(ExitCode::SUCCESS)
            }
        };
        stop.cancel();
        if let Some(exporting) = exporting {
            // The last spans are worth a moment, and not more.
            tokio::time::timeout(LAST_SPANS, exporting).await.ok();
        }
        ended
    })
}

/// How long the end waits for the collector to take the last spans.
const LAST_SPANS: Duration = Duration::from_secs(3);

/// Silences libraries that log on every start without anything to act on. matrix-sdk reports an error when a homeserver
/// has no stored value under a name yet.
const NOISY_CRATES: &str = "llama-cpp-2=error,matrix_sdk=error,matrix_sdk_base=error,\
                       matrix_sdk_crypto=error,matrix_sdk_sqlite=error,matrix_sdk::http_client=off";

/// Limits crates that log messages or secrets at lower levels to errors, whatever filter the user sets.
const PRIVATE_CRATES: &str =
    "misaki_rs=off,symphonia_core=off,rmcp=error,serenity=error,tungstenite=error,tokio_tungstenite=error";

/// Returns what writes the log.
fn output<S>(config: &Config) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let output = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    match config.log.format {
        LogFormat::Text => output.with_ansi(config.colour() && std::io::stderr().is_terminal()).boxed(),
        LogFormat::Json => output.json().boxed(),
    }
}

/// What logging leaves to the program.
struct Logged {
    /// The newest lines, which the web shows to owners.
    lines: Arc<LogRing>,
    /// What sends spans to a collector, if one is configured.
    exporter: Option<Exporter>,
}

/// Sets up logging to the error output, so that a command's output and its log lines never mix, and the recording of spans
/// for a collector.
fn log(config: &Config, quiet: bool) -> anyhow::Result<Logged> {
    // A filter set by the user applies as it is. Otherwise interactive commands show warnings only.
    let default_filter = if quiet && config.log_filter() == "info" { "warn" } else { config.log_filter() };
    let filter = if default_filter.contains('=') {
        default_filter.to_owned()
    } else {
        format!("{default_filter},{NOISY_CRATES}")
    };
    let filter = format!("{filter},{PRIVATE_CRATES}");
    let filter = || EnvFilter::try_new(&filter).context("AZERA_LOG");
    let lines = Arc::new(LogRing::default());
    let ring = RingLayer(lines.clone());
    let Some(address) = &config.telemetry.otlp else {
        tracing_subscriber::registry().with(filter()?).with(ring).with(output(config)).init();
        return Ok(Logged { lines, exporter: None });
    };
    let (spans, exporter) = telemetry(address, env!("CARGO_PKG_VERSION")).context("telemetry.otlp")?;
    // What is logged decides nothing about what is traced.
    let spans = spans.with_filter(filter_fn(SpanLayer::records));
    let written =
        tracing_subscriber::registry().with(ring.with_filter(filter()?)).with(output(config).with_filter(filter()?));
    written.with(spans).init();
    Ok(Logged { lines, exporter: Some(exporter) })
}
