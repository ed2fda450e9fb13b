//! People who speak and hear: text becomes Opus packets, and Opus packets become text.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use azera_voice_api::{Audio, RECOGNITION_RATE, SpeechToText, Style, TextToSpeech};
use azera_voice_engines::PiperVoice;
use azera_voice_recordings::{read_bytes, split};
use azera_voice_whisper::{Options, Whisper};
use opus2::{Application, Channels, Decoder, Encoder};

/// Returns the folder of the default models, which `make test` sets.
#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
fn models() -> PathBuf {
    let dir = std::env::var_os("AZERA_TEST_MODELS");
    dir.map(PathBuf::from).expect("AZERA_TEST_MODELS names the folder of the default models; run `make test`")
}

/// The id of the voice.
pub const VOICE: &str = "joe";

/// Samples of a packet of 20 ms at 48 kHz.
const PACKET: usize = 960;

/// Samples of the same time at the rate of recognition.
const HEARD: usize = 320;

pub fn model(name: &str, extension: &str) -> PathBuf {
    let folder = models().join(name);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let found = files.map(|file| file.expect("a file").path());
    found.into_iter().find(|path| path.extension().is_some_and(|is| is == extension)).expect("a model")
}

/// A voice.
pub struct Voice(Arc<PiperVoice>);

impl Voice {
    pub fn open() -> Self {
        Self(Arc::new(PiperVoice::open(&model("piper-en-us-joe", "onnx"), VOICE, 1).expect("a voice")))
    }

    /// Returns the voice for the bot.
    pub fn engine(&self) -> Arc<PiperVoice> {
        self.0.clone()
    }

    /// Returns what a client sends for a sentence: stereo Opus at 48 kHz.
    pub fn say(&self, words: &str) -> Vec<Vec<u8>> {
        let mut samples = Vec::new();
        let style = Style { liveliness: 0.0, ..Style::of(VOICE) };
        self.0
            .speak(words, &style, &mut |piece| {
                samples.extend(piece.audio.samples);
                ControlFlow::Continue(())
            })
            .expect("speech");
        let rate = f64::from(self.0.voices()[0].rate.0);
        let length = (samples.len() as f64 * 48_000.0 / rate) as usize;
        let sample = |at: usize| {
            let position = at as f64 * rate / 48_000.0;
            let (before, share) = (position.floor() as usize, position.fract() as f32);
            let value = |at: usize| samples.get(at).copied().unwrap_or(0.0);
            value(before) * (1.0 - share) + value(before + 1) * share
        };
        let mut encoder = Encoder::new(48_000, Channels::Stereo, Application::Voip).expect("an encoder");
        let packet = |start: usize| {
            let stereo: Vec<f32> = (start..start + PACKET).flat_map(|at| [sample(at); 2]).collect();
            encoder.encode_vec_float(&stereo, 4_000).expect("a packet")
        };
        (0..length).step_by(PACKET).map(packet).collect()
    }
}

/// Ears.
pub struct Ears(Arc<Whisper>);

impl Ears {
    pub fn open() -> Self {
        let options = Options { threads: 1, language: None };
        let file = model("whisper-tiny.en", "gguf");
        Self(Arc::new(Whisper::load(&file, "whisper-tiny.en", &options).expect("a recogniser")))
    }

    /// Returns the recogniser for the bot.
    pub fn engine(&self) -> Arc<Whisper> {
        self.0.clone()
    }

    /// Returns the words in a recording, and how many seconds it lasts.
    pub fn recognise_file(&self, file: Vec<u8>) -> (String, f32) {
        let sound = read_bytes(file, "audio/ogg", 600).expect("a sound file");
        let seconds = sound.duration().as_secs_f32();
        let words = split(&sound, 25.0).into_iter().map(|part| {
            let part = Audio { rate: sound.rate, samples: sound.samples[part].to_vec() };
            self.0.transcribe(&part, &|| true).expect("a transcript").text.as_str().to_owned()
        });
        (words.collect::<Vec<_>>().join(" "), seconds)
    }

    /// Returns the words in packets.
    pub fn recognise(&self, packets: &[Vec<u8>]) -> String {
        let mut decoder = Decoder::new(RECOGNITION_RATE.0, Channels::Mono).expect("a decoder");
        let mut samples = Vec::new();
        for packet in packets {
            let mut decoded = [0.0; HEARD * 6];
            let count = decoder.decode_float(packet, &mut decoded, false).expect("a packet of sound");
            samples.extend(&decoded[..count]);
        }
        samples.truncate(28 * RECOGNITION_RATE.0 as usize);
        let utterance = Audio { rate: RECOGNITION_RATE, samples };
        self.0.transcribe(&utterance, &|| true).expect("a transcript").text.as_str().to_owned()
    }
}
