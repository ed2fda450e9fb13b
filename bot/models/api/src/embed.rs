use async_trait::async_trait;

use crate::{Error, Priority};

/// What an embedding is for; some models want the two told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// A text that looks for others.
    Query,
    /// A text to be found.
    Document,
}

/// What an embedding model is.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbedderInfo {
    /// Identity of its vectors: name and content of the model. Vectors of two ids are never compared or mixed.
    pub id: String,
    /// Components of a vector.
    pub dimension: usize,
    /// Cosine similarity below which a hit means nothing, from the model's ledger entry.
    pub similarity_floor: f32,
    /// Whether a question gets another vector than a document of the same text.
    pub asks_otherwise: bool,
}

/// A model that turns texts into unit vectors.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// What it is.
    fn info(&self) -> &EmbedderInfo;

    /// One vector of length 1 for each text, in order; what exceeds the model's window is cut off. An empty text gets
    /// a vector too.
    async fn embed(&self, texts: Vec<String>, purpose: Purpose, priority: Priority) -> Result<Vec<Vec<f32>>, Error>;
}
