//! Writes WAV files in memory.

use azera_voice_api::Audio;

/// Returns a WAV file with this sound: 16 bit, one channel. Samples beyond full scale are clipped.
pub fn wav_file(audio: &Audio) -> Vec<u8> {
    let bytes = u32::try_from(audio.samples.len() * 2).unwrap_or(u32::MAX);
    let mut file = Vec::with_capacity(44 + audio.samples.len() * 2);
    file.extend(b"RIFF");
    file.extend(bytes.saturating_add(36).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend(audio.rate.0.to_le_bytes());
    file.extend((audio.rate.0 * 2).to_le_bytes());
    file.extend(b"\x02\0\x10\0data");
    file.extend(bytes.to_le_bytes());
    let coded = |sample: &f32| ((sample.clamp(-1.0, 1.0) * f32::from(i16::MAX)).round() as i16).to_le_bytes();
    file.extend(audio.samples.iter().flat_map(coded));
    file
}

#[cfg(test)]
mod tests {
    use azera_voice_api::SampleRate;

    use super::*;
    use crate::read_as_recorded;

    #[test]
    fn what_is_written_is_read() {
        let audio = Audio { rate: SampleRate(24_000), samples: vec![0.0, 0.5, -0.25, 7.0] };
        let read = read_as_recorded(wav_file(&audio), 1).unwrap();
        assert_eq!(read.rate, audio.rate);
        let close = |(read, written): (&f32, &f32)| (read - written.min(1.0)).abs() < 1e-4;
        assert!(read.samples.len() == 4 && read.samples.iter().zip(&audio.samples).all(close), "{:?}", read.samples);
    }
}
