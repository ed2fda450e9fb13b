//! The bot's application on Discord, and the events it may receive.

use serenity::all::{ApplicationFlags, GatewayIntents, Http};

use crate::error::{Error, Failure, failure, in_words};
use crate::settings::Settings;

/// The bot's application on Discord.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    /// The application's id, which invitations contain.
    pub id: u64,
    /// The bot's name.
    pub name: String,
    /// True if the bot may read messages that are not addressed to it.
    pub message_content: bool,
    /// True if Discord sends the members of the bot's servers.
    pub members: bool,
    /// The bot's user id.
    pub(crate) user: u64,
}

pub(crate) async fn application_now(settings: &Settings) -> Result<Application, Error> {
    fetch(&settings.http()?).await
}

pub(crate) async fn fetch(http: &Http) -> Result<Application, Error> {
    let why = |error: serenity::Error| match failure(&error) {
        Failure::Token => Error::Token,
        Failure::Unknown => Error::Unreachable(in_words(&error)),
        Failure::Gone | Failure::Refused => Error::Refused(in_words(&error)),
    };
    let user = http.get_current_user().await.map_err(why)?;
    let application = http.get_current_application_info().await.map_err(why)?;
    let flags = application.flags.unwrap_or(ApplicationFlags::empty());
    let granted = |one, other| flags.intersects(one | other);
    Ok(Application {
        id: application.id.get(),
        name: user.name.clone(),
        message_content: granted(
            ApplicationFlags::GATEWAY_MESSAGE_CONTENT,
            ApplicationFlags::GATEWAY_MESSAGE_CONTENT_LIMITED,
        ),
        members: granted(ApplicationFlags::GATEWAY_GUILD_MEMBERS, ApplicationFlags::GATEWAY_GUILD_MEMBERS_LIMITED),
        user: user.id.get(),
    })
}

/// Returns the events that the bot asks for, as far as Discord grants them.
pub(crate) fn intents(application: &Application) -> GatewayIntents {
    let mut intents = GatewayIntents::GUILDS
        | GatewayIntents::GUILD_MESSAGES
        | GatewayIntents::DIRECT_MESSAGES
        | GatewayIntents::GUILD_MESSAGE_REACTIONS
        | GatewayIntents::DIRECT_MESSAGE_REACTIONS
        | GatewayIntents::GUILD_VOICE_STATES;
    if application.message_content {
        intents |= GatewayIntents::MESSAGE_CONTENT;
    } else {
        tracing::warn!(
            "Discord shows the bot only messages that are addressed to it: mentions, replies and DMs. \
             To change that, switch on Message Content on the Bot page of the developer portal"
        );
    }
    if application.members {
        intents |= GatewayIntents::GUILD_MEMBERS;
    } else {
        tracing::warn!(
            "Discord does not tell the bot who is a member of its servers; asking for each message is slower. \
             To change that, switch on Server Members on the Bot page of the developer portal"
        );
    }
    intents
}
