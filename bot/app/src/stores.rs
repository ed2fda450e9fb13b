//! Stores on servers, as the configuration names them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use azera_config::Config;
use azera_memory::{VectorIndex, Working};
use azera_memory_qdrant::{MirroredVectors, QdrantConfig, QdrantVectors};
use azera_memory_redis::{FallbackWorking, RedisConfig, RedisWorking};
use azera_memory_remote::Patience;
use azera_memory_sled::SledWorking;
use azera_memory_vector::EdgeVectors;

/// The file that says what the server of working memory holds and is owed.
const WORKING_SERVER: &str = "working_server.json";

/// The folder of what the server of the vector index is owed.
const VECTOR_SERVER: &str = "vector_server";

/// The stores that servers have a part in.
#[derive(Clone, Default)]
pub struct OnServers {
    working: Option<Arc<FallbackWorking<RedisWorking, SledWorking>>>,
    vectors: Option<Arc<MirroredVectors<EdgeVectors>>>,
}

impl OnServers {
    /// Waits until the servers know of every change, at most for so long with each; gives whether they do, or nothing if
    /// there is none. A server that fails is not waited for.
    pub fn wait(&self, at_most: Duration) -> Option<bool> {
        let working = self.working.as_ref().map(|working| working.wait(at_most));
        let vectors = self.vectors.as_ref().map(|vectors| vectors.give(at_most));
        working.into_iter().chain(vectors).reduce(|one, two| one && two)
    }
}

/// Working memory: files on this machine, behind a server if one is configured, which is then noted in `on`.
pub fn working(config: &Config, data: &Path, on: &mut OnServers) -> anyhow::Result<Arc<dyn Working>> {
    let local = SledWorking::open(data.join("working")).context("opening working memory")?;
    Ok(match working_server(config)? {
        Some(server) => {
            let both = Arc::new(FallbackWorking::new(server, local, data.join(WORKING_SERVER))?);
            on.working = Some(both.clone());
            both
        }
        None => {
            azera_memory_redis::leave(data.join(WORKING_SERVER))?;
            Arc::new(local)
        }
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

/// The vector index: the one on this machine, mirrored to a server if one is configured, which is then noted in `on`.
pub fn vectors(
    config: &Config,
    data: &Path,
    local: EdgeVectors,
    dimension: usize,
    on: &mut OnServers,
) -> anyhow::Result<Arc<dyn VectorIndex>> {
    Ok(match vector_config(config, dimension) {
        Some(server) => {
            let mirrored = MirroredVectors::open(local, server, data.join(VECTOR_SERVER)).context("vector_server")?;
            let mirrored = Arc::new(mirrored);
            on.vectors = Some(mirrored.clone());
            mirrored
        }
        None => {
            MirroredVectors::<EdgeVectors>::leave(data.join(VECTOR_SERVER))?;
            Arc::new(local)
        }
    })
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

/// The server of the vector index, if one is configured, for looking at what a data folder has there.
pub fn vector_server(config: &Config, data: &Path, dimension: usize) -> anyhow::Result<Option<QdrantVectors>> {
    let Some(mut server) = vector_config(config, dimension) else { return Ok(None) };
    server.secret = MirroredVectors::<EdgeVectors>::secret(data.join(VECTOR_SERVER))?.unwrap_or_default();
    Ok(Some(QdrantVectors::new(server).context("vector_server")?))
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

fn vector_config(config: &Config, dimension: usize) -> Option<QdrantConfig> {
    let own = &config.vector_server;
    Some(QdrantConfig {
        url: own.url.clone()?,
        key: own.key.as_ref().map(|key| key.expose().to_owned()),
        collection: own.collection.clone(),
        dimension,
        // The data folder has one.
        secret: String::new(),
        patience: Patience::default(),
    })
}
