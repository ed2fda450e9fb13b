//! Tests of the clients against servers that refuse what the real ones refuse, and that fail on demand.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod fakes;
mod fallback;
mod recognition;
mod speech;
mod xtts;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::time::Duration;

use azera_breaker::Limits;
use azera_voice_api::{Audio, Error, Piece, RECOGNITION_RATE, Style, TextToSpeech};
use azera_voice_servers::{ApiKey, Numbers, SERVER_VOICE_RATE, Samples, ServerConfig, Timeouts};

/// The key that the fakes want.
const KEY: &str = "sk-hush-4711";
/// What is said in these tests, and what no error and no log may show.
const SECRET: &str = "The door code is nine four seven one.";

/// How long [`hurried`] waits. The error names it.
const SHORT: Duration = Duration::from_secs(2);

/// Returns the configuration of a fake, which answers in time also on a busy machine.
fn config(url: &str) -> ServerConfig {
    let long = Duration::from_secs(300);
    ServerConfig {
        url: url.to_owned(),
        key: Some(ApiKey::new(KEY)),
        section: "speech_server".to_owned(),
        timeouts: Timeouts { connect: long, first: long, idle: long, about: long, ..Timeouts::default() },
    }
}

/// As [`config`], for tests that do not care about the breaker.
fn patient(url: &str) -> ServerConfig {
    let mut config = config(url);
    config.timeouts.breaker = Limits { failures: 1_000, ..Limits::default() };
    config
}

/// As [`patient`], for answers that never come: the fake was asked by then, and the test need not wait long.
fn hurried(url: &str) -> ServerConfig {
    let mut config = patient(url);
    (config.timeouts.first, config.timeouts.idle) = (SHORT, SHORT);
    config
}

/// Returns a second of sound for each of these numbers.
fn utterance(seconds: usize) -> Audio {
    Audio { rate: RECOGNITION_RATE, samples: vec![0.1; seconds * RECOGNITION_RATE.0 as usize] }
}

/// Recordings in memory, by the ids of their voices.
#[derive(Default)]
struct FixedSamples(Mutex<BTreeMap<String, (Vec<u8>, Numbers)>>);

impl FixedSamples {
    fn new(id: &str, wav: Vec<u8>) -> Self {
        let samples = Self::default();
        samples.put(id, Some(wav));
        samples
    }

    /// Replaces or removes a recording.
    fn put(&self, id: &str, wav: Option<Vec<u8>>) {
        let mut samples = self.0.lock().unwrap();
        samples.remove(id);
        samples.extend(wav.map(|wav| (id.to_owned(), (wav, Numbers::default()))));
    }
}

impl Samples for FixedSamples {
    fn ids(&self) -> Vec<String> {
        self.0.lock().unwrap().keys().cloned().collect()
    }

    fn numbers(&self, id: &str) -> Option<Numbers> {
        self.0.lock().unwrap().get(id).map(|(_, numbers)| numbers.clone())
    }

    fn wav(&self, id: &str) -> Option<Vec<u8>> {
        self.0.lock().unwrap().get(id).map(|(wav, _)| wav.clone())
    }
}

/// Speaks a sentence and returns the number of samples and of pieces.
fn spoken(engine: &dyn TextToSpeech, sentence: &str, style: &Style) -> Result<(usize, usize), Error> {
    let (mut samples, mut pieces) = (0, 0);
    engine.speak(sentence, style, &mut |Piece { audio, .. }| {
        assert_eq!(audio.rate, SERVER_VOICE_RATE);
        assert!(!audio.samples.is_empty() && audio.samples.iter().all(|sample| sample.abs() <= 1.0));
        samples += audio.samples.len();
        pieces += 1;
        ControlFlow::Continue(())
    })?;
    Ok((samples, pieces))
}

/// Returns the text of an error, which shows neither the key nor what was said.
#[track_caller]
fn error_text<T>(result: Result<T, impl std::fmt::Display>) -> String {
    let text = result.err().expect("this fails").to_string();
    assert!(!text.contains(KEY) && !text.contains("door code") && !text.contains("door+code"), "{text}");
    text
}
