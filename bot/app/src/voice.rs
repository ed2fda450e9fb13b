//! The engines of speech for voice channels. They are prepared when somebody first asks the bot into one.

use async_trait::async_trait;
use azera_adapter_discord::{Engines, Speech};
use azera_config::Config;
use tokio::sync::OnceCell;

use crate::local_speech::ForPeople;
use crate::voice_engines::load;

/// What people read where calls are switched off.
const SWITCHED_OFF: &str = "Voice calls are switched off here. The operator switches them on with `voice.calls = true` in the \
                            configuration.";

/// What people read where the reason is not for them.
const IN_THE_LOG: &str = "the operator finds the reason in the log, or with `azera doctor`";

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
        if !self.config.voice.calls {
            return Err(SWITCHED_OFF.to_owned());
        }
        let loading = || async {
            load(&self.config).await.map_err(|error| {
                tracing::warn!(error = format!("{error:#}"), "cannot load the models of speech");
                // Paths and addresses of this machine are for the log alone.
                let why = error.downcast_ref::<ForPeople>().map_or(IN_THE_LOG, |why| why.0.as_str());
                format!("I can neither hear nor speak here: {why}.")
            })
        };
        self.engines.get_or_try_init(loading).await.cloned()
    }
}
