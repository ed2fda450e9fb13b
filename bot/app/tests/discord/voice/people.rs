//! People who speak and hear: text becomes Opus packets, and Opus packets become text.

use std::ops::ControlFlow;
use std::path::PathBuf;

use azera_voice_api::{Audio, RECOGNITION_RATE, SpeechToText, Style, TextToSpeech};
use azera_voice_engines::PiperVoice;
use azera_voice_whisper::{Options, Whisper};
use opus2::{Application, Channels, Decoder, Encoder};

use crate::bot::models;

/// Samples of a packet of 20 ms at 48 kHz.
const PACKET: usize = 960;

/// Samples of the same time at the rate of recognition.
const HEARD: usize = 320;

fn model(name: &str, extension: &str) -> PathBuf {
    let folder = models().join(name);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let found = files.map(|file| file.expect("a file").path());
    found.into_iter().find(|path| path.extension().is_some_and(|is| is == extension)).expect("a model")
}

/// A voice.
pub struct Voice(PiperVoice);

impl Voice {
    pub fn open() -> Self {
        Self(PiperVoice::open(&model("piper-en-us-joe", "onnx"), "joe", 1).expect("a voice"))
    }

    /// Returns what a client sends for a sentence: stereo Opus at 48 kHz.
    pub fn say(&self, words: &str) -> Vec<Vec<u8>> {
        let mut samples = Vec::new();
        let style = Style { liveliness: 0.0, ..Style::of("joe") };
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
pub struct Ears(Whisper);

impl Ears {
    pub fn open() -> Self {
        let options = Options { threads: 1, language: None };
        Self(Whisper::load(&model("whisper-tiny.en", "gguf"), "whisper-tiny.en", &options).expect("a recogniser"))
    }

    /// Returns the words in sound at the rate of recognition.
    pub fn transcribe(&self, utterance: &Audio) -> String {
        self.0.transcribe(utterance, &|| true).expect("a transcript").text.as_str().to_owned()
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
        self.transcribe(&utterance)
    }
}

/// Tells sound from silence.
pub struct Meter(Decoder);

impl Meter {
    pub fn new() -> Self {
        Self(Decoder::new(RECOGNITION_RATE.0, Channels::Mono).expect("a decoder"))
    }

    /// Returns true if the next packet of the bot can be heard.
    pub fn hears(&mut self, packet: &[u8]) -> bool {
        let mut decoded = [0.0; HEARD * 6];
        let count = self.0.decode_float(packet, &mut decoded, false).expect("a packet of sound");
        decoded[..count].iter().any(|sample| sample.abs() > 0.01)
    }
}
