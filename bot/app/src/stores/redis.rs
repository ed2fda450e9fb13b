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

/// Working memory: files on this machine, behind a server if one is configured, which is then noted in `on`.
pub fn working(config: &Config, data: &Path, on: &mut OnServers) -> anyhow::Result<Arc<dyn Working>> {
    let local = SledWorking::open(data.join("working")).context("opening working memory")?;
    Ok(match server(config)? {
        Some(server) => {
            let both = Arc::new(FallbackWorking::new(server, local, data.join(WORKING_SERVER))?);
            let waiting = both.clone();
            on.0.push(Arc::new(move |at_most| waiting.wait(at_most)));
            both
        }
        None => {
            azera_memory_redis::leave(data.join(WORKING_SERVER))?;
            Arc::new(local)
        }
    })
}

/// The server, if one is configured. It is not asked yet.
fn server(config: &Config) -> anyhow::Result<Option<RedisWorking>> {
    let own = &config.working_server;
    let Some(url) = &own.url else { return Ok(None) };
    let redis = RedisConfig {
        url: url.clone(),
        password: own.password.as_ref().map(|password| password.expose().to_owned()),
        prefix: own.prefix.clone(),
        patience: RetryPolicy::default(),
    };
    Ok(Some(RedisWorking::new(redis).context("working_server")?))
}

/// What `azera doctor` says about working memory.
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
