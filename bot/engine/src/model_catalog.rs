use std::sync::Arc;

use async_trait::async_trait;
use azera_model_api::ChatModel;

/// A chat model as `/model` lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogModel {
    /// Its name in the ledger.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Whether its file is on this machine.
    pub installed: bool,
    /// How much of it is here, in percent, while it is fetched.
    pub fetched: Option<u8>,
    /// Why it could not be fetched when that was last tried; for the operator, as it may name what is theirs.
    pub failed: Option<String>,
}

/// The chat models there are besides the one that answers.
#[async_trait]
pub trait ModelCatalog: Send + Sync {
    /// Every chat model known.
    fn list(&self) -> Vec<CatalogModel>;

    /// Loads an installed model; the error is a sentence for the person who asked.
    async fn load(&self, name: &str) -> Result<Arc<dyn ChatModel>, String>;

    /// Begins to fetch a model; how far that is, the list tells. What is done, or why not, in a sentence for the person who
    /// asked.
    async fn pull(&self, name: &str) -> Result<String, String>;

    /// Removes a model's file; the same.
    async fn remove(&self, name: &str) -> Result<String, String>;
}
