//! Changes in servers: roles, permissions and members.

use serde_json::json;

use crate::permissions::{Bits, Overwrite};
use crate::rest::{Call, Reply, invalid};
use crate::world::{Guild, Member, World, role_json};

impl World {
    /// Sets the roles of a member, and sends the event.
    pub fn set_roles(&mut self, guild: u64, user: u64, roles: Vec<u64>) {
        if let Some(member) = self.guilds.get_mut(&guild).and_then(|guild| guild.members.get_mut(&user)) {
            member.roles = roles;
        }
        let mut member = self.member_json(guild, user);
        member["guild_id"] = json!(guild.to_string());
        self.emit("GUILD_MEMBER_UPDATE", member);
    }

    /// Adds a role with these permissions; returns its id.
    pub fn role(&mut self, guild: u64, bits: Bits) -> u64 {
        let id = self.id();
        self.guilds.get_mut(&guild).expect("a server").roles.insert(id, bits);
        let role = role_json(id, id == guild, bits);
        self.emit("GUILD_ROLE_CREATE", json!({"guild_id": guild.to_string(), "role": role}));
        id
    }

    /// Sets the overwrites of a channel, and sends the event.
    pub fn set_overwrites(&mut self, channel: u64, overwrites: Vec<Overwrite>) {
        self.channels.get_mut(&channel).expect("a channel").overwrites = overwrites;
        let json = self.channel_json(channel);
        self.emit("CHANNEL_UPDATE", json);
    }

    /// Removes the bot from a server; returns the server for [`World::readmit`].
    pub fn evict(&mut self, guild: u64) -> Guild {
        self.emit("GUILD_DELETE", json!({"id": guild.to_string()}));
        self.guilds.remove(&guild).expect("a server")
    }

    /// Adds the bot to a server again.
    pub fn readmit(&mut self, guild: Guild) {
        let id = guild.id;
        self.guilds.insert(id, guild);
        let created = self.guild_json(id);
        self.emit("GUILD_CREATE", created);
    }

    /// Makes a public thread for the bot.
    pub(crate) fn make_thread(&mut self, channel: u64, call: &Call) -> Reply {
        let body = call.body.as_ref().filter(|body| body["type"] == 11);
        match body.and_then(|body| body["name"].as_str()).filter(|name| (1..=100).contains(&name.chars().count())) {
            Some(name) => {
                let thread = self.thread(channel, name, None);
                Reply::new(201, self.channel_json(thread))
            }
            None => invalid("a name of 1 to 100 letters, and the type of a public thread"),
        }
    }

    /// Adds a member to a server.
    pub fn invite(&mut self, guild: u64, user: u64) {
        self.guilds.get_mut(&guild).expect("a server").members.insert(user, Member::default());
        let mut member = self.member_json(guild, user);
        member["guild_id"] = json!(guild.to_string());
        self.emit("GUILD_MEMBER_ADD", member);
    }

    /// Removes a member from a server.
    pub fn leave(&mut self, guild: u64, user: u64) {
        self.guilds.get_mut(&guild).expect("a server").members.remove(&user);
        let user = self.user_json(user);
        self.emit("GUILD_MEMBER_REMOVE", json!({"guild_id": guild.to_string(), "user": user}));
    }
}
