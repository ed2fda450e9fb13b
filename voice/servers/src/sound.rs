//! The sound of an answer, piece by piece, at the rate that the voices promise.

use azera_voice_api::SampleRate;
use azera_voice_recordings::{Pitch, Resampler};

use crate::error::Failure;
use crate::voices::SERVER_VOICE_RATE;
use crate::wav::{Frames, WavStream};

/// The longest sound of one sentence, in seconds.
pub const MAX_SOUND_SECONDS: usize = 300;

/// Decodes the sound of one answer.
pub(crate) struct SoundStream {
    form: Form,
    /// The pitch to which the sound is brought.
    pitch: Pitch,
    resampler: Option<Resampler>,
    /// Samples handed out so far.
    samples: usize,
}

enum Form {
    /// The first bytes tell whether it is a WAV file; otherwise it is 16-bit samples at this rate, if one is given.
    Unknown {
        first: Vec<u8>,
        pcm_rate: Option<SampleRate>,
        kind: String,
    },
    Wav(WavStream),
    Pcm(Frames),
}

impl SoundStream {
    /// Begins a sound. `kind` is the content type without and with its parameters, and `pcm_rate` the rate of bare
    /// samples unless the type names one.
    pub(crate) fn new(kind: Option<(String, String)>, pcm_rate: SampleRate, pitch: Pitch) -> Result<Self, Failure> {
        let (kind, whole) = kind.unwrap_or_default();
        if kind == "application/json" || kind.starts_with("text/") {
            return Err(Failure::Protocol(format!("{kind} instead of a sound")));
        }
        let named = whole.split(';').find_map(|part| part.trim().strip_prefix("rate=")?.parse().ok());
        let is_pcm = ["audio/pcm", "audio/l16", "application/octet-stream", ""].contains(&kind.as_str());
        let pcm_rate =
            is_pcm.then(|| named.filter(|rate| (4_000..=192_000).contains(rate)).map_or(pcm_rate, SampleRate));
        let form = Form::Unknown { first: Vec::new(), pcm_rate, kind };
        Ok(Self { form, pitch, resampler: None, samples: 0 })
    }

    /// Returns the samples that these bytes complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<f32>, Failure> {
        let mut decoded = Vec::new();
        if let Form::Unknown { first, pcm_rate, kind } = &mut self.form {
            first.extend_from_slice(bytes);
            if first.len() < 4 {
                return Ok(decoded);
            }
            let first = std::mem::take(first);
            self.form = match pcm_rate {
                _ if first.starts_with(b"RIFF") => Form::Wav(WavStream::default()),
                Some(rate) => Form::Pcm(Frames::int16(*rate)),
                None => return Err(Failure::Protocol(format!("{kind}, which is neither WAV nor PCM"))),
            };
            self.decode(&first, &mut decoded)?;
        } else {
            self.decode(bytes, &mut decoded)?;
        }
        self.resample(&decoded)
    }

    /// Ends the sound and returns the last samples.
    pub(crate) fn finish(mut self) -> Result<Vec<f32>, Failure> {
        if let Form::Wav(wav) = &self.form
            && !wav.is_complete()
        {
            return Err(Failure::BrokeOff { reason: "the end of the sound is missing".to_owned() });
        }
        let mut last = Vec::new();
        if let Some(resampler) = self.resampler.take() {
            resampler.finish(&mut last);
        }
        if self.samples + last.len() == 0 {
            return Err(Failure::Protocol("no sound".to_owned()));
        }
        Ok(last)
    }

    fn decode(&mut self, bytes: &[u8], out: &mut Vec<f32>) -> Result<(), Failure> {
        match &mut self.form {
            Form::Unknown { .. } => Ok(()),
            Form::Wav(wav) => wav.push(bytes, out).map_err(Failure::Protocol),
            Form::Pcm(frames) => {
                frames.push(bytes, out);
                Ok(())
            }
        }
    }

    fn resample(&mut self, decoded: &[f32]) -> Result<Vec<f32>, Failure> {
        let rate = match &self.form {
            Form::Unknown { .. } => None,
            Form::Wav(wav) => wav.rate(),
            Form::Pcm(frames) => Some(frames.rate()),
        };
        let Some(rate) = rate else { return Ok(Vec::new()) };
        let mut out = Vec::new();
        let rate = self.pitch.rate(rate);
        self.resampler.get_or_insert_with(|| Resampler::new(rate, SERVER_VOICE_RATE)).push(decoded, &mut out);
        self.samples += out.len();
        let limit = MAX_SOUND_SECONDS * SERVER_VOICE_RATE.0 as usize;
        if self.samples > limit {
            return Err(Failure::TooMuch { what: "the sound of a sentence", limit: limit * 2 });
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use azera_voice_api::Audio;
    use azera_voice_recordings::wav_file;

    use super::*;

    fn read(kind: &str, body: &[u8]) -> Result<usize, String> {
        let kind = Some((kind.split(';').next().unwrap().to_owned(), kind.to_owned()));
        let run = || {
            let mut sound = SoundStream::new(kind, SERVER_VOICE_RATE, Pitch::of(1.0))?;
            let mut samples = 0;
            for piece in body.chunks(777) {
                samples += sound.push(piece)?.len();
            }
            Ok::<_, Failure>(samples + sound.finish()?.len())
        };
        run().map_err(|error| error.to_string())
    }

    #[test]
    fn sounds_of_any_rate_come_at_the_rate_of_the_voices() {
        let wav = |rate: u32| wav_file(&Audio { rate: SampleRate(rate), samples: vec![0.1; rate as usize] });
        for rate in [8_000, 22_050, 24_000, 48_000] {
            assert_eq!(read("audio/wav", &wav(rate)), Ok(24_000), "{rate}");
        }
        assert_eq!(read("audio/pcm", &[0; 48_000]), Ok(24_000));
        assert_eq!(read("audio/pcm;rate=22050", &[0; 44_100]), Ok(24_000));
        // A server that names the wrong type sends a WAV file all the same.
        assert_eq!(read("audio/mpeg", &wav(24_000)), Ok(24_000));
    }

    #[test]
    fn what_is_no_sound_is_an_error() {
        assert_eq!(
            read("audio/mpeg", b"ID3 music").unwrap_err(),
            "it sent an unexpected answer: audio/mpeg, which is neither WAV nor PCM"
        );
        assert_eq!(
            read("text/html; charset=utf-8", b"").unwrap_err(),
            "it sent an unexpected answer: text/html instead of a sound"
        );
        assert_eq!(read("audio/wav", b"").unwrap_err(), "it sent an unexpected answer: no sound");
        let mut cut = wav_file(&Audio { rate: SERVER_VOICE_RATE, samples: vec![0.1; 24_000] });
        cut.truncate(1_000);
        assert_eq!(read("audio/wav", &cut).unwrap_err(), "it broke off: the end of the sound is missing");
        let endless = vec![0; 2 * 24_000 * (MAX_SOUND_SECONDS + 1)];
        assert!(read("audio/pcm", &endless).unwrap_err().contains("it sent more than"));
    }
}
