//! Converts messages of people for the engine. Discord's tags become names.

use azera_types::{IdError, Inbound, MAX_NAME_CHARS, Text, Timestamp};
use serenity::all::{ChannelId, GuildId, Message, MessageType, RoleId, User, UserId};

use crate::attachments::Attached;
use crate::directory::Directory;
use crate::id;
use crate::replies::Replies;

/// Returns true if a person wrote the message. Bots and webhooks, including this bot, and system notices do not count.
pub(crate) fn is_said(message: &Message) -> bool {
    let speaks = matches!(message.kind, MessageType::Regular | MessageType::InlineReply);
    speaks && !message.author.bot && !message.author.system && message.webhook_id.is_none()
}

/// Returns true if the message is certainly for the bot, so that the typing indicator may start at once.
pub(crate) fn is_for_bot(message: &Message, directory: &Directory) -> bool {
    message.guild_id.is_none() || mentions_bot(message, directory)
}

fn mentions_bot(message: &Message, directory: &Directory) -> bool {
    message.mentions.iter().any(|user| user.id == directory.me)
        || message
            .guild_id
            .is_some_and(|guild| message.mention_roles.iter().any(|role| directory.is_own_role(guild, *role)))
}

/// Converts a message and its attached files.
pub(crate) fn inbound(
    message: &Message,
    attached: &Attached,
    directory: &Directory,
    shown: &Replies,
) -> Result<Inbound, IdError> {
    let replied = message.referenced_message.as_deref();
    let to_bot = replied.filter(|replied| shown.is_own(replied));
    let reply_to = match (to_bot, replied) {
        (Some(own), _) => shown.reply_of(own).map(|reply| reply.id()).transpose()?,
        (None, Some(other)) => Some(id::message(other.id)?),
        (None, None) => None,
    };
    let said = readable(&message.content, &message.mentions, message.guild_id, directory);
    let others = message.mentions.iter().filter(|user| !user.bot && user.id != message.author.id);
    Ok(Inbound {
        id: id::message(message.id)?,
        chat: id::chat(message.channel_id)?,
        person: id::person(message.author.id)?,
        name: name(message, directory),
        text: Text::new(with_attached(said, &attached.notes)),
        at: at(message.timestamp),
        parts: attached.parts.clone(),
        // A reply to the bot is addressed to it, even if nobody knows any more what the bot said there.
        mentions_bot: mentions_bot(message, directory) || to_bot.is_some(),
        mentions: others.map(|user| id::person(user.id)).collect::<Result<_, _>>()?,
        reply_to,
    })
}

fn name(message: &Message, directory: &Directory) -> String {
    let nick = message.member.as_ref().and_then(|member| member.nick.clone()).or_else(|| {
        let guild = directory.cache.guild(message.guild_id?)?;
        guild.members.get(&message.author.id)?.nick.clone()
    });
    let name = nick.unwrap_or_else(|| message.author.display_name().to_owned());
    name.chars().filter(|c| !c.is_control()).take(MAX_NAME_CHARS).collect()
}

/// Converts a time.
pub(crate) fn at(time: serenity::all::Timestamp) -> Timestamp {
    Timestamp::from_nanosecond(time.unix_timestamp_nanos()).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Appends the notes about attached files to a text.
pub(crate) fn with_attached(mut text: String, attached: &[String]) -> String {
    for note in attached {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(note);
    }
    text
}

/// Replaces Discord's tags with names, and removes the bot's name at the beginning.
pub(crate) fn readable(content: &str, mentioned: &[User], guild: Option<GuildId>, directory: &Directory) -> String {
    let own = [format!("<@{}>", directory.me), format!("<@!{}>", directory.me)];
    let content = content.trim();
    let content = own.iter().find_map(|tag| content.strip_prefix(tag.as_str())).unwrap_or(content).trim_start();
    let mut text = String::with_capacity(content.len());
    let mut rest = content;
    while let Some(begin) = rest.find('<') {
        let (before, tagged) = rest.split_at(begin);
        text.push_str(before);
        let named = tagged.find('>').and_then(|end| Some((tagged.get(1..end)?, tagged.get(end + 1..)?)));
        match named.and_then(|(tag, after)| Some((tag_text(tag, mentioned, guild, directory)?, after))) {
            Some((name, after)) => {
                text.push_str(&name);
                rest = after;
            }
            None => {
                text.push('<');
                rest = tagged.get(1..).unwrap_or_default();
            }
        }
    }
    text.push_str(rest);
    text
}

/// Returns the text for the inside of a tag; `None` if it is not a tag.
fn tag_text(tag: &str, mentioned: &[User], guild: Option<GuildId>, directory: &Directory) -> Option<String> {
    if let Some(role) = tag.strip_prefix("@&") {
        let role = RoleId::new(role.parse::<u64>().ok().filter(|id| *id != 0)?);
        return Some(format!("@{}", directory.role_name(guild?, role)?));
    }
    if let Some(user) = tag.strip_prefix("@!").or_else(|| tag.strip_prefix('@')) {
        let user = UserId::new(user.parse::<u64>().ok().filter(|id| *id != 0)?);
        let nick = guild.and_then(|guild| {
            let guild = directory.cache.guild(guild)?;
            guild.members.get(&user).map(|member| member.display_name().to_owned())
        });
        let name = nick.or_else(|| {
            mentioned.iter().find(|mentioned| mentioned.id == user).map(|user| user.display_name().to_owned())
        });
        return Some(format!("@{}", name?));
    }
    if let Some(channel) = tag.strip_prefix('#') {
        let channel = directory.channel(ChannelId::new(channel.parse::<u64>().ok().filter(|id| *id != 0)?))?;
        return Some(format!("#{}", channel.name));
    }
    let emoji = tag.strip_prefix("a:").or_else(|| tag.strip_prefix(':'))?;
    let (name, number) = emoji.split_once(':')?;
    number.parse::<u64>().ok().map(|_| format!(":{name}:"))
}
