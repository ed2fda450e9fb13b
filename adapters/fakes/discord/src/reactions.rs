//! Reactions of users to messages.

use serde_json::{Value, json};

use crate::world::World;

impl World {
    /// Adds a reaction of a user.
    pub fn react(&mut self, channel: u64, id: u64, user: u64, emoji: &str) {
        let mut event = self.reaction(channel, id, user, emoji);
        let message = &self.channels[&channel].messages[&id];
        if message["webhook_id"].is_null() {
            event["message_author_id"] = message["author"]["id"].clone();
        }
        if let Some(guild) = self.channels[&channel].guild {
            event["member"] = self.member_json(guild, user);
        }
        self.emit_in(channel, "MESSAGE_REACTION_ADD", event);
    }

    /// Takes a reaction of a user back. Discord names neither the author of the message nor the member.
    pub fn take_back(&mut self, channel: u64, id: u64, user: u64, emoji: &str) {
        let event = self.reaction(channel, id, user, emoji);
        self.emit_in(channel, "MESSAGE_REACTION_REMOVE", event);
    }

    /// Lets a moderator remove all reactions from a message.
    pub fn remove_reactions(&mut self, channel: u64, id: u64) {
        let mut event = json!({"channel_id": channel.to_string(), "message_id": id.to_string()});
        if let Some(guild) = self.channels[&channel].guild {
            event["guild_id"] = json!(guild.to_string());
        }
        self.emit_in(channel, "MESSAGE_REACTION_REMOVE_ALL", event);
    }

    fn reaction(&self, channel: u64, id: u64, user: u64, emoji: &str) -> Value {
        let mut event = json!({"user_id": user.to_string(), "channel_id": channel.to_string(), "message_id": id.to_string(),
            "emoji": {"id": null, "name": emoji}, "burst": false, "type": 0});
        if let Some(guild) = self.channels[&channel].guild {
            event["guild_id"] = json!(guild.to_string());
        }
        event
    }
}
