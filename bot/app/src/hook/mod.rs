//! `azera hook`: what a coding assistant calls when its session starts and when it has answered. `session` reads what the
//! assistant passes, `known` keeps a session in its project, `waiting` keeps transcripts for a running Azera.

mod known;
mod session;
mod waiting;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use azera_config::{Config, Projects};
use azera_engine::{Elsewhere, project_context};
use azera_import::Format;
use azera_memory::{Memory, ReadScope};
use azera_types::{ReadableScopes, SystemClock, TimeZone};
use tokio_util::sync::CancellationToken;

use crate::bootstrap::{self, App, BootstrapOptions, ModelChoice};
use crate::cli::{HookCommand, HookSession};
use crate::data::DataFolder;
use crate::import::{Job, Known, Target, check_is_file, index, mark, record, zone};
use crate::mcp;
use crate::memory::stores;
use crate::run::cancel_on_signal;
use crate::web::RunningAzera;

use known::in_known_project;
use session::{Project, Session};
pub use waiting::{count_waiting, given_up, take_in_all, take_in_waiting};

pub async fn run(config: &Config, command: HookCommand) -> anyhow::Result<ExitCode> {
    match command {
        HookCommand::Start { tokens, session } => start(config, tokens, &session).await?,
        HookCommand::Stop { session } => stop(config, &session).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Most tokens that are printed at the start of a session, whatever is asked for.
const MAX_START_TOKENS: usize = 32_000;

/// Prints what is remembered of the project. Prints nothing if nothing is.
async fn start(config: &Config, tokens: usize, options: &HookSession) -> anyhow::Result<()> {
    let session = Session::read()?;
    let Project { name: project, .. } = session.project(options.project.as_deref(), config.assistant_project_dir())?;
    let target = Target::new(config, &options.viewer, Some(&project))?;
    let text = if DataFolder::is_taken(&config.data_dir()?) {
        match ask_running(config, options, project, tokens).await {
            Ok(text) => text,
            Err(error) => {
                // An assistant's session must start all the same.
                eprintln!("azera: nothing is recalled at the start of this session: {error:#}");
                return Ok(());
            }
        }
    } else {
        let stores = stores(config).await?;
        if options.viewer.persona.is_some() {
            target.check(&stores.memory)?;
        }
        remembered(&stores.memory, &config.projects, &target, tokens, &zone(config))?
    };
    if !text.is_empty() {
        println!("{}", session.answer(&text));
    }
    Ok(())
}

async fn ask_running(config: &Config, options: &HookSession, project: String, tokens: usize) -> anyhow::Result<String> {
    let tokens = tokens.min(MAX_START_TOKENS);
    if let Some(text) = mcp::project_context(config, &options.viewer, &project, tokens.max(1)).await? {
        return Ok(text);
    }
    RunningAzera::find(config)?.project_context(&options.viewer, project, tokens).await
}

/// Returns what is remembered of the target's project, for its person, and what the person's other projects tell it if they
/// are shared. Days are those of `zone`.
pub fn remembered(
    memory: &Memory,
    projects: &Projects,
    target: &Target,
    tokens: usize,
    zone: &TimeZone,
) -> anyhow::Result<String> {
    let Some(project) = &target.project else { return Ok(String::new()) };
    let read_scope = ReadScope::in_place(target.persona.clone(), &target.place()?, &ReadableScopes::default());
    // The person alone reads their projects, as in their direct messages.
    let realms = memory.imports().projects_of(&target.person.id)?.into_iter().map(|realm| (realm, None)).collect();
    let reach = ReadableScopes { realms, ..ReadableScopes::default() };
    let own = Target { project: None, ..target.clone() }.place()?;
    let elsewhere = Elsewhere::new(projects, &ReadScope::in_place(target.persona.clone(), &own, &reach), project);
    Ok(project_context(memory, &read_scope, project, &elsewhere, tokens.min(MAX_START_TOKENS), zone)?)
}

/// Imports the transcript, or leaves that to the running Azera.
async fn stop(config: &Config, options: &HookSession) -> anyhow::Result<()> {
    let session = Session::read()?;
    let path = session.transcript_path.clone().context("the assistant named no transcript (transcript_path)")?;
    // A pipe could hold the session up for ever, and to refuse one must not end it.
    if path.exists()
        && let Err(error) = check_is_file(&path)
    {
        eprintln!("azera: nothing is learnt from this session: {error:#}");
        return Ok(());
    }
    // The whole transcript goes into one project, so the folder that the session works in now does not choose it.
    let began_in = session.began_in(config.assistant_project_dir());
    let Project { name: project, around } = session.project(options.project.as_deref(), began_in.as_deref())?;
    // The Azera that imports it works in another folder.
    let path = std::path::absolute(&path).with_context(|| format!("finding {}", path.display()))?;
    let data = config.data_dir()?;
    if DataFolder::is_taken(&data) {
        let waiting = waiting::Waiting {
            path,
            name: options.viewer.name.clone(),
            persona: options.viewer.persona.clone(),
            project,
            around,
            tries: 0,
        };
        waiting::put(&data, &waiting)?;
        // Without a web that can be asked, the running Azera finds the note when it next looks.
        if let Ok(running) = RunningAzera::find(config)
            && let Err(error) = running.take_in_transcripts().await
        {
            eprintln!("azera: the transcript is imported within a minute: {error:#}");
        }
        return Ok(());
    }
    let target = Target::new(config, &options.viewer, Some(&project))?;
    let stop = CancellationToken::new();
    cancel_on_signal(stop.clone(), || {}, || {})?;
    let opening =
        BootstrapOptions { answers: ModelChoice::Scripted, clock: Arc::new(SystemClock), seed: None, on_trial: false };
    let app = bootstrap::open(config, opening).await?;
    target.check(&app.memory)?;
    import(&app, config, path, target, around, &stop).await?;
    // What another session left while this one had the folder.
    take_in_all(&app, config, &stop).await;
    index(&app, &stop).await?;
    Ok(())
}

/// Imports a transcript and marks what is worth keeping in it. A session that one of the projects `around` knows already
/// stays there. What took the place of a transcript since is refused.
async fn import(
    app: &App,
    config: &Config,
    path: PathBuf,
    target: Target,
    around: Vec<String>,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    check_is_file(&path)?;
    let (memory, transcript) = (app.memory.clone(), path.clone());
    let finding = move || in_known_project(&memory, &transcript, target, &around);
    let target = tokio::task::spawn_blocking(finding).await??;
    let job = Job {
        path,
        format: Some(Format::ClaudeCode),
        target,
        me: None,
        zone: zone(config),
        dry_run: false,
        undone: Known::LeaveOut,
    };
    let report = record(&app.memory, job, stop).await?;
    if report.flaws > 0 {
        tracing::warn!(flaws = report.flaws, "some lines of the transcript could not be read");
    }
    mark(&app.engine, &report, stop).await;
    Ok(())
}
