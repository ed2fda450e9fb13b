//! Replaces `web` in a build without the feature `http`.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use azera_config::Config;
use azera_engine::LinkStep;
use serde_json::Value;

use crate::cli::{Viewer, WebOptions};
use crate::left_out;
use crate::log_ring::LogRing;
use crate::run::Connection;

/// Returns `None`, because this build has no web.
pub async fn connect(_config: &Config, _log: &Arc<LogRing>) -> anyhow::Result<Option<Arc<dyn Connection>>> {
    Ok(None)
}

/// Reports that this build has no web.
///
/// # Errors
///
/// Always fails.
pub fn run(_config: &Config, _options: WebOptions) -> anyhow::Result<ExitCode> {
    Err(left_out::error("`azera web` is asked for", "the web"))
}

/// What happened, for programs and in words.
pub struct CommandReport {
    pub report: Value,
    pub words: String,
    pub interrupted: bool,
}

/// The web of a running Azera, which this build cannot ask.
pub enum RunningAzera {}

impl RunningAzera {
    /// Reports that this build cannot ask a running Azera.
    ///
    /// # Errors
    ///
    /// Always fails.
    pub fn find(_config: &Config) -> anyhow::Result<Self> {
        Err(left_out::error("another Azera has the data folder and would be asked", "the web"))
    }

    pub async fn project_context(&self, _viewer: &Viewer, _project: String, _tokens: usize) -> anyhow::Result<String> {
        match *self {}
    }

    pub async fn take_in_transcripts(&self) -> anyhow::Result<()> {
        match *self {}
    }

    pub async fn import(
        &self,
        _viewer: &Viewer,
        _path: &Path,
        _options: (Option<String>, Option<String>, Option<String>),
        _dry_run: bool,
    ) -> anyhow::Result<CommandReport> {
        match *self {}
    }

    pub async fn imports(&self, _viewer: &Viewer) -> anyhow::Result<CommandReport> {
        match *self {}
    }

    pub async fn link(&self, _name: &str, _step: LinkStep) -> anyhow::Result<String> {
        match *self {}
    }

    pub async fn undo_import(&self, _viewer: &Viewer, _id: &str, _quotes: bool) -> anyhow::Result<CommandReport> {
        match *self {}
    }
}
