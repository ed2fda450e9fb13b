//! Speaking on both kinds of XTTS server.

use std::sync::Arc;

use azera_voice_api::{Style, TextToSpeech};
use azera_voice_servers::{ServerConfig, ServerVoices, SpeechApi, USUAL_VOICE, VoicesConfig};

use crate::fakes::{Fake, SAMPLES_PER_CHAR, State, Trouble, wav, xtts_api, xtts_streaming};
use crate::{FixedSamples, SECRET, config, error_text, hurried, patient, spoken};

fn voices(fake: &Fake, server: ServerConfig, language: &str) -> ServerVoices {
    let samples = FixedSamples::new("ann", wav(&[0.1; 240], 24_000));
    let language = language.to_owned();
    ServerVoices::new(
        VoicesConfig { api: SpeechApi::Xtts, server, voice: None, language, samples: Arc::new(samples) },
        fake.handle(),
    )
    .unwrap()
}

fn ids(voices: &ServerVoices) -> Vec<String> {
    voices.voices().into_iter().map(|voice| voice.id).collect()
}

#[test]
fn a_streaming_server_speaks_with_studio_voices_and_with_samples() {
    let fake = Fake::start(State::default(), xtts_streaming::routes);
    let voices = voices(&fake, config(&fake.url), "zh");
    assert!(fake.run(voices.check()).unwrap().is_empty());
    assert_eq!(ids(&voices), ["Ana Florence", "Craig Gutsy", "ann"]);
    for (voice, seed) in [("Ana Florence", 0.5), ("ann", 0.125), ("ann", 0.125)] {
        let (samples, pieces) = spoken(&voices, SECRET, &Style::of(voice)).unwrap();
        assert_eq!(samples, SECRET.len() * SAMPLES_PER_CHAR);
        assert!(pieces >= 2, "{pieces}");
        let asked = fake.bodies().pop().unwrap();
        assert_eq!((&asked["language"], &asked["seed"]), (&"zh-cn".into(), &seed.into()), "{voice}");
    }
    assert_eq!(fake.requests("/clone_speaker"), 1, "a sample is sent once");
}

#[test]
fn the_language_of_a_style_is_spoken_if_the_server_has_it() {
    let fake = Fake::start(State::default(), xtts_streaming::routes);
    let voices = voices(&fake, config(&fake.url), "en");
    for (language, asked) in [("de-AT", "de"), ("zh", "zh-cn"), ("fi", "en")] {
        let style = Style { language: Some(language.to_owned()), ..Style::of("Ana Florence") };
        spoken(&voices, SECRET, &style).unwrap();
        assert_eq!(fake.bodies().pop().unwrap()["language"], asked, "{language}");
    }
}

#[test]
fn the_usual_voice_is_never_a_recording() {
    let fake = Fake::start(State::default(), xtts_streaming::routes);
    let voices = voices(&fake, config(&fake.url), "en");
    assert_eq!(ids(&voices), [USUAL_VOICE]);
    spoken(&voices, SECRET, &Style::of(USUAL_VOICE)).unwrap();
    assert_eq!(fake.bodies().pop().unwrap()["seed"], 0.5, "the first studio voice");
    // Nor is it once the server has told its voices: the first of the list is the usual one of replies.
    assert_eq!((ids(&voices)[0].as_str(), fake.requests("/clone_speaker")), ("Ana Florence", 0));
}

#[test]
fn samples_may_come_and_go_while_it_speaks() {
    let fake = Fake::start(State::default(), xtts_streaming::routes);
    let samples = Arc::new(FixedSamples::new("ann", wav(&[0.1; 240], 24_000)));
    let config = VoicesConfig {
        api: SpeechApi::Xtts,
        server: config(&fake.url),
        voice: None,
        language: "en".to_owned(),
        samples: samples.clone(),
    };
    let voices = ServerVoices::new(config, fake.handle()).unwrap();
    assert!(fake.run(voices.takes_samples()).unwrap());
    samples.put("~bob", Some(wav(&[0.2; 240], 24_000)));
    // What people record is never the usual voice.
    assert_eq!(ids(&voices), ["Ana Florence", "Craig Gutsy", "ann", "~bob"]);
    spoken(&voices, SECRET, &Style::of("~bob")).unwrap();
    samples.put("~bob", None);
    assert_eq!(ids(&voices), ["Ana Florence", "Craig Gutsy", "ann"]);
    let gone = spoken(&voices, SECRET, &Style::of("~bob")).unwrap_err().to_string();
    assert!(gone.contains("there is no voice `~bob`; there is Ana Florence, Craig Gutsy, ann"), "{gone}");
    // Another recording under the same id is cloned anew.
    samples.put("~bob", Some(wav(&[0.3; 240], 24_000)));
    spoken(&voices, SECRET, &Style::of("~bob")).unwrap();
    assert_eq!(fake.requests("/clone_speaker"), 2);
}

#[test]
fn xtts_api_server_speaks_with_its_own_samples() {
    let fake = Fake::start(State::default(), xtts_api::routes);
    let voices = voices(&fake, config(&fake.url), "en-GB");
    let notes = fake.run(voices.check()).unwrap();
    assert_eq!(notes, ["it takes no samples of voices; put them into its own folder of speakers"]);
    assert_eq!(ids(&voices), ["calm_female", "male"]);
    let (samples, pieces) = spoken(&voices, SECRET, &Style::of("male")).unwrap();
    assert_eq!(samples, SECRET.len() * SAMPLES_PER_CHAR);
    assert!(pieces >= 2, "{pieces}");
    assert_eq!((fake.requests("/tts_stream"), fake.requests("/tts_to_audio/")), (1, 0));
    let long = "Wood. ".repeat(400);
    assert_eq!(spoken(&voices, &long, &Style::of("male")).unwrap().0, long.len() * SAMPLES_PER_CHAR);
    assert_eq!(fake.requests("/tts_to_audio/"), 1, "a long sentence is no part of an address");
}

#[test]
fn a_server_that_does_not_stream_is_asked_for_the_whole() {
    let fake = Fake::start(State { does_not_stream: true, ..State::default() }, xtts_api::routes);
    let voices = voices(&fake, config(&fake.url), "en");
    for _ in 0..2 {
        assert_eq!(spoken(&voices, SECRET, &Style::of("male")).unwrap().0, SECRET.len() * SAMPLES_PER_CHAR);
    }
    assert_eq!((fake.requests("/tts_stream"), fake.requests("/tts_to_audio/")), (1, 2));
}

#[test]
fn a_sentence_that_is_refused_leaves_streaming_on() {
    let fake = Fake::start(State::default(), xtts_api::routes);
    let voices = voices(&fake, config(&fake.url), "en");
    fake.fail([Trouble::Status(400), Trouble::Status(400)]);
    spoken(&voices, SECRET, &Style::of("male")).unwrap_err();
    spoken(&voices, SECRET, &Style::of("male")).unwrap();
    assert_eq!((fake.requests("/tts_stream"), fake.requests("/tts_to_audio/")), (2, 1));
}

#[test]
fn a_language_that_the_server_does_not_speak_is_told() {
    for routes in [xtts_streaming::routes, xtts_api::routes] {
        let fake = Fake::start(State::default(), routes);
        let voices = voices(&fake, config(&fake.url), "eo");
        let text = error_text(fake.run(voices.check()));
        assert!(text.contains("speech_server.language is none that it speaks; it speaks"), "{text}");
        let voice = ids(&voices).pop().unwrap().to_owned();
        assert!(error_text(spoken(&voices, SECRET, &Style::of(voice))).contains("de"));
    }
}

#[test]
fn every_trouble_is_an_error_that_says_what_happened() {
    for routes in [xtts_streaming::routes, xtts_api::routes] {
        let fake = Fake::start(State::default(), routes);
        let [patient, hurried] = [patient, hurried].map(|config| voices(&fake, config(&fake.url), "en"));
        for engine in [&patient, &hurried] {
            fake.run(engine.check()).unwrap();
        }
        let voice = ids(&patient).pop().unwrap().to_owned();
        for (trouble, said) in [
            (Trouble::Hang, "it said nothing for 2000 ms"),
            (Trouble::HalfBody, "it broke off"),
            (Trouble::Status(500), "its message is left out, as it repeats what was sent"),
            (Trouble::Status(429), "it cannot answer now (status 429"),
            (Trouble::NotJson, "text/html instead of a sound"),
            (Trouble::Nothing, "no sound"),
            (Trouble::Redirect, "it points to http://elsewhere.example/v1; if"),
        ] {
            fake.fail([trouble.clone()]);
            let engine = if trouble.is_silence() { &hurried } else { &patient };
            let text = error_text(spoken(engine, SECRET, &Style::of(voice.as_str())));
            assert!(text.contains(said), "{trouble:?}: {text}");
            assert!(spoken(&patient, SECRET, &Style::of(voice.as_str())).is_ok(), "after {trouble:?}");
        }
    }
}

#[test]
fn a_server_of_another_kind_is_told() {
    let fake = Fake::start(State::default(), crate::fakes::openai::routes);
    let text = error_text(fake.run(voices(&fake, config(&fake.url), "en").check()));
    assert!(text.contains("there is nothing at /speakers; check speech_server.api and speech_server.url"), "{text}");
}
