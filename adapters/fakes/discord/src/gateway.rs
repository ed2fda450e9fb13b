//! The gateway: sessions, their events, and how they break.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::Shared;
use crate::permissions::Bits;
use crate::world::{APPLICATION, BOT, World};

const GUILD_MEMBERS: u64 = 1 << 1;
const GUILD_VOICE_STATES: u64 = 1 << 7;
const GUILD_MESSAGES: u64 = 1 << 9;
const GUILD_REACTIONS: u64 = 1 << 10;
const DIRECT_MESSAGES: u64 = 1 << 12;
const DIRECT_REACTIONS: u64 = 1 << 13;
const MESSAGE_CONTENT: u64 = 1 << 15;

/// Milliseconds between heartbeats.
const HEARTBEAT_MS: u64 = 41_250;

/// A session, with or without a connection.
pub(crate) struct Session {
    id: String,
    intents: u64,
    seq: u64,
    /// Sent events, for resuming.
    sent_events: Vec<(u64, Value)>,
    line: Option<UnboundedSender<Out>>,
}

/// An outgoing item on a connection.
enum Out {
    Text(String),
    /// A close frame, then the end.
    Close(u16),
    /// The end without a close frame.
    Drop,
}

pub(crate) async fn listen(shared: Arc<Shared>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let app = Router::new().fallback(move |upgrade: WebSocketUpgrade| {
        let shared = shared.clone();
        async move {
            let is_refused = shared.change(|world| {
                world.refused += usize::from(world.is_gateway_down);
                world.is_gateway_down
            });
            if is_refused { StatusCode::SERVICE_UNAVAILABLE.into_response() } else { welcome(shared, upgrade) }
        }
    });
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

fn welcome(shared: Arc<Shared>, upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(move |socket| talk(shared, socket))
}

async fn talk(shared: Arc<Shared>, mut socket: WebSocket) {
    let hello = json!({"op": 10, "d": {"heartbeat_interval": HEARTBEAT_MS}, "s": null, "t": null});
    if socket.send(Message::Text(hello.to_string().into())).await.is_err() {
        return;
    }
    let (line, mut out) = unbounded_channel();
    loop {
        tokio::select! {
            next = out.recv() => match next {
                Some(Out::Text(text)) => {
                    if socket.send(Message::Text(text.into())).await.is_err() {
                        break;
                    }
                }
                Some(Out::Close(code)) => {
                    socket.send(Message::Close(Some(CloseFrame { code, reason: "".into() }))).await.ok();
                    break;
                }
                Some(Out::Drop) | None => break,
            },
            heard = socket.recv() => match heard {
                Some(Ok(Message::Text(text))) => {
                    let Ok(payload) = serde_json::from_str::<Value>(&text) else { break };
                    shared.change(|world| world.heard(&payload, &line));
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                Some(Ok(_)) => {}
            },
        }
    }
    shared.change(|world| {
        for session in &mut world.sessions {
            if session.line.as_ref().is_some_and(|own| own.same_channel(&line)) {
                session.line = None;
            }
        }
    });
}

fn payload(op: u8, data: &Value) -> Out {
    Out::Text(json!({"op": op, "d": data, "s": null, "t": null}).to_string())
}

impl World {
    fn heard(&mut self, payload_heard: &Value, line: &UnboundedSender<Out>) {
        let data = &payload_heard["d"];
        match payload_heard["op"].as_u64() {
            Some(1) => drop(line.send(payload(11, &Value::Null))),
            Some(2) => self.identify(data, line),
            Some(3) => self.presence = Some(data.clone()),
            Some(4) => self.move_bot(data),
            Some(6) => self.resume(data, line),
            Some(8) => self.chunk(data),
            _ => drop(line.send(Out::Close(4001))),
        }
    }

    fn knows(&self, token: &Value) -> bool {
        token.as_str().is_some_and(|token| token.trim_start_matches("Bot ") == self.token)
    }

    fn identify(&mut self, data: &Value, line: &UnboundedSender<Out>) {
        if !self.knows(&data["token"]) {
            line.send(Out::Close(4004)).ok();
            return;
        }
        let intents = data["intents"].as_u64().unwrap_or(0);
        let granted = |intent: u64, bits: u64| intents & intent == 0 || self.flags & bits != 0;
        if !granted(MESSAGE_CONTENT, 0b11 << 18) || !granted(GUILD_MEMBERS, 0b11 << 14) {
            line.send(Out::Close(4014)).ok();
            return;
        }
        self.identified += 1;
        let id = format!("session-{}", self.identified);
        // A bot that identifies again has given up the older session.
        self.sessions.clear();
        self.sessions.push(Session {
            id: id.clone(),
            intents,
            seq: 0,
            sent_events: Vec::new(),
            line: Some(line.clone()),
        });
        let guilds: Vec<u64> = self.guilds.keys().copied().collect();
        let unavailable: Vec<Value> =
            guilds.iter().map(|id| json!({"id": id.to_string(), "unavailable": true})).collect();
        let mut user = self.user_json(BOT);
        user["verified"] = json!(true);
        user["mfa_enabled"] = json!(false);
        let ready = json!({"v": 10, "user": user, "guilds": unavailable, "session_id": id, "session_type": "normal",
            "resume_gateway_url": self.gateway, "shard": data["shard"], "private_channels": [],
            "application": {"id": APPLICATION.to_string(), "flags": self.flags}});
        self.emit("READY", ready);
        for guild in guilds {
            let guild = self.guild_json(guild);
            self.emit("GUILD_CREATE", guild);
        }
    }

    fn resume(&mut self, data: &Value, line: &UnboundedSender<Out>) {
        let seq = data["seq"].as_u64().unwrap_or(0);
        let known = self.knows(&data["token"]);
        let session = self.sessions.iter_mut().find(|session| known && data["session_id"] == *session.id);
        let Some(session) = session else {
            line.send(payload(9, &json!(false))).ok();
            return;
        };
        session.line = Some(line.clone());
        for (_, event) in session.sent_events.iter().filter(|(number, _)| *number > seq) {
            line.send(Out::Text(event.to_string())).ok();
        }
        self.resumed += 1;
        self.emit("RESUMED", json!({}));
    }

    fn chunk(&mut self, data: &Value) {
        let Some(guild) = data["guild_id"].as_str().and_then(|id| id.parse().ok()) else { return };
        let Some(known) = self.guilds.get(&guild) else { return };
        let members: Vec<Value> = known.members.keys().map(|user| self.member_json(guild, *user)).collect();
        let chunk = json!({"guild_id": guild.to_string(), "members": members, "chunk_index": 0, "chunk_count": 1,
            "not_found": [], "nonce": data["nonce"]});
        self.emit("GUILD_MEMBERS_CHUNK", chunk);
    }

    /// Sends an event in a channel, if the bot can see it.
    pub(crate) fn emit_in(&mut self, channel: u64, kind: &str, data: Value) {
        if self.granted(channel, BOT).has(Bits::VIEW) {
            self.emit(kind, data);
        }
    }

    /// Sends an event to every session, according to its intents.
    pub(crate) fn emit(&mut self, kind: &str, data: Value) {
        let message = kind.starts_with("MESSAGE_");
        if message && self.swap {
            self.swap = false;
            self.held = Some((kind.to_owned(), data));
            return;
        }
        let times = if message && self.duplicates > 0 {
            self.duplicates -= 1;
            2
        } else {
            1
        };
        for _ in 0..times {
            self.tell(kind, &data);
        }
        if message && let Some((kind, data)) = self.held.take() {
            self.tell(&kind, &data);
        }
    }

    fn tell(&mut self, kind: &str, data: &Value) {
        for session in &mut self.sessions {
            let dm = data["guild_id"].is_null();
            let wanted = match kind {
                "GUILD_MEMBER_ADD" | "GUILD_MEMBER_UPDATE" | "GUILD_MEMBER_REMOVE" => GUILD_MEMBERS,
                "VOICE_STATE_UPDATE" => GUILD_VOICE_STATES,
                reaction if reaction.starts_with("MESSAGE_REACTION_") && dm => DIRECT_REACTIONS,
                reaction if reaction.starts_with("MESSAGE_REACTION_") => GUILD_REACTIONS,
                kind if kind.starts_with("MESSAGE_") && dm => DIRECT_MESSAGES,
                kind if kind.starts_with("MESSAGE_") => GUILD_MESSAGES,
                _ => 0,
            };
            if session.intents & wanted != wanted {
                continue;
            }
            let mut data = data.clone();
            if session.intents & MESSAGE_CONTENT == 0 && !dm {
                veil(&mut data);
            }
            session.seq += 1;
            let event = json!({"op": 0, "t": kind, "s": session.seq, "d": data});
            if let Some(line) = &session.line {
                line.send(Out::Text(event.to_string())).ok();
            }
            session.sent_events.push((session.seq, event));
        }
    }

    /// Returns true if a bot is connected.
    pub fn listening(&self) -> bool {
        self.sessions.iter().any(|session| session.line.is_some())
    }

    fn to_lines(&self, out: impl Fn() -> Out) {
        for session in &self.sessions {
            if let Some(line) = &session.line {
                line.send(out()).ok();
            }
        }
    }

    /// Drops the connections without a close frame.
    pub fn drop_sockets(&mut self) {
        self.to_lines(|| Out::Drop);
    }

    /// Breaks the gateway: connections end, and new ones are refused until [`World::restore_gateway`].
    pub fn break_gateway(&mut self) {
        self.is_gateway_down = true;
        self.drop_sockets();
    }

    /// Takes connections to the gateway again.
    pub fn restore_gateway(&mut self) {
        self.is_gateway_down = false;
    }

    /// Tells the bot to reconnect and resume (op 7).
    pub fn ask_to_reconnect(&mut self) {
        self.to_lines(|| payload(7, &Value::Null));
    }

    /// Ends the session (op 9), so that it cannot be resumed.
    pub fn invalidate(&mut self) {
        self.to_lines(|| payload(9, &json!(false)));
        self.sessions.clear();
    }

    /// Begins an outage of a server.
    pub fn begin_outage(&mut self, guild: u64) {
        self.emit("GUILD_DELETE", json!({"id": guild.to_string(), "unavailable": true}));
    }

    /// Ends an outage of a server. The server is described anew.
    pub fn end_outage(&mut self, guild: u64) {
        let guild = self.guild_json(guild);
        self.emit("GUILD_CREATE", guild);
    }

    /// Closes the connection with a code.
    pub fn close(&mut self, code: u16) {
        self.to_lines(|| Out::Close(code));
    }

    /// Sends the next message events twice.
    pub fn tell_twice(&mut self, events: usize) {
        self.duplicates = events;
    }

    /// Sends the next message event after the one that follows it.
    pub fn tell_out_of_order(&mut self) {
        self.swap = true;
    }
}

/// Removes what a bot without the intent cannot see of a message that is not for it.
pub(crate) fn veil(message: &mut Value) {
    let bot = BOT.to_string();
    let mentioned = message["mentions"].as_array().is_some_and(|all| all.iter().any(|user| user["id"] == *bot));
    if message["content"].is_string() && !mentioned && message["author"]["id"] != *bot {
        message["content"] = json!("");
        for list in ["embeds", "attachments", "components"] {
            message[list] = json!([]);
        }
    }
}
