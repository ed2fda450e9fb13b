//! Voice: who is in which channel, the voice gateway (versions 4 and 8), and sound over UDP with both AEAD modes
//! (<https://discord.com/developers/docs/topics/voice-connections>), on request with end-to-end encryption (DAVE).

mod dave;
mod moderation;
mod network;
mod rtp;
mod socket;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Instant;

use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

pub(crate) use dave::{Change, Group, Proposer, VERSION};
pub use network::Network;
pub(crate) use network::talk;
pub use rtp::Mode;
pub(crate) use rtp::{listen, send};
pub(crate) use socket::welcome;

use crate::permissions::Bits;
use crate::world::{BOT, Kind, World};

/// A packet that the bot sent.
#[derive(Debug, Clone)]
pub struct VoicePacket {
    /// When it arrived.
    pub at: Instant,
    /// Its number.
    pub sequence: u16,
    /// Its time in samples at 48 kHz.
    pub timestamp: u32,
    /// The Opus data.
    pub opus: Vec<u8>,
}

/// The bot's connection to the voice server.
pub(crate) struct Session {
    pub(crate) ssrc: u32,
    /// The address that it sends from, once it is known.
    pub(crate) address: Option<SocketAddr>,
    /// The chosen mode and its key.
    pub(crate) cipher: Option<(Mode, [u8; 32])>,
    /// Packets sent so far, which make the nonce.
    pub(crate) sent: u32,
    pub(crate) line: UnboundedSender<Value>,
}

/// The voice server, and who is in its channels.
#[derive(Default)]
pub struct Voice {
    /// Host and port of the voice gateway.
    pub(crate) endpoint: String,
    /// Address of the UDP socket.
    pub(crate) udp: Option<SocketAddr>,
    /// People and the bot by user: guild and channel.
    pub(crate) there: BTreeMap<u64, (u64, u64)>,
    /// People who hear nothing, because they or a moderator deafened them.
    pub(crate) deaf: BTreeSet<u64>,
    /// SSRCs of people who spoke.
    pub(crate) ssrcs: BTreeMap<u64, u32>,
    /// The bot's session and secret, as the gateway told them.
    pub(crate) granted: Option<(String, String)>,
    pub(crate) session: Option<Session>,
    next: u32,
    /// Modes that the server offers.
    pub modes: Vec<Mode>,
    /// Packets of the bot.
    pub heard: Vec<VoicePacket>,
    /// People who are talking now.
    pub talking: usize,
    /// When a person last began to talk, and when they fell silent.
    pub began: Option<Instant>,
    /// See `began`.
    pub fell_silent: Option<Instant>,
    /// True while the server sends what nobody can decrypt.
    pub is_garbled: bool,
    /// True if people encrypt what they say for each other and for the bot. Set it before the bot joins.
    pub is_end_to_end: bool,
    pub(crate) proposer: Option<Proposer>,
    pub(crate) group: Option<Group>,
    /// How often the group changed since it was founded.
    pub transitions: u16,
    /// The session of a connection that broke, and how often the bot resumed one.
    pub(crate) broken: Option<Session>,
    /// See `broken`.
    pub resumed: usize,
    /// True if the bot muted itself.
    pub is_bot_muted: bool,
    /// True if a moderator muted the bot, and if it is in the audience of a stage.
    pub(crate) is_bot_silenced: bool,
    pub(crate) is_bot_suppressed: bool,
    /// True if a moderator deafened the bot.
    pub(crate) is_bot_deafened: bool,
    /// How often the bot asked to speak on a stage.
    pub asked_to_speak: usize,
    /// The channel of people who are away, in which nobody may speak. A server tells it when it is described.
    pub afk: Option<u64>,
    /// How many people each channel takes, bots included; no entry means any number.
    pub(crate) limits: BTreeMap<u64, usize>,
    /// True while the gateway does not answer when the bot asks to move.
    pub ignores_moves: bool,
    /// The channels into which the bot asked to be moved, in order; `None` if it asked to leave.
    pub asked: Vec<Option<u64>>,
    /// How many voice connections ended on both sides.
    pub closed: usize,
    /// Number of times that the bot connected.
    pub connected: usize,
}

impl Voice {
    /// Returns a server with these modes and nobody in it.
    pub(crate) fn offering(modes: Vec<Mode>) -> Self {
        Self { modes, ..Self::default() }
    }
}

impl World {
    /// Adds a voice channel to a server.
    pub fn voice_channel(&mut self, guild: u64, name: &str) -> u64 {
        let id = self.channel(guild, name, Vec::new());
        if let Some(channel) = self.channels.get_mut(&id) {
            channel.kind = Kind::Voice;
        }
        let json = self.channel_json(id);
        self.emit("CHANNEL_UPDATE", json);
        id
    }

    /// Lets a person join a voice channel, or change to it.
    pub fn join_voice(&mut self, channel: u64, user: u64) {
        let guild = self.channels[&channel].guild.expect("a channel of a server");
        if self.voice.there.insert(user, (guild, channel)) != Some((guild, channel)) {
            self.out_of_group(user);
            self.add_to_group(channel, user);
        }
        self.tell_state(guild, user, Some(channel));
    }

    /// Lets a person leave their voice channel.
    pub fn leave_voice(&mut self, user: u64) {
        if let Some((guild, _)) = self.voice.there.remove(&user) {
            self.tell_state(guild, user, None);
            self.out_of_group(user);
            self.tell_by_voice(json!({"op": 13, "d": {"user_id": user.to_string()}}));
        }
    }

    /// Returns true if the bot is connected to the voice server of a channel, and ready to hear.
    pub fn is_voice_ready(&self, channel: u64) -> bool {
        let is_there = self.voice.there.get(&BOT).is_some_and(|(_, there)| *there == channel);
        is_there
            && (!self.voice.is_end_to_end || self.voice.group.as_ref().is_some_and(|group| group.is_ready))
            && self.voice.session.as_ref().is_some_and(|session| session.cipher.is_some() && session.address.is_some())
    }

    /// Returns the voice states of a server.
    pub(crate) fn voice_states(&self, guild: u64) -> Vec<Value> {
        let there = self.voice.there.iter().filter(|(_, (there, _))| *there == guild);
        there.map(|(user, (guild, channel))| self.voice_state(*guild, *user, Some(*channel))).collect()
    }

    pub(crate) fn tell_state(&mut self, guild: u64, user: u64, channel: Option<u64>) {
        let state = self.voice_state(guild, user, channel);
        self.emit("VOICE_STATE_UPDATE", state);
    }

    pub(crate) fn tell_by_voice(&self, message: Value) {
        if let Some(session) = &self.voice.session {
            session.line.send(message).ok();
        }
    }

    /// Handles the bot's request to join, change or leave a voice channel (op 4 of the gateway).
    pub(crate) fn move_bot(&mut self, data: &Value) {
        let number = |name: &str| data[name].as_str().and_then(|id| id.parse::<u64>().ok());
        let Some(guild) = number("guild_id") else { return };
        self.voice.asked.push(number("channel_id"));
        if self.voice.ignores_moves {
            return;
        }
        let Some(channel) = number("channel_id") else {
            // Nothing is told to a bot that is in no channel.
            if self.voice.there.remove(&BOT).is_some() {
                self.tell_state(guild, BOT, None);
                self.cut_voice();
            }
            return;
        };
        if !self.granted(channel, BOT).has(Bits::VIEW.and(Bits::CONNECT)) || self.is_full(channel) {
            return;
        }
        self.voice.is_bot_muted = data["self_mute"] == true;
        self.put_bot(guild, channel);
    }

    /// Puts the bot into a channel, and tells it where to connect.
    pub(crate) fn put_bot(&mut self, guild: u64, channel: u64) {
        if self.voice.there.insert(BOT, (guild, channel)) == Some((guild, channel)) {
            // It changed its mute, and stays connected.
            return self.tell_state(guild, BOT, Some(channel));
        }
        self.voice.is_bot_suppressed = self.channels[&channel].kind == Kind::Stage;
        let secret = format!("voice-secret-{}", self.id());
        self.voice.granted = Some((format!("voice-session-{BOT}"), secret.clone()));
        self.tell_state(guild, BOT, Some(channel));
        let endpoint = self.voice.endpoint.clone();
        let server = json!({"guild_id": guild.to_string(), "token": secret, "endpoint": endpoint});
        self.emit("VOICE_SERVER_UPDATE", server);
    }

    /// Moves the bot's call to another voice server, as Discord does when a region changes.
    pub fn change_voice_server(&mut self) {
        let Some((guild, _)) = self.voice.there.get(&BOT).copied() else { return };
        let secret = format!("voice-secret-{}", self.id());
        self.voice.granted = Some((format!("voice-session-{BOT}"), secret.clone()));
        self.voice.session = None;
        let endpoint = self.voice.endpoint.clone();
        self.emit("VOICE_SERVER_UPDATE", json!({"guild_id": guild.to_string(), "token": secret, "endpoint": endpoint}));
    }

    /// Returns a person's SSRC, and tells the bot that they speak.
    pub(crate) fn announce(&mut self, user: u64) -> u32 {
        let ssrc = match self.voice.ssrcs.get(&user) {
            Some(known) => *known,
            None => self.new_ssrc(),
        };
        self.voice.ssrcs.insert(user, ssrc);
        self.tell_by_voice(
            json!({"op": 5, "d": {"user_id": user.to_string(), "ssrc": ssrc, "speaking": 1, "delay": 0}}),
        );
        ssrc
    }

    pub(crate) fn new_ssrc(&mut self) -> u32 {
        self.voice.next += 1;
        self.voice.next
    }
}
