//! Replaces `mcp` in a build without the feature `http`.

use std::process::ExitCode;

use azera_config::Config;

use crate::cli::{McpOptions, Viewer};
use crate::left_out;

/// Returns that this build knows no `azera mcp` that could have the data folder.
///
/// # Errors
///
/// Never fails.
#[expect(clippy::unused_async, reason = "the other build asks another process")]
pub async fn project_context(
    _config: &Config,
    _viewer: &Viewer,
    _project: &str,
    _tokens: usize,
) -> anyhow::Result<Option<String>> {
    Ok(None)
}

/// Reports that this build does not speak the Model Context Protocol.
///
/// # Errors
///
/// Always fails.
pub async fn run(_config: &Config, _options: McpOptions) -> anyhow::Result<ExitCode> {
    Err(left_out::error("`azera mcp` is asked for", "the Model Context Protocol"))
}
