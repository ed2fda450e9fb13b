//! What sees for the engine.

use std::sync::Arc;

use azera_model_image::Viewer;

use crate::engine::Engine;

impl Engine {
    /// Lets the engine see the pictures that people show, and judge those that it draws before anybody sees them. Call
    /// it wherever the engine draws, before [`Engine::start`]; later calls change nothing.
    pub fn give_sight(&self, viewer: Arc<dyn Viewer>) {
        self.0.services.viewer.get_or_init(|| viewer);
    }
}
