//! How long an Opus packet lasts, from its first bytes (RFC 6716, section 3.1).

/// Samples at 48 kHz of one millisecond.
const MS: u32 = 48;

/// The longest packet in samples: 120 ms.
const LONGEST: u32 = 120 * MS;

/// Returns the samples at 48 kHz of a packet; `None` if it is no Opus packet.
pub(crate) fn samples(packet: &[u8]) -> Option<u32> {
    let toc = *packet.first()?;
    let config = u32::from(toc >> 3);
    let frame = match config {
        0..=11 => [10, 20, 40, 60][(config % 4) as usize] * MS,
        12..=15 => [10, 20][(config % 2) as usize] * MS,
        _ => [120, 240, 480, 960][(config % 4) as usize],
    };
    let frames = match toc & 3 {
        0 => 1,
        1 | 2 => 2,
        _ => u32::from(*packet.get(1)? & 0x3f),
    };
    let samples = frame * frames;
    (1..=LONGEST).contains(&samples).then_some(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_stands_in_the_first_bytes() {
        // The silence that Discord's clients send: a CELT frame of 20 ms.
        assert_eq!(samples(&[0xf8, 0xff, 0xfe]), Some(960));
        // SILK, 60 ms; hybrid, 10 ms; CELT, 2.5 ms, two frames.
        assert_eq!(samples(&[3 << 3]), Some(2_880));
        assert_eq!(samples(&[12 << 3]), Some(480));
        assert_eq!(samples(&[16 << 3 | 1]), Some(240));
        // Any number of frames, up to 120 ms.
        assert_eq!(samples(&[31 << 3 | 3, 6]), Some(5_760));
        assert_eq!(
            (samples(&[31 << 3 | 3, 7]), samples(&[31 << 3 | 3, 0]), samples(&[0xfb]), samples(&[])),
            (None, None, None, None)
        );
    }
}
