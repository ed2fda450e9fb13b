//! The WAV file that espeak-ng writes into a pipe: it cannot know its length at the beginning.

use azera_voice_api::SampleRate;

/// The rates that the program has.
const RATES: std::ops::RangeInclusive<u32> = 8_000..=48_000;

/// Returns the rate and the samples of a mono file of 16 bit; `None` for anything else, and for a file without sound.
pub(super) fn samples(file: &[u8]) -> Option<(SampleRate, Vec<f32>)> {
    let body = file.strip_prefix(b"RIFF")?.get(4..)?.strip_prefix(b"WAVE")?;
    let (format, behind) = chunk(body, b"fmt ")?;
    let half = |at: usize| Some(u16::from_le_bytes(*format.get(at..)?.first_chunk()?));
    let rate = u32::from_le_bytes(*format.get(4..)?.first_chunk()?);
    let is_taken = half(0)? == 1 && half(2)? == 1 && half(14)? == 16 && RATES.contains(&rate);
    let (data, _) = chunk(behind, b"data")?;
    let samples: Vec<f32> =
        data.as_chunks().0.iter().map(|pair| f32::from(i16::from_le_bytes(*pair)) / 32_768.0).collect();
    (is_taken && !samples.is_empty()).then_some((SampleRate(rate), samples))
}

/// Returns the first chunk of a kind, and what follows it. The last chunk may promise more than there is.
fn chunk<'a>(mut rest: &'a [u8], kind: &[u8; 4]) -> Option<(&'a [u8], &'a [u8])> {
    loop {
        let (found, behind) = rest.split_at_checked(4)?;
        let (length, behind) = behind.split_at_checked(4)?;
        let length = u32::from_le_bytes(*length.first_chunk()?) as usize;
        let (body, behind) = behind.split_at(length.min(behind.len()));
        if found == kind {
            return Some((body, behind));
        }
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use azera_voice_api::Audio;
    use azera_voice_recordings::wav_file;

    use super::*;

    #[test]
    fn a_file_of_unknown_length_is_read_to_its_end_and_nothing_else_is_sound() {
        let mut file = wav_file(&Audio { rate: SampleRate(22_050), samples: vec![0.5, -0.5] });
        file[40..44].copy_from_slice(&0x7FFF_F000_u32.to_le_bytes());
        let (rate, samples) = super::samples(&file).unwrap();
        assert_eq!((rate, samples.len()), (SampleRate(22_050), 2));
        assert!(samples[0] > 0.49 && samples[1] < -0.49, "{samples:?}");
        for end in 0..45 {
            assert!(super::samples(&file[..end]).is_none(), "{end}");
        }
        for (at, byte) in [(0, b'X'), (20, 3), (22, 2), (34, 8), (25, 255)] {
            let mut other = file.clone();
            other[at] = byte;
            assert!(super::samples(&other).is_none(), "{at}");
        }
    }
}
