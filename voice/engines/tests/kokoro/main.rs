//! Voices of Kokoro, with a small made-up model of the same form: each phoneme lasts four frames, and each voice hums its
//! own tone.

mod small_model;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use azera_voice_api::{Error, Piece, SampleRate, Style, TextToSpeech as _};
use azera_voice_engines::{LocalVoices, VoiceFile};

const VOICES: [&str; 3] = ["af_heart", "am_adam", "bf_emma"];

fn file(path: &Path, name: &str) -> VoiceFile {
    VoiceFile { id: name.to_owned(), path: path.to_owned(), speaker: Some(name.to_owned()) }
}

/// Returns the voices of a small model in this folder.
fn voices(folder: &Path) -> LocalVoices {
    let path = small_model::write(folder, &VOICES);
    LocalVoices::new(VOICES.iter().map(|name| file(&path, name)).collect(), 1)
}

fn spoken(voices: &LocalVoices, sentence: &str, style: &Style) -> Result<Vec<Piece>, Error> {
    let mut pieces = Vec::new();
    voices.speak(sentence, style, &mut |piece| {
        pieces.push(piece);
        ControlFlow::Continue(())
    })?;
    Ok(pieces)
}

/// Returns the tone of a piece in Hz.
fn hertz(piece: &Piece) -> f32 {
    let (begin, end) = piece.audio.loud().expect("it is heard");
    let samples: Vec<f32> = piece.audio.samples.iter().copied().filter(|sample| *sample != 0.0).collect();
    let turns = samples.windows(2).filter(|pair| pair[0] < 0.0 && pair[1] > 0.0).count();
    turns as f32 / (end - begin).as_secs_f32()
}

#[test]
fn each_voice_of_a_model_is_listed_and_speaks_for_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let voices = voices(folder.path());
    let listed: Vec<_> = voices.voices().into_iter().map(|voice| (voice.id, voice.language, voice.engine)).collect();
    let row = |id: &str, language: &str| (id.to_owned(), language.to_owned(), "kokoro".to_owned());
    assert_eq!(listed, [row("af_heart", "en-US"), row("am_adam", "en-US"), row("bf_emma", "en-GB")]);
    for (name, tone) in VOICES.iter().zip(small_model::TONES) {
        let pieces = spoken(&voices, "Good morning.", &Style::of(*name)).expect("it speaks");
        let [piece] = pieces.as_slice() else { panic!("{} pieces", pieces.len()) };
        assert_eq!(piece.audio.rate, SampleRate(24_000));
        let heard = hertz(piece);
        assert!((heard / tone - 1.0).abs() < 0.05, "{name}: {heard} Hz");
    }
    assert!(
        matches!(spoken(&voices, "Hello.", &Style::of("af_sky")), Err(Error::UnknownVoice { known, .. }) if known.len() == 3)
    );
}

#[test]
fn it_says_when_its_words_end_and_keeps_the_pace() {
    let folder = tempfile::tempdir().expect("a folder");
    let voices = voices(folder.path());
    let whole = |pace: f32| {
        let style = Style { pace, ..Style::of("af_heart") };
        let pieces = spoken(&voices, "Good morning, dear friends.", &style).expect("it speaks");
        let [piece] = pieces.as_slice() else { panic!("{} pieces", pieces.len()) };
        piece.clone()
    };
    let piece = whole(1.0);
    // Two ends, and the phonemes of "ɡʊd mˈɔɹnɪŋ, dˈɪɹ fɹˈɛndz." with their marks. Each lasts a tenth of a second.
    let (_, end) = piece.audio.loud().expect("it is heard");
    assert!(end > Duration::from_secs(2), "{end:?}");
    assert_eq!(piece.word_ends.len(), 4);
    assert!(piece.word_ends.is_sorted() && piece.word_ends[0] > Duration::from_millis(300), "{:?}", piece.word_ends);
    assert!(end - piece.word_ends[3] < Duration::from_millis(300), "only the full stop and the end follow");
    let (_, fast) = whole(2.0).audio.loud().expect("it is heard");
    assert!((end.as_secs_f32() / fast.as_secs_f32() - 2.0).abs() < 0.1, "{end:?}, {fast:?}");
}

#[test]
fn a_long_sentence_comes_in_pieces() {
    let folder = tempfile::tempdir().expect("a folder");
    let voices = voices(folder.path());
    let pieces = spoken(&voices, &"word ".repeat(400), &Style::of("am_adam")).expect("it speaks");
    assert!(pieces.len() > 5, "{}", pieces.len());
    assert_eq!(pieces.iter().map(|piece| piece.word_ends.len()).sum::<usize>(), 400);
    assert!(spoken(&voices, "...", &Style::of("am_adam")).expect("it is silent").is_empty());
}

#[test]
fn a_model_is_closed_with_its_voices() {
    let folder = tempfile::tempdir().expect("a folder");
    let voices = voices(folder.path());
    for (name, open) in VOICES.iter().zip([1, 2, 2]) {
        voices.open(name).expect("it opens");
        assert_eq!(voices.open_count(), open);
    }
    voices.close();
    assert!(voices.open_count() == 0 && !voices.is_in_use());
    assert_eq!(spoken(&voices, "Hello.", &Style::of("af_heart")).expect("it speaks").len(), 1);
}

#[test]
fn a_damaged_model_is_named_and_replaced_as_a_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let (good, cut): (PathBuf, PathBuf) = (small_model::write(folder.path(), &VOICES), folder.path().join("cut.onnx"));
    let bytes = std::fs::read(&good).expect("the model");
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).expect("it is written");
    let style = Style::of("am_adam");
    let alone = LocalVoices::new(vec![file(&cut, "am_adam")], 1);
    let error = spoken(&alone, "Hello.", &style).expect_err("it is cut");
    assert!(matches!(&error, Error::Model { file, .. } if file.ends_with("cut.onnx")), "{error}");
    let no_such = LocalVoices::new(vec![file(&good, "af_nobody")], 1);
    let error = spoken(&no_such, "Hello.", &Style::of("af_nobody")).expect_err("it has none").to_string();
    assert!(error.contains("no voice af_nobody"), "{error}");
    let other = VoiceFile { id: "usual".to_owned(), ..file(&good, "af_heart") };
    let both = LocalVoices::new(vec![file(&cut, "am_adam"), file(&cut, "bf_emma"), other], 1);
    assert_eq!(spoken(&both, "Hello.", &style).expect("the other one speaks").len(), 1);
    let left: Vec<String> = both.voices().into_iter().map(|voice| voice.id).collect();
    assert_eq!(left, ["usual"]);
}
