//! What is noticed in a message and felt in a reply, and the learning that comes before it.

use std::fmt::Display;
use std::sync::Arc;

use azera_mind::{Felt, Senses, Tag};
use azera_model::Purpose;

use crate::azera::Azera;

impl Azera {
    /// Waits in the background for the senses to be learned, and feels from then on. [`azera_adapter::Host::settle`] waits
    /// for that too.
    pub fn learn<E: Display>(&self, learning: impl Future<Output = Result<Arc<Senses>, E>> + Send + 'static) {
        let core = self.clone();
        let Ok(under_way) = self.0.learning.clone().try_lock_owned() else { return };
        self.0.tasks.spawn(async move {
            let _under_way = under_way;
            tokio::select! {
                () = core.0.stopping.cancelled() => {}
                learned = learning => match learned {
                    Ok(senses) => drop(core.0.senses.set(senses)),
                    Err(error) => tracing::warn!(%error, "no moods are felt: telling them could not be learned"),
                },
            }
        });
    }

    /// Waits until nothing is being learned.
    pub(crate) async fn learned(&self) {
        drop(self.0.learning.lock().await);
    }

    /// What is felt in a reply; nothing as long as telling moods is not learned, or the embedding model is away.
    pub(crate) async fn felt(&self, reply: &str) -> Option<Felt> {
        let senses = self.0.senses.get()?;
        match self.embed_live(reply, Purpose::Document).await {
            Ok(vector) => Some(senses.mood.sense(reply, &vector)),
            Err(error) => {
                tracing::warn!(%error, "a reply's mood is not known");
                None
            }
        }
    }

    /// What a message is, whose vector it is; nothing as long as telling that is not learned.
    pub(crate) fn tags(&self, message: &str, vector: &[f32]) -> Vec<Tag> {
        self.0.senses.get().map_or_else(Vec::new, |senses| senses.tags.sense(message, vector))
    }
}
