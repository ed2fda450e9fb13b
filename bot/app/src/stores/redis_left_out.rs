//! What stands in the place of Redis in a build without the feature `redis`.

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

/// Working memory in files on this machine.
///
/// # Errors
/// If a server is configured, or if one held working memory of this data folder before: only a build with the client can note
/// that it does not any more.
pub fn working(config: &Config, data: &Path, _on: &mut OnServers) -> anyhow::Result<Arc<dyn Working>> {
    if config.working_server.url.is_some() {
        return Err(configured());
    }
    if data.join(WORKING_SERVER).exists() {
        return Err(left_out::error("a server held working memory of this data folder", PART));
    }
    Ok(Arc::new(SledWorking::open(data.join("working")).context("opening working memory")?))
}

/// What `azera doctor` says about working memory.
pub fn check(config: &Config) -> Found {
    match config.working_server.url {
        Some(_) => Found::Bad(configured().to_string(), left_out::INSTALL.into()),
        None => Found::Good("on this machine".into()),
    }
}
