//! WAV files: 16-bit PCM, mono.

use std::io::{self, Seek, SeekFrom, Write};
use std::time::Duration;

use azera_voice_api::SampleRate;

use super::SoundFile;

/// Bytes of the header.
const HEADER: u32 = 44;
/// Bytes of a sample.
const SAMPLE: u32 = 2;

/// Writes a WAV file piece by piece.
pub struct WavWriter<W> {
    out: W,
    rate: SampleRate,
    samples: u32,
}

impl<W: Write + Seek> WavWriter<W> {
    /// Begins a file.
    pub fn new(mut out: W, rate: SampleRate) -> io::Result<Self> {
        out.write_all(&header(rate, 0))?;
        Ok(Self { out, rate, samples: 0 })
    }
}

impl<W: Write + Seek> SoundFile for WavWriter<W> {
    /// Adds samples; those beyond full scale are clipped.
    fn push(&mut self, samples: &[f32]) -> io::Result<()> {
        let count = u32::try_from(samples.len()).ok().and_then(|count| self.samples.checked_add(count));
        let most = (u32::MAX - HEADER) / SAMPLE;
        self.samples = count.filter(|count| *count <= most).ok_or(io::ErrorKind::FileTooLarge)?;
        let bytes: Vec<u8> = samples.iter().flat_map(|sample| pcm(*sample).to_le_bytes()).collect();
        self.out.write_all(&bytes)
    }

    /// Completes the file and returns how long its sound lasts.
    fn finish(mut self) -> io::Result<Duration> {
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&header(self.rate, self.samples * SAMPLE))?;
        self.out.seek(SeekFrom::End(0))?;
        self.out.flush()?;
        Ok(self.rate.duration(self.samples as usize))
    }
}

fn pcm(sample: f32) -> i16 {
    (sample.clamp(-1.0, 1.0) * f32::from(i16::MAX)).round() as i16
}

fn header(rate: SampleRate, data: u32) -> Vec<u8> {
    let mut header = b"RIFF".to_vec();
    header.extend((data + HEADER - 8).to_le_bytes());
    header.extend(b"WAVEfmt ");
    header.extend(16_u32.to_le_bytes());
    // PCM, and one channel.
    header.extend([1_u16, 1].map(u16::to_le_bytes).concat());
    header.extend([rate.0, rate.0 * SAMPLE].map(u32::to_le_bytes).concat());
    header.extend([SAMPLE as u16, 16].map(u16::to_le_bytes).concat());
    header.extend(b"data");
    header.extend(data.to_le_bytes());
    header
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn another_library_reads_what_was_written() {
        let mut file = Cursor::new(Vec::new());
        let mut wav = WavWriter::new(&mut file, SampleRate(22_050)).unwrap();
        wav.push(&[0.0, 0.5]).unwrap();
        wav.push(&[-1.0, 7.0]).unwrap();
        assert_eq!(wav.finish().unwrap(), SampleRate(22_050).duration(4));
        file.set_position(0);
        let mut read = hound::WavReader::new(file).unwrap();
        let spec = read.spec();
        assert_eq!((spec.channels, spec.sample_rate, spec.bits_per_sample), (1, 22_050, 16));
        assert_eq!(read.samples::<i16>().map(Result::unwrap).collect::<Vec<_>>(), [0, 16_384, -32_767, 32_767]);
    }
}
