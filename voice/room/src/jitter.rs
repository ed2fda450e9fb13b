//! Puts the packets of one stream in order.
//!
//! A packet that comes in order passes at once, because recognition needs no even flow. Only the first one of a stream waits
//! a moment, because earlier ones may come after it. After a gap, later packets wait
//! for the missing ones for a short time. Then the gap counts as a loss.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::gate::Sound;
use crate::opus_packet;

/// How long later packets wait for a missing one.
const HOLD: Duration = Duration::from_millis(80);

/// How long the first packet of a stream waits for earlier ones, which a network may bring later.
const START: Duration = Duration::from_millis(40);

/// How many packets before the one that came first may still come.
const MAX_EARLIER: i16 = 16;

/// Most packets that wait.
const MAX_WAITING: usize = 32;

/// Samples of a packet whose length is unknown: 20 ms at 48 kHz.
const USUAL: u32 = 960;

/// The most samples at 48 kHz that count as lost or as a pause; longer gaps are cut to this.
const MAX_GAP: u32 = 48_000;

/// Late packets in a row, each after the one before, after which the sender counts as restarted.
const RESTARTED: u32 = 25;

/// The next piece of a stream.
#[derive(Debug)]
pub enum Frame {
    /// A packet to decode.
    Sound(Sound),
    /// Packets were lost: samples at 48 kHz to conceal.
    Lost(u32),
    /// The sender paused: samples of silence at 48 kHz.
    Pause(u32),
}

/// The packet that is expected next.
#[derive(Debug, Clone, Copy)]
struct Next {
    sequence: i64,
    timestamp: u32,
}

/// The packets of one stream that wait for an earlier one.
#[derive(Debug, Default)]
pub struct JitterBuffer {
    next: Option<Next>,
    /// When the first packet came, until it passes.
    began: Option<Duration>,
    waiting: BTreeMap<i64, (Duration, Sound)>,
    /// The last late packet, and how many came in a row.
    late: Option<(u16, u32)>,
}

impl JitterBuffer {
    /// Takes in a packet that arrived at `at`.
    pub fn push(&mut self, sound: Sound, at: Duration) {
        let first = Next { sequence: i64::from(sound.sequence()), timestamp: sound.timestamp() };
        if self.next.is_none() {
            self.began = Some(at);
        }
        let next = *self.next.get_or_insert(first);
        // The difference of two numbers of 16 bits says which came first.
        let ahead = sound.sequence().wrapping_sub(next.sequence as u16) as i16;
        let sequence = next.sequence + i64::from(ahead);
        if self.began.is_some() && (-MAX_EARLIER..0).contains(&ahead) {
            // The stream began before the packet that came first.
            self.next = Some(Next { sequence, timestamp: sound.timestamp() });
        } else if ahead < 0 {
            if self.is_restart(sound.sequence()) {
                self.waiting.clear();
                let timestamp = sound.timestamp().wrapping_add(USUAL);
                self.next = Some(Next { sequence: i64::from(sound.sequence()) + 1, timestamp });
                self.late = None;
            }
            return;
        }
        if self.waiting.contains_key(&sequence) {
            return;
        }
        self.late = None;
        self.waiting.insert(sequence, (at, sound));
    }

    /// Returns true if late packets follow each other like those of a sender that began anew.
    fn is_restart(&mut self, sequence: u16) -> bool {
        let row = match self.late {
            Some((before, row)) if sequence == before.wrapping_add(1) => row + 1,
            _ => 1,
        };
        self.late = Some((sequence, row));
        row >= RESTARTED
    }

    /// Returns the next piece of the stream, if it is certain at `at`.
    pub fn pop(&mut self, at: Duration) -> Option<Frame> {
        if self.began.is_some_and(|began| at.saturating_sub(began) < START) {
            return None;
        }
        self.began = None;
        let mut next = self.next?;
        let (&sequence, (came, sound)) = self.waiting.first_key_value()?;
        let gap = sound.timestamp().wrapping_sub(next.timestamp);
        // A time before the expected one is no gap: the sender changed the length of its packets.
        let gap = if gap > u32::MAX / 2 { 0 } else { gap.min(MAX_GAP) };
        if sequence > next.sequence {
            let is_over = at.saturating_sub(*came) >= HOLD || self.waiting.len() >= MAX_WAITING;
            if !is_over {
                return None;
            }
            next = Next { sequence, timestamp: sound.timestamp() };
            self.next = Some(next);
            return Some(Frame::Lost(gap.max(USUAL)));
        }
        if gap > 0 {
            self.next = Some(Next { timestamp: sound.timestamp(), ..next });
            return Some(Frame::Pause(gap));
        }
        let (_, (_, sound)) = self.waiting.pop_first()?;
        let length = opus_packet::samples(sound.payload()).unwrap_or(USUAL);
        self.next = Some(Next { sequence: sequence + 1, timestamp: sound.timestamp().wrapping_add(length) });
        Some(Frame::Sound(sound))
    }

    /// Returns when a waiting packet passes even without the missing one.
    pub fn deadline(&self) -> Option<Duration> {
        let begins = self.began.map(|began| began + START);
        begins.or_else(|| self.waiting.values().next().map(|(came, _)| *came + HOLD))
    }
}

#[cfg(test)]
mod tests {
    use azera_types::PersonId;
    use proptest::prelude::*;

    use super::*;
    use crate::gate::{Gate, SealedPacket};

    /// An Opus packet of 20 ms that holds its number.
    fn sound(number: u16, timestamp: u32) -> Sound {
        let ann = PersonId::new("ann").unwrap();
        let mut gate = Gate::default();
        gate.decide(ann.clone(), Some(true));
        let [high, low] = number.to_be_bytes();
        gate.admit(Some(&ann), SealedPacket::new(number, timestamp, vec![0xf8, high, low])).unwrap()
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Returns the stream as words: the number of a sound, or the samples of a gap.
    fn drain(buffer: &mut JitterBuffer, at: Duration) -> Vec<String> {
        let mut frames = Vec::new();
        while let Some(frame) = buffer.pop(at) {
            frames.push(match frame {
                Frame::Sound(sound) => sound.sequence().to_string(),
                Frame::Lost(samples) => format!("lost {samples}"),
                Frame::Pause(samples) => format!("pause {samples}"),
            });
        }
        frames
    }

    #[test]
    fn packets_in_order_pass_at_once_and_pauses_are_marked() {
        let mut buffer = JitterBuffer::default();
        buffer.push(sound(65_535, 1_000), ms(0));
        assert!(drain(&mut buffer, ms(20)).is_empty());
        assert_eq!(buffer.deadline(), Some(ms(40)));
        // The one before it was overtaken.
        buffer.push(sound(65_534, 40), ms(30));
        assert_eq!(drain(&mut buffer, ms(40)), ["65534", "65535"]);
        buffer.push(sound(0, 1_960), ms(40));
        assert_eq!(drain(&mut buffer, ms(40)), ["0"]);
        // The sender was silent for 2 s, and numbers go on.
        buffer.push(sound(1, 2_920 + 96_000), ms(2_040));
        assert_eq!(drain(&mut buffer, ms(2_040)), ["pause 48000", "1"]);
    }

    #[test]
    fn a_missing_packet_is_awaited_and_then_lost() {
        let mut buffer = JitterBuffer::default();
        for (number, at) in [(1, 0), (3, 20), (3, 25), (4, 40)] {
            buffer.push(sound(number, u32::from(number) * 960), ms(at));
        }
        assert_eq!(drain(&mut buffer, ms(40)), ["1"]);
        assert_eq!(buffer.deadline(), Some(ms(100)));
        assert_eq!(drain(&mut buffer, ms(100)), ["lost 960", "3", "4"]);
        // It comes too late, and another one is replayed.
        buffer.push(sound(2, 1_920), ms(120));
        buffer.push(sound(4, 3_840), ms(120));
        assert!(drain(&mut buffer, ms(300)).is_empty());
    }

    #[test]
    fn a_sender_that_counts_anew_is_heard_again() {
        let mut buffer = JitterBuffer::default();
        buffer.push(sound(9_000, 0), ms(0));
        drain(&mut buffer, ms(40));
        let mut heard = 0;
        for number in 0..60 {
            let at = ms(40 + 20 * u64::from(number));
            buffer.push(sound(number, u32::from(number) * 960), at);
            heard += drain(&mut buffer, at).len();
        }
        assert_eq!(heard, 35, "all after the first 25");
    }

    proptest! {
        /// Whatever the network does, sounds come once and in order, and the buffer never stalls.
        #[test]
        fn a_stream_comes_once_and_in_order(
            first in any::<u16>(),
            fates in prop::collection::vec((0_u64..60, 0_u8..10, any::<bool>()), 1..200),
        ) {
            // Each packet is delayed by up to 60 ms; one in ten is lost; some come twice.
            let mut arrivals: Vec<(u64, u16)> = Vec::new();
            for (at, (delay, lost, twice)) in fates.iter().enumerate() {
                let number = first.wrapping_add(at as u16);
                let sent = 20 * at as u64;
                if *lost > 0 || at == 0 {
                    arrivals.push((sent + if at == 0 { 0 } else { *delay }, number));
                    if *twice {
                        arrivals.push((sent + delay + 5, number));
                    }
                }
            }
            arrivals.sort();
            let mut buffer = JitterBuffer::default();
            let mut passed: Vec<u16> = Vec::new();
            let mut take = |buffer: &mut JitterBuffer, at: Duration| while let Some(frame) = buffer.pop(at) {
                if let Frame::Sound(sound) = frame {
                    passed.push(sound.sequence().wrapping_sub(first));
                }
            };
            for (at, number) in &arrivals {
                buffer.push(sound(*number, u32::from(number.wrapping_sub(first)) * 960), ms(*at));
                take(&mut buffer, ms(*at));
            }
            take(&mut buffer, ms(1_000_000));
            let mut expected: Vec<u16> = arrivals.iter().map(|(_, number)| number.wrapping_sub(first)).collect();
            expected.sort_unstable();
            expected.dedup();
            prop_assert_eq!(passed, expected, "a delay below the wait loses nothing");
        }
    }
}
