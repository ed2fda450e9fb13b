//! Checks a recording of a voice and prepares it.

use azera_voice_api::{Audio, SampleRate};
use azera_voice_recordings::{ReadError, Resampler, read_as_recorded, wav_file};
use ebur128::{EbuR128, Mode};
use thiserror::Error;

/// The largest file, in bytes.
pub const MAX_SAMPLE_BYTES: usize = 10 << 20;
/// The shortest speech, in seconds. From less, XTTS gets no voice.
pub const SHORTEST_SECONDS: f32 = 3.0;
/// The longest speech, in seconds. XTTS listens to no more.
pub const LONGEST_SECONDS: f32 = 30.0;
/// The rate of a prepared sample.
pub const SAMPLE_RATE: SampleRate = SampleRate(24_000);
/// The loudness of a prepared sample, as EBU R128 sets it for programmes.
pub const TARGET_LUFS: f64 = -23.0;

/// The longest recording that is decoded, in seconds. It may have silence at both ends.
const MOST_SECONDS: usize = 120;
/// The highest peak after the change of loudness: 1 dB below full scale.
const MAX_PEAK: f32 = 0.891;
/// Below this loudness it is noise, or nothing.
const QUIETEST_LUFS: f64 = -55.0;
/// A frame is silence if it is 40 dB quieter than the loudest one.
const SILENCE_SHARE: f32 = 0.01;
/// Seconds of a frame.
const FRAME_SECONDS: f32 = 0.02;
/// Seconds that stay before the first and after the last audible frame.
const MARGIN_SECONDS: f32 = 0.1;
/// Samples of a flat top: a wave that goes beyond what can be written stays at one value.
const FLAT_SAMPLES: usize = 3;
/// The greatest change within a flat top: a step of 16 bits.
const FLAT_CHANGE: f32 = 4e-5;
/// From this share of the peak on, a flat place is a cut top.
const TOP_SHARE: f32 = 0.95;
/// The least level of a cut top: 20 dB below full scale.
const LEAST_TOP: f32 = 0.1;
/// The greatest share of samples in flat tops.
const MAX_CLIPPED_SHARE: f32 = 0.002;

/// A sample that is ready for XTTS.
#[derive(Clone, PartialEq)]
pub struct PreparedSample {
    /// A WAV file: 24 kHz, mono, 16 bit.
    pub wav: Vec<u8>,
    /// How long it lasts.
    pub seconds: f32,
    /// The loudness of the recording before, in LUFS.
    pub recorded_lufs: f64,
}

impl std::fmt::Debug for PreparedSample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PreparedSample[{:.1} s]", self.seconds)
    }
}

/// Why a file is no sample of a voice.
#[derive(Debug, Error)]
pub enum SampleError {
    /// The file has too many bytes.
    #[error("it has {} MB; a sample has at most {} MB", .0.div_ceil(1 << 20), MAX_SAMPLE_BYTES >> 20)]
    TooLarge(usize),
    /// The file is of another kind.
    #[error("it is no WAV, MP3, Ogg or FLAC file")]
    OtherKind,
    /// The file cannot be read.
    #[error("{0}")]
    Unreadable(ReadError),
    /// Too little is said.
    #[error("{0:.1} s of it are speech; a sample needs at least {SHORTEST_SECONDS} s")]
    TooShort(f32),
    /// Too much is said.
    #[error("{0:.0} s of it are speech; a sample has at most {LONGEST_SECONDS} s: cut out a good part")]
    TooLong(f32),
    /// Hardly anything can be heard.
    #[error("hardly anything can be heard in it; record it again, closer to the microphone")]
    TooQuiet,
    /// The recording was too loud for the device that made it.
    #[error("{:.1} % of it are cut off because it was recorded too loud; record it again with less gain", .0 * 100.0)]
    Clipped(f32),
}

/// Checks a recording of a voice and returns it without the silence at both ends, at [`TARGET_LUFS`] and at
/// [`SAMPLE_RATE`].
///
/// # Errors
/// [`SampleError`] says what to do better.
pub fn prepare(file: Vec<u8>) -> Result<PreparedSample, SampleError> {
    if file.len() > MAX_SAMPLE_BYTES {
        return Err(SampleError::TooLarge(file.len()));
    }
    if !is_taken(&file) {
        return Err(SampleError::OtherKind);
    }
    let recorded = read_as_recorded(file, MOST_SECONDS).map_err(|error| match error {
        ReadError::TooLong(seconds) => SampleError::TooLong(seconds as f32),
        error => SampleError::Unreadable(error),
    })?;
    let speech = trimmed(&recorded);
    let seconds = recorded.rate.duration(speech.len()).as_secs_f32();
    if seconds < SHORTEST_SECONDS {
        return Err(SampleError::TooShort(seconds));
    }
    if seconds > LONGEST_SECONDS {
        return Err(SampleError::TooLong(seconds));
    }
    let clipped = clipped_share(speech);
    if clipped > MAX_CLIPPED_SHARE {
        return Err(SampleError::Clipped(clipped));
    }
    let mut samples = Vec::new();
    let mut resampler = Resampler::new(recorded.rate, SAMPLE_RATE);
    resampler.push(speech, &mut samples);
    resampler.finish(&mut samples);
    let recorded_lufs = loudness(&samples).filter(|lufs| *lufs >= QUIETEST_LUFS).ok_or(SampleError::TooQuiet)?;
    let gain = 10_f64.powf((TARGET_LUFS - recorded_lufs) / 20.0) as f32;
    let gain = gain.min(MAX_PEAK / peak(&samples).max(f32::MIN_POSITIVE));
    samples.iter_mut().for_each(|sample| *sample *= gain);
    let wav = wav_file(&Audio { rate: SAMPLE_RATE, samples });
    Ok(PreparedSample { wav, seconds, recorded_lufs })
}

/// Returns true for the kinds of file that are taken, by their first bytes.
fn is_taken(file: &[u8]) -> bool {
    let is_mp3 = file.starts_with(b"ID3") || matches!(file, [0xFF, second, ..] if second & 0xE0 == 0xE0);
    let is_wav = file.starts_with(b"RIFF") && file.get(8..12) == Some(b"WAVE");
    is_mp3 || is_wav || file.starts_with(b"OggS") || file.starts_with(b"fLaC")
}

/// Returns the sound without the silence at both ends.
fn trimmed(audio: &Audio) -> &[f32] {
    let frame = (FRAME_SECONDS * audio.rate.0 as f32).max(1.0) as usize;
    let level = |frame: &[f32]| (frame.iter().map(|sample| sample * sample).sum::<f32>() / frame.len() as f32).sqrt();
    let levels: Vec<f32> = audio.samples.chunks(frame).map(level).collect();
    let least = levels.iter().copied().fold(0.0, f32::max) * SILENCE_SHARE;
    let is_audible = |level: &f32| *level > least;
    let (Some(first), Some(last)) = (levels.iter().position(is_audible), levels.iter().rposition(is_audible)) else {
        return &[];
    };
    let margin = (MARGIN_SECONDS * audio.rate.0 as f32) as usize;
    let start = (first * frame).saturating_sub(margin);
    let end = ((last + 1) * frame + margin).min(audio.samples.len());
    audio.samples.get(start..end).unwrap_or_default()
}

/// Returns the share of samples in flat tops. In a quiet recording the steps of 16 bits make any top flat, so there it is
/// none.
fn clipped_share(samples: &[f32]) -> f32 {
    let top = peak(samples) * TOP_SHARE;
    if top < LEAST_TOP {
        return 0.0;
    }
    let same = |a: &f32, b: &f32| a.abs() >= top && b.abs() >= top && (a - b).abs() < FLAT_CHANGE;
    let flat = samples.chunk_by(same).map(<[f32]>::len).filter(|length| *length >= FLAT_SAMPLES);
    flat.sum::<usize>() as f32 / samples.len().max(1) as f32
}

/// Returns the integrated loudness in LUFS; `None` for silence.
fn loudness(samples: &[f32]) -> Option<f64> {
    let mut meter = EbuR128::new(1, SAMPLE_RATE.0, Mode::I).ok()?;
    meter.add_frames_f32(samples).ok()?;
    meter.loudness_global().ok().filter(|lufs| lufs.is_finite())
}

fn peak(samples: &[f32]) -> f32 {
    samples.iter().fold(0.0, |peak, sample| sample.abs().max(peak))
}

#[cfg(test)]
mod tests {
    use std::f32::consts::TAU;

    use proptest::prelude::*;

    use super::*;

    /// Returns this many seconds of a voice-like sound at 48 kHz: a buzz whose level swings four times a second.
    fn voice(seconds: f32, level: f32) -> Vec<f32> {
        let sample = |n: usize| {
            let at = n as f32 / 48_000.0;
            let buzz: f32 = (1..6).map(|k| (at * 140.0 * k as f32 * TAU + k as f32).sin() / k as f32).sum();
            buzz * (0.6 + 0.4 * (at * 4.0 * TAU).sin()) * level
        };
        (0..(seconds * 48_000.0) as usize).map(sample).collect()
    }

    fn file(samples: Vec<f32>) -> Vec<u8> {
        wav_file(&Audio { rate: SampleRate(48_000), samples })
    }

    fn silence(seconds: f32) -> Vec<f32> {
        vec![0.0; (seconds * 48_000.0) as usize]
    }

    #[test]
    fn a_recording_is_trimmed_and_brought_to_one_loudness() {
        for level in [0.02, 0.1, 0.3] {
            let prepared = prepare(file([silence(2.0), voice(5.0, level), silence(1.0)].concat())).unwrap();
            assert!((5.0..5.5).contains(&prepared.seconds), "{}", prepared.seconds);
            let reader = hound::WavReader::new(&prepared.wav[..]).unwrap();
            assert_eq!((reader.spec().channels, reader.spec().sample_rate), (1, 24_000));
            let samples: Vec<f32> =
                reader.into_samples::<i16>().map(|sample| f32::from(sample.unwrap()) / 32_768.0).collect();
            let lufs = loudness(&samples).unwrap();
            assert!((lufs - TARGET_LUFS).abs() < 0.3, "{level}: {lufs}");
            assert!(peak(&samples) <= MAX_PEAK + 1e-3);
        }
    }

    #[test]
    fn opus_and_flac_like_containers_are_told_by_their_content() {
        let mut ogg = Vec::new();
        let mut writer = azera_voice_opus::NoteWriter::new(&mut ogg).unwrap();
        writer.push(&voice(4.0, 0.2)).unwrap();
        writer.finish().unwrap();
        assert!((3.9..4.2).contains(&prepare(ogg).unwrap().seconds));
        assert!(is_taken(b"fLaC....") && is_taken(b"ID3....") && is_taken(&[0xFF, 0xFB, 0x90]));
        assert!(!is_taken(b"\x1A\x45\xDF\xA3webm") && !is_taken(b"") && !is_taken(b"RIFF____AVI "));
    }

    #[test]
    fn what_is_no_sample_says_what_to_do() {
        #[track_caller]
        fn check(file: Vec<u8>, said: &str) {
            let text = prepare(file).unwrap_err().to_string();
            assert!(text.contains(said), "{text}");
        }
        check(vec![0; MAX_SAMPLE_BYTES + 1], "it has 11 MB; a sample has at most 10 MB");
        check(b"a letter to Ann".to_vec(), "no WAV, MP3, Ogg or FLAC");
        check(b"fLaC and then nothing".to_vec(), "");
        check(file([silence(9.0), voice(2.0, 0.2)].concat()), "s of it are speech; a sample needs at least 3 s");
        check(file(voice(31.0, 0.2)), "31 s of it are speech; a sample has at most 30 s");
        check(file(silence(5.0)), "0.0 s of it are speech");
        check(file(voice(5.0, 0.0005)), "hardly anything can be heard");
        let loud: Vec<f32> = voice(5.0, 2.0).into_iter().map(|sample| sample.clamp(-1.0, 1.0)).collect();
        check(file(loud.clone()), "recorded too loud");
        // Turned down afterwards, it is cut off all the same.
        check(file(loud.iter().map(|sample| sample * 0.5).collect()), "recorded too loud");
        let just_fits = peak(&voice(5.0, 1.0)).recip();
        assert!(prepare(file(voice(5.0, just_fits))).is_ok(), "full scale is not too loud");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn a_damaged_file_never_panics(cut in 12_usize..2_000, at in 0_usize..80, byte: u8) {
            let mut file = file(voice(0.1, 0.2));
            file.truncate(cut);
            if let Some(changed) = file.get_mut(at) {
                *changed = byte;
            }
            prop_assert!(prepare(file).is_err());
        }
    }
}
