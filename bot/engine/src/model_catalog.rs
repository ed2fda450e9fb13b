use std::sync::Arc;

use async_trait::async_trait;
use azera_model_api::ChatModel;

/// A chat model as `/model` lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogModel {
    /// The model's name in the registry.
    pub name: String,
    /// One line of description for people.
    pub title: String,
    /// Whether its file is on this machine.
    pub installed: bool,
    /// The size of that file.
    pub bytes: Option<u64>,
    /// How much of it is downloaded, in percent, during a download.
    pub fetched: Option<u8>,
    /// Why the last download failed. Only the operator sees this, because it may name private things such as paths.
    pub failed: Option<String>,
}

/// The chat models available besides the one that answers.
#[async_trait]
pub trait ModelCatalog: Send + Sync {
    /// Returns every known chat model.
    fn list(&self) -> Vec<CatalogModel>;

    /// Loads an installed model. The error is a sentence for the person who asked.
    async fn load(&self, name: &str) -> Result<Arc<dyn ChatModel>, String>;

    /// Starts to download a model; [`ModelCatalog::list`] reports its progress. Returns a sentence for the person who
    /// asked, both on success and on failure.
    async fn pull(&self, name: &str) -> Result<String, String>;

    /// Removes a model's file. Returns a sentence for the person who asked, both on success and on failure.
    async fn remove(&self, name: &str) -> Result<String, String>;
}
