//! The greeting in a new server: what the bot is, what it stores, and how to make it forget.

use std::sync::Arc;
use std::time::Duration;

use azera_adapter::Choice;
use serenity::all::{ChannelId, ChannelType, CreateMessage, Guild, GuildId, Nonce, Permissions};

use crate::channels::ChannelRegistry;
use crate::commands::choices;
use crate::directory::Directory;
use crate::error::{Failure, failure, in_words};
use crate::replies::nobody;

/// Buttons: label and command line.
const CHOICES: [(&str, &str); 4] = [
    ("Answer everything here", "/answer always"),
    ("Only when addressed", "/answer addressed"),
    ("Journal in this channel", "/journal channel here"),
    ("Personas", "/persona list"),
];

/// Attempts to send the greeting, and the wait before the second one, which doubles.
const ATTEMPTS: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// Returns the channel for the greeting: the server's system channel, or else the first channel in which the bot may
/// write.
pub(crate) fn place(guild: &Guild, directory: &Directory) -> Option<ChannelId> {
    let needed = Permissions::VIEW_CHANNEL | Permissions::SEND_MESSAGES;
    let mut channels: Vec<_> = guild
        .channels
        .values()
        .filter(|channel| channel.kind == ChannelType::Text)
        .filter(|channel| directory.own_permissions(channel.id).contains(needed))
        .collect();
    channels.sort_by_key(|channel| (guild.system_channel_id != Some(channel.id), channel.position, channel.id));
    channels.first().map(|channel| channel.id)
}

/// Sends the greeting. If it is sent twice within a short time, Discord shows it once.
pub(crate) async fn greet(registry: Arc<ChannelRegistry>, guild: GuildId, channel: ChannelId) {
    let name = registry.context.directory.cache.current_user().display_name().to_owned();
    let pending = CHOICES.map(|(label, line)| Choice { label: label.to_owned(), line: line.to_owned() });
    let message = CreateMessage::new()
        .content(words(&name))
        .allowed_mentions(nobody())
        .components(choices(&pending))
        .nonce(Nonce::String(format!("hello.{guild}")))
        .enforce_nonce(true);
    let mut wait = FIRST_WAIT;
    for attempt in 1..=ATTEMPTS {
        registry.context.shown.pace.turn().await;
        match registry.context.http.send_message(channel, Vec::new(), &message).await {
            Ok(_) => return,
            Err(error) if failure(&error) == Failure::Unknown && attempt < ATTEMPTS => {
                tokio::time::sleep(wait).await;
                wait *= 2;
            }
            Err(error) => {
                tracing::warn!(%guild, error = in_words(&error), "cannot send the greeting");
                return;
            }
        }
    }
}

fn words(name: &str) -> String {
    format!(
        "Hello! I am {name}: an AI, no person.\n\
         - **When I answer:** when somebody mentions me, replies to me or calls me by name. I read along in the channels that \
         I can see, to know what is talked about.\n\
         - **What I keep:** what is said there and to me, on the machine of my operator. I recall a private channel or a DM \
         only where every reader may also read that place.\n\
         - **How to have it forgotten:** delete the message, or `/forget last`, or `/forget me` for all you ever said. \
         `/memory export` in a DM shows what I hold about you. `/help` says what else there is.\n\
         Admins of this server can choose:"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greeting_fits_into_a_message() {
        assert!(words(&"x".repeat(32)).chars().count() < 2_000);
    }
}
