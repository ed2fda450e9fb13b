//! The engines of speech for voice channels. They are prepared when somebody first asks the bot into one.

use async_trait::async_trait;
use azera_adapter_discord::{Engines, Speech};
use azera_config::Config;
use tokio::sync::OnceCell;

use crate::voice_engines::load;

/// Speaks and hears with the models of the registry.
pub struct RegistrySpeech {
    config: Config,
    engines: OnceCell<Engines>,
}

impl RegistrySpeech {
    /// Loads nothing yet.
    pub fn new(config: Config) -> Self {
        Self { config, engines: OnceCell::new() }
    }
}

#[async_trait]
impl Speech for RegistrySpeech {
    async fn engines(&self) -> Result<Engines, String> {
        let loading = || async {
            load(&self.config).await.map_err(|error| {
                tracing::warn!(error = format!("{error:#}"), "cannot load the models of speech");
                format!("I can neither hear nor speak here: {error:#}.")
            })
        };
        self.engines.get_or_try_init(loading).await.cloned()
    }
}
