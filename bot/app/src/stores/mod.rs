//! Stores on servers, as the configuration names them: working memory on Redis, the vector index on Qdrant.

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

/// The file that says what the server of working memory holds and is owed.
const WORKING_SERVER: &str = "working_server.json";

/// The folder of what the server of the vector index is owed.
const VECTOR_SERVER: &str = "vector_server";

/// Waits until a server knows of every change, at most for so long; returns whether it does.
type Wait = Arc<dyn Fn(Duration) -> bool + Send + Sync>;

/// The stores that servers have a part in.
#[derive(Clone, Default)]
pub struct OnServers(Vec<Wait>);

impl OnServers {
    /// Waits until the servers know of every change, at most for so long with each; gives whether they do, or nothing if
    /// there is none. A server that fails is not waited for.
    pub fn wait(&self, at_most: Duration) -> Option<bool> {
        self.0.iter().map(|wait| wait(at_most)).reduce(|one, two| one && two)
    }
}

/// Addresses of the servers that get vectors of what is said, without what stands before an `@`.
pub fn addresses(config: &Config) -> Vec<String> {
    let urls = [&config.vector_server.url, &config.working_server.url].into_iter().flatten();
    let bare = |url: &String| match url.split_once("://") {
        Some((scheme, rest)) => format!("{scheme}://{}", rest.rsplit_once('@').map_or(rest, |(_, host)| host)),
        None => url.clone(),
    };
    urls.map(bare).collect()
}

/// The same configuration for made-up memories in another folder: they have no business on the servers of real ones, and
/// are worth no backup.
pub fn apart(config: &Config, data: &Path) -> Config {
    let mut config = config.clone();
    config.data.dir = Some(data.to_path_buf());
    config.backup.enabled = false;
    config.vector_server.url = None;
    config.working_server.url = None;
    config
}
