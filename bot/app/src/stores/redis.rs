//! Working memory on a Redis server.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use azera_config::Config;
use azera_memory::Working;
use azera_memory_redis::{FallbackWorking, RedisConfig, RedisWorking};
use azera_memory_remote::RetryPolicy;
use azera_memory_sled::SledWorking;

use super::{OnServers, WORKING_SERVER};
use crate::doctor::{Found, unencrypted};

/// Returns working memory. It is in local files, behind a server if one is configured. Adds that server to `on`.
pub fn working(config: &Config, data: &Path, on: &mut OnServers) -> anyhow::Result<Arc<dyn Working>> {
    let local = SledWorking::open(data.join("working")).context("opening working memory")?;
    Ok(match server(config)? {
        Some(server) => {
            let with_fallback = Arc::new(FallbackWorking::new(server, local, data.join(WORKING_SERVER))?);
            let waiter = with_fallback.clone();
            on.0.push(Arc::new(move |at_most| waiter.wait(at_most)));
            with_fallback
        }
        None => {
            azera_memory_redis::leave(data.join(WORKING_SERVER))?;
            Arc::new(local)
        }
    })
}

/// Returns the server's client, if one is configured. Sends no request yet.
fn server(config: &Config) -> anyhow::Result<Option<RedisWorking>> {
    let settings = &config.working_server;
    let Some(url) = &settings.url else { return Ok(None) };
    let redis = RedisConfig {
        url: url.clone(),
        password: settings.password.as_ref().map(|password| password.expose().to_owned()),
        prefix: settings.prefix.clone(),
        patience: RetryPolicy::default(),
    };
    Ok(Some(RedisWorking::new(redis).context("working_server")?))
}

/// Runs working memory's check of `azera doctor`.
pub fn check(config: &Config) -> Found {
    match server(config) {
        Ok(None) => Found::Good("on this machine".into()),
        Ok(Some(server)) => match server.about() {
            Ok(about) => {
                let what = format!("{} on {}", about.version, about.server);
                if about.readable { unencrypted(&what, "it", "TLS") } else { Found::Good(what) }
            }
            Err(error) => Found::Note(format!(
                "{error}; until it answers, files on this machine stand in: see [working_server] in the configuration"
            )),
        },
        Err(error) => Found::Bad(format!("{error:#}"), "see [working_server] in the configuration".into()),
    }
}
