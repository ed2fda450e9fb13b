//! The vector index on a Qdrant server.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use azera_config::Config;
use azera_memory::VectorIndex;
use azera_memory_qdrant::{MirroredVectors, QdrantConfig, QdrantVectors};
use azera_memory_remote::RetryPolicy;
use azera_memory_vector::EmbeddedVectors;

use super::{OnServers, VECTOR_SERVER};
use crate::bootstrap;
use crate::doctor::{Found, has_embedder, unencrypted};

/// Returns the vector index. It is local, and mirrored to a server if one is configured. Adds that server to `on`.
pub fn vectors(
    config: &Config,
    data: &Path,
    local: EmbeddedVectors,
    dimension: usize,
    on: &mut OnServers,
) -> anyhow::Result<Arc<dyn VectorIndex>> {
    Ok(match server_config(config, dimension) {
        Some(server) => {
            let mirrored = MirroredVectors::open(local, server, data.join(VECTOR_SERVER)).context("vector_server")?;
            let mirrored = Arc::new(mirrored);
            let mirror = mirrored.clone();
            on.0.push(Arc::new(move |at_most| mirror.give(at_most)));
            mirrored
        }
        None => {
            MirroredVectors::<EmbeddedVectors>::leave(data.join(VECTOR_SERVER))?;
            Arc::new(local)
        }
    })
}

/// Returns a client that reads a data folder's collection, if a server is configured.
fn server(config: &Config, data: &Path, dimension: usize) -> anyhow::Result<Option<QdrantVectors>> {
    let Some(mut server) = server_config(config, dimension) else { return Ok(None) };
    server.secret = MirroredVectors::<EmbeddedVectors>::secret(data.join(VECTOR_SERVER))?.unwrap_or_default();
    Ok(Some(QdrantVectors::new(server).context("vector_server")?))
}

fn server_config(config: &Config, dimension: usize) -> Option<QdrantConfig> {
    let settings = &config.vector_server;
    Some(QdrantConfig {
        url: settings.url.clone()?,
        key: settings.key.as_ref().map(|key| key.expose().to_owned()),
        collection: settings.collection.clone(),
        dimension,
        // The secret lies in the data folder.
        secret: String::new(),
        patience: RetryPolicy::default(),
    })
}

/// Runs the vector index's check of `azera doctor`.
pub async fn check(config: &Config) -> Found {
    if config.vector_server.url.is_none() {
        return Found::Good("on this machine".into());
    }
    let found = async {
        if !has_embedder(config)? {
            return Ok(None);
        }
        let dimension = bootstrap::present_embedder_info(config).await?.dimension;
        server(config, &config.data_dir()?, dimension)
    };
    match found.await {
        Ok(None) => Found::Note("on a server, which is looked at once the embedding model is here".into()),
        Ok(Some(server)) => match server.about() {
            Ok(about) => {
                let points = about
                    .points
                    .map_or_else(|| "nothing there yet".into(), |points| format!("{points} memories there"));
                let url = config.vector_server.url.as_deref().unwrap_or_default();
                let what = format!("Qdrant {} at {url}, {points}", about.version);
                if about.readable { unencrypted(&what, "it", "TLS") } else { Found::Good(what) }
            }
            Err(error) => Found::Note(format!(
                "{error}; until it answers, the index on this machine is searched: see [vector_server] in the configuration"
            )),
        },
        Err(error) => {
            Found::Bad(format!("{error:#}"), "see [vector_server] and [embedding_server] in the configuration".into())
        }
    }
}
