//! People who talk, over a network that delays, loses, reorders and repeats packets.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use super::send;
use crate::Shared;

/// The time of a packet.
const PACKET: Duration = Duration::from_millis(20);

/// Samples of a packet at 48 kHz.
const SAMPLES: u32 = 960;

/// What clients send when they fall silent: five packets of this.
const SILENCE: [u8; 3] = [0xf8, 0xff, 0xfe];

/// What a network does to packets. The numbers follow from the packet's number, so that each run is the same.
#[derive(Debug, Clone, Copy, Default)]
pub struct Network {
    /// Percent of packets that are lost.
    pub loss: u32,
    /// The longest delay in milliseconds; later packets may overtake.
    pub jitter_ms: u32,
    /// Percent of packets that come twice.
    pub twice: u32,
    /// Percent of packets that somebody sends again two seconds later.
    pub replayed: u32,
}

/// How long after a packet it is replayed.
const REPLAY: Duration = Duration::from_secs(2);

impl Network {
    /// Returns a number below `below` for a packet.
    fn roll(packet: u32, salt: u32, below: u32) -> u32 {
        // A step of a linear congruential generator mixes enough for this.
        let mixed = (packet ^ salt.wrapping_mul(0x9e37_79b9)).wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (mixed >> 16) % below.max(1)
    }
}

/// Lets a person say Opus packets of 20 ms, in real time.
pub(crate) async fn talk(
    shared: Arc<Shared>,
    socket: Arc<UdpSocket>,
    user: u64,
    packets: Vec<Vec<u8>>,
    network: Network,
) {
    let ssrc = shared.change(|world| world.announce(user));
    let mut ticks = interval_at(Instant::now(), PACKET);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let silence = std::iter::repeat_n(SILENCE.to_vec(), 5);
    // Numbers go on from one talk of a person to the next.
    let first = shared.change(|world| {
        let first = world.voice_counts.get(&user).copied().unwrap_or(u32::from(u16::MAX) - 20);
        world.voice_counts.insert(user, first + packets.len() as u32 + 5);
        first
    });
    let mut sending = tokio::task::JoinSet::new();
    let last = packets.len();
    for (number, opus) in packets.into_iter().chain(silence).enumerate() {
        ticks.tick().await;
        if number == 0 {
            shared.change(|world| world.voice.began = Some(std::time::Instant::now()));
        } else if number == last {
            shared.change(|world| world.voice.fell_silent = Some(std::time::Instant::now()));
        }
        let number = first + number as u32;
        if Network::roll(number, 1, 100) < network.loss {
            continue;
        }
        let times = if Network::roll(number, 2, 100) < network.twice { 2 } else { 1 };
        let is_replayed = Network::roll(number, 5, 100) < network.replayed;
        let delay = |time: u32| Duration::from_millis(Network::roll(number, 3 + time, network.jitter_ms + 1).into());
        for delay in (0..times).map(delay).chain(is_replayed.then_some(REPLAY)) {
            let at = Instant::now() + delay;
            let (shared, socket, opus) = (shared.clone(), socket.clone(), opus.clone());
            sending.spawn(async move {
                sleep_until(at).await;
                send(&shared, &socket, ssrc, number as u16, number.wrapping_mul(SAMPLES), &opus).await;
            });
        }
    }
    sending.join_all().await;
    shared.change(|world| world.voice.talking -= 1);
}
