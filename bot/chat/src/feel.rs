//! What is noticed in a message and felt in a reply, and the learning that comes before it.

use std::fmt::Display;
use std::sync::Arc;

use azera_mind::{Felt, Senses, Tag};
use azera_model::Purpose;

use crate::azera::Azera;
use crate::recall::Recall;

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

    /// What a message is, as it stands: recall's vector leaves names out of questions, and what was learned was learned with them. By
    /// its words alone where the embedding model is away; nothing as long as telling it is not learned.
    pub(crate) async fn noticed(&self, message: &str, recall: &Recall) -> Vec<Tag> {
        if self.0.senses.get().is_none() {
            return Vec::new();
        }
        let vector = match &recall.vector {
            Some(vector) if recall.plain => vector.clone(),
            Some(_) => self.embed_live(message, Purpose::Document).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "a message is judged by its words alone");
                Vec::new()
            }),
            None => Vec::new(),
        };
        self.tags(message, &vector)
    }

    /// What a message is, whose vector it is; nothing as long as telling that is not learned.
    pub(crate) fn tags(&self, message: &str, vector: &[f32]) -> Vec<Tag> {
        self.0.senses.get().map_or_else(Vec::new, |senses| senses.tags.sense(message, vector))
    }
}
