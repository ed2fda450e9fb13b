//! Mono sound to Opus in an Ogg file, by RFC 7845.

use std::io::Write;
use std::time::Duration;

use ogg::{PacketWriteEndInfo, PacketWriter};
use opus2::{Application, Bitrate, Channels, Encoder, Signal};

use crate::{NOTE_RATE, OpusError};

/// Samples of a frame: 20 ms.
const FRAME: usize = 960;
/// Bits of a second. Speech is clear at this rate.
const BITS: i32 = 32_000;
/// The largest packet that the encoder may make, in bytes.
const MAX_PACKET: usize = 1_275;
/// Packets of one page: one second of sound.
const PAGE_PACKETS: usize = 50;
/// The number of the stream; a file holds one.
const SERIAL: u32 = 0x617a_6572;
/// What the file says it was written by.
const VENDOR: &[u8] = b"Azera";

/// Writes a voice note while its sound is made.
pub struct NoteWriter<W: Write> {
    file: PacketWriter<'static, W>,
    encoder: Encoder,
    /// Samples that the decoder has to leave out at the begin.
    lead: usize,
    /// Sound that is not encoded yet: less than a frame.
    pending: Vec<f32>,
    /// The last packet, which is written once it is known whether it ends the file.
    last: Option<Vec<u8>>,
    /// All samples that came in.
    received: u64,
    /// Packets that were encoded.
    packets: u64,
}

impl<W: Write> NoteWriter<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// [`OpusError::Encoder`] if the file cannot be written.
    pub fn new(out: W) -> Result<Self, OpusError> {
        let mut encoder = Encoder::new(NOTE_RATE.0, Channels::Mono, Application::Voip).map_err(encoding)?;
        encoder.set_bitrate(Bitrate::Bits(BITS)).map_err(encoding)?;
        encoder.set_signal(Signal::Voice).map_err(encoding)?;
        let lead = usize::try_from(encoder.get_lookahead().map_err(encoding)?).unwrap_or_default();
        let mut file = PacketWriter::new(out);
        file.write_packet(head(lead), SERIAL, PacketWriteEndInfo::EndPage, 0).map_err(writing)?;
        file.write_packet(tags(), SERIAL, PacketWriteEndInfo::EndPage, 0).map_err(writing)?;
        Ok(Self { file, encoder, lead, pending: Vec::with_capacity(FRAME), last: None, received: 0, packets: 0 })
    }

    /// Adds sound at [`NOTE_RATE`]. Samples beyond full scale are clipped.
    ///
    /// # Errors
    /// [`OpusError::Encoder`] if the file cannot be written.
    pub fn push(&mut self, samples: &[f32]) -> Result<(), OpusError> {
        self.received += samples.len() as u64;
        self.feed(samples)
    }

    /// Completes the file and returns how long its sound lasts.
    ///
    /// # Errors
    /// [`OpusError::Encoder`] if the file cannot be written.
    pub fn finish(mut self) -> Result<Duration, OpusError> {
        // The decoder is behind by the lead, so the end needs that much silence, up to whole frames.
        let needed = (self.received as usize + self.lead).next_multiple_of(FRAME);
        let silence = needed.saturating_sub(self.received as usize);
        self.feed(&vec![0.0; silence])?;
        // The position of the last page tells how much of the last frame is sound.
        let end = self.received + self.lead as u64;
        let last = self.last.take().unwrap_or_default();
        self.file.write_packet(last, SERIAL, PacketWriteEndInfo::EndStream, end).map_err(writing)?;
        self.file.into_inner().flush().map_err(writing)?;
        Ok(NOTE_RATE.duration(self.received as usize))
    }

    fn feed(&mut self, samples: &[f32]) -> Result<(), OpusError> {
        let mut rest = samples;
        while !rest.is_empty() {
            let (taken, later) = rest.split_at(rest.len().min(FRAME - self.pending.len()));
            let clean = |sample: &f32| if sample.is_finite() { sample.clamp(-1.0, 1.0) } else { 0.0 };
            self.pending.extend(taken.iter().map(clean));
            rest = later;
            if self.pending.len() == FRAME {
                let packet = self.encoder.encode_vec_float(&self.pending, MAX_PACKET).map_err(encoding)?;
                self.pending.clear();
                self.write(packet)?;
            }
        }
        Ok(())
    }

    /// Keeps a packet, and writes the one before it.
    fn write(&mut self, packet: Vec<u8>) -> Result<(), OpusError> {
        if let Some(before) = self.last.replace(packet) {
            self.packets += 1;
            let ends_page = self.packets.is_multiple_of(PAGE_PACKETS as u64);
            let end = if ends_page { PacketWriteEndInfo::EndPage } else { PacketWriteEndInfo::NormalPacket };
            self.file.write_packet(before, SERIAL, end, self.packets * FRAME as u64).map_err(writing)?;
        }
        Ok(())
    }
}

/// Returns the identification header.
fn head(lead: usize) -> Vec<u8> {
    let mut head = b"OpusHead".to_vec();
    head.extend([1, 1]);
    head.extend(u16::try_from(lead).unwrap_or(u16::MAX).to_le_bytes());
    head.extend(NOTE_RATE.0.to_le_bytes());
    // No gain, and one stream.
    head.extend([0, 0, 0]);
    head
}

/// Returns the comment header: who wrote the file, and no comments.
fn tags() -> Vec<u8> {
    let mut tags = b"OpusTags".to_vec();
    tags.extend((VENDOR.len() as u32).to_le_bytes());
    tags.extend(VENDOR);
    tags.extend(0_u32.to_le_bytes());
    tags
}

fn encoding(error: opus2::Error) -> OpusError {
    OpusError::Encoder(error.to_string())
}

fn writing(error: std::io::Error) -> OpusError {
    OpusError::Encoder(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use ogg::PacketReader;

    use super::*;
    use crate::PacketDecoder;

    fn tone(samples: usize) -> Vec<f32> {
        (0..samples).map(|n| (n as f32 * 440.0 / 48_000.0 * std::f32::consts::TAU).sin() * 0.5).collect()
    }

    /// Writes sound in pieces and returns the file.
    fn written(sound: &[f32], piece: usize) -> Vec<u8> {
        let mut file = Vec::new();
        let mut writer = NoteWriter::new(&mut file).unwrap();
        for part in sound.chunks(piece) {
            writer.push(part).unwrap();
        }
        assert_eq!(writer.finish().unwrap(), NOTE_RATE.duration(sound.len()));
        file
    }

    /// Returns the sound of a file, and the position of its last page.
    fn decoded(file: Vec<u8>) -> (Vec<f32>, u64) {
        let mut reader = PacketReader::new(Cursor::new(file));
        let mut decoder = PacketDecoder::new(&reader.read_packet_expected().unwrap().data).unwrap();
        assert!(reader.read_packet_expected().unwrap().data.starts_with(b"OpusTags"));
        let (mut sound, mut end) = (Vec::new(), 0);
        while let Some(packet) = reader.read_packet().unwrap() {
            decoder.push(&packet.data, &mut sound).unwrap();
            end = packet.absgp_page();
        }
        (sound, end)
    }

    #[test]
    fn a_tone_comes_back_as_loud_and_at_the_same_place() {
        let sound = tone(100_000);
        let (back, end) = decoded(written(&sound, 777));
        let mut encoder = Encoder::new(48_000, Channels::Mono, Application::Voip).unwrap();
        let lead = encoder.get_lookahead().unwrap() as u64;
        assert_eq!(end, 100_000 + lead);
        assert!(back.len() >= sound.len(), "{}", back.len());
        let middle = 10_000..90_000;
        let rms = |samples: &[f32]| (samples.iter().map(|s| s * s).sum::<f32>() / samples.len() as f32).sqrt();
        let (level, wanted) = (rms(&back[middle.clone()]), rms(&sound[middle.clone()]));
        assert!((level / wanted - 1.0).abs() < 0.05, "{level} {wanted}");
        let product: f32 = back[middle.clone()].iter().zip(&sound[middle]).map(|(a, b)| a * b).sum();
        let likeness = product / (80_000.0 * level * wanted);
        // The encoder's high-pass filter shifts the tone by less than a tenth of its period.
        assert!(likeness > 0.9, "{likeness}");
    }

    #[test]
    fn pieces_do_not_change_the_file() {
        let sound = tone(5_000);
        assert_eq!(written(&sound, 5_000), written(&sound, 1));
        assert_eq!(written(&sound, 960), written(&sound, 961));
    }

    #[test]
    fn a_file_without_sound_is_whole() {
        let (sound, end) = decoded(written(&[], 1));
        assert!(end < 960 && sound.iter().all(|sample| sample.abs() < 0.01));
    }
}
