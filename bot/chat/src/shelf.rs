use std::sync::Arc;

use async_trait::async_trait;
use azera_model::ChatModel;

/// A chat model as `/model` lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShelvedModel {
    /// Its name in the ledger.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Whether its file is on this machine.
    pub installed: bool,
}

/// The chat models there are besides the one that answers.
#[async_trait]
pub trait ModelShelf: Send + Sync {
    /// Every chat model known.
    fn list(&self) -> Vec<ShelvedModel>;

    /// Loads an installed model; the error is a sentence for the person who asked.
    async fn load(&self, name: &str) -> Result<Arc<dyn ChatModel>, String>;
}
