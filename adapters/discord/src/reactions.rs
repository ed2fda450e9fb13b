//! Reactions to replies work like their buttons. A reaction cannot be answered privately in the channel, so answers
//! come as a DM. A thumb tells what somebody thinks of a reply, also when it is taken back. Nobody gets an answer to it.

use std::sync::Arc;

use azera_adapter::{
    CommandAnswer, CommandLine, InboundEvent, PlatformError, Removed, command_of, thumb, thumb_command,
};
use azera_types::{PersonId, Text};
use serenity::all::{ChannelId, CreateMessage, MessageId, Reaction, ReactionType, UserId};

use crate::channels::ChannelRegistry;
use crate::commands::{MAX_PARTS, name};
use crate::error::{in_words, refusal};
use crate::id;
use crate::rate_limit::RateDecision;
use crate::replies::nobody;
use crate::split::split;

/// Runs the command of a reaction to a reply, however old. Thumbs take their turns; other commands may take long.
pub(crate) fn given(registry: &Arc<ChannelRegistry>, reaction: Reaction) {
    let ReactionType::Unicode(emoji) = &reaction.emoji else { return };
    let line_of_thumb = thumb(emoji).map(|is_up| thumb_command(is_up, &named(reaction.message_id, emoji)));
    let is_silent = line_of_thumb.is_some();
    let line = line_of_thumb.or_else(|| command_of(emoji).map(str::to_owned));
    let (Some(line), Some(user)) = (line, reaction.user_id) else { return };
    if !may_be_own(registry, &reaction) || is_bot(registry, user, &reaction) {
        return;
    }
    if registry.rate_limiter.judge(user, reaction.guild_id) != RateDecision::Fine {
        return;
    }
    let (owner, channel) = (registry.clone(), reaction.channel_id);
    let work = async move { run(&owner, &reaction, user, &line, is_silent).await };
    if is_silent {
        registry.thumbs.spawn(channel, work);
    } else {
        tokio::spawn(work);
    }
}

/// Takes back a thumb. Other reactions are commands only when they are given.
pub(crate) fn taken_back(registry: &Arc<ChannelRegistry>, reaction: Reaction) {
    let ReactionType::Unicode(emoji) = &reaction.emoji else { return };
    let (Some(is_up), Some(user)) = (thumb(emoji), reaction.user_id) else { return };
    if is_bot(registry, user, &reaction) {
        return;
    }
    // Discord does not say whose message it is, and most are not the bot's: those must cost the person no messages.
    let is_fine = match registry.context.shown.is_own_message(reaction.message_id) {
        Some(true) => registry.rate_limiter.judge(user, reaction.guild_id) == RateDecision::Fine,
        Some(false) => false,
        None => registry.rate_limiter.may_ask(user),
    };
    let Ok(person) = id::person(user) else { return };
    if is_fine {
        let gone = Removed::One { name: named(reaction.message_id, emoji), is_up };
        removed(registry, (reaction.channel_id, reaction.message_id), Some(person), gone);
    }
}

/// Takes back everybody's thumbs below a message, because a moderator removed all reactions. serenity 0.12 cannot read the
/// event by which Discord tells that those of one kind were removed: it wants fields that the event does not have.
pub(crate) fn cleared(registry: &Arc<ChannelRegistry>, channel: ChannelId, message: MessageId) {
    removed(registry, (channel, message), None, Removed::All(named(message, "")));
}

/// Returns the name of a reaction. A reply may be several messages, and a person may react to each of them.
fn named(message: MessageId, emoji: &str) -> String {
    format!("{message} {emoji}")
}

fn removed(
    registry: &Arc<ChannelRegistry>,
    (channel, message): (ChannelId, MessageId),
    person: Option<PersonId>,
    reactions: Removed,
) {
    let owner = registry.clone();
    registry.thumbs.spawn(channel, async move {
        if owner.context.shown.is_own_message(message) == Some(false) {
            return;
        }
        let Some(reply) = reply_of(&owner, channel, message).await else { return };
        let event = InboundEvent::ReactionsRemoved { reply, person, reactions };
        if let Err(error) = owner.context.host.submit(&owner.context.platform, event).await {
            tracing::warn!(%error, "a thumb that was removed still counts");
        }
    });
}

/// Returns the reply that a message shows; `None` if it shows none.
async fn reply_of(
    registry: &ChannelRegistry,
    channel: ChannelId,
    message: MessageId,
) -> Option<azera_types::MessageId> {
    registry.context.shown.pace.turn().await;
    match registry.context.http.get_message(channel, message).await {
        Ok(message) => {
            let own = Some(message).filter(|message| registry.context.shown.is_own(message))?;
            registry.context.shown.reply_of(&own)?.id().ok()
        }
        Err(error) => {
            tracing::debug!(error = in_words(&error), "cannot read the message of a reaction");
            None
        }
    }
}

async fn run(registry: &ChannelRegistry, reaction: &Reaction, user: UserId, line: &str, is_silent: bool) {
    let Some(about) = reply_of(registry, reaction.channel_id, reaction.message_id).await else { return };
    let (Ok(chat), Ok(person)) = (id::chat(reaction.channel_id), id::person(user)) else { return };
    let known = registry.context.directory.cache.user(user).map(|known| known.clone());
    let shown = reaction.member.as_ref().map(|member| name(Some(member), &member.user));
    let shown = shown.or_else(|| known.map(|known| name(None, &known))).unwrap_or_default();
    let line = CommandLine { chat, person, name: shown, text: Text::new(line), about: Some(about), picture: None };
    let says_itself = line.text.starts_with("/regenerate") || line.text.starts_with("/swipe");
    let answer = match registry.context.host.command(&registry.context.platform, line).await {
        Ok(answer) => answer,
        Err(error) => {
            tracing::warn!(%error, "the command of a reaction failed");
            CommandAnswer { text: error.in_words(), ..CommandAnswer::default() }
        }
    };
    // The changed reply is visible itself.
    if is_silent || answer.text.trim().is_empty() || answer.ok && says_itself {
        return;
    }
    if let Err(error) = tell(registry, user, &answer.text).await {
        tracing::debug!(%error, "cannot send the answer to a reaction");
    }
}

/// Returns true if the message may be the bot's own; other messages are not fetched.
fn may_be_own(registry: &ChannelRegistry, reaction: &Reaction) -> bool {
    let directory = &registry.context.directory;
    let Some(author) = reaction.message_author_id.filter(|author| *author != directory.me) else { return true };
    let guild = reaction.guild_id.and_then(|guild| directory.cache.guild(guild));
    guild.is_some_and(|guild| !guild.members.contains_key(&author))
}

fn is_bot(registry: &ChannelRegistry, user: UserId, reaction: &Reaction) -> bool {
    let directory = &registry.context.directory;
    // A reaction that is taken back comes without its member.
    let guild = reaction.guild_id.and_then(|guild| directory.cache.guild(guild));
    let known = guild.and_then(|guild| guild.members.get(&user).map(|member| member.user.bot));
    let said = reaction.member.as_ref().map(|member| member.user.bot);
    user == directory.me || said.or(known) == Some(true)
}

/// Sends a DM.
async fn tell(registry: &ChannelRegistry, user: UserId, text: &str) -> Result<(), PlatformError> {
    let context = &registry.context;
    let Some(dm) = context.directory.direct_with(user).await else { return Ok(()) };
    for part in split(text).into_iter().take(MAX_PARTS) {
        say(registry, dm, part).await?;
    }
    Ok(())
}

async fn say(registry: &ChannelRegistry, dm: ChannelId, text: String) -> Result<(), PlatformError> {
    let message = CreateMessage::new().content(text).allowed_mentions(nobody());
    registry.context.shown.pace.turn().await;
    registry.context.http.send_message(dm, Vec::new(), &message).await.map_err(|error| refusal(&error))?;
    Ok(())
}
