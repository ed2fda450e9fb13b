//! The models `/model` can list and load.

use std::sync::Arc;

use async_trait::async_trait;
use azera_chat::{ModelShelf, ShelvedModel};
use azera_config::Config;
use azera_ledger::{Kind, Models, State};
use azera_model::ChatModel;

use crate::house::load_chat;
use crate::servers;

/// The ledger as the core sees it.
pub struct Shelf {
    config: Config,
    models: Models,
}

impl Shelf {
    pub fn new(config: Config, models: Models) -> Self {
        Self { config, models }
    }
}

#[async_trait]
impl ModelShelf for Shelf {
    fn list(&self) -> Vec<ShelvedModel> {
        let listed = self.models.list().unwrap_or_else(|error| {
            tracing::warn!(%error, "the models folder cannot be read");
            Vec::new()
        });
        let server = servers::configured(&self.config, Kind::Chat);
        let on_server = server.map(|server| ShelvedModel {
            title: format!("on a server ({})", server.api.as_str()),
            name: server.full_name(),
            installed: true,
        });
        let here = listed.into_iter().filter(|listed| listed.entry.kind == Kind::Chat).map(|listed| ShelvedModel {
            name: listed.entry.name,
            title: listed.entry.title,
            installed: matches!(listed.state, State::Installed(_)),
        });
        on_server.into_iter().chain(here).collect()
    }

    async fn load(&self, name: &str) -> Result<Arc<dyn ChatModel>, String> {
        if let Some(server) =
            servers::configured(&self.config, Kind::Chat).filter(|_| servers::means(&self.config, name))
        {
            return servers::chat(&self.config, server).await.map_err(|error| format!("{error:#}"));
        }
        let found = self.models.find(name).map_err(|error| error.to_string())?;
        let Some(installed) = found.filter(|installed| installed.entry.kind == Kind::Chat) else {
            return Err(format!("No chat model `{name}` is installed; `azera models pull {name}` fetches it."));
        };
        let config = self.config.clone();
        let loaded = tokio::task::spawn_blocking(move || load_chat(&config, &installed)).await;
        loaded.map_err(|error| error.to_string())?.map_err(|error| format!("{error:#}"))
    }
}
