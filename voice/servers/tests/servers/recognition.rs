//! Recognition on OpenAI-compatible servers and on whisper.cpp's.

use azera_voice_api::{Audio, Error, SampleRate, SpeechToText, Transcript};
use azera_voice_servers::{RecognitionApi, RecognizerConfig, ServerConfig, ServerError, ServerRecognizer};

use crate::fakes::{Fake, State, Trouble, openai, whisper_cpp};
use crate::{config, error_text, hurried, patient, utterance};

fn recognizer(fake: &Fake, api: RecognitionApi, server: ServerConfig) -> Result<ServerRecognizer, ServerError> {
    let model = (api == RecognitionApi::OpenAi).then(|| "whisper-1".to_owned());
    ServerRecognizer::new(RecognizerConfig { api, server, model, language: None }, fake.handle())
}

fn hear(recognizer: &ServerRecognizer, seconds: usize) -> Result<Transcript, Error> {
    recognizer.transcribe(&utterance(seconds), &|| true)
}

#[test]
fn an_openai_server_gives_words_and_confidence() {
    let fake = Fake::start(State::default(), openai::routes);
    let recognizer = recognizer(&fake, RecognitionApi::OpenAi, config(&fake.url)).unwrap();
    let heard = hear(&recognizer, 2).unwrap();
    assert_eq!((&*heard.text, heard.words.len(), heard.no_speech), ("I heard 2.0 seconds.", 2, 0.125));
    assert!((heard.confidence - (-0.25_f32).exp()).abs() < 1e-6);
    assert_eq!(fake.run(recognizer.check()).unwrap(), Vec::<String>::new());
    assert!(recognizer.name().starts_with("whisper-1 on the OpenAI-compatible speech server at http://127.0.0.1:"));
}

#[test]
fn a_model_without_times_gives_the_text_alone_and_is_asked_once() {
    let fake = Fake::start(State { is_plain: true, ..State::default() }, openai::routes);
    let recognizer = recognizer(&fake, RecognitionApi::OpenAi, config(&fake.url)).unwrap();
    for _ in 0..2 {
        let heard = hear(&recognizer, 1).unwrap();
        assert_eq!((&*heard.text, heard.words.len(), heard.confidence), ("I heard 1.0 seconds.", 0, 1.0));
    }
    assert_eq!(fake.requests("/v1/audio/transcriptions"), 3);
}

#[test]
fn a_language_is_sent_and_auto_leaves_it_to_an_openai_server() {
    let fake = Fake::start(State::default(), openai::routes);
    for (language, sent) in [(Some("de"), true), (Some("auto"), false), (None, false)] {
        let language = language.map(str::to_owned);
        let config = RecognizerConfig {
            api: RecognitionApi::OpenAi,
            server: config(&fake.url),
            model: Some("whisper-1".to_owned()),
            language,
        };
        hear(&ServerRecognizer::new(config, fake.handle()).unwrap(), 1).unwrap();
        let asked = fake.bodies().pop().unwrap();
        assert_eq!(asked.as_array().unwrap().iter().any(|field| field[0] == "language"), sent);
    }
}

#[test]
fn an_expected_language_is_sent_unless_the_configuration_names_one() {
    for (api, routes) in [
        (RecognitionApi::OpenAi, openai::routes as fn(_) -> _),
        (RecognitionApi::WhisperCpp, whisper_cpp::routes as fn(_) -> _),
    ] {
        let fake = Fake::start(State::default(), routes);
        for (configured, sent) in [(None, Some("de")), (Some("en"), Some("en"))] {
            let config = RecognizerConfig {
                api,
                server: config(&fake.url),
                model: Some("whisper-1".to_owned()),
                language: configured.map(str::to_owned),
            };
            let recognizer = ServerRecognizer::new(config, fake.handle()).unwrap();
            recognizer.transcribe_in(&utterance(1), Some("de-AT"), &|| true).unwrap();
            let asked = fake.bodies().pop().unwrap();
            let language = asked.as_array().unwrap().iter().find(|field| field[0] == "language").cloned();
            assert_eq!(language.and_then(|field| field[1].as_str().map(str::to_owned)).as_deref(), sent, "{api:?}");
        }
    }
}

#[test]
fn an_expected_language_that_a_server_refuses_is_left_out() {
    for (api, routes, requests) in [
        (RecognitionApi::OpenAi, openai::routes as fn(_) -> _, 3 + 1),
        (RecognitionApi::WhisperCpp, whisper_cpp::routes as fn(_) -> _, 2),
    ] {
        let fake = Fake::start(State::default(), routes);
        let recognizer = recognizer(&fake, api, config(&fake.url)).unwrap();
        for _ in 0..2 {
            let heard = recognizer.transcribe_in(&utterance(1), Some("eo"), &|| true).unwrap();
            assert_eq!(&*heard.text, "I heard 1.0 seconds.");
        }
        // The verbose and the plain form with the language, then without it.
        assert_eq!(fake.bodies().len(), requests, "{api:?}");
    }
}

#[test]
fn whisper_cpp_gives_whole_words() {
    let fake = Fake::start(State::default(), whisper_cpp::routes);
    let recognizer = recognizer(&fake, RecognitionApi::WhisperCpp, config(&fake.url)).unwrap();
    let heard = hear(&recognizer, 3).unwrap();
    let words: Vec<&str> = heard.words.iter().map(|word| &*word.text).collect();
    assert_eq!((&*heard.text, words, heard.no_speech), ("I heard 3.0 seconds.", vec!["I", "heard"], 0.0625));
    assert!((heard.confidence - 0.75).abs() < 1e-6);
    assert_eq!(fake.run(recognizer.check()).unwrap(), Vec::<String>::new());
}

#[test]
fn an_error_with_status_200_is_an_error() {
    let fake = Fake::start(State::default(), whisper_cpp::routes);
    let config = RecognizerConfig {
        api: RecognitionApi::WhisperCpp,
        server: config(&format!("{}/nowhere", fake.url)),
        model: None,
        language: Some("xx".to_owned()),
    };
    let text = error_text(hear(&ServerRecognizer::new(config.clone(), fake.handle()).unwrap(), 1));
    assert!(text.contains("there is nothing at /nowhere/inference; check speech_server.api"), "{text}");
    let server = self::config(&fake.url);
    let unknown = RecognizerConfig { server, ..config };
    let text = error_text(hear(&ServerRecognizer::new(unknown, fake.handle()).unwrap(), 1));
    assert!(text.contains("status 500: failed to process audio"), "{text}");
}

#[test]
fn every_trouble_is_an_error_that_says_what_happened() {
    let fake = Fake::start(State::default(), openai::routes);
    let [patient, hurried] =
        [patient, hurried].map(|config| recognizer(&fake, RecognitionApi::OpenAi, config(&fake.url)).unwrap());
    for (trouble, said) in [
        (Trouble::Hang, "it said nothing for 2000 ms"),
        (Trouble::HangMidway, "it said nothing for 2000 ms"),
        (Trouble::HalfBody, "it broke off"),
        (Trouble::Status(500), "it cannot answer now (status 500: cannot do this with [key]:"),
        (Trouble::Status(429), "it cannot answer now (status 429"),
        (Trouble::Status(403), "it refuses the key: set speech_server.key, or AZERA__SPEECH_SERVER__KEY"),
        (Trouble::NotJson, "it is not valid JSON"),
        (Trouble::OtherJson, "the JSON has an unexpected structure"),
        (Trouble::Nothing, "it is not valid JSON"),
        (Trouble::Endless, "it sent more than 16777216 bytes as an answer"),
        (Trouble::Redirect, "it points to http://elsewhere.example/v1; if that is right, set speech_server.url"),
    ] {
        fake.fail([trouble.clone()]);
        let engine = if trouble.is_silence() { &hurried } else { &patient };
        let text = error_text(hear(engine, 1));
        assert!(text.contains(said), "{trouble:?}: {text}");
        assert!(hear(&patient, 1).is_ok(), "after {trouble:?}");
    }
}

#[test]
fn a_server_that_keeps_failing_is_left_alone() {
    let fake = Fake::start(State::default(), openai::routes);
    let recognizer = recognizer(&fake, RecognitionApi::OpenAi, config(&fake.url)).unwrap();
    fake.fail([Trouble::Status(429), Trouble::Status(500), Trouble::Status(500)]);
    for said in ["429", "500", "500", "failed several times and is asked again in"] {
        let text = error_text(hear(&recognizer, 1));
        assert!(text.contains(said), "{text}");
    }
    assert_eq!(fake.requests("/v1/audio/transcriptions"), 3);
}

#[test]
fn nobody_waits_for_a_transcript_that_is_not_wanted() {
    let fake = Fake::start(State::default(), openai::routes);
    let mut server = config(&fake.url);
    server.timeouts.first = std::time::Duration::from_secs(600);
    let recognizer = recognizer(&fake, RecognitionApi::OpenAi, server).unwrap();
    fake.fail([Trouble::Hang]);
    let is_wanted = || fake.requests("/v1/audio/transcriptions") == 0;
    assert!(matches!(recognizer.transcribe(&utterance(1), &is_wanted), Err(Error::Cancelled)));
}

#[test]
fn sound_that_no_server_takes_is_not_sent() {
    let fake = Fake::start(State::default(), openai::routes);
    let recognizer = recognizer(&fake, RecognitionApi::OpenAi, config(&fake.url)).unwrap();
    let wrong = Audio { rate: SampleRate(44_100), samples: vec![0.0; 10] };
    assert!(matches!(recognizer.transcribe(&wrong, &|| true), Err(Error::WrongRate { .. })));
    assert!(matches!(hear(&recognizer, 601), Err(Error::TooLong { .. })));
    assert!(hear(&recognizer, 0).unwrap().text.is_empty());
    assert_eq!(fake.requests("/v1/audio/transcriptions"), 0);
    assert_eq!(&*hear(&recognizer, 600).unwrap().text, "I heard 600.0 seconds.");
}

#[test]
fn wrong_settings_are_told_before_anything_is_sent() {
    let fake = Fake::start(State::default(), openai::routes);
    #[track_caller]
    fn check(fake: &Fake, change: impl Fn(&mut RecognizerConfig), said: &str) {
        let model = Some("whisper-1".to_owned());
        let mut config =
            RecognizerConfig { api: RecognitionApi::OpenAi, server: config(&fake.url), model, language: None };
        change(&mut config);
        let text = error_text(ServerRecognizer::new(config, fake.handle()).map(|_| ()));
        assert!(text.contains(said), "{text}");
    }
    check(&fake, |config| config.model = None, "speech_server.model must name a model");
    check(&fake, |config| config.language = Some("English".to_owned()), "speech_server.language must be a code");
    check(&fake, |config| config.server.url = "somewhere".to_owned(), "speech_server.url is no address");
    check(&fake, |config| config.server.url = "ftp://host".to_owned(), "must begin with http");
    check(&fake, |config| config.server.url = "http://me:pw@host".to_owned(), "must hold no password");
    check(&fake, |config| config.server.url = "http://host/v1?key=x".to_owned(), "must end with the path");
    let odd = || Some(azera_voice_servers::ApiKey::new("sk\nhush"));
    check(&fake, |config| config.server.key = odd(), "holds a character that no key has");
}

#[test]
fn a_missing_model_and_a_missing_key_are_told() {
    let fake = Fake::start(State::default(), openai::routes);
    let of = |model: &str, server: ServerConfig| {
        let model = Some(model.to_owned());
        let config = RecognizerConfig { api: RecognitionApi::OpenAi, server, model, language: None };
        ServerRecognizer::new(config, fake.handle()).unwrap()
    };
    let notes = fake.run(of("large", config(&fake.url)).check()).unwrap();
    assert_eq!(notes, ["it does not list large; it lists: whisper-1"]);
    let text = error_text(fake.run(of("whisper-1", ServerConfig { key: None, ..config(&fake.url) }).check()));
    assert!(text.contains("it wants a key: set speech_server.key"), "{text}");
    let nobody = error_text(hear(&of("whisper-1", config("http://127.0.0.1:9")), 1));
    assert!(nobody.contains("it cannot be reached") && nobody.contains("is speech_server.url right?"), "{nobody}");
}
