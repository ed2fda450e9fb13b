//! What commands on this machine ask of the running Azera, done as the same commands do it where none runs.

use std::path::Path;
use std::sync::{Arc, PoisonError};

use anyhow::{Context, ensure};
use async_trait::async_trait;
use azera_adapter_console::{PLATFORM, Person};
use azera_adapter_http::{
    AccountLinkAsked, AccountLinkStep, CommandRefused, CommandReport, FileToImport, ImportProgress, ImportToUndo,
    ImportsAsked, LocalCommands, ProgressAsked, ProjectAsked,
};
use azera_config::Config;
use azera_engine::{Engine, LinkStep};
use azera_import::Format;
use azera_memory::Memory;
use azera_types::PlatformId;
use serde_json::{Value, json};
use tokio::sync::{Mutex, Notify};
use tokio_util::sync::CancellationToken;

use crate::bootstrap::App;
use crate::cli::Viewer;
use crate::hook;
use crate::import::{Job, Known, Report, Target, check_is_file, format_named, listed, mark, record_telling, zone};

/// The parts of the running Azera that commands use. Clones share them.
#[derive(Clone)]
pub struct RunningCommands {
    engine: Engine,
    memory: Arc<Memory>,
    config: Arc<Config>,
    transcripts: Arc<Notify>,
    /// Held during an import: files are imported one after the other.
    importing: Arc<Mutex<()>>,
    /// The import that holds it.
    current: Arc<std::sync::Mutex<Option<CurrentImport>>>,
    /// What it reads and for whom, and how far it is.
    read: Arc<std::sync::Mutex<Option<(ProgressAsked, ImportProgress)>>>,
}

/// An import that an undo can end.
struct CurrentImport {
    /// Its id in each format: nothing else tells yet which one the file has.
    ids: Vec<String>,
    stop: CancellationToken,
}

impl CurrentImport {
    fn new(target: &Target, path: &Path, stop: &CancellationToken) -> anyhow::Result<Self> {
        let path = path.canonicalize().with_context(|| format!("reading {}", path.display()))?;
        let ids = Format::ALL.into_iter().map(|format| target.import_id(format, &path)).collect();
        Ok(Self { ids, stop: stop.clone() })
    }
}

fn refused(error: anyhow::Error) -> CommandRefused {
    CommandRefused(format!("{error:#}"))
}

impl RunningCommands {
    pub fn new(app: &App, config: &Config) -> Self {
        Self {
            engine: app.engine.clone(),
            memory: app.memory.clone(),
            config: Arc::new(config.clone()),
            transcripts: app.transcripts.clone(),
            importing: Arc::default(),
            current: Arc::default(),
            read: Arc::default(),
        }
    }

    fn target(&self, name: String, persona: Option<String>, project: Option<&str>) -> anyhow::Result<Target> {
        let viewer = Viewer { name, persona };
        let target = Target::new(&self.config, &viewer, project)?;
        target.check(&self.memory)?;
        Ok(target)
    }

    /// Works on the record on a blocking thread.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Memory) -> anyhow::Result<T> + Send + 'static,
    ) -> anyhow::Result<T> {
        let memory = self.memory.clone();
        tokio::task::spawn_blocking(move || work(&memory)).await?
    }

    fn set_current(&self, current: Option<CurrentImport>) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = current;
    }

    fn set_read(&self, read: Option<(ProgressAsked, ImportProgress)>) {
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = read;
    }

    /// Reads a file of a person into the record, and notes how far it is.
    async fn record(&self, name: String, job: Job, stop: &CancellationToken) -> anyhow::Result<Report> {
        let path = job.path.canonicalize().with_context(|| format!("reading {}", job.path.display()))?;
        let (telling, of) = (self.clone(), ProgressAsked { name, path, dry_run: job.dry_run });
        let tell = move |done, total| telling.set_read(Some((of.clone(), ImportProgress { done, total })));
        let recorded = record_telling(&self.memory, job, stop, tell).await;
        self.set_read(None);
        recorded
    }

    /// Ends the import with this id, if it runs.
    fn end_import(&self, id: &str) {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(current) = current.as_ref().filter(|current| current.ids.iter().any(|one| one == id)) {
            current.stop.cancel();
        }
    }

    async fn import_file(self, file: FileToImport, stop: CancellationToken) -> anyhow::Result<CommandReport> {
        let FileToImport { name, persona, project, path, format, me, dry_run } = file;
        let target = self.target(name.clone(), persona, project.as_deref())?;
        check_is_file(&path)?;
        let stop = stop.child_token();
        let current = CurrentImport::new(&target, &path, &stop)?;
        let _one = self.importing.lock().await;
        let job = Job {
            path,
            format: format.as_deref().map_or(Ok(None), format_named)?,
            target: target.clone(),
            me,
            zone: zone(&self.config),
            dry_run,
            undone: Known::ImportAgain,
        };
        self.set_current((!dry_run).then_some(current));
        let recorded = self.record(name, job, &stop).await;
        self.set_current(None);
        let report = recorded?;
        let done =
            CommandReport { report: report.to_json(), words: report.in_words(), interrupted: report.interrupted };
        if !dry_run {
            self.engine.index_soon();
            if target.project.is_some() {
                // Marking takes longer than a command waits.
                let engine = self.engine.clone();
                self.engine.spawn(async move { mark(&engine, &report, &stop).await });
            } else {
                self.engine.search_imports_soon();
            }
        }
        Ok(done)
    }

    async fn list(&self, name: String) -> anyhow::Result<CommandReport> {
        let target = Target::new(&self.config, &Viewer { name: name.clone(), persona: None }, None)?;
        let imports = self.blocking(move |memory| Ok(memory.imports().list(&target.person.id)?)).await?;
        let words = listed(&imports, &name, &zone(&self.config));
        Ok(CommandReport { report: serde_json::to_value(imports)?, words, interrupted: false })
    }

    async fn link(&self, asked: AccountLinkAsked) -> anyhow::Result<CommandReport> {
        let person = Person::new(&asked.name).context("--as")?;
        let step = match asked.step {
            AccountLinkStep::Show => LinkStep::Show,
            AccountLinkStep::Code(code) => LinkStep::Code(code),
            AccountLinkStep::Confirm => LinkStep::Confirm,
            AccountLinkStep::List => LinkStep::List,
            AccountLinkStep::Remove(other) => LinkStep::Remove(other),
        };
        let console = PlatformId::new(PLATFORM)?;
        let answer = self.engine.link_at_the_machine(&console, &person.id, &person.name, step).await?;
        ensure!(answer.ok, "{}", answer.text);
        Ok(CommandReport { report: json!({"text": answer.text}), words: answer.text, interrupted: false })
    }

    async fn undo(&self, import: ImportToUndo) -> anyhow::Result<CommandReport> {
        let ImportToUndo { name, id, quotes } = import;
        let target = Target::new(&self.config, &Viewer { name: name.clone(), persona: None }, None)?;
        let imports = self.blocking(move |memory| Ok(memory.imports().list(&target.person.id)?)).await?;
        let known = imports.iter().any(|import| import.id == id);
        ensure!(known, "{name} has no import {id}; `azera import --list` lists them");
        // An import that goes on would add the rest of its file behind the undo.
        self.end_import(&id);
        let _one = self.importing.lock().await;
        let receipt = self.engine.forget_import(&id, quotes).await.context("forgetting")?;
        // The running Azera overwrites the bytes, also those of backups and servers, in the background.
        let report: Value = json!({
            "messages": receipt.messages, "replies": receipt.replies, "memories": receipt.memories, "why": receipt.why,
            "chats": receipt.chats, "still_quoted_by": receipt.quoted_by, "bytes_on_disk": "owed", "backups": "owed",
        });
        Ok(CommandReport { words: serde_json::to_string_pretty(&report)?, report, interrupted: false })
    }
}

#[async_trait]
impl LocalCommands for RunningCommands {
    async fn project_context(&self, asked: ProjectAsked) -> Result<String, CommandRefused> {
        let ProjectAsked { name, persona, project, tokens } = asked;
        let target = self.target(name, persona, Some(&project)).map_err(refused)?;
        let (projects, zone) = (self.config.projects.clone(), zone(&self.config));
        self.blocking(move |memory| hook::remembered(memory, &projects, &target, tokens, &zone)).await.map_err(refused)
    }

    fn take_in_transcripts(&self) {
        self.transcripts.notify_one();
    }

    async fn import(&self, file: FileToImport, stop: CancellationToken) -> Result<CommandReport, CommandRefused> {
        // It goes on if the command ends, and Azera stops behind it.
        let imported = self.engine.spawn(self.clone().import_file(file, stop)).await;
        imported.context("importing").and_then(|imported| imported).map_err(refused)
    }

    fn import_progress(&self, asked: &ProgressAsked) -> ImportProgress {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.as_ref().filter(|(of, _)| of == asked).map_or_else(ImportProgress::default, |(_, progress)| *progress)
    }

    async fn imports(&self, asked: ImportsAsked) -> Result<CommandReport, CommandRefused> {
        self.list(asked.name).await.map_err(refused)
    }

    async fn undo_import(&self, import: ImportToUndo) -> Result<CommandReport, CommandRefused> {
        self.undo(import).await.map_err(refused)
    }

    async fn link_accounts(&self, asked: AccountLinkAsked) -> Result<CommandReport, CommandRefused> {
        self.link(asked).await.map_err(refused)
    }
}
