//! Opus packets to mono sound.

use opus2::{Channels, Decoder};

use crate::{NOTE_RATE, OpusError};

/// The most samples of one packet and channel: 120 ms.
const MAX_PACKET_SAMPLES: usize = 5_760;
/// What a header begins with.
const MAGIC: &[u8] = b"OpusHead";
/// The position of the number of channels in a header.
const CHANNELS_AT: usize = 9;
/// The position of the pre-skip in a header.
const PRE_SKIP_AT: usize = 10;
/// The position of the gain in a header.
const GAIN_AT: usize = 16;
/// The position of the channel mapping in a header.
const MAPPING_AT: usize = 18;
/// Units of gain in a decibel.
const GAIN_UNITS: f32 = 256.0;

/// Decodes the packets of one stream. Both channels of a stereo stream are mixed to one.
pub struct PacketDecoder {
    decoder: Decoder,
    channels: usize,
    gain: f32,
    /// Samples that the header says to leave out, and that were not left out yet.
    skip: usize,
    buffer: Vec<f32>,
}

impl PacketDecoder {
    /// Prepares a stream by its header, as Ogg and Matroska files have it.
    ///
    /// # Errors
    /// [`OpusError::Header`] if it is none, or names more than two channels.
    pub fn new(header: &[u8]) -> Result<Self, OpusError> {
        if !header.starts_with(MAGIC) {
            return Err(OpusError::Header);
        }
        let byte = |at: usize| header.get(at).copied().ok_or(OpusError::Header);
        let pair = |at: usize| Ok::<_, OpusError>([byte(at)?, byte(at + 1)?]);
        let channels = usize::from(byte(CHANNELS_AT)?);
        // Surround streams hold several Opus streams, and nobody sends a voice message in surround.
        if !(1..=2).contains(&channels) || byte(MAPPING_AT)? > 1 {
            return Err(OpusError::Header);
        }
        let skip = usize::from(u16::from_le_bytes(pair(PRE_SKIP_AT)?));
        let decibel = f32::from(i16::from_le_bytes(pair(GAIN_AT)?)) / GAIN_UNITS;
        let layout = if channels == 1 { Channels::Mono } else { Channels::Stereo };
        let decoder = Decoder::new(NOTE_RATE.0, layout).map_err(|_| OpusError::Header)?;
        let gain = 10.0_f32.powf(decibel / 20.0);
        Ok(Self { decoder, channels, gain, skip, buffer: vec![0.0; MAX_PACKET_SAMPLES * channels] })
    }

    /// Decodes the next packet and appends its sound at [`NOTE_RATE`].
    ///
    /// # Errors
    /// [`OpusError::Packet`] if it is damaged. Later packets can be decoded.
    pub fn push(&mut self, packet: &[u8], out: &mut Vec<f32>) -> Result<(), OpusError> {
        // An empty packet would count as a lost one, and make up sound.
        if packet.is_empty() {
            return Err(OpusError::Packet);
        }
        let samples = self.decoder.decode_float(packet, &mut self.buffer, false).map_err(|_| OpusError::Packet)?;
        let skipped = self.skip.min(samples);
        self.skip -= skipped;
        let (channels, gain) = (self.channels, self.gain);
        let mix = |frame: &[f32]| {
            let sample = frame.iter().sum::<f32>() / channels as f32 * gain;
            if sample.is_finite() { sample.clamp(-1.0, 1.0) } else { 0.0 }
        };
        let frames = self.buffer.chunks_exact(channels).take(samples).skip(skipped);
        out.extend(frames.map(mix));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header(channels: u8, mapping: u8) -> Vec<u8> {
        let mut header = MAGIC.to_vec();
        header.extend([1, channels, 0, 0, 0x80, 0xbb, 0, 0, 0, 0, mapping]);
        header
    }

    #[test]
    fn only_mono_and_stereo_headers_are_taken() {
        assert!(PacketDecoder::new(&header(1, 0)).is_ok());
        assert!(PacketDecoder::new(&header(2, 0)).is_ok());
        for wrong in [header(0, 0), header(6, 1), header(1, 255), b"OpusHead".to_vec(), Vec::new()] {
            assert!(matches!(PacketDecoder::new(&wrong), Err(OpusError::Header)));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_sound_of_a_packet_or_an_error(
            channels in 1_u8..=2,
            packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..8),
        ) {
            let mut decoder = PacketDecoder::new(&header(channels, 0)).unwrap();
            let mut out = Vec::new();
            for packet in &packets {
                let before = out.len();
                if decoder.push(packet, &mut out).is_err() {
                    prop_assert_eq!(out.len(), before);
                }
                prop_assert!(out.len() - before <= MAX_PACKET_SAMPLES);
            }
            prop_assert!(out.iter().all(|sample| sample.is_finite() && sample.abs() <= 1.0));
        }
    }
}
