//! The vector index on a Qdrant server.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use azera_config::Config;
use azera_memory::VectorIndex;
use azera_memory_qdrant::{MirroredVectors, QdrantConfig, QdrantVectors};
use azera_memory_remote::RetryPolicy;
use azera_memory_vector::EdgeVectors;

use super::{OnServers, VECTOR_SERVER};
use crate::bootstrap;
use crate::doctor::{Found, has_embedder, unencrypted};

/// The vector index: the one on this machine, mirrored to a server if one is configured, which is then noted in `on`.
pub fn vectors(
    config: &Config,
    data: &Path,
    local: EdgeVectors,
    dimension: usize,
    on: &mut OnServers,
) -> anyhow::Result<Arc<dyn VectorIndex>> {
    Ok(match server_config(config, dimension) {
        Some(server) => {
            let mirrored = MirroredVectors::open(local, server, data.join(VECTOR_SERVER)).context("vector_server")?;
            let mirrored = Arc::new(mirrored);
            let giving = mirrored.clone();
            on.0.push(Arc::new(move |at_most| giving.give(at_most)));
            mirrored
        }
        None => {
            MirroredVectors::<EdgeVectors>::leave(data.join(VECTOR_SERVER))?;
            Arc::new(local)
        }
    })
}

/// The server, if one is configured, for looking at what a data folder has there.
fn server(config: &Config, data: &Path, dimension: usize) -> anyhow::Result<Option<QdrantVectors>> {
    let Some(mut server) = server_config(config, dimension) else { return Ok(None) };
    server.secret = MirroredVectors::<EdgeVectors>::secret(data.join(VECTOR_SERVER))?.unwrap_or_default();
    Ok(Some(QdrantVectors::new(server).context("vector_server")?))
}

fn server_config(config: &Config, dimension: usize) -> Option<QdrantConfig> {
    let own = &config.vector_server;
    Some(QdrantConfig {
        url: own.url.clone()?,
        key: own.key.as_ref().map(|key| key.expose().to_owned()),
        collection: own.collection.clone(),
        dimension,
        // The data folder has one.
        secret: String::new(),
        patience: RetryPolicy::default(),
    })
}

/// What `azera doctor` says about the vector index.
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
