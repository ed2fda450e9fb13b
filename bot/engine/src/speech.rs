//! What hears and speaks for the engine.

use std::sync::Arc;

use azera_memory::{Forget, VoiceReplies};
use azera_voice_api::{Listener, SampleStore, Speaker};

use crate::clones::UnansweredSamples;
use crate::engine::Engine;
use crate::error::Error;

/// What hears voice messages and speaks replies. Either may be missing.
#[derive(Clone, Default)]
pub struct Voice {
    /// Hears voice messages.
    pub listener: Option<Arc<dyn Listener>>,
    /// Speaks replies.
    pub speaker: Option<Arc<dyn Speaker>>,
    /// Keeps recordings of people's voices.
    pub samples: Option<Arc<dyn SampleStore>>,
    /// When replies are also spoken, unless a chat has its own setting.
    pub replies: VoiceReplies,
}

impl std::fmt::Debug for Voice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Voice").field("replies", &self.replies).finish_non_exhaustive()
    }
}

impl Engine {
    /// Lets the engine hear and speak. Call it once, before [`Engine::start`]; later calls change nothing.
    pub fn give_voice(&self, voice: Voice) {
        let keeps_samples = voice.samples.is_some();
        if self.0.services.voice.set(voice).is_ok() && keeps_samples {
            self.add_job(Arc::new(UnansweredSamples(Arc::clone(&self.0.services))));
        }
    }

    /// Removes the recordings of voices that go with what is forgotten, and lets nothing speak with them any more. Returns
    /// how many those are.
    ///
    /// # Errors
    /// The recordings cannot be listed or removed, or the record fails.
    pub async fn forget_samples(&self, what: &Forget) -> Result<usize, Error> {
        self.0.services.forget_samples(what).await
    }
}
