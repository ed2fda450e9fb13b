//! The part of the API that this bot needs.

use serde_json::{Map, Value, json};

use crate::permissions::Bits;
use crate::world::{APPLICATION, BOT, Kind, World};

/// Longest message in characters.
const MESSAGE_CHARS: usize = 2_000;

/// The flag of a voice message.
const IS_VOICE_MESSAGE: u64 = 1 << 13;

/// A request.
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) body: Option<Value>,
    pub(crate) files: Vec<File>,
    pub(crate) token: Option<String>,
}

/// A file in a request.
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

/// A response.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Option<Value>,
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl Reply {
    pub(crate) fn new(status: u16, body: Value) -> Self {
        Self { status, body: Some(body), headers: Vec::new() }
    }

    pub(crate) fn done() -> Self {
        Self { status: 204, body: None, headers: Vec::new() }
    }

    pub(crate) fn failure(status: u16, code: u32, message: &str) -> Self {
        Self::new(status, json!({"code": code, "message": message}))
    }
}

/// Errors: no access, missing permission, not found, invalid.
pub(crate) fn no_access() -> Reply {
    Reply::failure(403, 50_001, "Missing Access")
}

pub(crate) fn no_permission() -> Reply {
    Reply::failure(403, 50_013, "Missing Permissions")
}

pub(crate) fn unknown(code: u32, what: &str) -> Reply {
    Reply::failure(404, code, &format!("Unknown {what}"))
}

pub(crate) fn invalid(message: &str) -> Reply {
    Reply::failure(400, 50_035, message)
}

pub(crate) fn handle(world: &mut World, call: &Call) -> Reply {
    world.trim();
    let path: Vec<&str> = call.path.trim_start_matches('/').split('/').collect();
    let number = |at: usize| path.get(at).and_then(|id| id.parse::<u64>().ok()).unwrap_or(0);
    // Interactions and webhooks are authorized by a token in the path.
    match (call.method.as_str(), path.as_slice()) {
        ("POST", ["interactions", _, token, "callback"]) => return world.callback(number(1), token, call),
        (_, ["webhooks", _, token, rest @ ..]) => return world.by_webhook(number(1), token, rest, call),
        _ => {}
    }
    let known = call.token.as_ref().is_some_and(|token| token.strip_prefix("Bot ") == Some(world.token.as_str()));
    if !known {
        return Reply::failure(401, 0, "401: Unauthorized");
    }
    match (call.method.as_str(), path.as_slice()) {
        ("GET", ["gateway"]) => Reply::new(200, json!({"url": world.gateway})),
        ("GET", ["gateway", "bot"]) => Reply::new(
            200,
            json!({"url": world.gateway, "shards": 1, "session_start_limit": {"total": 1000, "remaining": 999,
                "reset_after": 14_400_000, "max_concurrency": 1}}),
        ),
        ("GET", ["users", "@me"]) => {
            let mut me = world.user_json(BOT);
            me["mfa_enabled"] = json!(false);
            me["verified"] = json!(true);
            Reply::new(200, me)
        }
        ("GET", ["oauth2", "applications", "@me"] | ["applications", "@me"]) => Reply::new(
            200,
            json!({"id": APPLICATION.to_string(), "name": "Azera", "icon": null, "description": "", "bot_public": true,
                "bot_require_code_grant": false, "verify_key": "00", "flags": world.flags, "team": null, "hook": true,
                "summary": "", "rpc_origins": []}),
        ),
        ("PUT", ["applications", _, "commands"]) => world.declare(call),
        ("PATCH", ["webhooks", _]) => world.change_webhook(number(1), call),
        ("GET", ["guilds", _, "members", _]) => match world.guilds.get(&number(1)) {
            Some(guild) if guild.members.contains_key(&number(3)) => {
                Reply::new(200, world.member_json(number(1), number(3)))
            }
            _ => unknown(10_007, "Member"),
        },
        ("PATCH", ["guilds", _, "voice-states", "@me"]) => world.change_own_voice(number(1), call),
        ("POST", ["users", "@me", "channels"]) => {
            let user = call.body.as_ref().and_then(|body| body["recipient_id"].as_str()?.parse().ok());
            let channel = world.dm(user.unwrap_or(0));
            Reply::new(200, world.channel_json(channel))
        }
        (_, ["channels", _, ..]) => in_channel(world, call, number(1), &path),
        _ => unknown(0, "Route"),
    }
}

fn in_channel(world: &mut World, call: &Call, channel: u64, path: &[&str]) -> Reply {
    let Some(kind) = world.channels.get(&channel).map(|channel| channel.kind) else {
        return unknown(10_003, "Channel");
    };
    let granted = world.granted(channel, BOT);
    if !granted.has(Bits::VIEW) {
        return no_access();
    }
    let send = if matches!(kind, Kind::Thread | Kind::PrivateThread) { Bits::SEND_IN_THREADS } else { Bits::SEND };
    let message = path.get(3).and_then(|id| id.parse::<u64>().ok()).unwrap_or(0);
    match (call.method.as_str(), path.get(2..).unwrap_or_default()) {
        ("GET", []) => Reply::new(200, world.channel_json(channel)),
        ("GET", ["messages"]) => world.history(channel, granted, call),
        ("GET", ["messages", _]) if granted.has(Bits::HISTORY) => match world.channels[&channel].messages.get(&message)
        {
            Some(found) => Reply::new(200, found.clone()),
            None => unknown(10_008, "Message"),
        },
        ("POST", ["messages"]) if granted.has(send) => world.post(channel, granted, call),
        ("PATCH", ["messages", _]) => world.change_message(channel, message, BOT, call),
        ("DELETE", ["messages", _]) => {
            let is_own = world.is_by(channel, message, BOT);
            if is_own || granted.has(Bits::MESSAGES) { world.remove_message(channel, message) } else { no_permission() }
        }
        ("POST", ["typing"]) if granted.has(send) => {
            world.typing.push(channel);
            Reply::done()
        }
        ("POST", ["threads"]) if granted.has(Bits::CREATE_THREADS) && kind == Kind::Text => {
            world.make_thread(channel, call)
        }
        ("GET", ["thread-members"]) => {
            let people = world.channels[&channel].people.clone();
            let members = people.iter().map(|user| {
                json!({"id": channel.to_string(), "user_id": user.to_string(), "flags": 0,
                    "join_timestamp": "2024-01-01T00:00:00.000000+00:00"})
            });
            Reply::new(200, members.collect())
        }
        ("GET", ["webhooks"]) if granted.has(Bits::WEBHOOKS) => world.webhooks_of(channel),
        ("POST", ["webhooks"]) if granted.has(Bits::WEBHOOKS) => world.make_webhook(channel, call),
        _ => no_permission(),
    }
}

impl World {
    fn history(&self, channel: u64, granted: Bits, call: &Call) -> Reply {
        if !granted.has(Bits::HISTORY) {
            return Reply::new(200, json!([]));
        }
        let question =
            |name: &str| call.query.iter().find(|(key, _)| key == name).and_then(|(_, value)| value.parse().ok());
        let limit = question("limit").unwrap_or(50_u64).clamp(1, 100) as usize;
        let messages = &self.channels[&channel].messages;
        let mut found: Vec<Value> = match question("after") {
            Some(after) => messages.range(after + 1..).take(limit).map(|(_, message)| message.clone()).collect(),
            None => {
                let before = question("before").unwrap_or(u64::MAX);
                messages.range(..before).rev().take(limit).map(|(_, message)| message.clone()).collect()
            }
        };
        // Newest first, whatever the request; the nonce is never returned later.
        found.sort_by_key(|message| std::cmp::Reverse(id_of(message)));
        for message in &mut found {
            if let Some(fields) = message.as_object_mut() {
                fields.remove("nonce");
                fields.remove("guild_id");
                fields.remove("member");
            }
        }
        Reply::new(200, json!(found))
    }

    fn post(&mut self, channel: u64, granted: Bits, call: &Call) -> Reply {
        let Some(body) = &call.body else { return invalid("no body") };
        let nonce = body["nonce"].as_str().map(str::to_owned);
        let enforced = body["enforce_nonce"] == true;
        if let Some(known) =
            nonce.as_ref().filter(|_| enforced).and_then(|nonce| self.nonces.get(&(channel, nonce.clone())))
        {
            // Discord's reference makes no exception for a message that was deleted since.
            let present = self.channels[&channel].messages.get(&id_of(known));
            return Reply::new(200, present.unwrap_or(known).clone());
        }
        let referenced = body["message_reference"]["message_id"].as_str().and_then(|id| id.parse::<u64>().ok());
        if referenced.is_some() && !granted.has(Bits::HISTORY) {
            return Reply::failure(403, 160_002, "Cannot reply without permission to read message history");
        }
        let there = referenced.is_none_or(|id| self.channels[&channel].messages.contains_key(&id));
        if !there && body["message_reference"]["fail_if_not_exists"] != false {
            return invalid("Unknown message");
        }
        match self.compose(channel, BOT, body, call) {
            Err(refused) => refused,
            Ok(message) => {
                self.enter(channel, message.clone());
                if let Some(nonce) = nonce {
                    self.nonces.insert((channel, nonce), message.clone());
                }
                Reply::new(200, message)
            }
        }
    }

    /// Returns a message of the bot as it will appear in a channel.
    pub(crate) fn compose(&mut self, channel: u64, author: u64, body: &Value, call: &Call) -> Result<Value, Reply> {
        let content = body["content"].as_str().unwrap_or_default().trim().to_owned();
        if content.chars().count() > MESSAGE_CHARS {
            return Err(invalid("content: Must be 2000 or fewer in length."));
        }
        let embeds = body["embeds"].as_array().is_some_and(|embeds| !embeds.is_empty());
        if content.is_empty() && !embeds && call.files.is_empty() {
            return Err(Reply::failure(400, 50_006, "Cannot send an empty message"));
        }
        let id = self.id();
        let attachments = self.keep(id, &call.files);
        let reference = body["message_reference"]["message_id"].as_str().filter(|question| {
            question.parse().is_ok_and(|question: u64| self.channels[&channel].messages.contains_key(&question))
        });
        let mut message = self.message(channel, id, author, &content);
        message["application_id"] = json!(APPLICATION.to_string());
        message["attachments"] = attachments;
        copy(&mut message, body, &["components", "embeds", "nonce", "flags"]);
        if let Some(question) = reference {
            self.refer(&mut message, channel, question);
        }
        self.calls(&mut message, body);
        Ok(message)
    }

    /// Sets whom a message mentions, from its text and its allowed mentions.
    fn calls(&self, message: &mut Value, body: &Value) {
        let parse = body["allowed_mentions"]["parse"].as_array();
        let allowed = |what: &str| parse.is_none_or(|all| all.iter().any(|one| one == what));
        let content = message["content"].as_str().unwrap_or_default();
        let everyone = content.contains("@everyone") && body["allowed_mentions"].is_object() && allowed("everyone");
        let everyone = everyone || content.contains("@everyone") && !body["allowed_mentions"].is_object();
        message["mention_everyone"] = json!(everyone);
        if !allowed("users") && body["allowed_mentions"].is_object() {
            message["mentions"] = json!([]);
        }
    }

    /// Returns a message as the API shows it.
    pub(crate) fn message(&self, channel: u64, id: u64, author: u64, content: &str) -> Value {
        let mentioned = self
            .users
            .keys()
            .filter(|user| content.contains(&format!("<@{user}>")) || content.contains(&format!("<@!{user}>")));
        let mentions: Vec<Value> = mentioned.map(|user| self.user_json(*user)).collect();
        let mut message = json!({"id": id.to_string(), "channel_id": channel.to_string(),
            "author": self.user_json(author), "content": content, "timestamp": Self::time(),
            "edited_timestamp": null, "tts": false, "mention_everyone": false, "mentions": mentions,
            "mention_roles": [], "attachments": [], "embeds": [], "pinned": false, "type": 0, "components": [],
            "flags": 0});
        if let Some(guild) = self.channels[&channel].guild {
            message["guild_id"] = json!(guild.to_string());
            if self.guilds[&guild].members.contains_key(&author) {
                let mut member = self.member_json(guild, author);
                if let Some(member) = member.as_object_mut() {
                    member.remove("user");
                }
                message["member"] = member;
            }
        }
        message
    }

    /// Makes a message a reply to another.
    pub(crate) fn refer(&self, message: &mut Value, channel: u64, question: &str) {
        let referenced = question.parse::<u64>().ok().and_then(|id| self.channels[&channel].messages.get(&id)).cloned();
        let mut reference = json!({"type": 0, "channel_id": channel.to_string(), "message_id": question});
        if let Some(guild) = self.channels[&channel].guild {
            reference["guild_id"] = json!(guild.to_string());
        }
        message["type"] = json!(19);
        message["message_reference"] = reference;
        message["referenced_message"] = referenced.unwrap_or(Value::Null);
    }

    pub(crate) fn enter(&mut self, channel: u64, message: Value) {
        let id = id_of(&message);
        if let Some(channel) = self.channels.get_mut(&channel) {
            channel.last = Some(id);
            channel.messages.insert(id, message.clone());
        }
        self.emit_in(channel, "MESSAGE_CREATE", message);
    }

    pub(crate) fn keep(&mut self, message: u64, files: &[File]) -> Value {
        let mut attachments = Vec::new();
        for file in files {
            let id = self.id();
            let name = format!("{message}/{id}/{}", file.name);
            let url = format!("https://cdn.discordapp.com/attachments/{name}");
            let kind = match file.name.rsplit_once('.') {
                Some((_, "txt" | "md" | "log")) => json!("text/plain; charset=utf-8"),
                Some((_, "png")) => json!("image/png"),
                Some((_, "ogg")) => json!("audio/ogg"),
                _ => Value::Null,
            };
            let attachment = json!({"id": id.to_string(), "filename": file.name, "size": file.bytes.len(), "url": url,
                "proxy_url": url, "content_type": kind});
            self.attached.insert(id.to_string(), attachment.clone());
            attachments.push(attachment);
            self.uploads.insert(name, file.bytes.clone());
        }
        json!(attachments)
    }

    /// Returns the files of a message after an edit: those that its list names, or all if it has no list, and the new ones.
    fn changed_files(&mut self, message: u64, before: &Value, body: &Value, files: &[File]) -> Value {
        let listed = body["attachments"].as_array();
        let is_kept = |file: &&Value| listed.is_none_or(|listed| listed.iter().any(|kept| kept["id"] == file["id"]));
        let mut kept: Vec<Value> = before.as_array().into_iter().flatten().filter(is_kept).cloned().collect();
        kept.extend(self.keep(message, files).as_array().into_iter().flatten().cloned());
        json!(kept)
    }

    pub(crate) fn change_message(&mut self, channel: u64, id: u64, author: u64, call: &Call) -> Reply {
        let Some(body) = &call.body else { return invalid("no body") };
        let Some(mut message) = self.channels[&channel].messages.get(&id).cloned() else {
            return unknown(10_008, "Message");
        };
        if message["author"]["id"] != *author.to_string() {
            return Reply::failure(403, 50_005, "Cannot edit a message authored by another user");
        }
        if body["content"].as_str().is_some_and(|content| content.chars().count() > MESSAGE_CHARS) {
            return invalid("content: Must be 2000 or fewer in length.");
        }
        copy(&mut message, body, &["content", "components", "embeds", "flags"]);
        message["attachments"] = self.changed_files(id, &message["attachments"], body, &call.files);
        message["content"] = json!(message["content"].as_str().unwrap_or_default().trim());
        message["edited_timestamp"] = json!(Self::time());
        // The files that an edit lists take the place of the earlier ones.
        if body["attachments"].is_array() || !call.files.is_empty() {
            message["attachments"] = self.keep(id, &call.files);
        }
        if let Some(channel) = self.channels.get_mut(&channel) {
            channel.messages.insert(id, message.clone());
        }
        self.emit_in(channel, "MESSAGE_UPDATE", message.clone());
        Reply::new(200, message)
    }

    /// Returns true if the user wrote the message, or if it does not exist.
    pub(crate) fn is_by(&self, channel: u64, id: u64, author: u64) -> bool {
        let message = self.channels.get(&channel).and_then(|channel| channel.messages.get(&id));
        message.is_none_or(|message| message["author"]["id"] == *author.to_string())
    }

    pub(crate) fn remove_message(&mut self, channel: u64, id: u64) -> Reply {
        let removed = self.channels.get_mut(&channel).and_then(|channel| channel.messages.remove(&id));
        if removed.is_none() {
            return unknown(10_008, "Message");
        }
        self.tell_deleted(channel, id);
        Reply::done()
    }

    fn tell_deleted(&mut self, channel: u64, id: u64) {
        let mut event = json!({"id": id.to_string(), "channel_id": channel.to_string()});
        if let Some(guild) = self.channels[&channel].guild {
            event["guild_id"] = json!(guild.to_string());
        }
        self.emit_in(channel, "MESSAGE_DELETE", event);
    }

    /// Sends a message of a user.
    pub fn say(&mut self, channel: u64, user: u64, content: &str) -> u64 {
        self.say_more(channel, user, content, None, &[])
    }

    /// Sends a reply of a user.
    pub fn reply(&mut self, channel: u64, user: u64, content: &str, to: u64) -> u64 {
        self.say_more(channel, user, content, Some(to), &[])
    }

    /// Sends a message with files.
    pub fn upload(&mut self, channel: u64, user: u64, content: &str, files: &[(&str, &[u8])]) -> u64 {
        self.say_more(channel, user, content, None, files)
    }

    /// Sends a voice message: an Ogg file, and nothing else.
    pub fn speak(&mut self, channel: u64, user: u64, file: &[u8], seconds: f64) -> u64 {
        let id = self.id();
        let files = [File { name: "voice-message.ogg".to_owned(), bytes: file.to_vec() }];
        let mut attachments = self.keep(id, &files);
        attachments[0]["duration_secs"] = json!(seconds);
        attachments[0]["waveform"] = json!("AAECAw==");
        let mut message = self.message(channel, id, user, "");
        message["attachments"] = attachments;
        message["flags"] = json!(IS_VOICE_MESSAGE);
        self.enter(channel, message);
        id
    }

    /// Returns the bytes of the files that a message has now, by their names.
    pub fn files_of(&self, channel: u64, id: u64) -> Vec<(String, Vec<u8>)> {
        let message = self.channels.get(&channel).and_then(|channel| channel.messages.get(&id));
        let files = message.and_then(|message| message["attachments"].as_array()).into_iter().flatten();
        let bytes = |file: &Value| {
            let stored = file["url"].as_str()?.strip_prefix("https://cdn.discordapp.com/attachments/")?;
            Some((file["filename"].as_str()?.to_owned(), self.uploads.get(stored)?.clone()))
        };
        files.filter_map(bytes).collect()
    }

    fn say_more(&mut self, channel: u64, user: u64, content: &str, to: Option<u64>, files: &[(&str, &[u8])]) -> u64 {
        let id = self.id();
        let files: Vec<File> =
            files.iter().map(|(name, bytes)| File { name: (*name).to_owned(), bytes: bytes.to_vec() }).collect();
        let attachments = self.keep(id, &files);
        let mut message = self.message(channel, id, user, content);
        message["attachments"] = attachments;
        if let Some(to) = to {
            self.refer(&mut message, channel, &to.to_string());
        }
        self.enter(channel, message);
        id
    }

    /// Edits a user's message.
    pub fn edit(&mut self, channel: u64, id: u64, content: &str) {
        self.edit_with(channel, id, |message| message["content"] = json!(content));
    }

    /// Removes the files of a message.
    pub fn remove_files(&mut self, channel: u64, id: u64) {
        self.edit_with(channel, id, |message| message["attachments"] = json!([]));
    }

    fn edit_with(&mut self, channel: u64, id: u64, change: impl FnOnce(&mut Value)) {
        let Some(mut message) = self.channels[&channel].messages.get(&id).cloned() else { return };
        change(&mut message);
        message["edited_timestamp"] = json!(Self::time());
        if let Some(channel) = self.channels.get_mut(&channel) {
            channel.messages.insert(id, message.clone());
        }
        self.emit_in(channel, "MESSAGE_UPDATE", message);
    }

    /// Deletes a message.
    pub fn delete(&mut self, channel: u64, id: u64) {
        self.remove_message(channel, id);
    }
}

fn copy(message: &mut Value, body: &Value, fields: &[&str]) {
    let none = Map::new();
    let body = body.as_object().unwrap_or(&none);
    for field in fields {
        if let Some(value) = body.get(*field).filter(|value| !value.is_null()) {
            message[*field] = value.clone();
        }
    }
}

/// Returns the id of an object.
pub(crate) fn id_of(value: &Value) -> u64 {
    value["id"].as_str().and_then(|id| id.parse().ok()).unwrap_or(0)
}
