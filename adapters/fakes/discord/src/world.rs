//! The fake's data: users, servers, channels, messages, sessions.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Instant;

use azera_types::{Clock, SystemClock};
use serde_json::{Value, json};

use crate::faults::{Fault, What};
use crate::gateway::Session;
use crate::interactions::Interaction;
use crate::permissions::{Bits, Overwrite, granted};
use crate::voice::{Mode, Voice};

/// The bot's user id.
pub const BOT: u64 = 900;
/// The bot's application id.
pub const APPLICATION: u64 = 901;

/// Milliseconds from 1970 to the epoch of snowflakes.
const EPOCH_MS: i64 = 1_420_070_400_000;

/// Flags of an application that may read messages and members.
const ALL_INTENTS: u64 = (1 << 19) | (1 << 15);

/// Most requests that are recorded.
const MAX_RECORDED_REQUESTS: usize = 100_000;

/// A recorded request.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    /// Its method.
    pub method: String,
    /// Its path without the version.
    pub path: String,
    /// Its JSON.
    pub body: Option<Value>,
    /// The status of the response.
    pub status: u16,
}

/// The kind of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A text channel of a server.
    Text,
    /// A thread that everyone in its channel sees.
    Thread,
    /// A thread that only added people see.
    PrivateThread,
    /// A DM of one person with the bot.
    Dm,
    /// A voice channel of a server, with a text chat.
    Voice,
    /// A stage of a server, with a text chat.
    Stage,
}

/// A member of a server.
#[derive(Debug, Clone, Default)]
pub struct Member {
    /// Ids of roles, without that of everyone.
    pub roles: Vec<u64>,
    /// The name in this server.
    pub nick: Option<String>,
}

/// A server.
#[derive(Debug, Clone)]
pub struct Guild {
    /// Its id, which is also the id of the role of everyone.
    pub id: u64,
    /// The owner.
    pub owner: u64,
    /// Permissions of each role.
    pub roles: HashMap<u64, Bits>,
    /// Its members.
    pub members: BTreeMap<u64, Member>,
    /// The system channel.
    pub system: u64,
}

/// A channel.
#[derive(Debug, Clone)]
pub struct Channel {
    /// Its id.
    pub id: u64,
    /// Its kind.
    pub kind: Kind,
    /// Its server, unless it is a DM.
    pub guild: Option<u64>,
    /// Its name.
    pub name: String,
    /// The parent channel of a thread.
    pub parent: Option<u64>,
    /// The person of a DM, or the people added to a thread.
    pub people: Vec<u64>,
    /// Its permission overwrites.
    pub overwrites: Vec<Overwrite>,
    /// Its messages, in order.
    pub messages: BTreeMap<u64, Value>,
    /// The newest message ever.
    pub last: Option<u64>,
}

impl Channel {
    /// Returns an empty channel without overwrites.
    fn new(id: u64, kind: Kind, guild: Option<u64>, name: &str) -> Self {
        Self {
            id,
            kind,
            guild,
            name: name.to_owned(),
            parent: None,
            people: Vec::new(),
            overwrites: Vec::new(),
            messages: BTreeMap::new(),
            last: None,
        }
    }
}

/// All data of the fake.
pub struct World {
    pub(crate) token: String,
    pub(crate) gateway: String,
    next: u64,
    /// Names of users.
    pub users: BTreeMap<u64, String>,
    /// Users that are bots.
    pub bots: Vec<u64>,
    /// Servers by id.
    pub guilds: BTreeMap<u64, Guild>,
    /// Channels by id.
    pub channels: BTreeMap<u64, Channel>,
    /// Flags of the application: the granted intents.
    pub flags: u64,
    pub(crate) sessions: Vec<Session>,
    pub(crate) duplicates: usize,
    pub(crate) swap: bool,
    pub(crate) held: Option<(String, Value)>,
    /// Number of sessions started.
    pub identified: usize,
    /// Number of sessions resumed.
    pub resumed: usize,
    pub(crate) is_gateway_down: bool,
    /// Number of connections to the gateway that were refused while it was broken.
    pub refused: usize,
    /// Recorded requests.
    pub requests: Vec<RecordedRequest>,
    /// Requests that violate Discord's API description.
    pub violations: Vec<String>,
    faults: Vec<Fault>,
    /// Requests per second allowed over all routes.
    pub limit: Option<usize>,
    recent: VecDeque<Instant>,
    pub(crate) nonces: HashMap<(u64, String), Value>,
    /// Channels in which the bot showed the typing indicator.
    pub typing: Vec<u64>,
    /// Declared commands.
    pub commands: Vec<Value>,
    pub(crate) interactions: Vec<Interaction>,
    pub(crate) webhooks: BTreeMap<u64, Value>,
    pub(crate) uploads: HashMap<String, Vec<u8>>,
    /// Attachments by id.
    pub(crate) attached: HashMap<String, Value>,
    /// The bot's presence.
    pub presence: Option<Value>,
    /// Pictures of webhooks by name, as received.
    pub pictures: BTreeMap<String, String>,
    /// The voice server.
    pub voice: Voice,
    /// Numbers of the next packets of people who talk.
    pub(crate) voice_counts: HashMap<u64, u32>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            token: "peer.token.of-the-tests-own".to_owned(),
            gateway: String::new(),
            next: 0,
            users: BTreeMap::from([(BOT, "Azera".to_owned())]),
            bots: vec![BOT],
            guilds: BTreeMap::new(),
            channels: BTreeMap::new(),
            flags: ALL_INTENTS,
            sessions: Vec::new(),
            duplicates: 0,
            swap: false,
            held: None,
            identified: 0,
            resumed: 0,
            is_gateway_down: false,
            refused: 0,
            requests: Vec::new(),
            violations: Vec::new(),
            faults: Vec::new(),
            limit: None,
            recent: VecDeque::new(),
            nonces: HashMap::new(),
            typing: Vec::new(),
            commands: Vec::new(),
            interactions: Vec::new(),
            webhooks: BTreeMap::new(),
            uploads: HashMap::new(),
            attached: HashMap::new(),
            presence: None,
            pictures: BTreeMap::new(),
            voice: Voice::offering(vec![Mode::Aes256Gcm, Mode::XChaCha20Poly1305]),
            voice_counts: HashMap::new(),
        }
    }

    /// Returns a new id for the current time.
    pub fn id(&mut self) -> u64 {
        let now = SystemClock.now().as_millisecond() - EPOCH_MS;
        let first = u64::try_from(now).expect("a time after 2015") << 22;
        self.next = first.max(self.next + 1);
        self.next
    }

    /// Returns the current time in Discord's format.
    pub(crate) fn time() -> String {
        SystemClock.now().strftime("%FT%T%.6f+00:00").to_string()
    }

    /// Adds a user.
    pub fn user(&mut self, name: &str) -> u64 {
        let id = self.id();
        self.users.insert(id, name.to_owned());
        id
    }

    /// Adds a server of `owner` with the bot in it; everyone may see, write and read the history.
    pub fn guild(&mut self, owner: u64, members: &[u64]) -> u64 {
        let id = self.id();
        let everybody = members.iter().chain([&owner, &BOT]);
        let members = everybody.map(|user| (*user, Member::default())).collect();
        // The permissions of the bot's invitation.
        let own_role = self.id();
        let bits = Bits::EVERYBODY.and(Bits::WEBHOOKS).and(Bits::CREATE_THREADS);
        let system = self.id();
        let roles = HashMap::from([(id, Bits::EVERYBODY), (own_role, bits)]);
        let mut guild = Guild { id, owner, roles, members, system };
        if let Some(bot) = guild.members.get_mut(&BOT) {
            bot.roles.push(own_role);
        }
        self.guilds.insert(id, guild);
        self.channels.insert(system, Channel::new(system, Kind::Text, Some(id), "general"));
        if !self.sessions.is_empty() {
            let created = self.guild_json(id);
            self.emit("GUILD_CREATE", created);
        }
        id
    }

    /// Adds a channel to a server.
    pub fn channel(&mut self, guild: u64, name: &str, overwrites: Vec<Overwrite>) -> u64 {
        let id = self.id();
        self.add(Channel { overwrites, ..Channel::new(id, Kind::Text, Some(guild), name) })
    }

    /// Adds a channel that only these people and the bot see.
    pub fn private_channel(&mut self, guild: u64, name: &str, people: &[u64]) -> u64 {
        let hidden = Overwrite { id: guild, user: false, allow: Bits::default(), deny: Bits::VIEW };
        let seen = |id: &u64| Overwrite { id: *id, user: true, allow: Bits::VIEW, deny: Bits::default() };
        let overwrites = [hidden].into_iter().chain(people.iter().chain([&BOT]).map(seen)).collect();
        self.channel(guild, name, overwrites)
    }

    /// Adds a thread to a channel.
    pub fn thread(&mut self, parent: u64, name: &str, private_to: Option<&[u64]>) -> u64 {
        let (id, guild) = (self.id(), self.channels[&parent].guild);
        let kind = if private_to.is_some() { Kind::PrivateThread } else { Kind::Thread };
        let people = private_to.map(<[u64]>::to_vec).unwrap_or_default();
        self.add(Channel { parent: Some(parent), people, ..Channel::new(id, kind, guild, name) })
    }

    /// Returns the DM channel of a user.
    pub fn dm(&mut self, user: u64) -> u64 {
        let known = self.channels.values().find(|channel| channel.kind == Kind::Dm && channel.people == [user]);
        if let Some(channel) = known {
            return channel.id;
        }
        let id = self.id();
        self.channels.insert(id, Channel { people: vec![user], ..Channel::new(id, Kind::Dm, None, "") });
        id
    }

    fn add(&mut self, channel: Channel) -> u64 {
        let (id, thread) = (channel.id, channel.parent.is_some());
        self.channels.insert(id, channel);
        let json = self.channel_json(id);
        if thread {
            self.emit_in(id, "THREAD_CREATE", json);
        } else {
            // Bots get all channels of a server, even those they may not see.
            self.emit("CHANNEL_CREATE", json);
        }
        id
    }

    /// Returns a user's permissions in a channel.
    pub fn granted(&self, channel: u64, user: u64) -> Bits {
        let Some(channel) = self.channels.get(&channel) else { return Bits::default() };
        let Some(guild) = channel.guild else {
            let theirs = user == BOT || channel.people.contains(&user);
            return if theirs { Bits(u64::MAX) } else { Bits::default() };
        };
        let Some(guild) = self.guilds.get(&guild) else { return Bits::default() };
        let enclosing = channel.parent.and_then(|parent| self.channels.get(&parent)).unwrap_or(channel);
        let bits = granted(guild, Some(enclosing), user);
        let hidden = channel.kind == Kind::PrivateThread && user != BOT && !channel.people.contains(&user);
        if hidden && bits != Bits(u64::MAX) { Bits::default() } else { bits }
    }

    /// Returns the messages of a channel, in order.
    pub fn messages(&self, channel: u64) -> Vec<&Value> {
        self.channels[&channel].messages.values().collect()
    }

    /// Returns the bot's messages in a channel, in order.
    pub fn bots_messages(&self, channel: u64) -> Vec<&Value> {
        let own = |message: &&Value| message["application_id"] == *APPLICATION.to_string();
        self.channels[&channel].messages.values().filter(own).collect()
    }

    /// Returns the bot's replies to a message, in order.
    pub fn answers(&self, channel: u64, requests: u64) -> Vec<&Value> {
        let to = requests.to_string();
        let answers = |message: &&Value| {
            message["message_reference"]["message_id"] == *to || message["components"].to_string().contains(&to)
        };
        self.bots_messages(channel).into_iter().filter(answers).collect()
    }

    /// Expires all nonces, as time would.
    pub fn forget_nonces(&mut self) {
        self.nonces.clear();
    }

    /// Injects a fault.
    pub fn order(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    /// Returns the fault that applies to a request.
    pub(crate) fn fault(&mut self, method: &str, path: &str) -> Option<What> {
        let at = self.faults.iter().position(|fault| fault.method == method && path.contains(&fault.path))?;
        let fault = &mut self.faults[at];
        let what = fault.what;
        fault.times -= 1;
        if fault.times == 0 {
            self.faults.remove(at);
        }
        Some(what)
    }

    /// Returns the seconds to wait if there were too many requests within a second.
    pub(crate) fn over_the_limit(&mut self) -> Option<f64> {
        let limit = self.limit?;
        while self.recent.front().is_some_and(|at| at.elapsed().as_secs_f64() >= 1.0) {
            self.recent.pop_front();
        }
        if self.recent.len() >= limit {
            let oldest = self.recent.front().map_or(0.0, |at| at.elapsed().as_secs_f64());
            return Some((1.0 - oldest).max(0.01));
        }
        self.recent.push_back(Instant::now());
        None
    }

    /// Returns the last requests, for the message of a failed test.
    pub(crate) fn last_requests(&self) -> String {
        let last = self.requests.iter().rev().take(12).rev();
        last.map(|requests| format!("\n  {} {} -> {}", requests.method, requests.path, requests.status)).collect()
    }

    pub(crate) fn trim(&mut self) {
        if self.requests.len() > MAX_RECORDED_REQUESTS {
            self.requests.drain(..MAX_RECORDED_REQUESTS / 2);
        }
    }

    pub(crate) fn user_json(&self, user: u64) -> Value {
        let name = self.users.get(&user).cloned().unwrap_or_default();
        json!({"id": user.to_string(), "username": name.to_lowercase(), "global_name": name, "discriminator": "0",
            "avatar": null, "bot": self.bots.contains(&user), "public_flags": 0})
    }

    pub(crate) fn member_json(&self, guild: u64, user: u64) -> Value {
        let member = self.guilds.get(&guild).and_then(|guild| guild.members.get(&user)).cloned().unwrap_or_default();
        json!({"user": self.user_json(user), "nick": member.nick, "avatar": null, "roles": texts(&member.roles),
            "joined_at": "2024-01-01T00:00:00.000000+00:00", "premium_since": null, "deaf": false, "mute": false,
            "flags": 0, "pending": false, "communication_disabled_until": null})
    }

    pub(crate) fn channel_json(&self, channel: u64) -> Value {
        let channel = &self.channels[&channel];
        let last = channel.last.map(|id| id.to_string());
        let kind = match channel.kind {
            Kind::Text => 0,
            Kind::Voice => 2,
            Kind::Stage => 13,
            Kind::Dm => 1,
            Kind::Thread => 11,
            Kind::PrivateThread => 12,
        };
        let mut json = json!({"id": channel.id.to_string(), "type": kind, "last_message_id": last, "flags": 0});
        if channel.kind == Kind::Dm {
            let people: Vec<Value> = channel.people.iter().map(|user| self.user_json(*user)).collect();
            json["recipients"] = json!(people);
            return json;
        }
        let overwrites: Vec<Value> = channel
            .overwrites
            .iter()
            .map(|one| {
                json!({"id": one.id.to_string(), "type": u8::from(one.user), "allow": one.allow.0.to_string(),
                    "deny": one.deny.0.to_string()})
            })
            .collect();
        json["guild_id"] = json!(channel.guild.map(|id| id.to_string()));
        json["name"] = json!(channel.name);
        json["parent_id"] = json!(channel.parent.map(|id| id.to_string()));
        json["rate_limit_per_user"] = json!(0);
        if let Some(limit) = self.voice.limits.get(&channel.id) {
            json["user_limit"] = json!(limit);
        }
        if channel.parent.is_some() {
            json["owner_id"] = json!(BOT.to_string());
            json["message_count"] = json!(channel.messages.len());
            json["member_count"] = json!(channel.people.len());
            json["thread_metadata"] = json!({"archived": false, "auto_archive_duration": 1440, "locked": false,
                "archive_timestamp": "2024-01-01T00:00:00.000000+00:00"});
        } else {
            json["position"] = json!(0);
            json["nsfw"] = json!(false);
            json["topic"] = Value::Null;
            json["permission_overwrites"] = json!(overwrites);
        }
        json
    }

    pub(crate) fn guild_json(&self, id: u64) -> Value {
        let guild = &self.guilds[&id];
        let channels = self.channels.values().filter(|channel| channel.guild == Some(id));
        let (threads, channels): (Vec<&Channel>, Vec<&Channel>) =
            channels.partition(|channel| channel.parent.is_some());
        let list = |some: Vec<&Channel>| -> Vec<Value> { some.iter().map(|one| self.channel_json(one.id)).collect() };
        let seen = threads.into_iter().filter(|thread| self.granted(thread.id, BOT).has(Bits::VIEW)).collect();
        let roles: Vec<Value> = guild.roles.iter().map(|(role, bits)| role_json(*role, *role == id, *bits)).collect();
        let members: Vec<Value> = guild.members.keys().map(|user| self.member_json(id, *user)).collect();
        let mut json = json!({"id": id.to_string(), "name": format!("server {id}"), "icon": null, "splash": null,
            "discovery_splash": null, "owner_id": guild.owner.to_string(),
            "afk_channel_id": self.voice.afk.map(|id| id.to_string()), "afk_timeout": 300,
            "verification_level": 0, "default_message_notifications": 0, "explicit_content_filter": 0, "roles": roles,
            "emojis": [], "features": [], "mfa_level": 0, "application_id": null, "system_channel_id": guild.system.to_string(),
            "system_channel_flags": 0, "rules_channel_id": null, "joined_at": "2024-01-01T00:00:00.000000+00:00"});
        let more = json!({
            "large": false, "unavailable": false, "member_count": members.len(), "voice_states": self.voice_states(id), "members": members,
            "channels": list(channels), "threads": list(seen), "presences": [], "max_members": 500_000,
            "vanity_url_code": null, "description": null, "banner": null, "premium_tier": 0,
            "premium_subscription_count": 0, "preferred_locale": "en-US", "public_updates_channel_id": null,
            "nsfw_level": 0, "stage_instances": [], "stickers": [], "guild_scheduled_events": [],
            "premium_progress_bar_enabled": false, "safety_alerts_channel_id": null, "soundboard_sounds": []});
        for (field, value) in more.as_object().into_iter().flatten() {
            json[field] = value.clone();
        }
        json
    }
}

pub(crate) fn role_json(id: u64, everybody: bool, bits: Bits) -> Value {
    let name = if everybody { "@everyone".to_owned() } else { format!("role {id}") };
    json!({"id": id.to_string(), "name": name, "color": 0, "hoist": false, "managed": false, "mentionable": false,
        "permissions": bits.0.to_string(), "position": u8::from(!everybody), "icon": null, "unicode_emoji": null,
        "flags": 0, "colors": {"primary_color": 0, "secondary_color": null, "tertiary_color": null}})
}

pub(crate) fn texts(ids: &[u64]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}
