//! What people and moderators change in voice channels besides who is there.

use serde_json::{Value, json};

use crate::permissions::Bits;
use crate::rest::{Call, Reply, invalid, no_permission, unknown};
use crate::world::{BOT, Kind, World};

/// Closes a voice connection: the bot left, was moved or thrown out.
const DISCONNECTED: u16 = 4014;

/// Closes a voice connection whose session is over. It cannot be resumed.
const INVALID: u16 = 4006;

/// Closes a voice connection that can be resumed.
const CRASHED: u16 = 4015;

impl World {
    /// Adds a stage to a server. Who joins it is in the audience.
    pub fn stage_channel(&mut self, guild: u64, name: &str) -> u64 {
        let id = self.voice_channel(guild, name);
        self.channels.get_mut(&id).expect("a channel").kind = Kind::Stage;
        self.tell_channel(id);
        id
    }

    /// Sets how many people a voice channel takes.
    pub fn set_user_limit(&mut self, channel: u64, limit: usize) {
        self.voice.limits.insert(channel, limit);
        self.tell_channel(channel);
    }

    fn tell_channel(&mut self, channel: u64) {
        let json = self.channel_json(channel);
        self.emit("CHANNEL_UPDATE", json);
    }

    /// Returns true if a channel takes nobody else.
    pub(crate) fn is_full(&self, channel: u64) -> bool {
        let there = self.voice.there.iter().filter(|(user, (_, there))| **user != BOT && *there == channel).count();
        self.voice.limits.get(&channel).is_some_and(|limit| there >= *limit)
    }

    /// Returns the voice state of a user.
    pub(crate) fn voice_state(&self, guild: u64, user: u64, channel: Option<u64>) -> Value {
        let (is_bot, is_deaf) = (user == BOT, self.voice.deaf.contains(&user));
        json!({"guild_id": guild.to_string(), "channel_id": channel.map(|id| id.to_string()),
            "user_id": user.to_string(), "member": self.member_json(guild, user),
            "session_id": format!("voice-session-{user}"), "deaf": is_bot && self.voice.is_bot_deafened,
            "mute": is_bot && self.voice.is_bot_silenced, "self_deaf": is_deaf,
            "self_mute": is_bot && self.voice.is_bot_muted, "self_video": false,
            "suppress": is_bot && self.voice.is_bot_suppressed, "request_to_speak_timestamp": null})
    }

    /// Lets a person in a voice channel deafen themselves, or hear again.
    pub fn deafen(&mut self, user: u64, is_deaf: bool) {
        if is_deaf {
            self.voice.deaf.insert(user);
        } else {
            self.voice.deaf.remove(&user);
        }
        self.tell_own(user);
    }

    fn tell_own(&mut self, user: u64) {
        if let Some((guild, channel)) = self.voice.there.get(&user).copied() {
            self.tell_state(guild, user, Some(channel));
        }
    }

    /// Lets a moderator mute the bot, or no longer.
    pub fn silence_bot(&mut self, is_silenced: bool) {
        self.voice.is_bot_silenced = is_silenced;
        self.tell_own(BOT);
    }

    /// Lets a moderator deafen the bot, or no longer. Meanwhile nobody's sound is sent to it.
    pub fn deafen_bot(&mut self, is_deafened: bool) {
        self.voice.is_bot_deafened = is_deafened;
        self.tell_own(BOT);
    }

    /// Lets a moderator of a stage bring the bot onto it.
    pub fn let_bot_speak(&mut self) {
        self.voice.is_bot_suppressed = false;
        self.tell_own(BOT);
    }

    /// Lets a moderator of a stage put the bot into the audience.
    pub fn put_bot_into_audience(&mut self) {
        self.voice.is_bot_suppressed = true;
        self.tell_own(BOT);
    }

    /// Ends the bot's voice session, which leaves it in its channel. [`Voice::closed`] counts once the bot took it in.
    ///
    /// [`Voice::closed`]: crate::Voice::closed
    pub fn lose_voice(&mut self) {
        if let Some(session) = self.voice.session.take() {
            session.line.send(json!({"close": INVALID})).ok();
        }
    }

    /// Closes the bot's voice connection as Discord does when it moves or throws out the bot. [`Voice::closed`] counts once
    /// the bot took it in.
    ///
    /// [`Voice::closed`]: crate::Voice::closed
    pub fn cut_voice(&mut self) {
        if let Some(session) = self.voice.session.take() {
            session.line.send(json!({"close": DISCONNECTED})).ok();
        }
    }

    /// Breaks the bot's voice connection as Discord does when a voice server crashes. The bot may resume it.
    pub fn break_voice(&mut self) {
        self.voice.broken = self.voice.session.take();
        if let Some(session) = &self.voice.broken {
            session.line.send(json!({"close": CRASHED})).ok();
        }
    }

    /// Lets a moderator throw the bot out of its voice channel. The state comes before the connection is cut, unless it
    /// was cut already.
    pub fn kick_bot(&mut self) {
        let Some((guild, _)) = self.voice.there.remove(&BOT) else { return };
        self.tell_state(guild, BOT, None);
        self.cut_voice();
    }

    /// Lets a moderator move the bot into another voice channel of its server. The state comes before the old connection is
    /// cut, unless it was cut already.
    pub fn drag_bot(&mut self, channel: u64) {
        let Some((guild, _)) = self.voice.there.get(&BOT).copied() else { return };
        let before = self.voice.session.take();
        self.put_bot(guild, channel);
        if let Some(session) = before {
            session.line.send(json!({"close": DISCONNECTED})).ok();
        }
    }

    /// Ends the gateway's session, and with it the bot's stay in its voice channel.
    pub fn lose_bot(&mut self) {
        self.invalidate();
        self.voice.there.remove(&BOT);
        self.cut_voice();
    }

    /// Handles that the bot changes its own voice state on a stage.
    pub(crate) fn change_own_voice(&mut self, guild: u64, call: &Call) -> Reply {
        let Some((there, channel)) = self.voice.there.get(&BOT).copied() else { return unknown(10_065, "Voice State") };
        let body = call.body.as_ref().filter(|body| body["channel_id"] == *channel.to_string());
        let Some(body) = body.filter(|_| there == guild && self.channels[&channel].kind == Kind::Stage) else {
            return invalid("the stage that the bot is in");
        };
        let granted = self.granted(channel, BOT);
        if body["suppress"] == false {
            if !granted.has(Bits::MUTE_MEMBERS) {
                return no_permission();
            }
            self.let_bot_speak();
        } else if body["request_to_speak_timestamp"].is_string() {
            if !granted.has(Bits::REQUEST_TO_SPEAK) {
                return no_permission();
            }
            self.voice.asked_to_speak += 1;
        }
        Reply::done()
    }
}
