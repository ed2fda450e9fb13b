//! Replaces `mcp` in a build without the feature `http`.

use std::process::ExitCode;

use azera_config::Config;

use crate::cli::McpOptions;
use crate::left_out;

/// Reports that this build does not speak the Model Context Protocol.
///
/// # Errors
///
/// Always fails.
pub async fn run(_config: &Config, _options: McpOptions) -> anyhow::Result<ExitCode> {
    Err(left_out::error("`azera mcp` is asked for", "the Model Context Protocol"))
}
