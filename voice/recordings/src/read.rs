//! Decodes a sound file to mono sound at 16 kHz.

use std::fs::File;
use std::io;
use std::panic::AssertUnwindSafe;
use std::path::Path;

use azera_voice_api::{Audio, RECOGNITION_RATE, SampleRate};
use symphonia::core::audio::SampleBuffer;
use symphonia::core::codecs::{CODEC_TYPE_NULL, CODEC_TYPE_OPUS, Decoder, DecoderOptions};
use symphonia::core::errors::Error as SymphoniaError;
use symphonia::core::formats::{FormatOptions, FormatReader};
use symphonia::core::io::{MediaSourceStream, MediaSourceStreamOptions};
use symphonia::core::meta::MetadataOptions;
use symphonia::core::probe::Hint;
use thiserror::Error;

use crate::resample::Resampler;

/// The largest file, in bytes.
pub const MAX_BYTES: u64 = 4 << 30;
/// The longest sound, in seconds. In memory, it takes 460 MB.
pub const MAX_SECONDS: usize = 2 * 60 * 60;
/// The highest sample rate, in samples a second.
pub const MAX_RATE: u32 = 384_000;
/// The most packets in a row that may be broken before the whole file counts as broken.
const MAX_BROKEN_PACKETS: usize = 100;

/// Why a file could not be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The file cannot be opened or read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is a folder or a device.
    #[error("it is not a file")]
    NotAFile,
    /// The file has no bytes.
    #[error("it is empty")]
    Empty,
    /// The file has too many bytes.
    #[error("it has {} MB; at most {} MB are read", .0 >> 20, MAX_BYTES >> 20)]
    TooLarge(u64),
    /// The sound lasts too long.
    #[error("it lasts longer than {} hours; cut it into parts", MAX_SECONDS / 3600)]
    TooLong,
    /// The content is not of a known form.
    #[error("it is not sound in a form that Azera reads: WAV, FLAC, Ogg Vorbis or MP3")]
    NotSound,
    /// The file holds Opus, which no decoder here reads.
    #[error("it holds Opus sound, which is not read yet; convert it, for example with `ffmpeg -i IN.ogg OUT.wav`")]
    Opus,
    /// The file is of a known form and cannot be decoded.
    #[error("it is damaged, or of an unusual kind: {0}")]
    Damaged(String),
    /// The file is of a known form and holds no sound.
    #[error("it holds no sound")]
    NoSound,
}

/// Reads a file and returns its sound, mixed to one channel, at [`RECOGNITION_RATE`].
///
/// # Errors
/// [`ReadError`] says what is wrong with the file. Single broken packets are left out; a file of which nothing can be
/// decoded is an error.
pub fn read(path: &Path) -> Result<Audio, ReadError> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    match metadata.len() {
        _ if !metadata.is_file() => return Err(ReadError::NotAFile),
        0 => return Err(ReadError::Empty),
        bytes if bytes > MAX_BYTES => return Err(ReadError::TooLarge(bytes)),
        _ => {}
    }
    let mut hint = Hint::new();
    if let Some(extension) = path.extension().and_then(|extension| extension.to_str()) {
        hint.with_extension(extension);
    }
    // The decoder panics on some damaged files, such as a WAV file with a rate of 0.
    let decoded = std::panic::catch_unwind(AssertUnwindSafe(|| sound_of(file, &hint)));
    decoded.unwrap_or_else(|_| Err(ReadError::Damaged("the decoder gave up".to_owned())))
}

/// Decodes the sound of an open file.
fn sound_of(file: File, hint: &Hint) -> Result<Audio, ReadError> {
    let stream = MediaSourceStream::new(Box::new(file), MediaSourceStreamOptions::default());
    let probe = symphonia::default::get_probe();
    let probed = probe.format(hint, stream, &FormatOptions::default(), &MetadataOptions::default());
    let mut format = probed.map_err(not_sound)?.format;
    let track = format.default_track().filter(|track| track.codec_params.codec != CODEC_TYPE_NULL);
    let track = track.ok_or(ReadError::NoSound)?;
    if track.codec_params.codec == CODEC_TYPE_OPUS {
        return Err(ReadError::Opus);
    }
    let id = track.id;
    let decoder = symphonia::default::get_codecs().make(&track.codec_params, &DecoderOptions::default());
    let mut decoder = decoder.map_err(damaged)?;
    let samples = decode(format.as_mut(), decoder.as_mut(), id)?;
    if samples.is_empty() { Err(ReadError::NoSound) } else { Ok(Audio { rate: RECOGNITION_RATE, samples }) }
}

/// Decodes all packets of a track, and resamples on the way.
fn decode(format: &mut dyn FormatReader, decoder: &mut dyn Decoder, track: u32) -> Result<Vec<f32>, ReadError> {
    let mut out = Vec::new();
    let mut resampler: Option<Resampler> = None;
    let mut broken = 0;
    loop {
        let packet = match format.next_packet() {
            Ok(packet) if packet.track_id() == track => packet,
            Ok(_) => continue,
            Err(SymphoniaError::IoError(error)) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            // A cut file ends in the middle of something. What came before it is sound.
            Err(_) if !out.is_empty() => break,
            Err(error) => return Err(damaged(error)),
        };
        let decoded = match decoder.decode(&packet) {
            Ok(decoded) => decoded,
            Err(SymphoniaError::DecodeError(_) | SymphoniaError::IoError(_)) if broken < MAX_BROKEN_PACKETS => {
                broken += 1;
                continue;
            }
            Err(error) => return Err(damaged(error)),
        };
        broken = 0;
        let spec = *decoded.spec();
        if spec.rate == 0 || spec.rate > MAX_RATE {
            return Err(ReadError::Damaged(format!("it has {} samples a second", spec.rate)));
        }
        let mut buffer = SampleBuffer::<f32>::new(decoded.capacity() as u64, spec);
        buffer.copy_interleaved_ref(decoded);
        let mono = mix(buffer.samples(), spec.channels.count());
        let resampler = resampler.get_or_insert_with(|| Resampler::new(SampleRate(spec.rate), RECOGNITION_RATE));
        resampler.push(&mono, &mut out);
        if out.len() > MAX_SECONDS * RECOGNITION_RATE.0 as usize {
            return Err(ReadError::TooLong);
        }
    }
    if let Some(resampler) = resampler {
        resampler.finish(&mut out);
    } else if broken > 0 {
        return Err(ReadError::Damaged("none of its packets can be decoded".into()));
    }
    Ok(out)
}

/// Returns the mean of all channels. Numbers that are none count as silence.
fn mix(interleaved: &[f32], channels: usize) -> Vec<f32> {
    let channels = channels.max(1);
    let mean = |frame: &[f32]| {
        let mean = frame.iter().sum::<f32>() / channels as f32;
        if mean.is_finite() { mean.clamp(-1.0, 1.0) } else { 0.0 }
    };
    interleaved.chunks_exact(channels).map(mean).collect()
}

fn not_sound(error: SymphoniaError) -> ReadError {
    match error {
        // The search for the begin of a known form reached the end of the file.
        SymphoniaError::IoError(error) if error.kind() != io::ErrorKind::UnexpectedEof => ReadError::Io(error),
        SymphoniaError::DecodeError(why) => ReadError::Damaged(why.to_owned()),
        _ => ReadError::NotSound,
    }
}

fn damaged(error: SymphoniaError) -> ReadError {
    ReadError::Damaged(error.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns a WAV file of 16-bit samples, written without a library.
    fn wav(rate: u32, channels: u16, samples: &[i16]) -> Vec<u8> {
        let bytes = samples.len() as u32 * 2;
        let mut out = b"RIFF".to_vec();
        out.extend_from_slice(&(36 + bytes).to_le_bytes());
        out.extend_from_slice(b"WAVEfmt \x10\0\0\0\x01\0");
        out.extend_from_slice(&channels.to_le_bytes());
        out.extend_from_slice(&rate.to_le_bytes());
        out.extend_from_slice(&(rate * u32::from(channels) * 2).to_le_bytes());
        out.extend_from_slice(&(channels * 2).to_le_bytes());
        out.extend_from_slice(b"\x10\0data");
        out.extend_from_slice(&bytes.to_le_bytes());
        out.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
        out
    }

    fn read_bytes(name: &str, bytes: &[u8]) -> Result<Audio, ReadError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        read(&path)
    }

    #[test]
    fn a_stereo_file_is_mixed_and_resampled() {
        let tone = |n: i32| ((f64::from(n) * 440.0 / 48_000.0 * std::f64::consts::TAU).sin() * 16_000.0) as i16;
        let samples: Vec<i16> = (0..48_000).flat_map(|n| [tone(n), 0]).collect();
        let audio = read_bytes("tone.wav", &wav(48_000, 2, &samples)).unwrap();
        assert_eq!((audio.rate, audio.samples.len()), (RECOGNITION_RATE, 16_000));
        let level = (audio.samples.iter().map(|sample| sample * sample).sum::<f32>() / 16_000.0).sqrt();
        let expected = 16_000.0 / 32_768.0 / 2.0 / 2.0_f32.sqrt();
        assert!((level / expected - 1.0).abs() < 0.01, "{level} {expected}");
    }

    #[test]
    fn files_without_sound_say_what_they_are() {
        fn check(name: &str, bytes: &[u8], said: &str) {
            let error = read_bytes(name, bytes).unwrap_err().to_string();
            assert!(error.contains(said), "{name}: {error}");
        }
        check("a.wav", b"", "empty");
        check("a.txt", &b"Dear Ann, the boats are back. ".repeat(1_000), "not sound");
        check("a.wav", &wav(16_000, 1, &[]), "no sound");
        check("a.wav", &wav(0, 1, &[0; 100]), "");
        let opus =
            b"OggS\0\x02\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x01\x13OpusHead\x01\x01\x38\x01\x80\xbb\0\0\0\0\0";
        check("a.ogg", opus, "");
        assert!(matches!(read(&std::env::temp_dir()), Err(ReadError::NotAFile | ReadError::Io(_))));
        assert!(matches!(read(Path::new("/nowhere/a.wav")), Err(ReadError::Io(_))));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_cut_or_changed_file_never_panics(cut in 0_usize..2_000, at in 0_usize..60, byte: u8) {
            let mut file = wav(22_050, 1, &[1_000; 1_000]);
            file.truncate(cut.max(1));
            if let Some(changed) = file.get_mut(at) {
                *changed = byte;
            }
            if let Ok(audio) = read_bytes("a.wav", &file) {
                prop_assert!(audio.samples.iter().all(|sample| sample.is_finite()));
            }
        }
    }
}
