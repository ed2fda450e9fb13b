//! Webhooks, and responses to interactions, which use the same paths.

use serde_json::{Value, json};

use crate::permissions::Bits;
use crate::rest::{Call, Reply, id_of, no_permission, unknown};
use crate::world::{APPLICATION, BOT, World};

/// Most webhooks of a channel.
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
        let avatar = self.picture(call);
        let hook = json!({"id": id.to_string(), "type": 1, "guild_id": guild, "channel_id": channel.to_string(),
            "name": name, "avatar": avatar, "token": format!("webhook-secret-{id}"), "user": self.user_json(BOT),
            "application_id": APPLICATION.to_string()});
        self.webhooks.insert(id, hook.clone());
        Reply::new(200, hook)
    }

    /// Changes name or picture of a webhook.
    pub(crate) fn change_webhook(&mut self, id: u64, call: &Call) -> Reply {
        let Some(mut hook) = self.webhooks.get(&id).cloned() else { return unknown(10_015, "Webhook") };
        let home = hook["channel_id"].as_str().and_then(|id| id.parse().ok()).unwrap_or(0);
        if !self.granted(home, BOT).has(Bits::WEBHOOKS) {
            return no_permission();
        }
        if let Some(name) = call.body.as_ref().map(|body| &body["name"]).filter(|name| name.is_string()) {
            hook["name"] = name.clone();
        }
        hook["avatar"] = self.picture(call);
        self.webhooks.insert(id, hook.clone());
        Reply::new(200, hook)
    }

    /// Stores the picture in a request, and returns its name.
    fn picture(&mut self, call: &Call) -> Value {
        let given = call.body.as_ref().and_then(|body| body["avatar"].as_str());
        let Some(given) = given.filter(|given| given.starts_with("data:image/")).map(str::to_owned) else {
            return Value::Null;
        };
        let name = format!("{:032x}", self.pictures.len() + 1);
        self.pictures.insert(name.clone(), given);
        json!(name)
    }

    /// Creates a webhook of another application.
    pub fn others_webhook(&mut self, channel: u64, name: &str) {
        let id = self.id();
        let hook = json!({"id": id.to_string(), "type": 1, "channel_id": channel.to_string(), "name": name,
            "avatar": null, "application_id": null});
        self.webhooks.insert(id, hook);
    }

    /// Deletes the webhooks of a channel.
    pub fn remove_webhooks(&mut self, channel: u64) {
        self.webhooks.retain(|_, hook| hook["channel_id"] != *channel.to_string());
    }

    /// Handles a request that is authorized by a webhook's token.
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
            ("DELETE", ["messages", _]) if self.is_by(channel, message, id) => self.remove_message(channel, message),
            _ => no_permission(),
        }
    }

    fn execute(&mut self, channel: u64, hook: u64, call: &Call) -> Reply {
        let Some(body) = &call.body else { return Reply::failure(400, 50_006, "Cannot send an empty message") };
        let hook = self.webhooks[&hook].clone();
        let id = id_of(&hook);
        let name = body["username"].as_str().or(hook["name"].as_str()).unwrap_or_default().to_owned();
        if ["discord", "clyde"].iter().any(|word| name.to_lowercase().contains(word)) {
            return Reply::failure(400, 50_035, "username: Username cannot contain \"discord\"");
        }
        let mut message = match self.compose(channel, id, body, call) {
            Ok(message) => message,
            Err(refused) => return refused,
        };
        // A webhook is an author of its own.
        message["author"] = json!({"id": hook["id"], "username": name, "avatar": hook["avatar"], "discriminator": "0000",
            "public_flags": 0, "flags": 0, "bot": true, "global_name": null});
        message["webhook_id"] = hook["id"].clone();
        self.enter(channel, message.clone());
        let wait = call.query.iter().any(|(name, value)| name == "wait" && value == "true");
        if wait { Reply::new(200, message) } else { Reply::done() }
    }

    /// Returns true if a user has these permissions in a channel.
    pub fn may(&self, channel: u64, user: u64, bits: Bits) -> bool {
        self.granted(channel, user).has(bits)
    }
}
