//! Packets as they arrive, each with the person who speaks at that moment.

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, PoisonError};

use azera_voice_room::{SealedPacket, StreamId};
use songbird::events::context_data::{DisconnectKind, DisconnectReason, RtpData};
use songbird::model::{CloseCode, SpeakingState};
use songbird::{ConnectionInfo, CoreEvent, Driver, Event, EventContext, EventHandler};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::session::Inbox;

/// Most packets that wait to be handled: ten seconds of ten people.
const MAX_WAITING: usize = 5_000;

/// Bytes of an RTP header.
const HEADER: usize = 12;

/// A packet and its stream. The user is `None` if Discord did not say who speaks.
pub(crate) struct Captured {
    pub(crate) stream: StreamId,
    pub(crate) user: Option<u64>,
    pub(crate) packet: SealedPacket,
    pub(crate) at: Instant,
}

/// The streams of a connection, by their SSRC.
#[derive(Default)]
struct Streams {
    bound: HashMap<u32, (u64, StreamId)>,
    last: u64,
}

impl Streams {
    /// Binds an SSRC to a user. If another one had it, a new stream begins, and packets from before stay theirs.
    fn bind(&mut self, ssrc: u32, user: u64) {
        if self.bound.get(&ssrc).is_none_or(|(before, _)| *before != user) {
            self.last += 1;
            self.bound.insert(ssrc, (user, StreamId(self.last)));
        }
    }

    fn release(&mut self, user: u64) {
        self.bound.retain(|_, (bound, _)| *bound != user);
    }
}

/// Passes songbird's events on.
#[derive(Clone)]
pub(crate) struct Capture {
    streams: Arc<Mutex<Streams>>,
    packets: mpsc::Sender<Captured>,
    inbox: mpsc::UnboundedSender<Inbox>,
}

impl Capture {
    pub(crate) fn new(inbox: mpsc::UnboundedSender<Inbox>) -> (Self, mpsc::Receiver<Captured>) {
        let (packets, captured) = mpsc::channel(MAX_WAITING);
        (Self { streams: Arc::default(), packets, inbox }, captured)
    }

    /// Listens to a driver.
    pub(crate) fn listen(&self, driver: &mut Driver) {
        let events = [
            CoreEvent::SpeakingStateUpdate,
            CoreEvent::RtpPacket,
            CoreEvent::ClientDisconnect,
            CoreEvent::DriverConnect,
            CoreEvent::DriverDisconnect,
        ];
        for event in events {
            driver.add_global_event(Event::Core(event), self.clone());
        }
    }

    /// Forgets who speaks in which stream, for a new connection.
    pub(crate) fn forget(&self) {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).bound.clear();
    }

    fn packet(&self, data: &RtpData) {
        let Some((ssrc, packet)) = sealed(data) else { return };
        let bound = self.streams.lock().unwrap_or_else(PoisonError::into_inner).bound.get(&ssrc).copied();
        let (user, stream) = match bound {
            Some((user, stream)) => (Some(user), stream),
            None => (None, StreamId(0)),
        };
        // A full queue loses packets, as a network would.
        self.packets.try_send(Captured { stream, user, packet, at: Instant::now() }).ok();
    }
}

/// Reads number, time and Opus data of a packet. songbird has decrypted it.
fn sealed(data: &RtpData) -> Option<(u32, SealedPacket)> {
    let packet = &data.packet;
    let sequence = u16::from_be_bytes(*packet.get(2..)?.first_chunk()?);
    let timestamp = u32::from_be_bytes(*packet.get(4..)?.first_chunk()?);
    let ssrc = u32::from_be_bytes(*packet.get(8..)?.first_chunk()?);
    let end = packet.len().checked_sub(data.payload_end_pad)?;
    let payload = packet.get(HEADER + data.payload_offset..end)?;
    Some((ssrc, SealedPacket::new(sequence, timestamp, payload.to_vec())))
}

/// A connection, as songbird names it.
#[derive(PartialEq, Eq)]
pub(crate) struct Connection {
    channel: NonZeroU64,
    session: String,
}

impl Connection {
    pub(crate) fn of(info: &ConnectionInfo) -> Self {
        Self { channel: info.channel_id.0, session: info.session_id.clone() }
    }
}

/// What songbird says about a connection that ended or was not made.
pub(crate) struct Disconnected {
    /// See [`crate::Lost`].
    pub(crate) why: String,
    /// See [`crate::Lost`].
    pub(crate) was_cut: bool,
    /// True if it stood before.
    pub(crate) has_stood: bool,
}

impl Disconnected {
    /// Returns what a reason means for the call; `None` if the call itself asked for another connection or for none.
    fn read(kind: DisconnectKind, reason: DisconnectReason) -> Option<Self> {
        if matches!(reason, DisconnectReason::AttemptDiscarded | DisconnectReason::Requested) {
            return None;
        }
        let cut = [Some(CloseCode::Disconnected), Some(CloseCode::CallTerminated)].map(DisconnectReason::WsClosed);
        let has_stood = kind != DisconnectKind::Connect;
        Some(Self { why: format!("{reason:?}"), was_cut: cut.contains(&reason), has_stood })
    }
}

#[async_trait::async_trait]
impl EventHandler for Capture {
    async fn act(&self, context: &EventContext<'_>) -> Option<Event> {
        match context {
            EventContext::RtpPacket(data) => self.packet(data),
            EventContext::SpeakingStateUpdate(speaking) => {
                if let Some(user) = speaking.user_id {
                    self.streams.lock().unwrap_or_else(PoisonError::into_inner).bind(speaking.ssrc, user.0);
                    if speaking.speaking.contains(SpeakingState::MICROPHONE) {
                        self.inbox.send(Inbox::Speaks).ok();
                    }
                }
            }
            EventContext::ClientDisconnect(gone) => {
                self.streams.lock().unwrap_or_else(PoisonError::into_inner).release(gone.user_id.0);
            }
            EventContext::DriverConnect(_) => {
                self.inbox.send(Inbox::Connected).ok();
            }
            EventContext::DriverDisconnect(gone) => {
                if let Some(told) = gone.reason.and_then(|reason| Disconnected::read(gone.kind, reason)) {
                    let connection = Connection { channel: gone.channel_id.0, session: gone.session_id.to_owned() };
                    self.inbox.send(Inbox::Disconnected(told, connection)).ok();
                }
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_the_call_gave_up_itself_is_not_lost() {
        let cut = DisconnectReason::WsClosed(Some(CloseCode::Disconnected));
        let read = |kind, reason| Disconnected::read(kind, reason).map(|told| (told.was_cut, told.has_stood));
        assert_eq!(read(DisconnectKind::Runtime, cut), Some((true, true)));
        assert_eq!(read(DisconnectKind::Connect, DisconnectReason::TimedOut), Some((false, false)));
        assert_eq!(read(DisconnectKind::Runtime, DisconnectReason::Requested), None);
        assert_eq!(read(DisconnectKind::Connect, DisconnectReason::AttemptDiscarded), None);
    }

    #[test]
    fn a_stream_belongs_to_the_person_who_spoke_first_in_it() {
        let mut streams = Streams::default();
        streams.bind(7, 100);
        let first = streams.bound[&7];
        streams.bind(7, 100);
        assert_eq!(streams.bound[&7], first);
        streams.bind(7, 200);
        assert_ne!(streams.bound[&7].1, first.1, "another person, another stream");
        streams.release(200);
        assert!(streams.bound.is_empty());
    }
}
