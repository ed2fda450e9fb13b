//! Replaces `redis` in a build without the feature `redis`.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use azera_config::Config;
use azera_memory::Working;
use azera_memory_sled::SledWorking;

use super::{OnServers, WORKING_SERVER};
use crate::doctor::Found;
use crate::left_out;

const PART: &str = "the client for Redis";

fn configured() -> anyhow::Error {
    left_out::error("working_server.url is set", PART)
}

/// Returns working memory in local files.
///
/// # Errors
///
/// Fails if a server is configured, or if one held working memory of this data folder before. Only a build with the
/// client can record that this has ended.
pub fn working(config: &Config, data: &Path, _on: &mut OnServers) -> anyhow::Result<Arc<dyn Working>> {
    if config.working_server.url.is_some() {
        return Err(configured());
    }
    if data.join(WORKING_SERVER).exists() {
        return Err(left_out::error("a server held working memory of this data folder", PART));
    }
    Ok(Arc::new(SledWorking::open(data.join("working")).context("opening working memory")?))
}

/// Runs working memory's check of `azera doctor`.
pub fn check(config: &Config) -> Found {
    match config.working_server.url {
        Some(_) => Found::Bad(configured().to_string(), left_out::INSTALL.into()),
        None => Found::Good("on this machine".into()),
    }
}
