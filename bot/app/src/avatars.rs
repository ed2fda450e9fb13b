//! The names and pictures of personas, read from the record.

use std::sync::Arc;

use async_trait::async_trait;
use azera_adapter::{Avatars, Picture};
use azera_memory::Memory;
use azera_types::PersonaId;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::persona::media_type;

pub struct RecordAvatars {
    memory: Arc<Memory>,
    usual: PersonaId,
}

impl RecordAvatars {
    /// Creates a reader. `usual` is the default persona.
    pub fn new(memory: Arc<Memory>, usual: PersonaId) -> Self {
        Self { memory, usual }
    }

    /// Reads the record on a blocking thread. Returns `None` on an error: replies then have no picture.
    async fn read<T: Send + 'static>(
        &self,
        from: impl FnOnce(&Memory) -> Result<Option<T>, azera_memory::Error> + Send + 'static,
    ) -> Option<T> {
        let memory = self.memory.clone();
        match tokio::task::spawn_blocking(move || from(&memory)).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => {
                tracing::warn!(%error, "cannot read a persona's name or picture");
                None
            }
            Err(_) => None,
        }
    }
}

#[async_trait]
impl Avatars for RecordAvatars {
    async fn usual(&self) -> Option<(PersonaId, String)> {
        let id = self.usual.clone();
        let row = self.read(move |memory| memory.personas().get(None, &id)).await?;
        let persona = azera_personas::parse(&row.markdown).ok()?;
        Some((row.id, persona.name))
    }

    async fn picture(&self, persona: &PersonaId) -> Option<Picture> {
        let identity = persona.clone();
        let bytes = STANDARD.decode(self.read(move |memory| memory.personas().picture(&identity)).await?).ok()?;
        let media_type = media_type(&bytes)?;
        Some(Picture { bytes, media_type })
    }
}
