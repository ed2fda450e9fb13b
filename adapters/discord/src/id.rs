//! Discord's snowflakes as ids of the core, and back. Each begins with the platform's name, so that no other adapter
//! makes the same.

use azera_types::{ChatId, IdError, MessageId, PersonId, RealmId};
use serenity::model::id as discord;

/// The platform's name, and the first part of every id it makes.
pub const PLATFORM: &str = "discord";

/// Milliseconds from 1970 to Discord's own beginning of time, the first second of 2015
/// (<https://discord.com/developers/docs/reference#snowflakes>).
const EPOCH_MS: i64 = 1_420_070_400_000;

/// Bits of a snowflake below its time.
const TIME_SHIFT: u32 = 22;

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

/// The channel of a chat; `None` for a chat of another platform.
pub(crate) fn channel_of(chat: &ChatId) -> Option<discord::ChannelId> {
    snowflake(chat.as_str()).map(discord::ChannelId::new)
}

/// The user a person is; `None` for a person of another platform.
pub(crate) fn user_of(person: &PersonId) -> Option<discord::UserId> {
    snowflake(person.as_str()).map(discord::UserId::new)
}

fn snowflake(id: &str) -> Option<u64> {
    let number = id.strip_prefix(PLATFORM)?.strip_prefix(':')?;
    number.parse().ok().filter(|number| *number != 0)
}

/// Which reply: the message it answers, and how many answers to it were made before. The core makes a reply's id of the
/// two (`discord:42~r0`), so they say everything about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ReplyKey {
    pub(crate) asked: discord::MessageId,
    pub(crate) number: u32,
}

impl ReplyKey {
    /// The reply of an id of the core; `None` if it answers no message of Discord.
    pub(crate) fn of(reply: &MessageId) -> Option<Self> {
        let (asked, number) = reply.as_str().rsplit_once("~r")?;
        Some(Self { asked: discord::MessageId::new(snowflake(asked)?), number: number.parse().ok()? })
    }

    /// The core's id of the reply.
    pub(crate) fn id(self) -> Result<MessageId, IdError> {
        MessageId::new(format!("{PLATFORM}:{}~r{}", self.asked, self.number))
    }
}

/// The smallest snowflake of a time, in milliseconds since 1970; for asking what came after it.
pub(crate) fn first_of(at_ms: i64) -> u64 {
    u64::try_from(at_ms - EPOCH_MS).unwrap_or(0) << TIME_SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_what_they_write() {
        assert_eq!(channel_of(&chat(discord::ChannelId::new(7)).unwrap()), Some(discord::ChannelId::new(7)));
        assert_eq!(user_of(&person(discord::UserId::new(8)).unwrap()), Some(discord::UserId::new(8)));
        let key = ReplyKey { asked: discord::MessageId::new(42), number: 3 };
        assert_eq!(key.id().unwrap().as_str(), "discord:42~r3");
        assert_eq!(ReplyKey::of(&key.id().unwrap()), Some(key));
    }

    #[test]
    fn what_is_not_of_discord_is_nobody() {
        #[track_caller]
        fn check(id: &str) {
            assert_eq!(channel_of(&ChatId::new(id).unwrap()), None, "{id}");
        }
        for id in ["console:ann:main", "discord", "discord:", "discord:0", "discord:x", "discord:1:2", "xdiscord:1"] {
            check(id);
        }
        assert_eq!(ReplyKey::of(&MessageId::new("discord:42").unwrap()), None);
        assert_eq!(ReplyKey::of(&MessageId::new("a~r0").unwrap()), None);
    }

    #[test]
    fn a_snowflake_tells_its_time() {
        // The example of Discord's reference.
        assert_eq!(first_of(1_462_015_105_796), 175_928_847_299_117_063 >> TIME_SHIFT << TIME_SHIFT);
        assert_eq!(first_of(0), 0);
    }
}
