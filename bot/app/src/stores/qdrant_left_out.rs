//! Replaces `qdrant` in a build without the feature `qdrant`.

use std::path::Path;
use std::sync::Arc;

use azera_config::Config;
use azera_memory::VectorIndex;
use azera_memory_vector::EmbeddedVectors;

use super::{OnServers, VECTOR_SERVER};
use crate::doctor::Found;
use crate::left_out;

const PART: &str = "the client for Qdrant";

fn configured() -> anyhow::Error {
    left_out::error("vector_server.url is set", PART)
}

/// Returns the local vector index.
///
/// # Errors
///
/// Fails if a server is configured, or if one mirrored this data folder before. Only a build with the client can record
/// that the mirroring has ended.
pub fn vectors(
    config: &Config,
    data: &Path,
    local: EmbeddedVectors,
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

/// Runs the vector index's check of `azera doctor`.
pub async fn check(config: &Config) -> Found {
    match config.vector_server.url {
        Some(_) => Found::Bad(configured().to_string(), left_out::INSTALL.into()),
        None => Found::Good("on this machine".into()),
    }
}
