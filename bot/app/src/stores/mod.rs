//! Stores on servers, by the configuration: working memory on Redis, the vector index on Qdrant.

#[cfg(feature = "qdrant")]
mod qdrant;
#[cfg(not(feature = "qdrant"))]
#[path = "qdrant_left_out.rs"]
mod qdrant;
#[cfg(feature = "redis")]
mod redis;
#[cfg(not(feature = "redis"))]
#[path = "redis_left_out.rs"]
mod redis;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use azera_config::Config;

pub use qdrant::{check as check_vectors, vectors};
pub use redis::{check as check_working, working};

/// The file that says what the working memory server holds and which changes it still has to get.
const WORKING_SERVER: &str = "working_server.json";

/// The folder of changes that the vector index server still has to get.
const VECTOR_SERVER: &str = "vector_server";

/// Waits at most the given time until a server has every change. Returns true if it does.
type Wait = Arc<dyn Fn(Duration) -> bool + Send + Sync>;

/// The stores that use a server.
#[derive(Clone, Default)]
pub struct OnServers(Vec<Wait>);

impl OnServers {
    /// Waits until the servers have every change, at most `at_most` for each. Returns whether they do, or `None`
    /// without a server. Does not wait for a server that fails.
    pub fn wait(&self, at_most: Duration) -> Option<bool> {
        self.0.iter().map(|wait| wait(at_most)).reduce(|one, two| one && two)
    }
}

/// Returns the addresses of the servers that receive vectors of messages, without credentials.
pub fn addresses(config: &Config) -> Vec<String> {
    let urls = [&config.vector_server.url, &config.working_server.url].into_iter().flatten();
    let bare = |url: &String| match url.split_once("://") {
        Some((scheme, rest)) => format!("{scheme}://{}", rest.rsplit_once('@').map_or(rest, |(_, host)| host)),
        None => url.clone(),
    };
    urls.map(bare).collect()
}

/// Returns the configuration for made-up memories in another folder: without the servers of real memories and without
/// backups.
pub fn scratch_config(config: &Config, data: &Path) -> Config {
    let mut config = config.clone();
    config.data.dir = Some(data.to_path_buf());
    config.backup.enabled = false;
    config.vector_server.url = None;
    config.working_server.url = None;
    config
}
