//! Reactions to replies do what their buttons do. Nobody can be answered behind a reaction where others do not see it, so what
//! there is to say comes by direct message.

use std::sync::Arc;

use azera_adapter::{CommandAnswer, CommandLine, PlatformError, command_of};
use azera_types::Text;
use serenity::all::{ChannelId, CreateMessage, Reaction, ReactionType, UserId};

use crate::channels::Hall;
use crate::commands::{MAX_PARTS, name};
use crate::error::{in_words, refusal};
use crate::id;
use crate::manners::Verdict;
use crate::shown::nobody;
use crate::split::split;

/// Does what somebody's reaction to a reply says, whenever that was written.
pub(crate) async fn given(hall: Arc<Hall>, reaction: Reaction) {
    let (Some(user), ReactionType::Unicode(emoji)) = (reaction.user_id, &reaction.emoji) else { return };
    let Some(line) = command_of(emoji) else { return };
    if !may_be_own(&hall, &reaction) || is_bot(&hall, user, &reaction) {
        return;
    }
    if hall.manners.judge(user, reaction.guild_id) != Verdict::Fine {
        return;
    }
    hall.around.shown.pace.turn().await;
    let message = match hall.around.http.get_message(reaction.channel_id, reaction.message_id).await {
        Ok(message) => message,
        Err(error) => return tracing::debug!(error = in_words(&error), "a reaction was left alone"),
    };
    let reply = Some(message).filter(|message| hall.around.shown.is_own(message));
    let Some(Ok(about)) = reply.and_then(|reply| hall.around.shown.reply_of(&reply)).map(|key| key.id()) else {
        return;
    };
    let (Ok(chat), Ok(person)) = (id::chat(reaction.channel_id), id::person(user)) else { return };
    let known = hall.around.directory.cache.user(user).map(|known| known.clone());
    let shown = reaction.member.as_ref().map(|member| name(Some(member), &member.user));
    let shown = shown.or_else(|| known.map(|known| name(None, &known))).unwrap_or_default();
    let line = CommandLine { chat, person, name: shown, text: Text::new(line), about: Some(about) };
    let says_itself = line.text.starts_with("/regenerate") || line.text.starts_with("/swipe");
    let answer = match hall.around.host.command(&hall.around.platform, line).await {
        Ok(answer) => answer,
        Err(error) => CommandAnswer { text: format!("That did not work: {error}."), ..CommandAnswer::default() },
    };
    // What a reply says now can be seen.
    if answer.text.trim().is_empty() || answer.ok && says_itself {
        return;
    }
    if let Err(error) = tell(&hall, user, &answer.text).await {
        tracing::debug!(%error, "what came of a reaction was not told");
    }
}

/// Whether it may be a reply of the bot's own: what other people say is not looked at.
fn may_be_own(hall: &Hall, reaction: &Reaction) -> bool {
    let directory = &hall.around.directory;
    let Some(author) = reaction.message_author_id.filter(|author| *author != directory.me) else { return true };
    let guild = reaction.guild_id.and_then(|guild| directory.cache.guild(guild));
    guild.is_some_and(|guild| !guild.members.contains_key(&author))
}

fn is_bot(hall: &Hall, user: UserId, reaction: &Reaction) -> bool {
    user == hall.around.directory.me || reaction.member.as_ref().is_some_and(|member| member.user.bot)
}

/// Tells somebody something by direct message.
async fn tell(hall: &Hall, user: UserId, text: &str) -> Result<(), PlatformError> {
    let around = &hall.around;
    let Some(dm) = around.directory.direct_with(user).await else { return Ok(()) };
    for part in split(text).into_iter().take(MAX_PARTS) {
        say(hall, dm, part).await?;
    }
    Ok(())
}

async fn say(hall: &Hall, dm: ChannelId, text: String) -> Result<(), PlatformError> {
    let message = CreateMessage::new().content(text).allowed_mentions(nobody());
    hall.around.shown.pace.turn().await;
    hall.around.http.send_message(dm, Vec::new(), &message).await.map_err(|error| refusal(&error))?;
    Ok(())
}
