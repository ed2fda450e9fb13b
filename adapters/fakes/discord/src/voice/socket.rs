//! The voice gateway.

use std::sync::Arc;

use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::{Change, Group, Mode, Proposer, Session, VERSION, Voice};
use crate::Shared;
use crate::world::{BOT, World};

/// Milliseconds between heartbeats.
const HEARTBEAT_MS: f64 = 13_750.0;

/// Authentication failed; the session is no longer valid.
const REFUSED: u16 = 4004;
const INVALID: u16 = 4006;

/// Messages of the end-to-end encryption, which are binary.
const EXTERNAL_SENDER: u8 = 25;
const KEY_PACKAGE: u8 = 26;
const PROPOSALS: u8 = 27;
const COMMIT: u8 = 29;
const WELCOME: u8 = 30;

/// Returns a binary message.
fn binary(kind: u8, content: &[u8]) -> Value {
    let bytes: Vec<u8> = std::iter::once(kind).chain(content.iter().copied()).collect();
    json!({ "binary": bytes })
}

pub(crate) fn welcome(shared: Arc<Shared>, version: u8, upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(move |socket| talk(shared, version, socket))
}

async fn talk(shared: Arc<Shared>, version: u8, mut socket: WebSocket) {
    let hello = json!({"op": 8, "d": {"v": version, "heartbeat_interval": HEARTBEAT_MS}});
    if socket.send(Message::Text(hello.to_string().into())).await.is_err() {
        return;
    }
    let (line, mut out) = unbounded_channel::<Value>();
    let mut number = 0_u64;
    loop {
        tokio::select! {
            Some(mut message) = out.recv() => {
                if let Some(code) = message["close"].as_u64() {
                    let frame = CloseFrame { code: code as u16, reason: "".into() };
                    socket.send(Message::Close(Some(frame))).await.ok();
                    // Until the bot took it in.
                    while let Some(Ok(_)) = socket.recv().await {}
                    break;
                }
                if let Some(bytes) = message["binary"].as_array() {
                    let bytes = bytes.iter().filter_map(|byte| u8::try_from(byte.as_u64()?).ok());
                    number += u64::from(version >= 8);
                    let numbered = (version >= 8).then(|| (number as u16).to_be_bytes());
                    let bytes: Vec<u8> = numbered.into_iter().flatten().chain(bytes).collect();
                    if socket.send(Message::Binary(bytes.into())).await.is_err() {
                        break;
                    }
                    continue;
                }
                // Version 8 numbers its messages, so that a client can resume.
                if version >= 8 {
                    number += 1;
                    message["seq"] = json!(number);
                }
                if socket.send(Message::Text(message.to_string().into())).await.is_err() {
                    break;
                }
            }
            heard = socket.recv() => match heard {
                Some(Ok(Message::Text(text))) => {
                    let Ok(message) = serde_json::from_str::<Value>(&text) else { break };
                    shared.change(|world| world.voice_heard(&message, version, &line));
                }
                Some(Ok(Message::Binary(bytes))) => shared.change(|world| world.voice_group(&bytes, &line)),
                Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                Some(Ok(_)) => {}
            },
        }
    }
    shared.change(|world| {
        world.voice.closed += 1;
        if world.voice.session.as_ref().is_some_and(|session| session.line.same_channel(&line)) {
            world.voice.session = None;
        }
    });
}

impl World {
    fn voice_heard(&mut self, message: &Value, version: u8, line: &UnboundedSender<Value>) {
        let data = &message["d"];
        let answer = match message["op"].as_u64() {
            Some(0) => self.voice_identify(data, line),
            Some(1) => self.select(data),
            Some(3) if version >= 8 => json!({"op": 6, "d": {"t": data["t"]}}),
            Some(3) => json!({"op": 6, "d": data}),
            // The bot says that it speaks.
            Some(5) => return,
            Some(7) if self.is_granted(data) && self.resume_voice(line) => json!({"op": 9, "d": null}),
            Some(7) => json!({"close": INVALID}),
            // The bot is ready for the group.
            Some(23) => {
                if let Some(group) = &mut self.voice.group {
                    group.is_ready = true;
                }
                json!({"op": 22, "d": {"transition_id": data["transition_id"]}})
            }
            Some(12..) => return,
            _ => json!({"close": 4001}),
        };
        // A client that went away needs no answer.
        line.send(answer).ok();
        if let Some(proposer) = self.voice.proposer.as_ref().filter(|_| message["op"] == 1) {
            line.send(binary(EXTERNAL_SENDER, &proposer.package)).ok();
        }
    }

    /// Handles what the bot sends for the end-to-end encryption: its key package.
    fn voice_group(&mut self, message: &[u8], line: &UnboundedSender<Value>) {
        let Some((&KEY_PACKAGE, package)) = message.split_first() else { return };
        let Some((_, channel)) = self.voice.there.get(&BOT).copied() else { return };
        let there = self.voice.there.iter().filter(|(user, (_, there))| **user != BOT && *there == channel);
        let people: Vec<u64> = there.map(|(user, _)| *user).collect();
        let proposer = self.voice.proposer.as_ref();
        let founded = proposer.and_then(|proposer| Group::found(proposer, channel, &people, package));
        if let Some((group, welcome)) = founded {
            self.voice.group = Some(group);
            // The number of the transition comes first.
            let welcome: Vec<u8> = 1_u16.to_be_bytes().into_iter().chain(welcome).collect();
            line.send(binary(WELCOME, &welcome)).ok();
        }
    }

    /// Gives the session of a broken connection to another one. Returns false if there is none.
    fn resume_voice(&mut self, line: &UnboundedSender<Value>) -> bool {
        let Some(broken) = self.voice.broken.take() else { return false };
        self.voice.session = Some(Session { line: line.clone(), ..broken });
        self.voice.resumed += 1;
        true
    }

    /// Takes a person who came into the group of the bot's channel, if people encrypt what they say.
    pub(crate) fn add_to_group(&mut self, channel: u64, user: u64) {
        let Voice { proposer: Some(proposer), group: Some(group), .. } = &mut self.voice else { return };
        if group.channel() != channel {
            return;
        }
        let change = group.add(proposer, user);
        self.tell_by_voice(json!({"op": 11, "d": {"user_ids": [user.to_string()]}}));
        self.tell_change(change);
    }

    /// Takes a person who left out of the group.
    pub(crate) fn out_of_group(&mut self, user: u64) {
        let Voice { proposer: Some(proposer), group: Some(group), .. } = &mut self.voice else { return };
        let change = group.remove(proposer, user);
        self.tell_change(change);
    }

    /// Tells the bot that the group goes on with other members.
    fn tell_change(&mut self, change: Option<Change>) {
        let Some(Change { proposals, commit }) = change else { return };
        self.voice.transitions += 1;
        let append: Vec<u8> = std::iter::once(0).chain(proposals).collect();
        let transition = (self.voice.transitions + 1).to_be_bytes();
        let commit: Vec<u8> = transition.into_iter().chain(commit).collect();
        self.tell_by_voice(binary(PROPOSALS, &append));
        self.tell_by_voice(binary(COMMIT, &commit));
    }

    fn is_granted(&self, data: &Value) -> bool {
        let granted = self.voice.granted.as_ref();
        granted.is_some_and(|(session, secret)| data["session_id"] == **session && data["token"] == **secret)
    }

    fn voice_identify(&mut self, data: &Value, line: &UnboundedSender<Value>) -> Value {
        if !self.is_granted(data) || data["user_id"] != *BOT.to_string() {
            return json!({"close": REFUSED});
        }
        let (ssrc, udp) = (self.new_ssrc(), self.voice.udp.expect("a socket"));
        self.voice.connected += 1;
        self.voice.session = Some(Session { ssrc, address: None, cipher: None, sent: 0, line: line.clone() });
        let modes: Vec<&str> = self.voice.modes.iter().map(|mode| mode.name()).collect();
        json!({"op": 2, "d": {"ssrc": ssrc, "ip": udp.ip().to_string(), "port": udp.port(), "modes": modes}})
    }

    fn select(&mut self, data: &Value) -> Value {
        let wanted = data["data"]["mode"].as_str().unwrap_or_default();
        let mode = self.voice.modes.iter().copied().find(|mode| mode.name() == wanted);
        let (Some(mode), Some(session)) = (mode, &mut self.voice.session) else { return json!({"close": 4016}) };
        // A key for each session; nobody needs to keep it secret.
        let mut key = [7; 32];
        key[..4].copy_from_slice(&session.ssrc.to_be_bytes());
        session.cipher = Some((mode, key));
        let users: Vec<String> = self.voice.ssrcs.keys().map(ToString::to_string).collect();
        session.line.send(json!({"op": 11, "d": {"user_ids": users}})).ok();
        let version = if self.voice.is_end_to_end { VERSION } else { 0 };
        (self.voice.proposer, self.voice.group) = (self.voice.is_end_to_end.then(Proposer::new), None);
        json!({"op": 4, "d": {"mode": mode.name(), "secret_key": key, "dave_protocol_version": version,
            "audio_codec": "opus", "media_session_id": "fake"}})
    }
}

impl Mode {
    /// Returns its name in the voice gateway.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aes256Gcm => "aead_aes256_gcm_rtpsize",
            Self::XChaCha20Poly1305 => "aead_xchacha20_poly1305_rtpsize",
        }
    }
}
