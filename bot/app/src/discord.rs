//! Connects the Discord adapter to the configuration.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use async_trait::async_trait;
use azera_adapter::{Avatars, Host, Platform};
use azera_adapter_discord::{Application, Discord, Error, Limits, Settings};
use azera_config::Config;
use azera_engine::{COMMANDS, MESSAGE_ACTIONS};
use azera_types::SystemClock;
use tokio_util::sync::CancellationToken;

use crate::doctor::Found;
use crate::run::Connection;

pub use azera_adapter_discord::PLATFORM;

/// Returns the adapter's settings; `None` if no bot is configured.
fn settings(config: &Config) -> anyhow::Result<Option<Settings>> {
    let configured = &config.discord;
    let Some(token) = &configured.token else { return Ok(None) };
    let operator = |id: &String| id.parse().with_context(|| format!("discord.operators: {id} is no user id"));
    let address =
        |text: &String| text.parse().with_context(|| format!("discord.api_address: {text} is no address with a port"));
    Ok(Some(Settings {
        token: token.expose().trim().to_owned(),
        operators: configured.operators.iter().map(operator).collect::<anyhow::Result<_>>()?,
        catch_up_hours: configured.catch_up_hours,
        limits: Limits {
            messages_per_person: configured.messages_per_person,
            messages_per_server: configured.messages_per_server,
        },
        keep_removed_days: configured.keep_removed_days,
        api_address: configured.api_address.as_ref().map(address).transpose()?,
        api_root_certificate: configured.api_root_certificate.clone(),
    }))
}

/// Returns the bot, not connected yet; `None` if no bot is configured.
pub async fn connect(config: &Config) -> anyhow::Result<Option<Arc<dyn Connection>>> {
    let Some(settings) = settings(config)? else { return Ok(None) };
    let (data, clock) = (config.data_dir()?, Arc::new(SystemClock));
    let discord = Discord::new(settings, &data, clock, COMMANDS, MESSAGE_ACTIONS).context("Discord")?;
    Ok(Some(Arc::new(OnDiscord {
        discord: Arc::new(discord),
        #[cfg(feature = "voice")]
        config: config.clone(),
    })))
}

struct OnDiscord {
    discord: Arc<Discord>,
    #[cfg(feature = "voice")]
    config: Config,
}

#[async_trait]
impl Connection for OnDiscord {
    fn platform(&self) -> Arc<dyn Platform> {
        self.discord.clone()
    }

    fn set_avatars(&self, avatars: Arc<dyn Avatars>) {
        self.discord.set_avatars(avatars);
    }

    #[cfg(feature = "voice")]
    fn set_voice_host(&self, host: Arc<dyn azera_adapter::VoiceHost>) {
        self.discord.set_speech(Arc::new(crate::voice::RegistrySpeech::new(self.config.clone())), host);
    }

    #[cfg(feature = "voice")]
    fn set_recordings(&self, folder: &azera_voice_call_recordings::RecordingFolder) {
        if let Some(most) = crate::call_recordings::most(&self.config) {
            self.discord.set_recordings(folder.clone(), most);
        }
    }

    async fn begin(&self) -> anyhow::Result<()> {
        Ok(self.discord.begin().await?)
    }

    async fn listen(&self, host: Arc<dyn Host>, stop: CancellationToken) -> anyhow::Result<()> {
        tokio::select! {
            ended = self.discord.listen(host) => Ok(ended?),
            () = stop.cancelled() => {
                self.discord.leave().await;
                Ok(())
            }
        }
    }
}

/// Asks Discord about the configured bot; `None` if no bot is configured.
async fn about(config: &Config) -> anyhow::Result<Option<Result<Application, Error>>> {
    match settings(config)? {
        None => Ok(None),
        Some(settings) => Ok(Some(azera_adapter_discord::application(&settings).await)),
    }
}

/// Runs Discord's check of `azera doctor`.
pub async fn check(config: &Config) -> Found {
    let portal = "the Bot page of the developer portal";
    match about(config).await {
        Ok(None) => Found::Good("not configured".into()),
        Ok(Some(Ok(bot))) => match (bot.message_content, bot.members) {
            (true, true) => Found::Good(format!("the bot {}; `azera discord invite` lets it into a server", bot.name)),
            (false, _) => Found::Note(format!(
                "the bot {} hears mentions, replies and DMs alone: switch on Message Content on {portal}",
                bot.name
            )),
            (true, false) => Found::Note(format!(
                "the bot {} is not told who is in a server, and asks each time: switch on Server Members on {portal}",
                bot.name
            )),
        },
        Ok(Some(Err(error))) if error.is_transient() => Found::Note(format!("{error}; `azera run` waits for it")),
        Ok(Some(Err(error))) => Found::Bad(error.to_string(), "see [discord] in the configuration".into()),
        Err(error) => Found::Bad(format!("{error:#}"), "see [discord] in the configuration".into()),
    }
}

/// Runs `azera discord invite`.
pub async fn invite(config: &Config) -> anyhow::Result<ExitCode> {
    let about = about(config).await?.ok_or_else(|| {
        anyhow!(
            "there is no bot yet: put its token into AZERA__DISCORD__TOKEN (bot/docs/discord.md says how to get one)"
        )
    })?;
    println!("{}", azera_adapter_discord::invite(about?.id));
    Ok(ExitCode::SUCCESS)
}
