use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serenity::all::{ApplicationId, Http, HttpBuilder, Permissions, UserId};

use crate::attachments::FILES_HOST;
use crate::error::Error;

/// Host of Discord's API.
const API_HOST: &str = "discord.com";

/// Time limits for connecting and for an answer.
const CONNECT: Duration = Duration::from_secs(10);
const ANSWER: Duration = Duration::from_secs(30);

/// Limits on messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Messages of one person per minute.
    pub messages_per_person: u32,
    /// Messages of one server per minute.
    pub messages_per_server: u32,
}

/// Settings of the bot.
#[derive(Clone)]
pub struct Settings {
    /// The bot's token.
    pub token: String,
    /// User ids of the operators.
    pub operators: Vec<u64>,
    /// Age in hours up to which missed messages are answered; 0 answers none.
    pub catch_up_hours: u32,
    /// Limits on messages.
    pub limits: Limits,
    /// Days after which the messages of a server that removed the bot are forgotten.
    pub keep_removed_days: u32,
    /// Address to use instead of the API's own, for a local proxy.
    pub api_address: Option<SocketAddr>,
    /// Certificate (PEM) of the authority that signed that proxy's certificate.
    pub api_root_certificate: Option<PathBuf>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("operators", &self.operators)
            .field("catch_up_hours", &self.catch_up_hours)
            .field("limits", &self.limits)
            .field("keep_removed_days", &self.keep_removed_days)
            .field("api_address", &self.api_address)
            .field("api_root_certificate", &self.api_root_certificate)
            .finish_non_exhaustive()
    }
}

impl Settings {
    /// Returns a client of the API with serenity's rate limiter.
    pub(crate) fn http(&self) -> Result<Http, Error> {
        Ok(HttpBuilder::new(&self.token).client(self.client()?).build())
    }

    /// Returns a client of Discord's servers.
    pub(crate) fn client(&self) -> Result<reqwest::Client, Error> {
        let settings = |error: &dyn fmt::Display| Error::Settings(error.to_string());
        let mut client = reqwest::Client::builder().use_rustls_tls().connect_timeout(CONNECT).timeout(ANSWER);
        if let Some(address) = self.api_address {
            client = client.resolve(API_HOST, address).resolve(FILES_HOST, address);
        }
        if let Some(path) = &self.api_root_certificate {
            let pem = std::fs::read(path).map_err(|error| {
                Error::Settings(format!("discord.api_root_certificate: {}: {error}", path.display()))
            })?;
            client = client.add_root_certificate(reqwest::Certificate::from_pem(&pem).map_err(|e| settings(&e))?);
        }
        client.build().map_err(|error| settings(&error))
    }

    pub(crate) fn operators(&self) -> Vec<UserId> {
        self.operators.iter().filter(|id| **id != 0).map(|id| UserId::new(*id)).collect()
    }
}

/// Permissions that an invitation asks for: to see channels; to read the history for missed messages and for the bot's
/// own messages; to write in channels and threads; to make threads for captions; to attach long answers as files; to create webhooks for personas; and
/// to hear and speak in voice channels.
pub(crate) const PERMISSIONS: Permissions = Permissions::VIEW_CHANNEL
    .union(Permissions::READ_MESSAGE_HISTORY)
    .union(Permissions::SEND_MESSAGES)
    .union(Permissions::SEND_MESSAGES_IN_THREADS)
    .union(Permissions::CREATE_PUBLIC_THREADS)
    .union(Permissions::ATTACH_FILES)
    .union(Permissions::MANAGE_WEBHOOKS)
    .union(Permissions::CONNECT)
    .union(Permissions::SPEAK);

/// Returns the URL with which an admin adds the bot to a server, with exactly the needed permissions.
pub fn invite(application: u64) -> String {
    let application = ApplicationId::new(application.max(1));
    format!(
        "https://{API_HOST}/oauth2/authorize?client_id={application}&scope=bot+applications.commands&permissions={}",
        PERMISSIONS.bits()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_invitation_asks_for_exactly_the_needed_permissions() {
        insta::assert_snapshot!(invite(42), @"https://discord.com/oauth2/authorize?client_id=42&scope=bot+applications.commands&permissions=309777763328");
        assert!(!PERMISSIONS.contains(Permissions::ADMINISTRATOR));
    }

    #[test]
    fn a_token_is_not_shown() {
        let settings = Settings {
            token: "very-secret".to_owned(),
            operators: Vec::new(),
            catch_up_hours: 24,
            limits: Limits { messages_per_person: 30, messages_per_server: 300 },
            keep_removed_days: 30,
            api_address: None,
            api_root_certificate: None,
        };
        assert!(!format!("{settings:?}").contains("very-secret"));
    }
}
