//! The server that sees pictures, as the configuration names it.

use std::sync::Arc;
use std::time::Duration;

use azera_config::Config;
use azera_engine::Engine;
use azera_model_image::SeeError;
use azera_model_image_servers::{Secret, VisionConfig, VisionServer};

use crate::doctor::Found;

/// Lets the engine see pictures, if a server is configured. Returns false if it is configured in a way that cannot work:
/// then nothing may draw, because finished pictures would be shown unchecked.
#[must_use]
pub fn give_sight(engine: &Engine, config: &Config) -> bool {
    match server(config) {
        Ok(None) => true,
        Ok(Some(server)) => {
            tracing::info!("pictures are seen by {}", server.name());
            engine.give_sight(Arc::new(server));
            true
        }
        Err(error) => {
            tracing::error!(
                "[vision_server] is left out, and nothing is drawn: {error}; `azera doctor` lists what is wrong"
            );
            false
        }
    }
}

/// Returns the configured server, if there is one.
pub fn server(config: &Config) -> Result<Option<VisionServer>, SeeError> {
    let settings = &config.vision_server;
    let Some(url) = settings.url.clone() else { return Ok(None) };
    let server = VisionConfig {
        url,
        model: settings.model.clone().unwrap_or_default(),
        key: settings.key.as_ref().map(|key| Secret::new(key.expose())),
        timeout: Duration::from_secs(settings.timeout_s),
    };
    VisionServer::new(server).map(Some)
}

/// Checks the server for `azera doctor`.
pub async fn check(config: &Config) -> Found {
    let server = match server(config) {
        Ok(None) => return Found::Good("no server: pictures that people show are not seen".into()),
        Ok(Some(server)) => server,
        Err(error) => return Found::Bad(error.to_string(), "correct [vision_server] in the configuration".into()),
    };
    match server.check().await {
        Ok(()) => Found::Good(server.name()),
        Err(error @ SeeError::Configuration(_)) => {
            Found::Bad(error.to_string(), "correct [vision_server] in the configuration".into())
        }
        Err(error) => Found::Note(format!("{error}; until it answers, pictures are not seen")),
    }
}
