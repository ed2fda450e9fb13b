//! Webhooks, and the answers to interactions that go the same way.

use serde_json::{Value, json};

use crate::permissions::Bits;
use crate::rest::{Call, Reply, id_of, no_permission, unknown};
use crate::world::{APPLICATION, BOT, World};

/// Webhooks that a channel may have.
const PER_CHANNEL: usize = 15;

impl World {
    pub(crate) fn webhooks_of(&self, channel: u64) -> Reply {
        let of = |hook: &&Value| hook["channel_id"] == *channel.to_string();
        Reply::new(200, self.webhooks.values().filter(of).cloned().collect())
    }

    pub(crate) fn make_webhook(&mut self, channel: u64, call: &Call) -> Reply {
        let there = self.webhooks.values().filter(|hook| hook["channel_id"] == *channel.to_string()).count();
        if there >= PER_CHANNEL {
            return Reply::failure(400, 30_007, "Maximum number of webhooks reached");
        }
        let id = self.id();
        let name = call.body.as_ref().map_or(Value::Null, |body| body["name"].clone());
        let guild = self.channels[&channel].guild.map(|guild| guild.to_string());
        let hook = json!({"id": id.to_string(), "type": 1, "guild_id": guild, "channel_id": channel.to_string(),
            "name": name, "avatar": null, "token": format!("webhook-secret-{id}"), "user": self.user_json(BOT),
            "application_id": APPLICATION.to_string()});
        self.webhooks.insert(id, hook.clone());
        Reply::new(200, hook)
    }

    /// A request that a webhook's token allows.
    pub(crate) fn by_webhook(&mut self, id: u64, token: &str, rest: &[&str], call: &Call) -> Reply {
        if id == APPLICATION {
            return self.by_interaction(token, rest, call);
        }
        let Some(hook) = self.webhooks.get(&id).filter(|hook| hook["token"] == *token).cloned() else {
            return unknown(10_015, "Webhook");
        };
        let home = hook["channel_id"].as_str().and_then(|id| id.parse().ok()).unwrap_or(0);
        let thread = call.query.iter().find(|(name, _)| name == "thread_id").and_then(|(_, id)| id.parse::<u64>().ok());
        let channel = thread.unwrap_or(home);
        let lies_there =
            channel == home || self.channels.get(&channel).is_some_and(|thread| thread.parent == Some(home));
        if !lies_there {
            return unknown(10_003, "Channel");
        }
        let message = rest.get(1).and_then(|id| id.parse::<u64>().ok()).unwrap_or(0);
        match (call.method.as_str(), rest) {
            ("POST", []) => self.execute(channel, id, call),
            ("PATCH", ["messages", _]) => self.change_message(channel, message, id, call),
            ("DELETE", ["messages", _]) => self.remove_message(channel, message),
            _ => no_permission(),
        }
    }

    fn execute(&mut self, channel: u64, hook: u64, call: &Call) -> Reply {
        let Some(body) = &call.body else { return Reply::failure(400, 50_006, "Cannot send an empty message") };
        let name = body["username"].as_str().unwrap_or("webhook").to_owned();
        // It is an author of its own.
        self.users.insert(hook, name.clone());
        if !self.bots.contains(&hook) {
            self.bots.push(hook);
        }
        let made = self.compose(channel, hook, body, call);
        let mut message = match made {
            Ok(message) => message,
            Err(refused) => return refused,
        };
        message["webhook_id"] = json!(hook.to_string());
        message["author"]["avatar_url"] = body["avatar_url"].clone();
        let id = id_of(&message);
        if let Some(channel) = self.channels.get_mut(&channel) {
            channel.messages.insert(id, message.clone());
        }
        let wait = call.query.iter().any(|(name, value)| name == "wait" && value == "true");
        if wait { Reply::new(200, message) } else { Reply::done() }
    }

    /// Whether a user may do something in a channel.
    pub fn may(&self, channel: u64, user: u64, bits: Bits) -> bool {
        self.granted(channel, user).has(bits)
    }
}
