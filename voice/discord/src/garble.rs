//! Tells packets that nobody could decrypt from sound.
//!
//! songbird passes on packets that it cannot decrypt, and does not say so. The first byte of an Opus packet names its
//! mode, and a speaker changes between few modes. In encrypted data that byte is random.

use std::collections::{BTreeSet, VecDeque};

/// Packets that are looked at.
const LOOKED_AT: usize = 25;

/// Different first bytes among them from which they are no sound.
const DIFFERENT: usize = 12;

/// The first bytes of the last packets of a stream.
#[derive(Default)]
pub(crate) struct Garble(VecDeque<u8>);

impl Garble {
    /// Looks at the next packet; returns true if the stream is no sound.
    pub(crate) fn look(&mut self, packet: &[u8]) -> bool {
        self.0.extend(packet.first());
        if self.0.len() > LOOKED_AT {
            self.0.pop_front();
        }
        self.0.iter().collect::<BTreeSet<_>>().len() >= DIFFERENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_bytes_are_no_sound() {
        let mut garble = Garble::default();
        // Speech with silence between, in three modes.
        for number in 0..200_u32 {
            let first = [0x78, 0x7c, 0x58, 0xf8][(number / 7 % 4) as usize];
            assert!(!garble.look(&[first, 1, 2]));
        }
        let mut random = 1_u32;
        let noticed = (0..LOOKED_AT).any(|_| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            garble.look(&[(random >> 24) as u8, 1, 2])
        });
        assert!(noticed, "within half a second");
    }
}
