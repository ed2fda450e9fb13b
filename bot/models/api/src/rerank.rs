//! Models that tell how well texts answer a question.

use std::time::Duration;

use async_trait::async_trait;

use crate::Error;

/// What a caller needs to know of a [`Reranker`].
#[derive(Debug, Clone, PartialEq)]
pub struct RerankerInfo {
    /// The name for people, without a key.
    pub name: String,
    /// The most texts of one request.
    pub candidates: usize,
    /// The share of this model's opinion in the order, 0 to 1. The rest is the order as it was.
    pub weight: f32,
    /// The longest wait for an answer. A later one is dropped.
    pub wait: Duration,
}

/// A model that reads a question and a text together, and tells how well the text answers the question (a cross-encoder).
#[async_trait]
pub trait Reranker: Send + Sync {
    /// Returns what a caller needs to know.
    fn info(&self) -> &RerankerInfo;

    /// Returns one finite score for each text, in their order. A higher score is a better answer. Scores are comparable
    /// within one call only.
    ///
    /// # Errors
    /// [`Error`] if there is no answer within [`RerankerInfo::wait`], or one that cannot be used. Nothing is sent again.
    async fn rerank(&self, question: &str, texts: &[String]) -> Result<Vec<f32>, Error>;
}
