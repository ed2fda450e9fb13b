use async_trait::async_trait;

use crate::{Error, Priority};

/// The purpose of an embedding. Some models embed queries and documents differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// A text to search with.
    Query,
    /// A text to be found.
    Document,
}

/// Facts about an embedding model.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbedderInfo {
    /// The identity of its vectors: the model's name and content. Vectors with different ids are never compared or
    /// mixed.
    pub id: String,
    /// The number of components in a vector.
    pub dimension: usize,
    /// The cosine similarity below which a hit means nothing, from the model's entry in the registry.
    pub similarity_floor: f32,
    /// True if a query and a document with the same text get different vectors.
    pub asks_otherwise: bool,
}

/// A model that turns texts into unit vectors.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// Returns facts about the model.
    fn info(&self) -> &EmbedderInfo;

    /// Returns one vector of length 1 for each text, in order. Text beyond the model's window is cut off. An empty text
    /// gets a vector too.
    async fn embed(&self, texts: Vec<String>, purpose: Purpose, priority: Priority) -> Result<Vec<Vec<f32>>, Error>;
}
