//! What is felt in a reply, and the learning that comes before it.

use std::fmt::Display;
use std::sync::Arc;

use azera_adapter::State;
use azera_mind::{Felt, Senses};
use azera_model::{Priority, Purpose};

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
        let embedded = self.0.embedder.embed(vec![reply.to_owned()], Purpose::Document, Priority::Live).await;
        match embedded {
            Ok(vectors) => vectors.first().map(|vector| senses.mood.sense(reply, vector)),
            Err(error) => {
                tracing::warn!(%error, "a reply's mood is not known");
                None
            }
        }
    }
}

/// The state after a reply in which this was felt.
pub(crate) fn state(felt: Option<Felt>) -> State {
    State {
        mood: felt.map(|felt| felt.mood.name().to_owned()),
        // From -1..1 to 0..1.
        mood_value: felt.map(|felt| felt.valence.midpoint(1.0)),
        energy: None,
    }
}
