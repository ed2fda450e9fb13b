//! Speaking on OpenAI-compatible servers.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use azera_voice_api::{Error, Style, TextToSpeech};
use azera_voice_servers::{ServerConfig, ServerVoices, SoundFormat, SpeechApi, VoicesConfig};

use crate::fakes::{Fake, SAMPLES_PER_CHAR, State, Trouble, openai};
use crate::{FixedSamples, KEY, SECRET, config, error_text, hurried, patient, spoken};

fn voices_config(server: ServerConfig, voice: Option<&str>) -> VoicesConfig {
    VoicesConfig {
        api: SpeechApi::OpenAi { model: "kokoro".to_owned(), format: SoundFormat::Wav },
        server,
        voice: voice.map(str::to_owned),
        language: "en".to_owned(),
        samples: Arc::<FixedSamples>::default(),
    }
}

fn voices(fake: &Fake, server: ServerConfig) -> ServerVoices {
    ServerVoices::new(voices_config(server, None), fake.handle()).unwrap()
}

#[test]
fn a_sentence_is_spoken_piece_by_piece_in_either_form() {
    let fake = Fake::start(State::default(), openai::routes);
    for format in [SoundFormat::Wav, SoundFormat::Pcm] {
        let config = VoicesConfig {
            api: SpeechApi::OpenAi { model: "kokoro".to_owned(), format },
            ..voices_config(config(&fake.url), None)
        };
        let voices = ServerVoices::new(config, fake.handle()).unwrap();
        let (samples, pieces) = spoken(&voices, SECRET, &Style::of("af_heart")).unwrap();
        assert_eq!(samples, SECRET.len() * SAMPLES_PER_CHAR, "{format:?}");
        assert!(pieces >= 2, "{format:?}: {pieces}");
    }
}

#[test]
fn the_pace_is_sent_within_what_servers_take() {
    let fake = Fake::start(State::default(), openai::routes);
    let voices = voices(&fake, config(&fake.url));
    for (pace, expected) in [(2.0, 60_000), (100.0, 30_000)] {
        let style = Style { pace, ..Style::of("bf_emma") };
        assert_eq!(spoken(&voices, &"a".repeat(100), &style).unwrap().0, expected, "{pace}");
    }
}

#[test]
fn a_pitch_is_made_of_another_pace_and_keeps_the_duration() {
    let fake = Fake::start(State::default(), openai::routes);
    let voices = voices(&fake, config(&fake.url));
    for (pitch, speed) in [(1.25, 0.8), (0.8, 1.25)] {
        let style = Style { pitch, ..Style::of("af_heart") };
        let (samples, _) = spoken(&voices, &"a".repeat(100), &style).unwrap();
        let asked = fake.bodies().pop().unwrap()["speed"].as_f64().unwrap();
        // The steps of pitch are 2 %.
        assert!((asked / speed - 1.0).abs() < 0.02, "{asked}");
        let length = samples as f64 / (100 * SAMPLES_PER_CHAR) as f64;
        assert!((length - 1.0).abs() < 0.01, "{length} times as long");
    }
}

#[test]
fn voices_are_listed_and_a_configured_one_need_not_be() {
    let fake = Fake::start(State::default(), openai::routes);
    let mixed = voices_config(config(&fake.url), Some("af_heart+bf_emma"));
    let mixed = ServerVoices::new(mixed, fake.handle()).unwrap();
    let ids = |voices: &ServerVoices| voices.voices().iter().map(|voice| voice.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&mixed), ["af_heart+bf_emma"]);
    let notes = fake.run(mixed.check()).unwrap();
    assert_eq!(notes, ["it does not list the voice af_heart+bf_emma; it lists: af_heart, bf_emma, am_adam"]);
    assert_eq!(ids(&mixed), ["af_heart+bf_emma", "af_heart", "bf_emma", "am_adam"]);
    assert!(spoken(&mixed, "Hello.", &Style::of("af_heart+bf_emma")).is_ok());
    let unknown = spoken(&mixed, "Hello.", &Style::of("nobody"));
    assert!(matches!(unknown, Err(Error::UnknownVoice { known, .. }) if known.len() == 4));
    assert_eq!(fake.requests("/v1/audio/voices"), 1);
}

#[test]
fn a_server_without_a_list_needs_a_voice() {
    let fake = Fake::start(State { has_no_list: true, ..State::default() }, openai::routes);
    let named = ServerVoices::new(voices_config(config(&fake.url), Some("am_adam")), fake.handle()).unwrap();
    assert!(fake.run(named.check()).unwrap().is_empty() && spoken(&named, "Hello.", &Style::of("am_adam")).is_ok());
    let text = error_text(fake.run(voices(&fake, config(&fake.url)).check()));
    assert!(text.contains("speech_server.voice must name a voice"), "{text}");
}

#[test]
fn every_trouble_is_an_error_that_says_what_happened() {
    let fake = Fake::start(State::default(), openai::routes);
    let [patient, hurried] = [patient, hurried].map(|config| voices(&fake, config(&fake.url)));
    for engine in [&patient, &hurried] {
        fake.run(engine.check()).unwrap();
    }
    for (trouble, said) in [
        (Trouble::Hang, "it said nothing for 2000 ms"),
        (Trouble::HangMidway, "it said nothing for 2000 ms"),
        (Trouble::HalfBody, "it broke off"),
        (Trouble::Status(500), "status 500: its message is left out, as it repeats what was sent"),
        (Trouble::Status(429), "it cannot answer now (status 429"),
        (Trouble::Status(401), "it refuses the key: set speech_server.key"),
        (Trouble::Status(400), "it refused the request (status 400"),
        (Trouble::NotJson, "it sent an unexpected answer: text/html instead of a sound"),
        (Trouble::OtherJson, "it sent an unexpected answer: application/json instead of a sound"),
        (Trouble::Nothing, "it sent an unexpected answer: no sound"),
        (Trouble::Endless, "it sent more than 14400000 bytes as the sound of a sentence"),
        (Trouble::Redirect, "it points to http://elsewhere.example/v1; if that is right, set speech_server.url"),
    ] {
        fake.fail([trouble.clone()]);
        let engine = if trouble.is_silence() { &hurried } else { &patient };
        let text = error_text(spoken(engine, SECRET, &Style::of("af_heart")));
        assert!(text.contains(said), "{trouble:?}: {text}");
        assert!(spoken(&patient, SECRET, &Style::of("af_heart")).is_ok(), "after {trouble:?}");
    }
    fake.fail([Trouble::WrongRate]);
    assert_eq!(spoken(&patient, SECRET, &Style::of("af_heart")).unwrap().0, 24_000, "one second of any rate");
}

#[test]
fn what_the_server_refuses_is_told_in_its_words() {
    let fake = Fake::start(State::default(), openai::routes);
    let config = VoicesConfig {
        api: SpeechApi::OpenAi { model: "tts-9".to_owned(), format: SoundFormat::Wav },
        ..voices_config(config(&fake.url), Some("nobody"))
    };
    let voices = ServerVoices::new(config, fake.handle()).unwrap();
    let text = error_text(spoken(&voices, "Hello there.", &Style::of("nobody")));
    assert!(text.contains("it refused the request (status 400: Unsupported model: \"tts-9\")"), "{text}");
}

#[test]
fn a_caller_that_breaks_ends_the_sound_without_an_error() {
    let fake = Fake::start(State::default(), openai::routes);
    let voices = voices(&fake, config(&fake.url));
    fake.run(voices.check()).unwrap();
    // Once its loudness is known, a voice sounds at once.
    assert!(spoken(&voices, SECRET, &Style::of("af_heart")).is_ok());
    fake.fail([Trouble::HangMidway]);
    let mut pieces = 0;
    let result = voices.speak(SECRET, &Style::of("af_heart"), &mut |_| {
        pieces += 1;
        ControlFlow::Break(())
    });
    assert!(result.is_ok() && pieces == 1);
}

#[test]
fn what_has_no_words_is_not_sent() {
    let fake = Fake::start(State::default(), openai::routes);
    let voices = voices(&fake, config(&fake.url));
    assert_eq!(spoken(&voices, " ... ", &Style::of("af_heart")).unwrap(), (0, 0));
    assert_eq!(fake.requests("/v1/audio/speech"), 0);
}

#[test]
fn neither_key_nor_words_are_logged() {
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let log = Log::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || writer.clone()).finish();
    let fake = Fake::start(State::default(), openai::routes);
    tracing::subscriber::with_default(subscriber, || {
        let voices = voices(&fake, hurried(&fake.url));
        for trouble in [Trouble::Status(500), Trouble::HalfBody, Trouble::Hang] {
            fake.fail([trouble]);
            spoken(&voices, SECRET, &Style::of("af_heart")).unwrap_err();
        }
        spoken(&voices, SECRET, &Style::of("af_heart")).unwrap();
        tracing::info!("the end");
    });
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("the end") && !log.contains(KEY) && !log.contains("door code"), "{log}");
    assert!(!format!("{:?}", voices_config(config(&fake.url), None)).contains(KEY));
}
