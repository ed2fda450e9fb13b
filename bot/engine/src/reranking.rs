//! Asks a model that reads question and memory together how well each memory answers. Recall works the same without one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use azera_memory::{Opinion, Shortlist};
use azera_model_api::Reranker;
use azera_types::MemoryId;

use crate::engine::Engine;
use crate::services::Services;

/// The name of this part of recall, for people.
const NAME: &str = "reranker";

/// What came of asking the model.
#[derive(Debug)]
pub(crate) enum Reranked {
    /// There is no model, or nothing to order.
    Unasked,
    By(Opinion),
    /// The model did not answer in time, or not well. Holds its name in the list of what is missing.
    Missing(&'static str),
}

/// The model that reranks, if there is one.
pub(crate) struct Reranking {
    services: Arc<Services>,
    /// Whether the model failed last time. The log names each change once.
    failing: AtomicBool,
}

impl Engine {
    /// Lets a model rerank what recall finds. Call it once, before [`Engine::start`]; later calls change nothing.
    pub fn give_reranker(&self, reranker: Arc<dyn Reranker>) {
        self.0.services.reranker.get_or_init(|| reranker);
    }
}

impl Reranking {
    pub(crate) fn new(services: Arc<Services>) -> Self {
        Self { services, failing: AtomicBool::new(false) }
    }

    /// Returns how many hits the model reads; 0 without a model.
    pub(crate) fn candidates(&self) -> usize {
        self.services.reranker.get().map_or(0, |reranker| reranker.info().candidates)
    }

    /// Asks the model about the first hits of a shortlist, which holds only what its readers may read.
    pub(crate) async fn ask(&self, question: &str, shortlist: &Shortlist) -> Reranked {
        let Some(reranker) = self.services.reranker.get() else { return Reranked::Unasked };
        let (ids, texts): (Vec<MemoryId>, Vec<String>) =
            shortlist.texts(reranker.info().candidates).map(|(id, text)| (id, text.to_owned())).unzip();
        if texts.len() < 2 {
            return Reranked::Unasked;
        }
        match reranker.rerank(question, &texts).await {
            Ok(scores) => {
                if self.failing.swap(false, Ordering::AcqRel) {
                    tracing::info!("recall is reranked again");
                }
                Reranked::By(Opinion { scores: ids.into_iter().zip(scores).collect(), weight: reranker.info().weight })
            }
            Err(error) => {
                if self.failing.swap(true, Ordering::AcqRel) {
                    tracing::debug!(%error, "recall goes on without the reranker");
                } else {
                    tracing::warn!(%error, "recall goes on without the reranker until it answers again");
                }
                Reranked::Missing(NAME)
            }
        }
    }
}
