//! Stores on servers, as the configuration names them.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use azera_config::Config;
use azera_memory::Working;
use azera_memory_redis::{FallbackWorking, RedisConfig, RedisWorking};
use azera_memory_remote::Patience;
use azera_memory_sled::SledWorking;

/// The file that is there while the server of working memory must be told what changed without it.
const WORKING_OWED: &str = "working_server.owed";

/// Working memory: files on this machine, behind a server if one is configured.
pub fn working(config: &Config, data: &Path) -> anyhow::Result<Arc<dyn Working>> {
    let local = SledWorking::open(data.join("working")).context("opening working memory")?;
    Ok(match working_server(config)? {
        Some(server) => Arc::new(FallbackWorking::new(server, local, data.join(WORKING_OWED))?),
        None => Arc::new(local),
    })
}

/// The server of working memory, if one is configured. It is not asked yet.
pub fn working_server(config: &Config) -> anyhow::Result<Option<RedisWorking>> {
    let own = &config.working_server;
    let Some(url) = &own.url else { return Ok(None) };
    let redis = RedisConfig {
        url: url.clone(),
        password: own.password.as_ref().map(|password| password.expose().to_owned()),
        prefix: own.prefix.clone(),
        patience: Patience::default(),
    };
    Ok(Some(RedisWorking::new(redis).context("working_server")?))
}
