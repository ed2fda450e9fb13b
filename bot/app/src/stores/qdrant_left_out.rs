//! What stands in the place of Qdrant in a build without the feature `qdrant`.

use std::path::Path;
use std::sync::Arc;

use azera_config::Config;
use azera_memory::VectorIndex;
use azera_memory_vector::EdgeVectors;

use super::{OnServers, VECTOR_SERVER};
use crate::doctor::Found;
use crate::left_out;

const PART: &str = "the client for Qdrant";

fn configured() -> anyhow::Error {
    left_out::error("vector_server.url is set", PART)
}

/// The vector index on this machine.
///
/// # Errors
/// If a server is configured, or if one mirrored this data folder before: only a build with the client can note that it does not
/// any more.
pub fn vectors(
    config: &Config,
    data: &Path,
    local: EdgeVectors,
    _dimension: usize,
    _on: &mut OnServers,
) -> anyhow::Result<Arc<dyn VectorIndex>> {
    if config.vector_server.url.is_some() {
        return Err(configured());
    }
    if data.join(VECTOR_SERVER).exists() {
        return Err(left_out::error("a server mirrored the vector index of this data folder", PART));
    }
    Ok(Arc::new(local))
}

/// What `azera doctor` says about the vector index.
pub async fn check(config: &Config) -> Found {
    match config.vector_server.url {
        Some(_) => Found::Bad(configured().to_string(), left_out::INSTALL.into()),
        None => Found::Good("on this machine".into()),
    }
}
