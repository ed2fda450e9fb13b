//! Converts Discord's snowflakes to the engine's ids and back. Each id begins with the platform's name, so that it
//! differs from those of other adapters.

use std::fmt;

use azera_adapter::REPLY_MARK;
use azera_types::{ChatId, IdError, MessageId, PersonId, RealmId, Timestamp};
use serenity::model::id as discord;

/// The platform's name, and the first part of every id it creates.
pub const PLATFORM: &str = "discord";

/// Milliseconds from 1970 to Discord's epoch, the first second of 2015
/// (<https://discord.com/developers/docs/reference#snowflakes>).
const EPOCH_MS: i64 = 1_420_070_400_000;

/// Bits of a snowflake below its time.
const TIME_SHIFT: u32 = 22;

/// How far the local clock may be ahead of Discord's, in milliseconds, so that a post is still found.
const CLOCKS_APART_MS: u64 = 3_600_000;

pub(crate) fn realm(guild: discord::GuildId) -> Result<RealmId, IdError> {
    RealmId::new(format!("{PLATFORM}:{guild}"))
}

pub(crate) fn chat(channel: discord::ChannelId) -> Result<ChatId, IdError> {
    ChatId::new(format!("{PLATFORM}:{channel}"))
}

pub(crate) fn person(user: discord::UserId) -> Result<PersonId, IdError> {
    PersonId::new(format!("{PLATFORM}:{user}"))
}

pub(crate) fn message(message: discord::MessageId) -> Result<MessageId, IdError> {
    MessageId::new(format!("{PLATFORM}:{message}"))
}

/// First part of the id of what is said in a voice channel, apart from what is written there.
const VOICE: &str = "voice";

/// Returns the chat of what is said in a voice channel.
pub(crate) fn voice_chat(channel: discord::ChannelId) -> Result<ChatId, IdError> {
    ChatId::new(format!("{PLATFORM}:{VOICE}:{channel}"))
}

/// Returns the voice channel of a chat; `None` if it is another chat.
pub(crate) fn voice_channel_of(chat: &ChatId) -> Option<discord::ChannelId> {
    let number = chat.as_str().strip_prefix(PLATFORM)?.strip_prefix(':')?.strip_prefix(VOICE)?.strip_prefix(':')?;
    number.parse().ok().filter(|number| *number != 0).map(discord::ChannelId::new)
}

/// Returns the id of an utterance in a channel, by its time and its number in the call.
#[cfg(feature = "voice")]
pub(crate) fn utterance(channel: discord::ChannelId, at: Timestamp, number: u64) -> Result<MessageId, IdError> {
    MessageId::new(format!("{PLATFORM}:{VOICE}:{channel}:{}-{number}", at.as_millisecond()))
}

/// Returns the message of a person; `None` for a message of another platform.
pub(crate) fn message_of(message: &MessageId) -> Option<discord::MessageId> {
    snowflake(message.as_str()).map(discord::MessageId::new)
}

/// Returns the channel of a chat; `None` for a chat of another platform.
pub(crate) fn channel_of(chat: &ChatId) -> Option<discord::ChannelId> {
    snowflake(chat.as_str()).map(discord::ChannelId::new)
}

/// Returns the guild of a realm; `None` for a realm of another platform.
pub(crate) fn guild_of(realm: &RealmId) -> Option<discord::GuildId> {
    snowflake(realm.as_str()).map(discord::GuildId::new)
}

/// Returns the user of a person; `None` for a person of another platform.
pub(crate) fn user_of(person: &PersonId) -> Option<discord::UserId> {
    snowflake(person.as_str()).map(discord::UserId::new)
}

fn snowflake(id: &str) -> Option<u64> {
    let number = id.strip_prefix(PLATFORM)?.strip_prefix(':')?;
    number.parse().ok().filter(|number| *number != 0)
}

/// A place in a channel that one reply or post takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Spot {
    /// The replies to a message; only one of them is shown.
    Answers(discord::MessageId),
    /// A post, by the engine's number.
    Post(u64),
}

/// Prefix of the engine's id of a post; its number follows.
const POST: &str = "post~";

/// Prefix of a post's number in a written spot.
const POST_MARK: &str = "post";

impl Spot {
    /// Parses a spot from its `Display` form.
    pub(crate) fn read(text: &str) -> Option<Self> {
        match text.strip_prefix(POST_MARK) {
            Some(number) => number.parse().ok().map(Self::Post),
            None => text.parse().ok().filter(|id| *id != 0).map(|id| Self::Answers(discord::MessageId::new(id))),
        }
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answers(question) => write!(f, "{question}"),
            Self::Post(number) => write!(f, "{POST_MARK}{number}"),
        }
    }
}

/// A reply: the answered message, and the number of earlier replies to it. The engine builds a reply's id from the two
/// (`discord:42~r0`). Or a post, of which there is only one (`post~7`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ReplyKey {
    pub(crate) spot: Spot,
    pub(crate) number: u32,
}

impl ReplyKey {
    /// Parses the engine's id; `None` if it is neither a post nor a reply to a message on Discord.
    pub(crate) fn of(reply: &MessageId) -> Option<Self> {
        if let Some(number) = reply.as_str().strip_prefix(POST) {
            return Some(Self { spot: Spot::Post(number.parse().ok()?), number: 0 });
        }
        let (question, number) = reply.as_str().rsplit_once(REPLY_MARK)?;
        let spot = Spot::Answers(discord::MessageId::new(snowflake(question)?));
        Some(Self { spot, number: number.parse().ok()? })
    }

    /// Returns the engine's id.
    pub(crate) fn id(self) -> Result<MessageId, IdError> {
        MessageId::new(match self.spot {
            Spot::Answers(question) => format!("{PLATFORM}:{question}{REPLY_MARK}{}", self.number),
            Spot::Post(number) => format!("{POST}{number}"),
        })
    }
}

/// A reply, its channel, and a message that comes before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) channel: discord::ChannelId,
    pub(crate) reply: ReplyKey,
    pub(crate) since: discord::MessageId,
}

impl Target {
    /// Returns the target of a reply; `None` if it is not on Discord. A post needs the time at which it was written.
    pub(crate) fn of(chat: &ChatId, reply: &MessageId, at: Option<Timestamp>) -> Option<Self> {
        let (channel, reply) = (channel_of(chat)?, ReplyKey::of(reply)?);
        let since = match reply.spot {
            Spot::Answers(question) => question,
            Spot::Post(_) => discord::MessageId::new(first_of(at?.as_millisecond()).max(1)),
        };
        Some(Self { channel, reply, since })
    }

    /// Returns the message before a post in case the local clock is ahead of Discord's; `None` where `since` is from
    /// Discord.
    pub(crate) fn since_by_a_fast_clock(self) -> Option<discord::MessageId> {
        let earlier = self.since.get().saturating_sub(CLOCKS_APART_MS << TIME_SHIFT);
        matches!(self.reply.spot, Spot::Post(_)).then(|| discord::MessageId::new(earlier.max(1)))
    }
}

/// Returns the smallest snowflake of a time in milliseconds since 1970. It is used to ask for later messages.
pub(crate) fn first_of(at_ms: i64) -> u64 {
    u64::try_from(at_ms - EPOCH_MS).unwrap_or(0) << TIME_SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_parsed_as_they_were_written() {
        assert_eq!(channel_of(&chat(discord::ChannelId::new(7)).unwrap()), Some(discord::ChannelId::new(7)));
        assert_eq!(user_of(&person(discord::UserId::new(8)).unwrap()), Some(discord::UserId::new(8)));
        #[track_caller]
        fn check(spot: Spot, number: u32, written: &str, id: &str) {
            let key = ReplyKey { spot, number };
            assert_eq!(key.id().unwrap().as_str(), id);
            assert_eq!(ReplyKey::of(&key.id().unwrap()), Some(key));
            assert_eq!((spot.to_string().as_str(), Spot::read(written)), (written, Some(spot)));
        }
        check(Spot::Answers(discord::MessageId::new(42)), 3, "42", "discord:42~r3");
        check(Spot::Post(7), 0, "post7", "post~7");
    }

    #[test]
    fn what_is_said_is_another_chat_than_what_is_written() {
        let channel = discord::ChannelId::new(7);
        let spoken = voice_chat(channel).unwrap();
        assert_eq!((voice_channel_of(&spoken), channel_of(&spoken)), (Some(channel), None));
        assert_eq!(voice_channel_of(&chat(channel).unwrap()), None);
    }

    #[cfg(feature = "voice")]
    #[test]
    fn no_message_shows_a_reply_to_an_utterance() {
        let channel = discord::ChannelId::new(7);
        let said = utterance(channel, Timestamp::from_millisecond(12).unwrap(), 3).unwrap();
        assert_eq!(said.as_str(), "discord:voice:7:12-3");
        assert_eq!(ReplyKey::of(&MessageId::new(format!("{said}~r0")).unwrap()), None);
    }

    #[test]
    fn ids_of_other_platforms_are_refused() {
        #[track_caller]
        fn check(id: &str) {
            assert_eq!(channel_of(&ChatId::new(id).unwrap()), None, "{id}");
        }
        for id in ["console:ann:main", "discord", "discord:", "discord:0", "discord:x", "discord:1:2", "xdiscord:1"] {
            check(id);
        }
        assert_eq!(ReplyKey::of(&MessageId::new("discord:42").unwrap()), None);
        for id in ["a~r0", "post~", "post~x", "apost~1"] {
            assert_eq!(ReplyKey::of(&MessageId::new(id).unwrap()), None, "{id}");
        }
        assert_eq!((Spot::read("0"), Spot::read("post"), Spot::read("x")), (None, None, None));
    }

    #[test]
    fn a_post_is_searched_from_its_time_on() {
        let chat = ChatId::new("discord:9").unwrap();
        let since = |id: &str, at| Target::of(&chat, &MessageId::new(id).unwrap(), at).map(|target| target.since.get());
        let at = Timestamp::from_millisecond(EPOCH_MS + 2).unwrap();
        assert_eq!(since("post~7", Some(at)), Some(2 << TIME_SHIFT));
        assert_eq!((since("post~7", None), since("discord:42~r0", None)), (None, Some(42)));
        let earlier = |id: &str, at_ms: i64| {
            let at = Timestamp::from_millisecond(EPOCH_MS + at_ms).unwrap();
            let target = Target::of(&chat, &MessageId::new(id).unwrap(), Some(at)).unwrap();
            target.since_by_a_fast_clock().map(|since| since.get())
        };
        assert_eq!(earlier("post~7", 3_600_003), Some(3 << TIME_SHIFT));
        assert_eq!((earlier("post~7", 2), earlier("discord:42~r0", 2)), (Some(1), None));
    }

    #[test]
    fn a_time_is_converted_to_its_first_snowflake() {
        // The example in Discord's reference.
        assert_eq!(first_of(1_462_015_105_796), 175_928_847_299_117_063 >> TIME_SHIFT << TIME_SHIFT);
        assert_eq!(first_of(0), 0);
    }
}
