//! Reads WAV files of any usual coding piece by piece.

use azera_voice_api::SampleRate;

/// The most bytes before the samples. Some programs write names and pictures there.
const MAX_HEADER_BYTES: usize = 1 << 20;
/// Said of a file that has nothing but a header.
const WITHOUT_SAMPLES: &str = "a WAV file without samples";
/// From this number on, the length of the samples is a placeholder: the file was begun before its end was known.
const PLACEHOLDER_BYTES: u32 = 0x7000_0000;
/// The rates that are taken, in samples a second.
const RATES: std::ops::RangeInclusive<u32> = 4_000..=192_000;
/// The most channels.
const MAX_CHANNELS: u16 = 8;

/// How a sample is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Int16,
    Int24,
    Int32,
    Float32,
}

impl Coding {
    fn bytes(self) -> usize {
        match self {
            Self::Int16 => 2,
            Self::Int24 => 3,
            Self::Int32 | Self::Float32 => 4,
        }
    }

    fn decode(self, bytes: &[u8]) -> f32 {
        let sample = match (self, bytes) {
            (Self::Int16, &[a, b]) => f32::from(i16::from_le_bytes([a, b])) / 32_768.0,
            (Self::Int24, &[a, b, c]) => i32::from_le_bytes([0, a, b, c]) as f32 / 2_147_483_648.0,
            (Self::Int32, &[a, b, c, d]) => i32::from_le_bytes([a, b, c, d]) as f32 / 2_147_483_648.0,
            (Self::Float32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]),
            _ => 0.0,
        };
        if sample.is_finite() { sample.clamp(-1.0, 1.0) } else { 0.0 }
    }
}

/// Samples as they follow each other in a stream.
#[derive(Debug)]
pub(crate) struct Frames {
    rate: SampleRate,
    channels: usize,
    coding: Coding,
    /// Bytes of a frame that is not complete yet.
    rest: Vec<u8>,
}

impl Frames {
    /// Returns frames of one 16-bit sample each.
    pub(crate) fn int16(rate: SampleRate) -> Self {
        Self { rate, channels: 1, coding: Coding::Int16, rest: Vec::new() }
    }

    pub(crate) fn rate(&self) -> SampleRate {
        self.rate
    }

    /// Appends the mean of the channels of each complete frame to `out`.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut Vec<f32>) {
        self.rest.extend_from_slice(bytes);
        let frame = self.channels * self.coding.bytes();
        let frames = self.rest.chunks_exact(frame);
        out.extend(frames.map(|frame| {
            let samples = frame.chunks_exact(self.coding.bytes()).map(|sample| self.coding.decode(sample));
            samples.sum::<f32>() / self.channels as f32
        }));
        self.rest.drain(..self.rest.len() / frame * frame);
    }
}

/// Reads a WAV file piece by piece.
#[derive(Debug, Default)]
pub(crate) struct WavStream {
    /// The bytes before the samples, until they are complete.
    header: Vec<u8>,
    body: Option<Body>,
}

#[derive(Debug)]
struct Body {
    frames: Frames,
    /// Bytes of samples that are still to come; `None` if they go on to the end of the stream.
    missing: Option<usize>,
}

impl WavStream {
    /// Appends the samples that `bytes` complete to `out`.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut Vec<f32>) -> Result<(), String> {
        if let Some(body) = &mut self.body {
            body.push(bytes, out);
            return Ok(());
        }
        self.header.extend_from_slice(bytes);
        let Some((mut body, start)) = read_header(&self.header)? else {
            // A part of the header may say that it is gigabytes long.
            return if self.header.len() > MAX_HEADER_BYTES { Err(WITHOUT_SAMPLES.to_owned()) } else { Ok(()) };
        };
        body.push(self.header.get(start..).unwrap_or_default(), out);
        self.header.clear();
        self.body = Some(body);
        Ok(())
    }

    /// Returns the rate, once it is known.
    pub(crate) fn rate(&self) -> Option<SampleRate> {
        self.body.as_ref().map(|body| body.frames.rate())
    }

    /// Returns true if the stream may end here.
    pub(crate) fn is_complete(&self) -> bool {
        self.body.as_ref().is_some_and(|body| body.missing.is_none_or(|missing| missing == 0))
    }
}

impl Body {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<f32>) {
        // What follows the samples is no sound.
        let bytes = bytes.get(..self.missing.unwrap_or(usize::MAX).min(bytes.len())).unwrap_or_default();
        if let Some(missing) = &mut self.missing {
            *missing -= bytes.len();
        }
        self.frames.push(bytes, out);
    }
}

/// Returns what the header says and where the samples begin; `None` if the header is not complete.
fn read_header(bytes: &[u8]) -> Result<Option<(Body, usize)>, String> {
    let Some((b"RIFF", b"WAVE")) = bytes.get(..12).map(|head| (&head[..4], &head[8..])) else {
        return if bytes.len() < 12 { Ok(None) } else { Err("a sound that is no WAV file".to_owned()) };
    };
    let (mut at, mut frames) = (12, None);
    loop {
        if at > MAX_HEADER_BYTES {
            return Err(WITHOUT_SAMPLES.to_owned());
        }
        let Some(head) = bytes.get(at..at + 8) else { return Ok(None) };
        let size = number(head, 4);
        let start = at + 8;
        if head.starts_with(b"data") {
            let frames = frames.ok_or("a WAV file that does not say how its samples are written")?;
            let missing = (size != 0 && size < PLACEHOLDER_BYTES).then_some(size as usize);
            return Ok(Some((Body { frames, missing }, start)));
        }
        if head.starts_with(b"fmt ") {
            let Some(format) = bytes.get(start..start + size as usize) else { return Ok(None) };
            frames = Some(read_format(format)?);
        }
        at = start + size as usize + size as usize % 2;
    }
}

fn read_format(format: &[u8]) -> Result<Frames, String> {
    if format.len() < 16 {
        return Err("a damaged WAV file".to_owned());
    }
    let short = |at: usize| u16::from_le_bytes([format[at], format[at + 1]]);
    // In the extensible form, the coding stands behind the size, the bits and the places of the channels.
    let kind = if short(0) == 0xFFFE && format.len() >= 26 { short(24) } else { short(0) };
    let coding = match (kind, short(14)) {
        (1, 16) => Coding::Int16,
        (1, 24) => Coding::Int24,
        (1, 32) => Coding::Int32,
        (3, 32) => Coding::Float32,
        (kind, bits) => return Err(format!("a WAV file of coding {kind} with {bits} bits")),
    };
    let (channels, rate) = (short(2), number(format, 4));
    if !RATES.contains(&rate) {
        return Err(format!("a WAV file with {rate} samples a second"));
    }
    if !(1..=MAX_CHANNELS).contains(&channels) {
        return Err(format!("a WAV file with {channels} channels"));
    }
    Ok(Frames { rate: SampleRate(rate), channels: channels.into(), coding, rest: Vec::new() })
}

fn number(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use azera_voice_api::Audio;
    use azera_voice_recordings::wav_file;
    use proptest::prelude::*;

    use super::*;

    /// Returns a file of four samples.
    fn file(rate: u32) -> Vec<u8> {
        wav_file(&Audio { rate: SampleRate(rate), samples: vec![0.5; 4] })
    }

    fn read(pieces: &[&[u8]]) -> Result<(Vec<f32>, Option<SampleRate>, bool), String> {
        let (mut wav, mut out) = (WavStream::default(), Vec::new());
        for piece in pieces {
            wav.push(piece, &mut out)?;
        }
        Ok((out, wav.rate(), wav.is_complete()))
    }

    /// Returns a file with the samples 0.5 and -0.25 in each channel, written by another library.
    fn written(channels: u16, bits: u16, format: hound::SampleFormat) -> Vec<u8> {
        let spec = hound::WavSpec { channels, sample_rate: 22_050, bits_per_sample: bits, sample_format: format };
        let mut file = Cursor::new(Vec::new());
        let mut writer = hound::WavWriter::new(&mut file, spec).unwrap();
        for sample in [0.5_f32, -0.25] {
            for _ in 0..channels {
                match format {
                    hound::SampleFormat::Float => writer.write_sample(sample).unwrap(),
                    hound::SampleFormat::Int => {
                        writer.write_sample((f64::from(sample) * 2_f64.powi(i32::from(bits) - 1)) as i32).unwrap();
                    }
                }
            }
        }
        writer.finalize().unwrap();
        file.into_inner()
    }

    #[test]
    fn files_of_another_library_are_read() {
        use hound::SampleFormat::{Float, Int};
        for (channels, bits, format) in [(1, 16, Int), (2, 16, Int), (1, 24, Int), (1, 32, Int), (2, 32, Float)] {
            let file = written(channels, bits, format);
            let read = read(&[&file]).unwrap();
            assert_eq!(read, (vec![0.5, -0.25], Some(SampleRate(22_050)), true), "{channels} {bits} {format:?}");
        }
    }

    #[test]
    fn a_file_begun_before_its_end_was_known_goes_on_to_the_end() {
        for length in [0_u32, u32::MAX, 0x7fff_ff00] {
            let mut file = file(24_000);
            file[40..44].copy_from_slice(&length.to_le_bytes());
            assert_eq!(read(&[&file]).unwrap().0.len(), 4);
            assert!(read(&[&file]).unwrap().2);
        }
    }

    #[test]
    fn a_cut_file_is_not_complete_and_what_follows_the_samples_is_left_out() {
        let mut file = file(24_000);
        assert_eq!(
            read(&[&file[..49]]).unwrap(),
            (read(&[&file]).unwrap().0[..2].to_vec(), Some(SampleRate(24_000)), false)
        );
        assert!(!read(&[&file[..20]]).unwrap().2);
        file.extend(b"LIST\x04\0\0\0abcd");
        assert_eq!(read(&[&file]).unwrap().0.len(), 4);
    }

    #[test]
    fn other_files_say_what_they_are() {
        let mut file = file(2_000);
        assert_eq!(read(&[&file]).unwrap_err(), "a WAV file with 2000 samples a second");
        file[20] = 7;
        assert_eq!(read(&[&file]).unwrap_err(), "a WAV file of coding 7 with 16 bits");
        assert_eq!(read(&[b"ID3 and a lot of music"]).unwrap_err(), "a sound that is no WAV file");
        assert_eq!(
            read(&[b"RIFF____WAVEdata\0\0\0\0"]).unwrap_err(),
            "a WAV file that does not say how its samples are written"
        );
    }

    #[test]
    fn a_header_that_never_ends_is_refused() {
        let mut head = b"RIFF____WAVEfmt ".to_vec();
        head.extend(u32::MAX.to_le_bytes());
        let piece = vec![0; MAX_HEADER_BYTES / 2];
        assert_eq!(read(&[&head, &piece]).unwrap(), (Vec::new(), None, false));
        assert_eq!(read(&[&head, &piece, &piece]).unwrap_err(), "a WAV file without samples");
    }

    proptest! {
        #[test]
        fn cutting_and_changing_a_file_never_panics(cuts in prop::collection::vec(0_usize..60, 0..5), at in 0_usize..52, byte: u8) {
            let mut file = file(24_000);
            let whole = read(&[&file]).unwrap();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(file.len())).collect();
            cuts.extend([0, file.len()]);
            cuts.sort_unstable();
            let pieces = |file: &[u8]| cuts.windows(2).map(|cut| file[cut[0]..cut[1]].to_vec()).collect::<Vec<_>>();
            let parts = pieces(&file);
            prop_assert_eq!(read(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap(), whole);
            file[at] = byte;
            let parts = pieces(&file);
            if let Ok((samples, ..)) = read(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>()) {
                prop_assert!(samples.iter().all(|sample| (-1.0..=1.0).contains(sample)));
            }
        }
    }
}
