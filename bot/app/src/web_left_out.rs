//! Replaces `web` in a build without the feature `http`.

use std::process::ExitCode;
use std::sync::Arc;

use azera_config::Config;

use crate::cli::WebOptions;
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
