//! The models `/model` can list and load.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use azera_chat::{ModelShelf, ShelvedModel};
use azera_config::Config;
use azera_ledger::{Kind, Models, State, Step};
use azera_model::ChatModel;

use crate::house::{load_chat, now_text};
use crate::servers;

/// The ledger as the core sees it.
pub struct Shelf {
    config: Config,
    models: Models,
    /// What is being fetched, and how much of it is here, in percent.
    fetching: Arc<Mutex<HashMap<String, u8>>>,
}

impl Shelf {
    pub fn new(config: Config, models: Models) -> Self {
        Self { config, models, fetching: Arc::default() }
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
            fetched: None,
        });
        let fetching = lock(&self.fetching).clone();
        let here = listed.into_iter().filter(|listed| listed.entry.kind == Kind::Chat).map(|listed| ShelvedModel {
            fetched: fetching.get(&listed.entry.name).copied(),
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
        let (config, models) = (self.config.clone(), self.models.clone());
        let loaded = tokio::task::spawn_blocking(move || load_chat(&config, &models, &installed)).await;
        loaded.map_err(|error| error.to_string())?.map_err(|error| format!("{error:#}"))
    }

    async fn pull(&self, name: &str) -> Result<String, String> {
        let known = self.models.list().map_err(|error| error.to_string())?;
        if !known.iter().any(|listed| listed.entry.kind == Kind::Chat && listed.entry.name == name) {
            return Err(format!("There is no chat model `{name}`; `/model list` names them."));
        }
        if self.models.find(name).map_err(|error| error.to_string())?.is_some() {
            return Err(format!("{name} is here; `/model use {name}` takes it."));
        }
        if lock(&self.fetching).insert(name.to_owned(), 0).is_some() {
            return Err(format!("{name} is being fetched; `/model list` says how far that is."));
        }
        let (models, fetching, name) = (self.models.clone(), self.fetching.clone(), name.to_owned());
        let told = format!("{name} is being fetched; `/model list` says how far that is and when it is here.");
        tokio::spawn(async move {
            let step = |step: Step<'_>| {
                if let Step::Receiving { received, total: Some(total), .. } = step {
                    let percent = received.saturating_mul(100) / total.max(1);
                    lock(&fetching).insert(name.clone(), u8::try_from(percent.min(100)).unwrap_or(100));
                }
            };
            match models.pull(&name, &now_text(), &step).await {
                Ok(manifest) => tracing::info!(name, megabytes = manifest.size >> 20, "a model is installed"),
                Err(error) => tracing::error!(name, %error, "a model could not be fetched"),
            }
            lock(&fetching).remove(&name);
        });
        Ok(told)
    }

    async fn remove(&self, name: &str) -> Result<String, String> {
        let (models, of) = (self.models.clone(), name.to_owned());
        let removed = tokio::task::spawn_blocking(move || models.remove(&of, false)).await;
        let bytes = removed.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        Ok(format!("{name} is removed: {} MB are free again.", bytes >> 20))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
