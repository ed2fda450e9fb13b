//! Replaces `discord` in a build without the feature `discord`.

use std::process::ExitCode;
use std::sync::Arc;

use azera_config::Config;

use crate::doctor::Found;
use crate::left_out;
use crate::run::Connection;

/// The platform's name in ids.
pub const PLATFORM: &str = "discord";

const PART: &str = "Discord";

fn configured() -> anyhow::Error {
    left_out::error("Discord is configured", PART)
}

/// Returns `None`, because this build has no Discord.
///
/// # Errors
///
/// Fails if a bot is configured.
pub async fn connect(config: &Config) -> anyhow::Result<Option<Arc<dyn Connection>>> {
    if config.discord.token.is_some() { Err(configured()) } else { Ok(None) }
}

/// Runs Discord's check of `azera doctor`.
pub async fn check(config: &Config) -> Found {
    if config.discord.token.is_some() {
        return Found::Bad(configured().to_string(), left_out::INSTALL.into());
    }
    Found::Good("not configured".into())
}

/// Fails: `azera discord invite` needs the feature.
pub async fn invite(_config: &Config) -> anyhow::Result<ExitCode> {
    Err(left_out::error("`azera discord invite` asks Discord", PART))
}
