use std::path::PathBuf;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

/// A question for what is remembered of a project.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectAsked {
    /// The name of the person at this machine.
    pub name: String,
    /// The persona that remembers; null for the configured one.
    pub persona: Option<String>,
    /// The name of the project.
    pub project: String,
    /// About how many tokens to answer at most.
    pub tokens: usize,
}

/// A file to import.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileToImport {
    /// The name of the person at this machine.
    pub name: String,
    /// The persona that remembers; null for the configured one.
    pub persona: Option<String>,
    /// The name of the project; null for none.
    pub project: Option<String>,
    /// The path of the file on this machine.
    pub path: PathBuf,
    /// The format; null to detect it.
    pub format: Option<String>,
    /// The person's own account name or id in the file.
    pub me: Option<String>,
    /// True to count only.
    pub dry_run: bool,
}

/// What happened, for programs and in words.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandReport {
    /// The report for programs.
    pub report: Value,
    /// The same in words.
    pub words: String,
    /// True if it was stopped before its end.
    pub interrupted: bool,
}

/// A question for how far an import of a person is.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgressAsked {
    /// The name of the person at this machine.
    pub name: String,
    /// The path of the file on this machine, without links.
    pub path: PathBuf,
    /// True if it counts only.
    pub dry_run: bool,
}

/// How far the import of a file is. Both are 0 before it begins and after it ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportProgress {
    /// Bytes of the file that were read.
    pub done: u64,
    /// Bytes of the file.
    pub total: u64,
}

/// A question for the imports of a person.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportsAsked {
    /// The name of the person at this machine.
    pub name: String,
}

/// An import to undo.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportToUndo {
    /// The name of the person at this machine.
    pub name: String,
    /// The id of the import.
    pub id: String,
    /// True to forget the replies that rest on it, too.
    pub quotes: bool,
}

/// One step by which a person links their accounts.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccountLinkStep {
    /// Show a code for another account.
    Show,
    /// Enter the code that another account was shown. The answer is a question.
    Code(String),
    /// Link with the account whose code was entered.
    Confirm,
    /// List the linked accounts.
    List,
    /// Unlink the account with this id or name, this one if the name is empty, or `all`.
    Remove(String),
}

/// A step by which a person at this machine links their accounts.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountLinkAsked {
    /// The name of the person at this machine.
    pub name: String,
    /// What to do.
    pub step: AccountLinkStep,
}

/// Why something was not done, for the person at this machine.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct CommandRefused(pub String);

/// What commands on this machine ask of the Azera that runs, because it has the data folder. They act for a person of the
/// terminal, as they do where none runs, and not for an account of the web.
#[async_trait]
pub trait LocalCommands: Send + Sync {
    /// Returns what is remembered of a project, for a coding session that starts. It holds only what was said there.
    async fn project_context(&self, asked: ProjectAsked) -> Result<String, CommandRefused>;

    /// Begins to import the transcripts that hooks left in the data folder.
    fn take_in_transcripts(&self);

    /// Imports a file. `stop` ends it early.
    async fn import(&self, file: FileToImport, stop: CancellationToken) -> Result<CommandReport, CommandRefused>;

    /// Returns how far an import is: of this person, of this file, and counting only or not.
    fn import_progress(&self, asked: &ProgressAsked) -> ImportProgress;

    /// Returns what a person imported.
    async fn imports(&self, asked: ImportsAsked) -> Result<CommandReport, CommandRefused>;

    /// Forgets what an import added.
    async fn undo_import(&self, import: ImportToUndo) -> Result<CommandReport, CommandRefused>;

    /// Links the accounts of a person, as the command for it does in chats.
    async fn link_accounts(&self, asked: AccountLinkAsked) -> Result<CommandReport, CommandRefused>;
}
