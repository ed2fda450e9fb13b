//! Replaces `matrix` in a build without the feature `matrix`.

use std::sync::Arc;

use azera_config::Config;

use crate::doctor::Found;
use crate::left_out;
use crate::run::Connection;

fn configured() -> anyhow::Error {
    left_out::error("Matrix is configured", "Matrix")
}

fn is_configured(config: &Config) -> bool {
    config.matrix.homeserver.is_some() && config.matrix.user.is_some()
}

/// Returns `None`, because this build has no Matrix.
///
/// # Errors
///
/// Fails if a homeserver is configured.
pub async fn connect(config: &Config) -> anyhow::Result<Option<Arc<dyn Connection>>> {
    if is_configured(config) { Err(configured()) } else { Ok(None) }
}

/// Runs Matrix's check of `azera doctor`.
pub async fn check(config: &Config) -> Found {
    if is_configured(config) {
        return Found::Bad(configured().to_string(), left_out::INSTALL.into());
    }
    Found::Good("not configured".into())
}
