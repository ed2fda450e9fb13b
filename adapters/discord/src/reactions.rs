//! Reactions to replies do what their buttons do. Nobody can be answered behind a reaction where others do not see it, so what
//! there is to say comes by direct message.

use std::sync::Arc;

use azera_adapter::{CommandAnswer, CommandLine, PlatformError, command_of};
use azera_types::Text;
use serenity::all::{ChannelId, CreateMessage, Reaction, ReactionType, UserId};

use crate::channels::ChannelRegistry;
use crate::commands::{MAX_PARTS, name};
use crate::error::{in_words, refusal};
use crate::id;
use crate::rate_limit::RateDecision;
use crate::replies::nobody;
use crate::split::split;

/// Does what somebody's reaction to a reply says, whenever that was written.
pub(crate) async fn given(registry: Arc<ChannelRegistry>, reaction: Reaction) {
    let (Some(user), ReactionType::Unicode(emoji)) = (reaction.user_id, &reaction.emoji) else { return };
    let Some(line) = command_of(emoji) else { return };
    if !may_be_own(&registry, &reaction) || is_bot(&registry, user, &reaction) {
        return;
    }
    if registry.rate_limiter.judge(user, reaction.guild_id) != RateDecision::Fine {
        return;
    }
    registry.context.shown.pace.turn().await;
    let message = match registry.context.http.get_message(reaction.channel_id, reaction.message_id).await {
        Ok(message) => message,
        Err(error) => return tracing::debug!(error = in_words(&error), "a reaction was left alone"),
    };
    let reply = Some(message).filter(|message| registry.context.shown.is_own(message));
    let Some(Ok(about)) = reply.and_then(|reply| registry.context.shown.reply_of(&reply)).map(|key| key.id()) else {
        return;
    };
    let (Ok(chat), Ok(person)) = (id::chat(reaction.channel_id), id::person(user)) else { return };
    let known = registry.context.directory.cache.user(user).map(|known| known.clone());
    let shown = reaction.member.as_ref().map(|member| name(Some(member), &member.user));
    let shown = shown.or_else(|| known.map(|known| name(None, &known))).unwrap_or_default();
    let line = CommandLine { chat, person, name: shown, text: Text::new(line), about: Some(about) };
    let says_itself = line.text.starts_with("/regenerate") || line.text.starts_with("/swipe");
    let answer = match registry.context.host.command(&registry.context.platform, line).await {
        Ok(answer) => answer,
        Err(error) => CommandAnswer { text: format!("That did not work: {error}."), ..CommandAnswer::default() },
    };
    // What a reply says now can be seen.
    if answer.text.trim().is_empty() || answer.ok && says_itself {
        return;
    }
    if let Err(error) = tell(&registry, user, &answer.text).await {
        tracing::debug!(%error, "what came of a reaction was not told");
    }
}

/// Whether it may be a reply of the bot's own: what other people say is not looked at.
fn may_be_own(registry: &ChannelRegistry, reaction: &Reaction) -> bool {
    let directory = &registry.context.directory;
    let Some(author) = reaction.message_author_id.filter(|author| *author != directory.me) else { return true };
    let guild = reaction.guild_id.and_then(|guild| directory.cache.guild(guild));
    guild.is_some_and(|guild| !guild.members.contains_key(&author))
}

fn is_bot(registry: &ChannelRegistry, user: UserId, reaction: &Reaction) -> bool {
    user == registry.context.directory.me || reaction.member.as_ref().is_some_and(|member| member.user.bot)
}

/// Tells somebody something by direct message.
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
