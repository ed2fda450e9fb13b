//! Asks the Azera that runs on the data folder, over its web on this machine.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use azera_adapter_http::{
    AccountLinkAsked, AccountLinkStep, CommandReport, FileToImport, ImportProgress, ImportToUndo, ImportsAsked, Local,
    LocalError, ProgressAsked, ProjectAsked,
};
use azera_config::Config;
use azera_engine::LinkStep;
use serde::Serialize;
use serde_json::{Value, json};

use crate::cli::Viewer;
use crate::progress::Bar;

/// Longest wait for short answers. A coding session does not wait longer for its beginning.
const SHORT: Duration = Duration::from_secs(20);

/// Longest wait when the running Azera is only to be woken.
const WAKE_WAIT: Duration = Duration::from_secs(2);

/// Time between two questions for how far an import is, and the longest wait for an answer.
const ASK_PROGRESS_EVERY: Duration = Duration::from_millis(500);
const PROGRESS_WAIT: Duration = Duration::from_secs(2);

/// Refuses a web at an address to which commands of this machine do not send their key.
pub fn check_is_here(local: &Local) -> anyhow::Result<()> {
    ensure!(
        local.is_here(),
        "the web of the running Azera is at {}, which this machine's commands do not use: set http.listen to 127.0.0.1, or to \
         0.0.0.0 for every address",
        local.address
    );
    Ok(())
}

/// The web of the running Azera.
#[derive(Debug)]
pub struct RunningAzera(Local);

impl RunningAzera {
    /// Finds the web of the Azera that has the data folder. Its key is sent to this machine alone.
    pub fn find(config: &Config) -> anyhow::Result<Self> {
        let data = config.data_dir()?;
        let local = match Local::read(&data) {
            Ok(local) => Some(local),
            Err(LocalError::NotRunning) => None,
            Err(error) => bail!(
                "{error}. This file tells where the running Azera is: run this as the user who owns the data folder"
            ),
        };
        match local.filter(Local::is_running) {
            Some(local) => {
                check_is_here(&local)?;
                Ok(Self(local))
            }
            None => bail!(
                "another Azera works in {} and serves no web, so it cannot be asked. If it is starting, try again later: \
                 `azera run` with http.enabled = true can be asked, `azera chat` and `azera mcp` cannot. Otherwise stop it first",
                data.display()
            ),
        }
    }

    async fn ask(&self, path: &'static str, body: &impl Serialize, wait: Option<Duration>) -> anyhow::Result<Value> {
        let (local, body) = (self.0.clone(), serde_json::to_value(body)?);
        let asked = move || local.call_for("POST", path, Some(&body), wait);
        tokio::task::spawn_blocking(asked).await?.context("asking the running Azera")
    }

    /// Returns what is remembered of a project.
    pub async fn project_context(&self, viewer: &Viewer, project: String, tokens: usize) -> anyhow::Result<String> {
        let (name, persona) = (viewer.name.clone(), viewer.persona.clone());
        let asked = ProjectAsked { name, persona, project, tokens };
        let answer = self.ask("/api/local/project-context", &asked, Some(SHORT)).await?;
        Ok(answer.get("text").and_then(Value::as_str).context("the running Azera answers without a text")?.to_owned())
    }

    /// Lets it look for transcripts that hooks left. It looks each minute without that, so this waits little.
    pub async fn take_in_transcripts(&self) -> anyhow::Result<()> {
        self.ask("/api/local/transcripts", &json!({}), Some(WAKE_WAIT)).await.map(drop)
    }

    /// Returns how far the import of a file is; `None` if that is not known now.
    async fn import_progress(&self, asked: &ProgressAsked) -> Option<ImportProgress> {
        let answer = self.ask("/api/local/imports/progress", asked, Some(PROGRESS_WAIT)).await.ok()?;
        serde_json::from_value(answer).ok().filter(|progress: &ImportProgress| progress.total > 0)
    }

    /// Lets it import a file, and shows how far it is. It goes on even if this command ends.
    pub async fn import(
        &self,
        viewer: &Viewer,
        path: &Path,
        options: (Option<String>, Option<String>, Option<String>),
        dry_run: bool,
    ) -> anyhow::Result<CommandReport> {
        let path = path.canonicalize().with_context(|| format!("reading {}", path.display()))?;
        let ((project, format, me), Viewer { name, persona }) = (options, viewer.clone());
        let (bar, shown) = (Bar::new(), path.file_name().unwrap_or_default().to_string_lossy().into_owned());
        let asked = ProgressAsked { name: name.clone(), path: path.clone(), dry_run };
        let file = FileToImport { name, persona, project, path, format, me, dry_run };
        let tell = async || {
            if let Some(ImportProgress { done, total }) = self.import_progress(&asked).await {
                bar.bytes(&shown, done, Some(total));
            }
        };
        Ok(serde_json::from_value(telling(self.ask("/api/local/imports", &file, None), tell).await?)?)
    }

    /// Returns what a person imported.
    pub async fn imports(&self, viewer: &Viewer) -> anyhow::Result<CommandReport> {
        let asked = ImportsAsked { name: viewer.name.clone() };
        // To count their messages takes long where there are many.
        Ok(serde_json::from_value(self.ask("/api/local/imports/list", &asked, None).await?)?)
    }

    /// Does one step of linking a person with their other accounts. Returns its words.
    pub async fn link(&self, name: &str, step: LinkStep) -> anyhow::Result<String> {
        let step = match step {
            LinkStep::Show => AccountLinkStep::Show,
            LinkStep::Code(code) => AccountLinkStep::Code(code),
            LinkStep::Confirm => AccountLinkStep::Confirm,
            LinkStep::List => AccountLinkStep::List,
            LinkStep::Remove(other) => AccountLinkStep::Remove(other),
        };
        let asked = AccountLinkAsked { name: name.to_owned(), step };
        let done: CommandReport = serde_json::from_value(self.ask("/api/local/links", &asked, Some(SHORT)).await?)?;
        Ok(done.words)
    }

    /// Forgets what an import added.
    pub async fn undo_import(&self, viewer: &Viewer, id: &str, quotes: bool) -> anyhow::Result<CommandReport> {
        let import = ImportToUndo { name: viewer.name.clone(), id: id.to_owned(), quotes };
        Ok(serde_json::from_value(self.ask("/api/local/imports/undo", &import, None).await?)?)
    }
}

/// Waits for work, and tells again and again how far it is. Work that is done waits for nothing.
async fn telling<T>(work: impl Future<Output = T>, tell: impl AsyncFn()) -> T {
    tokio::pin!(work);
    loop {
        let round = async {
            tokio::time::sleep(ASK_PROGRESS_EVERY).await;
            tell().await;
        };
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = round => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn work_is_told_of_until_it_ends() {
        let (told, end) = (Cell::new(0), Notify::new());
        let tell = async || {
            told.set(told.get() + 1);
            if told.get() == 3 {
                end.notify_one();
            }
        };
        let work = async {
            end.notified().await;
            "done"
        };
        assert_eq!((telling(work, tell).await, told.get()), ("done", 3));
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_is_done_does_not_wait_for_a_question() {
        let asked = Notify::new();
        let tell = async || {
            asked.notify_one();
            std::future::pending::<()>().await;
        };
        telling(asked.notified(), tell).await;
    }

    #[test]
    fn a_web_at_an_address_of_the_network_is_not_asked_and_no_stranger() {
        let local = |address: &str| Local { address: address.into(), setup: None, key: "azl_1".into() };
        let why = check_is_here(&local("http://192.168.1.5:8080")).unwrap_err().to_string();
        assert!(why.contains("http://192.168.1.5:8080") && why.contains("set http.listen"), "{why}");
        check_is_here(&local("http://127.0.0.1:8080")).unwrap();
    }
}
