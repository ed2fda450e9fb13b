//! The engine behind a server that does not answer.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use azera_voice_api::{Audio, Error, Manner, Piece, SampleRate, SpeechToText, Style, TextToSpeech, Transcript, Voice};
use azera_voice_servers::{
    LazyRecognizer, LazyVoices, RecognitionApi, RecognizerConfig, ServerRecognizer, ServerVoices, SoundFormat,
    SpeechApi, USUAL_VOICE, VoicesConfig, WithFallback,
};

use crate::fakes::{Fake, SAMPLES_PER_CHAR, State, Trouble, openai};
use crate::{FixedSamples, SECRET, config, error_text, hurried, spoken, utterance};

/// The rate of the local engine, which is another than that of servers.
const LOCAL_RATE: SampleRate = SampleRate(22_050);

/// An engine in the process that says which voice it was asked for.
struct Local {
    voices: Vec<Voice>,
    asked: Arc<AtomicUsize>,
}

impl TextToSpeech for Local {
    fn voices(&self) -> Vec<Voice> {
        self.voices.clone()
    }

    fn speak(
        &self,
        _sentence: &str,
        style: &Style,
        take: &mut dyn FnMut(Piece) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        assert!(self.voices.iter().any(|voice| voice.id == style.voice), "{}", style.voice);
        let _wish = take(Audio { rate: LOCAL_RATE, samples: vec![0.5; LOCAL_RATE.0 as usize] }.into());
        Ok(())
    }
}

impl SpeechToText for Local {
    fn name(&self) -> &str {
        "local"
    }

    fn transcribe(&self, _utterance: &Audio, _is_wanted: &(dyn Fn() -> bool + Sync)) -> Result<Transcript, Error> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Ok(Transcript { text: "heard here".into(), words: Vec::new(), confidence: 0.5, no_speech: 0.0 })
    }
}

/// The samples of the whole sentence from the server.
const WHOLE: usize = SECRET.len() * SAMPLES_PER_CHAR;

fn local_voice() -> Voice {
    Voice { id: "joe".into(), language: "en-US".into(), rate: LOCAL_RATE, engine: "local".into() }
}

fn server_voices(fake: &Fake) -> Arc<ServerVoices> {
    server_with_voice(fake, Some("af_heart"))
}

fn server_with_voice(fake: &Fake, voice: Option<&str>) -> Arc<ServerVoices> {
    let config = VoicesConfig {
        api: SpeechApi::OpenAi { model: "kokoro".into(), format: SoundFormat::Wav },
        server: hurried(&fake.url),
        voice: voice.map(str::to_owned),
        language: "en".into(),
        samples: Arc::<FixedSamples>::default(),
    };
    Arc::new(ServerVoices::new(config, fake.handle()).unwrap())
}

/// Returns voices on a fake server with a local engine behind them, which counts its sentences and its starts.
fn speech(fake: &Fake) -> (WithFallback<dyn TextToSpeech>, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    behind(server_voices(fake))
}

/// Returns the voices of a server with the same local engine behind them.
fn behind(server: Arc<ServerVoices>) -> (WithFallback<dyn TextToSpeech>, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (asked, starts) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counted, started) = (asked.clone(), starts.clone());
    let local = LazyVoices::new(vec![local_voice()], move || {
        started.fetch_add(1, Ordering::SeqCst);
        Ok(Arc::new(Local { voices: vec![local_voice()], asked: counted.clone() }))
    });
    (WithFallback::voices(server, Arc::new(local)), asked, starts)
}

#[test]
fn the_local_engine_speaks_while_the_server_does_not() {
    let fake = Fake::start(State::default(), openai::routes);
    let (speech, asked, starts) = speech(&fake);
    let style = Style::of("af_heart");
    assert_eq!(spoken(&speech, SECRET, &style).unwrap().0, WHOLE);
    assert_eq!((speech.status(), starts.load(Ordering::SeqCst)), (None, 0), "it is not even opened");
    fake.fail([Trouble::Status(500), Trouble::Hang, Trouble::Nothing]);
    for _ in 0..3 {
        assert_eq!(spoken(&speech, SECRET, &style).unwrap().0, 24_000, "a second at the rate of the voice");
        let status = error_text::<()>(Err(speech.status().unwrap()));
        assert!(
            status.starts_with("the engine on this machine answers: the OpenAI-compatible speech server"),
            "{status}"
        );
    }
    assert_eq!(spoken(&speech, SECRET, &style).unwrap().0, WHOLE, "the server is back");
    assert_eq!((speech.status(), asked.load(Ordering::SeqCst), starts.load(Ordering::SeqCst)), (None, 3, 1));
}

#[test]
fn no_other_voice_speaks_where_the_voice_of_a_server_that_is_away_is_needed() {
    let fake = Fake::start(State::default(), openai::routes);
    let (speech, asked, _) = speech(&fake);
    let chosen = Style { needs_voice: true, ..Style::of("af_heart") };
    fake.fail([Trouble::Status(500)]);
    let text = error_text(spoken(&speech, SECRET, &chosen));
    assert!(text.contains("status 500"), "{text}");
    assert_eq!((asked.load(Ordering::SeqCst), speech.status().is_some()), (0, true));
    // What needs no voice is spoken all the same, and the server speaks again once it is back.
    fake.fail([Trouble::Status(500)]);
    assert_eq!(spoken(&speech, SECRET, &Style::of("af_heart")).unwrap().0, 24_000);
    assert_eq!(spoken(&speech, SECRET, &chosen).unwrap().0, WHOLE);
    assert_eq!((asked.load(Ordering::SeqCst), speech.status()), (1, None));
}

#[test]
fn a_server_without_a_named_voice_that_was_away_at_first_speaks_once_it_is_back() {
    let fake = Fake::start(State::default(), openai::routes);
    let (speech, asked, _) = behind(server_with_voice(&fake, None));
    fake.set_away(true);
    let ids = || speech.voices().into_iter().map(|voice| voice.id).collect::<Vec<_>>();
    assert_eq!(ids(), [USUAL_VOICE, "joe"]);
    // The voice that was chosen while nobody knew those of the server.
    let usual = Style::of(USUAL_VOICE);
    assert_eq!(spoken(&speech, SECRET, &usual).unwrap().0, 24_000, "the voice here");
    fake.set_away(false);
    assert_eq!(spoken(&speech, SECRET, &usual).unwrap().0, WHOLE);
    assert_eq!(fake.bodies().pop().unwrap()["voice"], "af_heart", "the first that it lists");
    assert_eq!(ids(), ["af_heart", "bf_emma", "am_adam", "joe"]);
    // What was begun keeps its rate, whoever speaks.
    fake.fail([Trouble::Status(500)]);
    assert_eq!(spoken(&speech, SECRET, &usual).unwrap().0, 24_000);
    assert_eq!((asked.load(Ordering::SeqCst), fake.requests("/v1/audio/speech")), (2, 2));
    // A voice of this machine that somebody chose stays one.
    speech.speak(SECRET, &Style::of("joe"), &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!((asked.load(Ordering::SeqCst), fake.requests("/v1/audio/speech")), (3, 2));
}

#[test]
fn a_sentence_that_broke_off_is_not_said_twice() {
    let fake = Fake::start(State::default(), openai::routes);
    let (speech, asked, _) = speech(&fake);
    // Once its loudness is known, a voice sounds at once.
    assert!(spoken(&speech, SECRET, &Style::of("af_heart")).is_ok());
    fake.fail([Trouble::HangMidway]);
    let text = error_text(spoken(&speech, SECRET, &Style::of("af_heart")));
    assert!(text.contains("it said nothing") && asked.load(Ordering::SeqCst) == 0, "{text}");
    assert!(speech.status().is_some());
}

#[test]
fn a_voice_of_the_local_engine_is_spoken_by_it() {
    let fake = Fake::start(State::default(), openai::routes);
    let (speech, asked, _) = speech(&fake);
    let ids: Vec<String> = speech.voices().into_iter().map(|voice| voice.id).collect();
    assert_eq!(ids, ["af_heart", "joe"]);
    let mut rates = Vec::new();
    let take = &mut |Piece { audio, .. }: Piece| {
        rates.push((audio.rate, audio.samples.len()));
        ControlFlow::Continue(())
    };
    speech.speak(SECRET, &Style::of("joe"), take).unwrap();
    assert_eq!(rates, [(LOCAL_RATE, 22_050)]);
    assert_eq!((asked.load(Ordering::SeqCst), fake.requests("/v1/audio/speech"), speech.status()), (1, 0, None));
}

#[test]
fn a_language_does_not_take_the_voice_of_the_server_away() {
    let fake = Fake::start(State::default(), openai::routes);
    let (speech, ..) = speech(&fake);
    let manner = Manner { language: Some("en-US".into()), ..Manner::default() };
    let style = manner.style(&speech.voices(), &Style::of("af_heart"));
    assert_eq!(style.voice, "af_heart");
    let voices = speech.voices();
    let reads = |id: &str| speech.reads(voices.iter().find(|voice| voice.id == id).unwrap(), "de");
    assert!(reads("af_heart") && !reads("joe"), "the server may speak German, and the voice here does not");
}

#[test]
fn the_local_engine_hears_while_the_server_does_not() {
    let fake = Fake::start(State::default(), openai::routes);
    let server = RecognizerConfig {
        api: RecognitionApi::OpenAi,
        server: config(&fake.url),
        model: Some("whisper-1".into()),
        language: None,
    };
    let server = Arc::new(ServerRecognizer::new(server, fake.handle()).unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let local = LazyRecognizer::new("local", move || {
        Ok(Arc::new(Local { voices: Vec::new(), asked: counted.clone() }) as Arc<dyn SpeechToText>)
    });
    let both = WithFallback::recognizer(server, Arc::new(local));
    fake.fail([Trouble::Status(500)]);
    assert_eq!(&*both.transcribe(&utterance(1), &|| true).unwrap().text, "heard here");
    assert!(both.status().is_some_and(|status| status.contains("status 500")) && both.name() == "local");
    assert_eq!(&*both.transcribe(&utterance(1), &|| true).unwrap().text, "I heard 1.0 seconds.");
    assert_eq!((both.status(), asked.load(Ordering::SeqCst)), (None, 1));
    assert!(matches!(both.transcribe(&utterance(1), &|| false), Err(Error::Cancelled)));
    assert!(matches!(both.transcribe(&utterance(601), &|| true), Err(Error::TooLong { .. })));
    assert_eq!(asked.load(Ordering::SeqCst), 1, "a mistake of the caller is no failure of the server");
}

/// Closes its recogniser while it recognises, and recognises once more in it.
struct Closing {
    recogniser: Arc<OnceLock<Weak<LazyRecognizer>>>,
    depth: AtomicUsize,
}

impl SpeechToText for Closing {
    fn name(&self) -> &str {
        "closing"
    }

    fn transcribe(&self, audio: &Audio, is_wanted: &(dyn Fn() -> bool + Sync)) -> Result<Transcript, Error> {
        let recogniser = self.recogniser.get().and_then(Weak::upgrade).expect("it is known");
        recogniser.close();
        assert!(recogniser.is_in_use());
        if self.depth.fetch_add(1, Ordering::SeqCst) == 0 {
            return recogniser.transcribe(audio, is_wanted);
        }
        Ok(Transcript { text: "twice".into(), words: Vec::new(), confidence: 1.0, no_speech: 0.0 })
    }
}

#[test]
fn a_recogniser_that_is_closed_while_it_works_is_not_opened_a_second_time() {
    let known = Arc::<OnceLock<Weak<LazyRecognizer>>>::default();
    let opened = Arc::<AtomicUsize>::default();
    let (counted, recogniser) = (opened.clone(), known.clone());
    let lazy = Arc::new(LazyRecognizer::new("closing", move || {
        counted.fetch_add(1, Ordering::SeqCst);
        Ok(Arc::new(Closing { recogniser: recogniser.clone(), depth: AtomicUsize::new(0) }) as Arc<dyn SpeechToText>)
    }));
    known.set(Arc::downgrade(&lazy)).expect("it is new");
    assert_eq!(&*lazy.transcribe(&utterance(1), &|| true).unwrap().text, "twice");
    assert!(!lazy.is_in_use());
    assert_eq!((opened.load(Ordering::SeqCst), lazy.uses()), (1, 2));
    // Nobody works with it any more, so it is opened anew.
    lazy.open().unwrap();
    assert!(!lazy.is_in_use());
    assert_eq!(opened.load(Ordering::SeqCst), 2);
}

#[test]
fn if_both_fail_both_reasons_are_told() {
    let fake = Fake::start(State::default(), openai::routes);
    let missing = || {
        let why = "the voice joe is not on this machine".to_owned();
        Err(Error::Engine { engine: "Piper".to_owned(), why })
    };
    let speech = WithFallback::voices(server_voices(&fake), Arc::new(LazyVoices::new(vec![local_voice()], missing)));
    fake.fail([Trouble::Status(500)]);
    let text = error_text(spoken(&speech, SECRET, &Style::of("af_heart")));
    assert!(
        text.contains("status 500") && text.contains("Piper failed: the voice joe is not on this machine"),
        "{text}"
    );
}
