//! `azera import`: brings conversations from other programs into memory. `job` reads one file into the record, `author`
//! finds who `--me` is, `target` says whose an import is and makes the ids, `report` says what happened, and `beside` lets a
//! running Azera do it.

mod author;
mod beside;
mod job;
mod report;
mod target;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, ensure};
use azera_config::Config;
use azera_engine::Engine;
use azera_import::Format;
use azera_memory::{Forget, ImportSummary, Memory};
use azera_types::{Clock, SystemClock, TimeZone};
use tokio_util::sync::CancellationToken;

use crate::bootstrap::{self, App, BootstrapOptions, ModelChoice};
use crate::catch_up::catch_up;
use crate::cli::ImportOptions;
use crate::data::DataFolder;
use crate::memory::{forget, stores};
use crate::progress::Bar;
use crate::run::cancel_on_signal;
use crate::web::RunningAzera;

pub use job::{Job, Known, import_file};
pub use report::Report;
pub use target::Target;

/// The value of `--format` that lets the file tell it.
const AUTO: &str = "auto";

/// What a shell expects from a program that Ctrl-C stopped.
const INTERRUPTED: u8 = 130;

pub async fn run(config: &Config, options: ImportOptions) -> anyhow::Result<ExitCode> {
    if DataFolder::is_taken(&config.data_dir()?) {
        return beside::run(&RunningAzera::find(config)?, &options).await;
    }
    if options.list {
        return list(config, &options).await;
    }
    if let Some(id) = &options.undo {
        return undo(config, &options, id).await;
    }
    let format = format_named(&options.format)?;
    let target = Target::new(config, &options.viewer, options.project.as_deref())?;
    let jobs: Vec<Job> = options
        .files
        .iter()
        .map(|path| Job {
            path: path.clone(),
            format,
            target: target.clone(),
            me: options.me.clone(),
            zone: zone(config),
            dry_run: options.dry_run,
            undone: Known::ImportAgain,
        })
        .collect();
    let stop = CancellationToken::new();
    cancel_on_signal(stop.clone(), || eprintln!("stopping; what is imported stays"), || {})?;
    let marks = target.project.is_some() && !options.dry_run;
    let opening =
        BootstrapOptions { answers: ModelChoice::Scripted, clock: Arc::new(SystemClock), seed: None, on_trial: false };
    // Judging moods is for conversations that happen now. Only projects, for their next session, are searched for what is
    // worth keeping at once; the running bot searches everything else in quiet times.
    let app = match marks {
        true => bootstrap::open(config, opening).await?,
        false => bootstrap::open_without_inner_life(config, opening).await?,
    };
    target.check(&app.memory)?;
    let mut interrupted = false;
    for job in jobs {
        check_is_file(&job.path)?;
        let report = record(&app.memory, job, &stop).await?;
        if options.json {
            println!("{}", report.to_json());
        } else {
            println!("{}", report.in_words());
        }
        if marks && !stop.is_cancelled() {
            mark(&app.engine, &report, &stop).await;
        }
        interrupted |= report.interrupted;
        if stop.is_cancelled() {
            break;
        }
    }
    if !options.dry_run {
        interrupted |= !index(&app, &stop).await?;
    }
    Ok(if interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// Returns the format that an option names; `None` if the file tells it.
pub fn format_named(name: &str) -> anyhow::Result<Option<Format>> {
    Ok(if name == AUTO { None } else { Some(name.parse()?) })
}

/// Refuses what is no file, such as a pipe, which may never end.
pub fn check_is_file(path: &Path) -> anyhow::Result<()> {
    let found = std::fs::metadata(path).with_context(|| format!("reading {}", path.display()))?;
    ensure!(found.is_file(), "{} is no regular file: copy what it holds into one first", path.display());
    Ok(())
}

/// Returns the configured time zone: that of shown days, and of imported times without a zone.
pub fn zone(config: &Config) -> TimeZone {
    TimeZone::get(&config.gardener.time_zone).unwrap_or(TimeZone::UTC)
}

/// Imports a file into the record, with progress on the error output.
pub async fn record(memory: &Arc<Memory>, job: Job, stop: &CancellationToken) -> anyhow::Result<Report> {
    let (bar, name) = (Bar::new(), job.file_name());
    record_telling(memory, job, stop, move |done, total| bar.bytes(&name, done, Some(total))).await
}

/// Imports a file into the record, and tells how many of its bytes were read.
pub async fn record_telling(
    memory: &Arc<Memory>,
    job: Job,
    stop: &CancellationToken,
    progress: impl Fn(u64, u64) + Send + 'static,
) -> anyhow::Result<Report> {
    let (memory, stop) = (Arc::clone(memory), stop.clone());
    let recording = move || {
        let begun = Instant::now();
        let report = import_file(&memory, &job, &stop, &progress, SystemClock.now());
        report.map(|report| Report { seconds: begun.elapsed().as_secs_f64(), ..report })
    };
    tokio::task::spawn_blocking(recording).await?
}

/// Marks what is worth keeping in the words of the person who imported, until `stop` is cancelled. The running bot goes on
/// with what this leaves over, and compares it with earlier statements.
pub async fn mark(engine: &Engine, report: &Report, stop: &CancellationToken) {
    if let Err(error) = engine.search_imports(Some(&report.chats), stop).await {
        tracing::warn!(%error, "what is worth keeping of an import is marked later");
    }
}

/// Makes everything searchable: the words of all of it at once, then its meaning. Returns false if it was stopped; the
/// next start of Azera then goes on.
pub async fn index(app: &App, stop: &CancellationToken) -> anyhow::Result<bool> {
    app.engine.index_all_words().await?;
    tokio::select! {
        biased;
        () = stop.cancelled() => {
            eprintln!("the meaning of some messages is not indexed yet; the next start of Azera goes on with it");
            Ok(false)
        }
        indexed = catch_up(app) => {
            indexed?;
            Ok(true)
        }
    }
}

async fn list(config: &Config, options: &ImportOptions) -> anyhow::Result<ExitCode> {
    let target = Target::new(config, &options.viewer, None)?;
    let stores = stores(config).await?;
    let imports = stores.memory.imports().list(&target.person.id)?;
    if options.json {
        println!("{}", serde_json::to_string_pretty(&imports)?);
        return Ok(ExitCode::SUCCESS);
    }
    println!("{}", listed(&imports, &options.viewer.name, &zone(config)));
    Ok(ExitCode::SUCCESS)
}

/// Returns the imports of a person in words, a line for each, with its day in `zone`.
pub fn listed(imports: &[ImportSummary], name: &str, zone: &TimeZone) -> String {
    let line = |import: &ImportSummary| {
        let (day, scope) = (import.file.last_at.to_zoned(zone.clone()).strftime("%F"), &import.scope);
        let unsearched = match import.unsearched {
            0 => String::new(),
            left => format!(", to search: {left}"),
        };
        format!(
            "{}  {day}  {:<11}  messages: {}, chats: {}{unsearched}  {} ({scope}, {})",
            import.id, import.file.format, import.messages, import.chats, import.file.name, import.persona
        )
    };
    if imports.is_empty() {
        return format!("{name} has imported nothing");
    }
    imports.iter().map(line).collect::<Vec<_>>().join("\n")
}

async fn undo(config: &Config, options: &ImportOptions, id: &str) -> anyhow::Result<ExitCode> {
    let target = Target::new(config, &options.viewer, None)?;
    {
        // Closed again before the forgetting opens everything.
        let stores = stores(config).await?;
        let known = stores.memory.imports().list(&target.person.id)?.iter().any(|import| import.id == id);
        ensure!(known, "{} has no import {id}; `azera import --list` lists them", options.viewer.name);
    }
    forget(config, &Forget::Import(id.to_owned()), options.quotes, options.yes).await?;
    Ok(ExitCode::SUCCESS)
}

/// Returns a file's name without its folder.
fn name_of(path: &Path) -> anyhow::Result<String> {
    let name = path.file_name().with_context(|| format!("{} is no file", path.display()))?;
    Ok(name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use azera_memory::ImportedFile;
    use azera_types::{PersonaId, Scope, Timestamp};

    use super::*;

    #[test]
    fn imports_are_listed_with_their_days_in_the_time_zone() {
        let at: Timestamp = "2026-03-14T23:30:00Z".parse().unwrap();
        let import = ImportSummary {
            id: "3f2a91c07b".to_owned(),
            file: ImportedFile {
                name: "chat.json".to_owned(),
                format: "chatgpt".to_owned(),
                first_at: at,
                last_at: at,
            },
            persona: PersonaId::new("azera").unwrap(),
            scope: Scope::Global,
            chats: 1,
            messages: 2,
            unsearched: 0,
        };
        for (zone, day) in [("UTC", "2026-03-14"), ("Europe/Berlin", "2026-03-15")] {
            let line = listed(std::slice::from_ref(&import), "Ann", &TimeZone::get(zone).unwrap());
            assert!(line.starts_with(&format!("3f2a91c07b  {day}  chatgpt ")), "{line}");
        }
    }
}
