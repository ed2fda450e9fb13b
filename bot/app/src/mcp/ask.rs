//! What hooks of this machine ask of the `azera mcp` that has the data folder.

use std::time::Duration;

use anyhow::Context;
use azera_config::Config;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use super::guests::join;
use super::{Host, Speaker};
use crate::cli::Viewer;
use crate::hook::remembered;
use crate::import::{Target, zone};

/// Longest wait. A coding session does not wait longer for its beginning.
const PATIENCE: Duration = Duration::from_secs(20);

/// Asks what is remembered of a person's project for the start of a session.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    name: String,
    persona: String,
    project: String,
    tokens: usize,
}

impl Question {
    /// Returns the answer: what the hook prints where it opens the folder itself. So it is about the person's own account, and
    /// not about accounts that are linked with it.
    ///
    /// # Errors
    ///
    /// Fails if there is no such person, persona or project, or the record cannot be read.
    pub async fn answer(self, host: &Host) -> anyhow::Result<String> {
        let viewer = Viewer { name: self.name, persona: Some(self.persona) };
        let target = Target::new(&host.config, &viewer, Some(&self.project))?;
        let (memory, projects, tokens) = (host.memory.clone(), host.config.projects.clone(), self.tokens);
        let zone = zone(&host.config);
        let answering = move || {
            target.check(&memory)?;
            remembered(&memory, &projects, &target, tokens, &zone)
        };
        tokio::task::spawn_blocking(answering).await?
    }
}

/// Returns what is remembered of a project for the start of a session; `None` if no `azera mcp` has the data folder.
///
/// # Errors
///
/// Fails if it does not speak for this person, or does not answer.
pub async fn project_context(
    config: &Config,
    viewer: &Viewer,
    project: &str,
    tokens: usize,
) -> anyhow::Result<Option<String>> {
    let asking = async {
        let Speaker { name, persona, .. } = Speaker::of(config, viewer);
        let question = Question { name, persona, project: project.to_owned(), tokens };
        let Some(mut link) = join(&config.data_dir()?, &question).await? else { return Ok(None) };
        let mut answer = String::new();
        link.input.read_to_string(&mut answer).await?;
        // An answer that is cut is no JSON.
        let text: String = serde_json::from_str(&answer).context("the `azera mcp` that had the data folder ended")?;
        anyhow::Ok(Some(text))
    };
    timeout(PATIENCE, asking).await.context("the `azera mcp` that has the data folder does not answer")?
}
