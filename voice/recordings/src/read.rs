//! Opens a sound file and returns mono sound at 16 kHz.

use std::fs::File;
use std::io::{self, Cursor};
use std::panic::AssertUnwindSafe;
use std::path::Path;

use azera_voice_api::{Audio, RECOGNITION_RATE, SampleRate};
use symphonia::core::codecs::CODEC_TYPE_NULL;
use symphonia::core::errors::Error as SymphoniaError;
use symphonia::core::formats::FormatOptions;
use symphonia::core::io::{MediaSource, MediaSourceStream, MediaSourceStreamOptions};
use symphonia::core::meta::MetadataOptions;
use symphonia::core::probe::Hint;
use thiserror::Error;

use crate::decode::decode;

/// The largest file, in bytes.
pub const MAX_BYTES: u64 = 4 << 30;
/// The longest sound, in seconds. In memory, it takes 460 MB.
pub const MAX_SECONDS: usize = 2 * 60 * 60;

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
    #[error("it lasts longer than {}; cut it into parts", in_words(*.0))]
    TooLong(usize),
    /// The content is not of a known form.
    #[error("it is not sound in a form that Azera reads: WAV, FLAC, MP3 or Ogg")]
    NotSound,
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
    sound_of(Box::new(file), &hint, Some(RECOGNITION_RATE), MAX_SECONDS)
}

/// Reads a file in memory, of this media type, like [`read`]. It may last at most `most_seconds`.
///
/// # Errors
/// Those of [`read`].
pub fn read_bytes(bytes: Vec<u8>, mime: &str, most_seconds: usize) -> Result<Audio, ReadError> {
    if bytes.is_empty() {
        return Err(ReadError::Empty);
    }
    let mut hint = Hint::new();
    hint.mime_type(mime);
    sound_of(Box::new(Cursor::new(bytes)), &hint, Some(RECOGNITION_RATE), most_seconds.min(MAX_SECONDS))
}

/// Reads a file in memory like [`read_bytes`], at the rate that it has.
///
/// # Errors
/// Those of [`read`].
pub fn read_as_recorded(bytes: Vec<u8>, most_seconds: usize) -> Result<Audio, ReadError> {
    if bytes.is_empty() {
        return Err(ReadError::Empty);
    }
    sound_of(Box::new(Cursor::new(bytes)), &Hint::new(), None, most_seconds.min(MAX_SECONDS))
}

/// Decodes the sound of a source, at this rate or at its own.
fn sound_of(
    source: Box<dyn MediaSource>,
    hint: &Hint,
    rate: Option<SampleRate>,
    most_seconds: usize,
) -> Result<Audio, ReadError> {
    // The decoders panic on some damaged files, such as a WAV file with a rate of 0.
    let decoded = std::panic::catch_unwind(AssertUnwindSafe(|| probe_and_decode(source, hint, rate, most_seconds)));
    decoded.unwrap_or_else(|_| Err(ReadError::Damaged("the decoder gave up".to_owned())))
}

fn probe_and_decode(
    source: Box<dyn MediaSource>,
    hint: &Hint,
    rate: Option<SampleRate>,
    most_seconds: usize,
) -> Result<Audio, ReadError> {
    let stream = MediaSourceStream::new(source, MediaSourceStreamOptions::default());
    let probe = symphonia::default::get_probe();
    let probed = probe.format(hint, stream, &FormatOptions::default(), &MetadataOptions::default());
    let mut format = probed.map_err(not_sound)?.format;
    // A film has tracks without sound, too.
    let is_sound = |codec| codec != CODEC_TYPE_NULL;
    let track = format.tracks().iter().find(|track| is_sound(track.codec_params.codec)).ok_or(ReadError::NoSound)?;
    let track = track.clone();
    let audio = decode(format.as_mut(), &track, rate, most_seconds)?;
    if audio.samples.is_empty() { Err(ReadError::NoSound) } else { Ok(audio) }
}

fn in_words(seconds: usize) -> String {
    match seconds {
        seconds if seconds.is_multiple_of(3_600) => format!("{} hours", seconds / 3_600),
        seconds => format!("{seconds} seconds"),
    }
}

fn not_sound(error: SymphoniaError) -> ReadError {
    match error {
        // The search for the begin of a known form reached the end of the file.
        SymphoniaError::IoError(error) if error.kind() != io::ErrorKind::UnexpectedEof => ReadError::Io(error),
        SymphoniaError::DecodeError(why) => ReadError::Damaged(why.to_owned()),
        _ => ReadError::NotSound,
    }
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
        assert!(matches!(read(&std::env::temp_dir()), Err(ReadError::NotAFile | ReadError::Io(_))));
        assert!(matches!(read(Path::new("/nowhere/a.wav")), Err(ReadError::Io(_))));
    }

    #[test]
    fn sound_is_read_at_its_own_rate() {
        let audio = read_as_recorded(wav(22_050, 1, &[1_000; 1_000]), 10).unwrap();
        assert_eq!((audio.rate, audio.samples.len()), (SampleRate(22_050), 1_000));
        assert_eq!(read_as_recorded(ogg(), 10).unwrap().rate, SampleRate(48_000));
        assert!(matches!(read_as_recorded(wav(22_050, 1, &[0; 30_000]), 1), Err(ReadError::TooLong(1))));
    }

    /// Returns an Ogg file with half a second of a tone in Opus.
    fn ogg() -> Vec<u8> {
        let tone: Vec<f32> = (0..24_000).map(|n| (n as f32 * 0.0576).sin() * 0.5).collect();
        let mut file = Vec::new();
        let mut writer = azera_voice_opus::NoteWriter::new(&mut file).unwrap();
        writer.push(&tone).unwrap();
        writer.finish().unwrap();
        file
    }

    #[test]
    fn opus_is_read_from_a_file_and_from_memory() {
        let audio = read_bytes("a.ogg", &ogg()).unwrap();
        // The last frame is not cut, so up to 20 ms of silence follow.
        assert!((8_000..=8_320).contains(&audio.samples.len()), "{}", audio.samples.len());
        let middle = &audio.samples[1_600..6_400];
        let level = (middle.iter().map(|sample| sample * sample).sum::<f32>() / middle.len() as f32).sqrt();
        assert!((level / (0.5 / 2.0_f32.sqrt()) - 1.0).abs() < 0.05, "{level}");
        assert_eq!(super::read_bytes(ogg(), "audio/ogg", 10).unwrap(), audio);
        assert!(matches!(super::read_bytes(ogg(), "audio/ogg", 0), Err(ReadError::TooLong(0))));
        assert!(super::read_bytes(Vec::new(), "audio/ogg", 10).is_err());
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

        #[test]
        fn a_cut_or_changed_opus_file_never_panics(
            cut in 1_usize..4_000,
            changes in prop::collection::vec((0_usize..4_000, any::<u8>()), 0..6),
        ) {
            let mut file = ogg();
            file.truncate(cut);
            for (at, byte) in changes {
                if let Some(changed) = file.get_mut(at) {
                    *changed = byte;
                }
            }
            if let Ok(audio) = super::read_bytes(file, "audio/ogg", 2) {
                prop_assert!(audio.samples.len() <= 2 * 16_000 && audio.samples.iter().all(|sample| sample.is_finite()));
            }
        }
    }
}
