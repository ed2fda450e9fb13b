//! Recognition with a real model: `whisper-tiny.en` in the folder that `AZERA_TEST_MODELS` names.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use azera_voice_api::{Audio, Error, RECOGNITION_RATE, SampleRate, SpeechToText, Transcript};
use azera_voice_whisper::{MAX_SECONDS, Options, Whisper};

const SECOND: usize = RECOGNITION_RATE.0 as usize;

/// Returns the model's file, which `make test` fetches.
#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
fn model_file() -> PathBuf {
    let folder = std::env::var_os("AZERA_TEST_MODELS").expect("AZERA_TEST_MODELS names the models; run `make test`");
    Path::new(&folder).join("whisper-tiny.en/model.gguf")
}

fn options() -> Options {
    Options { threads: 2, language: None }
}

fn whisper() -> &'static Whisper {
    static WHISPER: OnceLock<Whisper> = OnceLock::new();
    WHISPER.get_or_init(|| Whisper::load(&model_file(), "whisper-tiny.en", &options()).expect("the model loads"))
}

fn speech(name: &str) -> Audio {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/speech").join(name);
    azera_voice_recordings::read(&path).expect("the recording is read")
}

fn sound(samples: Vec<f32>) -> Audio {
    Audio { rate: RECOGNITION_RATE, samples }
}

fn recognise(audio: &Audio) -> Transcript {
    whisper().transcribe(audio, &|| true).expect("the sound is recognised")
}

/// Returns the words in lower case without punctuation, with numbers as tiny.en writes them.
fn plain(text: &str) -> String {
    let kept = text.chars().filter(|c| c.is_alphanumeric() || c.is_whitespace());
    kept.flat_map(char::to_lowercase).collect()
}

#[test]
fn sentences_are_recognised_with_the_times_of_their_words() {
    #[track_caller]
    fn check(file: &str, words: &str) {
        let audio = speech(file);
        let transcript = recognise(&audio);
        assert_eq!(plain(&transcript.text), words);
        assert!(transcript.confidence > 0.6 && transcript.no_speech < 0.5, "{transcript:?}");
        let told: Vec<String> = transcript.words.iter().map(|word| plain(&word.text)).collect();
        assert_eq!(told.join(" "), words);
        assert!(transcript.words.iter().all(|word| word.start <= word.end && word.end <= audio.duration()));
        assert!(transcript.words.is_sorted_by_key(|word| word.start));
        // The words spread over the sentence.
        let last = transcript.words.last().expect("words").start;
        assert!(last > audio.duration() / 2, "{:?} of {:?}", last, audio.duration());
    }
    check("tomatoes.flac", "could you remind me to water the tomatoes tomorrow evening");
}

#[test]
fn one_short_word_is_told_once() {
    assert_eq!(plain(&recognise(&speech("yes.flac")).text), "yes");
}

#[test]
fn words_begin_later_if_the_speech_does() {
    let audio = speech("tomatoes.flac");
    let late = sound([vec![0.0; 2 * SECOND], audio.samples.clone()].concat());
    let start = |transcript: &Transcript| transcript.words.get(3).expect("a fourth word").start;
    let moved = start(&recognise(&late)).saturating_sub(start(&recognise(&audio)));
    assert!(moved.abs_diff(Duration::from_secs(2)) < Duration::from_millis(300), "{moved:?}");
}

#[test]
fn silence_noise_and_tones_give_no_words() {
    let mut state = 1_u32;
    let mut noise = |level: f32| {
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..3 * SECOND).map(|_| next() * level).collect::<Vec<f32>>()
    };
    let tone = |hertz: f32, level: f32| {
        let wave = move |n: usize| (n as f32 / SECOND as f32 * hertz * std::f32::consts::TAU).sin() * level;
        (0..3 * SECOND).map(wave).collect::<Vec<f32>>()
    };
    for (name, samples) in [
        ("no sound", vec![]),
        ("silence", vec![0.0; 3 * SECOND]),
        ("faint noise", noise(0.001)),
        ("quiet noise", noise(0.01)),
        ("noise", noise(0.1)),
        ("loud noise", noise(0.5)),
        ("a low tone", tone(220.0, 0.3)),
        ("a tone", tone(440.0, 0.1)),
        ("a high tone", tone(3_000.0, 0.3)),
    ] {
        let transcript = recognise(&sound(samples));
        assert_eq!(&*transcript.text, "", "{name}: {transcript:?}");
        assert!(transcript.words.is_empty());
    }
}

#[test]
fn sound_of_another_rate_or_too_long_is_refused() {
    let other = Audio { rate: SampleRate(48_000), samples: vec![0.0; 100] };
    assert!(matches!(whisper().transcribe(&other, &|| true), Err(Error::WrongRate { .. })));
    let long = sound(vec![0.0; MAX_SECONDS * SECOND + 1]);
    assert!(matches!(whisper().transcribe(&long, &|| true), Err(Error::TooLong { .. })));
}

#[test]
fn a_call_ends_when_its_result_is_not_wanted() {
    let audio = speech("tomatoes.flac");
    for wanted_for in [0, 1, 6] {
        let asked = AtomicUsize::new(0);
        let is_wanted = || asked.fetch_add(1, Ordering::Relaxed) < wanted_for;
        assert!(matches!(whisper().transcribe(&audio, &is_wanted), Err(Error::Cancelled)), "{wanted_for}");
        assert_eq!(asked.load(Ordering::Relaxed), wanted_for + 1);
    }
}

#[test]
fn it_pauses_on_the_thread_of_its_caller_and_others_go_on_meanwhile() {
    // With one thread of its own, a pause there would hold up everybody.
    let whisper = Whisper::load(&model_file(), "w", &Options { threads: 1, ..options() }).expect("the model loads");
    let (audio, other) = (speech("yes.flac"), speech("tomatoes.flac"));
    let (caller, asked) = (std::thread::current().id(), AtomicUsize::new(0));
    let is_wanted = || {
        assert_eq!(std::thread::current().id(), caller);
        if asked.fetch_add(1, Ordering::Relaxed) == 5 {
            let heard = std::thread::scope(|scope| scope.spawn(|| whisper.transcribe(&other, &|| true)).join());
            let heard = heard.expect("no panic").expect("it is recognised");
            assert!(plain(&heard.text).contains("tomatoes"), "{heard:?}");
        }
        true
    };
    assert_eq!(plain(&whisper.transcribe(&audio, &is_wanted).expect("it goes on").text), "yes");
    assert!(asked.load(Ordering::Relaxed) > 5);
}

#[test]
fn an_english_model_knows_no_other_language() {
    let german = Options { language: Some("de".into()), ..options() };
    let error = Whisper::load(&model_file(), "w", &german).err().expect("an error").to_string();
    assert!(error.contains("`de`") && error.contains("only `en`"), "{error}");
    Whisper::load(&model_file(), "w", &Options { language: Some("en".into()), ..options() }).expect("English");
}

#[test]
fn a_cut_model_file_gives_an_error() {
    use std::io::Read as _;
    let length = std::fs::metadata(model_file()).expect("the model").len();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.gguf");
    Whisper::check(&model_file()).expect("the whole file");
    for kept in [0, 3, 24, 100, 5_000, 100_000, length / 2, length - 40_000] {
        let mut bytes = Vec::new();
        std::fs::File::open(model_file()).expect("a file").take(kept).read_to_end(&mut bytes).expect("bytes");
        std::fs::write(&path, bytes).expect("a cut file");
        let error = Whisper::load(&path, "w", &options()).err().expect("an error");
        assert!(matches!(error, Error::Model { .. }), "{kept}: {error}");
        assert!(matches!(Whisper::check(&path), Err(Error::Model { .. })), "{kept}");
    }
}
