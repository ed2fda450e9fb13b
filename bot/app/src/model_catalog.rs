//! The models that `/model` lists and loads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use azera_config::Config;
use azera_engine::{CatalogModel, ModelCatalog};
use azera_model_api::ChatModel;
use azera_model_registry::{Error, Kind, Models, State, Step};
use azera_types::Clock;

use crate::bootstrap::{load_chat, now_text};
use crate::servers;

/// The model registry, as the engine sees it.
pub struct RegistryCatalog {
    config: Config,
    models: Models,
    clock: Arc<dyn Clock>,
    /// Models being fetched, with percent received.
    fetching: Arc<Mutex<HashMap<String, u8>>>,
    /// Error of each model's last failed fetch.
    failed: Arc<Mutex<HashMap<String, String>>>,
}

impl RegistryCatalog {
    pub fn new(config: Config, models: Models, clock: Arc<dyn Clock>) -> Self {
        Self { config, models, clock, fetching: Arc::default(), failed: Arc::default() }
    }
}

#[async_trait]
impl ModelCatalog for RegistryCatalog {
    fn list(&self) -> Vec<CatalogModel> {
        let listed = self.models.list().unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read the models folder");
            Vec::new()
        });
        let server = servers::configured(&self.config, Kind::Chat);
        let on_server = server.map(|server| CatalogModel {
            title: format!("on a server ({})", server.api.as_str()),
            name: server.full_name(),
            installed: true,
            bytes: None,
            fetched: None,
            failed: None,
        });
        let (fetching, failed) = (lock(&self.fetching).clone(), lock(&self.failed).clone());
        let here = listed.into_iter().filter(|listed| listed.entry.kind == Kind::Chat).map(|listed| CatalogModel {
            fetched: fetching.get(&listed.entry.name).copied(),
            failed: failed.get(&listed.entry.name).cloned(),
            name: listed.entry.name,
            title: listed.entry.title,
            installed: matches!(listed.state, State::Installed(_)),
            bytes: match &listed.state {
                State::Installed(manifest) => Some(manifest.size),
                _ => None,
            },
        });
        on_server.into_iter().chain(here).collect()
    }

    async fn load(&self, name: &str) -> Result<Arc<dyn ChatModel>, String> {
        if let Some(server) =
            servers::configured(&self.config, Kind::Chat).filter(|_| servers::is_server_model(&self.config, name))
        {
            return servers::chat(&self.config, server).await.map_err(|error| format!("{error:#}"));
        }
        let found = self.models.find(name).map_err(|error| error.to_string())?;
        let Some(installed) = found.filter(|installed| installed.entry.kind == Kind::Chat) else {
            return Err(format!("No chat model `{name}` is installed; `/model pull {name}` fetches it."));
        };
        let (config, models, clock) = (self.config.clone(), self.models.clone(), self.clock.clone());
        let loaded = tokio::task::spawn_blocking(move || load_chat(&config, &models, &installed, false, clock)).await;
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
        lock(&self.failed).remove(name);
        let (models, name) = (self.models.clone(), name.to_owned());
        let (fetching, failed) = (self.fetching.clone(), self.failed.clone());
        let reply_text = format!("{name} is being fetched; `/model list` says how far that is and when it is here.");
        tokio::spawn(async move {
            let step = |step: Step<'_>| {
                if let Step::Receiving { received, total: Some(total), .. } = step {
                    let percent = received.saturating_mul(100) / total.max(1);
                    lock(&fetching).insert(name.clone(), u8::try_from(percent.min(100)).unwrap_or(100));
                }
            };
            match models.pull(&name, &now_text(), &step).await {
                Ok(manifest) => tracing::info!(name, megabytes = manifest.size >> 20, "model installed"),
                Err(error) => {
                    tracing::error!(name, %error, "cannot fetch the model");
                    lock(&failed).insert(name.clone(), error.to_string());
                }
            }
            lock(&fetching).remove(&name);
        });
        Ok(reply_text)
    }

    async fn remove(&self, name: &str) -> Result<String, String> {
        let (models, of) = (self.models.clone(), name.to_owned());
        let removed = tokio::task::spawn_blocking(move || models.remove(&of, false)).await;
        let bytes = removed.map_err(|error| error.to_string())?.map_err(removal_error)?;
        Ok(format!("{name} is removed: {} MB are free again.", bytes >> 20))
    }
}

/// Explains in a chat why a model was not removed. Leaves out advice that needs a terminal.
fn removal_error(error: Error) -> String {
    match error {
        Error::InUse { name, .. } => {
            format!(
                "{name} is the model that Azera starts with, so it cannot be removed. The person who runs Azera can choose another one."
            )
        }
        Error::NotInstalled { name } => format!("{name} is not here; `/model list` shows what is."),
        Error::UnknownModel { name, .. } | Error::InvalidName { name } => {
            format!("There is no model `{name}`; `/model list` names them.")
        }
        other => other.to_string(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use azera_model_registry::Options;
    use azera_types::SystemClock;

    use super::*;

    #[tokio::test]
    async fn the_list_shows_why_a_fetch_failed() {
        let folder = tempfile::tempdir().unwrap();
        let options =
            Options { hub_endpoint: "http://127.0.0.1:9".to_owned(), hub_attempts: 0, ..Options::new(folder.path()) };
        let catalog = RegistryCatalog::new(Config::default(), Models::open(options).unwrap(), Arc::new(SystemClock));
        let listed = || catalog.list().into_iter().find(|model| model.name == "qwen3-4b").unwrap();
        assert_eq!(listed().failed, None);
        catalog.pull("qwen3-4b").await.unwrap();
        let failed = async {
            loop {
                match listed() {
                    CatalogModel { fetched: None, failed: Some(failed), .. } => return failed,
                    _ => tokio::task::yield_now().await,
                }
            }
        };
        let failed = tokio::time::timeout(std::time::Duration::from_secs(60), failed).await.unwrap();
        assert!(failed.contains("127.0.0.1:9"), "{failed}");
        let unloaded = catalog.load("qwen3-4b").await.err().unwrap();
        assert!(unloaded.contains("`/model pull qwen3-4b`"), "{unloaded}");
    }

    #[test]
    fn removal_errors_in_a_chat_name_no_terminal_command() {
        let name = || "tiny".to_owned();
        let known = vec!["tiny".to_owned()];
        for error in [
            Error::InUse { name: name(), kind: Kind::Chat },
            Error::NotInstalled { name: name() },
            Error::UnknownModel { name: name(), known },
        ] {
            let reply_text = removal_error(error);
            assert!(
                reply_text.contains("tiny") && !reply_text.contains("--") && !reply_text.contains("azera models"),
                "{reply_text}"
            );
        }
    }
}
