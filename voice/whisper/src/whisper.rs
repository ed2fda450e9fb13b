//! The recogniser.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use azera_voice_api::{Audio, Error, RECOGNITION_RATE, SpeechToText, SpokenWord, Transcript, recognised_language};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::align::token_starts;
use crate::decoder::Decoder;
use crate::encoder::{COLUMNS_PER_VECTOR, Encoder};
use crate::greedy::{Decoded, Decoding};
use crate::linear::{Gemm, failed};
use crate::mel::{HOP, Mel};
use crate::steps::Steps;
use crate::tokens::Tokens;
use crate::verdict::{Evidence, is_speech};
use crate::weights::Weights;

/// The longest utterance, in seconds: the model's window.
pub const MAX_SECONDS: usize = 30;
/// Seconds of silence after the speech that the encoder sees.
const SILENCE_SECONDS: f32 = 1.0;
/// In less speech than this, the model repeats itself unless it sees [`PADDED_SECONDS`].
const SHORT_SECONDS: f32 = 2.0;
const PADDED_SECONDS: f32 = 10.0;
/// Below this level, no microphone records speech: -66 dB.
const SILENCE_LEVEL: f32 = 5e-4;

/// How a model is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Threads that compute; at least 1.
    pub threads: usize,
    /// Code of the spoken language, such as `de`. Without one, each utterance's language is told by its sound.
    pub language: Option<String>,
}

/// A Whisper model. Calls from several threads share its threads.
pub struct Whisper {
    name: String,
    encoder: Encoder,
    decoder: Decoder,
    tokens: Tokens,
    mel: Mel,
    gemm: Gemm,
    threads: ThreadPool,
    language: Option<usize>,
}

impl Whisper {
    /// Loads a model from the file that the registry installs.
    ///
    /// # Errors
    /// [`Error::Model`] if the file is not such a model, or the model does not know the language.
    pub fn load(file: &Path, name: impl Into<String>, options: &Options) -> Result<Self, Error> {
        let weights = Weights::open(file)?;
        let (encoder, decoder) = (Encoder::read(&weights)?, Decoder::read(&weights)?);
        if encoder.width != decoder.width() {
            return Err(weights.wrong("its halves do not fit each other"));
        }
        let tokens = Tokens::read(&weights, decoder.token_count())?;
        let language = match options.language.as_deref() {
            Some("en") if tokens.languages.is_empty() => None,
            Some(code) => Some(tokens.language(code).ok_or_else(|| weights.wrong(unknown_language(code, &tokens)))?),
            None => None,
        };
        let threads = ThreadPoolBuilder::new().num_threads(options.threads.max(1)).build().map_err(failed)?;
        let mel = Mel::new(encoder.bands);
        Ok(Self { name: name.into(), encoder, decoder, tokens, mel, gemm: Gemm, threads, language })
    }

    /// Checks without loading a model that its file can be read: that it is a Whisper model, and has its length.
    ///
    /// # Errors
    /// [`Error::Model`] if it cannot be read.
    pub fn check(file: &Path) -> Result<(), Error> {
        Weights::open(file)?.check_length()
    }

    /// Recognises an utterance that is probably in the language of this token.
    fn recognise(&self, samples: &[f32], expected: Option<usize>, steps: &Steps<'_>) -> Result<Transcript, Error> {
        let seconds = samples.len() as f32 / RECOGNITION_RATE.0 as f32;
        if samples.iter().all(|sample| sample.abs() < SILENCE_LEVEL) {
            return Ok(nothing(1.0));
        }
        let mut window = samples.to_vec();
        window.resize(window_samples(seconds), 0.0);
        let mel = steps.run(|| self.mel.spectrogram(&window, &self.gemm))?;
        let vectors = self.encoder.run(&mel, &self.gemm, steps)?;
        let (decoder, tokens, gemm) = (&self.decoder, &self.tokens, &self.gemm);
        let decoding = Decoding { decoder, tokens, gemm, language: self.language, expected, seconds };
        let decoded = decoding.run(&vectors, steps)?;
        let text = self.tokens.text(&decoded.tokens);
        let evidence = Evidence::of(&text, &decoded);
        if !is_speech(&text, &evidence) {
            return Ok(nothing(decoded.no_speech));
        }
        let words = self.words(&decoded, samples.len());
        Ok(Transcript { text: text.into(), words, confidence: evidence.confidence, no_speech: decoded.no_speech })
    }

    fn words(&self, decoded: &Decoded, samples: usize) -> Vec<SpokenWord> {
        let vectors = samples / HOP / COLUMNS_PER_VECTOR;
        let length = RECOGNITION_RATE.duration(samples);
        let starts = token_starts(decoded, vectors);
        let ranges = self.tokens.words(&decoded.tokens);
        let start =
            |range: &Range<usize>| Duration::from_secs_f32(starts.get(range.start).copied().unwrap_or(0.0)).min(length);
        let ends = ranges.iter().skip(1).map(start).chain([length]);
        let words = ranges.iter().zip(ends).map(|(range, end)| SpokenWord {
            text: self.tokens.text(decoded.tokens.get(range.clone()).unwrap_or(&[])).into(),
            start: start(range),
            end,
        });
        words.filter(|word| !word.text.is_empty()).collect()
    }
}

impl SpeechToText for Whisper {
    fn name(&self) -> &str {
        &self.name
    }

    fn transcribe(&self, utterance: &Audio, is_wanted: &(dyn Fn() -> bool + Sync)) -> Result<Transcript, Error> {
        self.transcribe_in(utterance, None, is_wanted)
    }

    fn transcribe_in(
        &self,
        utterance: &Audio,
        language: Option<&str>,
        is_wanted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Transcript, Error> {
        if utterance.rate != RECOGNITION_RATE {
            return Err(Error::WrongRate { found: utterance.rate, wanted: RECOGNITION_RATE });
        }
        if utterance.samples.len() > MAX_SECONDS * RECOGNITION_RATE.0 as usize {
            return Err(Error::TooLong { seconds: utterance.duration().as_secs_f32(), most: MAX_SECONDS as f32 });
        }
        let expected = language.and_then(|tag| self.tokens.language(&recognised_language(tag)));
        self.recognise(&utterance.samples, expected, &Steps { threads: &self.threads, is_wanted })
    }
}

fn unknown_language(code: &str, tokens: &Tokens) -> String {
    match tokens.language_codes() {
        codes if codes.is_empty() => format!("it knows no language `{code}`, only `en`"),
        codes => format!("it knows no language `{code}`; it knows {}", codes.join(", ")),
    }
}

/// Returns the transcript of an utterance without speech.
fn nothing(no_speech: f32) -> Transcript {
    Transcript { text: String::new().into(), words: Vec::new(), confidence: 0.0, no_speech }
}

/// Returns the samples that the encoder sees of an utterance: whole vectors, up to the model's window.
fn window_samples(seconds: f32) -> usize {
    let wanted = if seconds < SHORT_SECONDS { PADDED_SECONDS } else { seconds + SILENCE_SECONDS };
    let samples = (wanted * RECOGNITION_RATE.0 as f32) as usize;
    samples.next_multiple_of(HOP * COLUMNS_PER_VECTOR).min(MAX_SECONDS * RECOGNITION_RATE.0 as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_the_speech_and_one_second_but_ten_for_short_speech() {
        assert_eq!(window_samples(3.0), 64_000);
        assert_eq!(window_samples(2.013), 48_320);
        assert_eq!(window_samples(0.5), 160_000);
        assert_eq!(window_samples(30.0), 480_000);
    }
}
