//! Packets of sound over UDP: RTP, with the header authenticated and the rest encrypted.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aes_gcm::Aes256Gcm;
use aes_gcm::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::XChaCha20Poly1305;
use tokio::net::UdpSocket;

use super::VoicePacket;
use crate::Shared;

/// Bytes of an RTP header without extension.
const HEADER: usize = 12;

/// Bytes of the nonce at the end of a packet.
const NONCE: usize = 4;

/// How often those who wait look again.
const WAKE: Duration = Duration::from_millis(100);

/// Bytes of a request to discover the own address.
const DISCOVERY: usize = 74;

/// An encryption mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// `aead_aes256_gcm_rtpsize`
    Aes256Gcm,
    /// `aead_xchacha20_poly1305_rtpsize`
    XChaCha20Poly1305,
}

impl Mode {
    fn encrypt(self, key: &[u8; 32], nonce: [u8; NONCE], header: &[u8], opus: &[u8]) -> Option<Vec<u8>> {
        let payload = Payload { msg: opus, aad: header };
        match self {
            Self::Aes256Gcm => Aes256Gcm::new(key.into()).encrypt((&padded::<12>(nonce)).into(), payload).ok(),
            Self::XChaCha20Poly1305 => {
                XChaCha20Poly1305::new(key.into()).encrypt((&padded::<24>(nonce)).into(), payload).ok()
            }
        }
    }

    fn decrypt(self, key: &[u8; 32], nonce: [u8; NONCE], header: &[u8], body: &[u8]) -> Option<Vec<u8>> {
        let payload = Payload { msg: body, aad: header };
        match self {
            Self::Aes256Gcm => Aes256Gcm::new(key.into()).decrypt((&padded::<12>(nonce)).into(), payload).ok(),
            Self::XChaCha20Poly1305 => {
                XChaCha20Poly1305::new(key.into()).decrypt((&padded::<24>(nonce)).into(), payload).ok()
            }
        }
    }
}

/// The nonce of the cipher: the four bytes of the packet, then zeros.
fn padded<const N: usize>(nonce: [u8; NONCE]) -> [u8; N] {
    let mut padded = [0; N];
    padded[..NONCE].copy_from_slice(&nonce);
    padded
}

/// Opens the socket and answers what comes in.
pub(crate) async fn listen(shared: Arc<Shared>) -> Arc<UdpSocket> {
    let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.expect("a port"));
    shared.change(|world| world.voice.udp = Some(socket.local_addr().expect("an address")));
    // Who waits for silence must be woken although nothing happens.
    let waking = shared.clone();
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(WAKE);
        loop {
            ticks.tick().await;
            waking.changed.notify_all();
        }
    });
    let incoming = socket.clone();
    tokio::spawn(async move {
        let mut buffer = [0; 2_048];
        while let Ok((length, from)) = incoming.recv_from(&mut buffer).await {
            let packet = &buffer[..length];
            if length == DISCOVERY && packet.starts_with(&[0, 1]) {
                let answer = discovered(&shared, packet, from);
                incoming.send_to(&answer, from).await.ok();
            } else {
                receive(&shared, packet);
            }
        }
    });
    socket
}

/// Returns the answer to a request to discover the own address.
fn discovered(shared: &Shared, request: &[u8], from: SocketAddr) -> Vec<u8> {
    shared.change(|world| {
        if let Some(session) = &mut world.voice.session {
            session.address = Some(from);
        }
    });
    let mut answer = vec![0, 2, 0, 70];
    answer.extend(&request[4..8]);
    answer.extend(from.ip().to_string().bytes());
    answer.resize(DISCOVERY - 2, 0);
    answer.extend(from.port().to_be_bytes());
    answer
}

/// Keeps a packet of the bot.
fn receive(shared: &Shared, packet: &[u8]) {
    // Keepalives are shorter.
    if packet.len() < HEADER + NONCE || packet[0] >> 6 != 2 {
        return;
    }
    let (header, body) = packet.split_at(HEADER);
    let (body, nonce) = body.split_at(body.len() - NONCE);
    let cipher = shared.lock().voice.session.as_ref().and_then(|session| session.cipher);
    let Some((mode, key)) = cipher else { return };
    let Some(opus) = mode.decrypt(&key, nonce.try_into().expect("four bytes"), header, body) else { return };
    shared.change(|world| {
        let opus = match &mut world.voice.group {
            Some(group) => group.decrypt(opus),
            None => Some(opus),
        };
        let Some(opus) = opus else { return };
        world.voice.heard.push(VoicePacket {
            at: Instant::now(),
            sequence: u16::from_be_bytes([header[2], header[3]]),
            timestamp: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
            opus,
        });
    });
}

/// Sends a packet of a person to the bot.
pub(crate) async fn send(shared: &Shared, socket: &UdpSocket, ssrc: u32, sequence: u16, timestamp: u32, opus: &[u8]) {
    let sealed = shared.change(|world| {
        if world.voice.is_bot_deafened {
            return None;
        }
        let garbled = world.voice.is_garbled;
        let speaker = world.voice.ssrcs.iter().find(|(_, known)| **known == ssrc).map(|(user, _)| *user);
        let encrypted = match &mut world.voice.group {
            Some(group) => group.encrypt(speaker?, opus)?,
            None => opus.to_vec(),
        };
        let session = world.voice.session.as_mut()?;
        let (address, (mode, mut key)) = (session.address?, session.cipher?);
        if garbled {
            key[31] ^= 1;
        }
        session.sent += 1;
        let nonce = session.sent.to_be_bytes();
        // Version 2, payload type 120.
        let mut packet = vec![0x80, 0x78];
        packet.extend(sequence.to_be_bytes());
        packet.extend(timestamp.to_be_bytes());
        packet.extend(ssrc.to_be_bytes());
        let body = mode.encrypt(&key, nonce, &packet, &encrypted)?;
        packet.extend(body);
        packet.extend(nonce);
        Some((address, packet))
    });
    if let Some((address, packet)) = sealed {
        socket.send_to(&packet, address).await.ok();
    }
}
