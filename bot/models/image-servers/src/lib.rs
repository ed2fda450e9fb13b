//! Models on servers that draw pictures, behind [`azera_model_image::ImageModel`]: the project's own sidecar,
//! AUTOMATIC1111 and Forge, ComfyUI, and servers with OpenAI's interface for pictures. Start with [`connect`];
//! `server.rs` sends every request, and a file for each kind holds its format. [`VisionServer`] is the client of models
//! that see, behind [`azera_model_image::Viewer`].
//!
//! Invariants:
//! - Requests go to the configured server and nowhere else. Redirects and addresses of other servers in answers are not
//!   followed, and proxies of the environment are not used.
//! - Everything that arrives has a limit: answers, lines, previews, and the wait for each.
//! - A server that keeps failing gets no requests for a while (`azera-breaker`).
//! - No log, error or `Debug` contains a key or a prompt. A server's own words are cut, and left out if they repeat the
//!   prompt or the key.

mod address;
mod automatic1111;
mod comfyui;
mod config;
mod events;
mod openai;
mod server;
mod sidecar;
mod socket;
mod vision;
mod workflow;

use std::sync::Arc;

use azera_model_image::{ImageError, ImageModel};

pub use config::{ImageServerConfig, ImageServerKind, Secret, Timeouts};
pub use vision::{VisionConfig, VisionServer};
pub use workflow::PLACEHOLDERS;

/// Makes the client of a server. Sends nothing yet.
///
/// # Errors
/// [`ImageError::Configuration`] says which setting is wrong.
pub fn connect(config: ImageServerConfig) -> Result<Arc<dyn ImageModel>, ImageError> {
    Ok(match config.kind {
        ImageServerKind::Sidecar => Arc::new(sidecar::Sidecar::new(config)?),
        ImageServerKind::Automatic1111 => Arc::new(automatic1111::Automatic1111::new(config)?),
        ImageServerKind::ComfyUi => Arc::new(comfyui::ComfyUi::new(config)?),
        ImageServerKind::OpenAi => Arc::new(openai::OpenAi::new(config)?),
    })
}
