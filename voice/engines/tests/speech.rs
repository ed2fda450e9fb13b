//! The engines with their real models.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use azera_voice_api::{Audio, Error, FRAME_SAMPLES, SampleRate, Style, TextToSpeech as _, VoiceActivity as _};
use azera_voice_engines::{LocalVoices, PiperVoice, SileroVad, VoiceFile};

const SENTENCE: &str = "The ferry leaves the harbour at six in the morning.";
const LONG: &str = "When the ferry leaves at six, the town is still asleep, and nobody but the baker, whose lamps are the \
                    only ones that burn along the quay, hears how its engine starts, coughs, and fades behind the pier.";

/// Returns the file of a model in the folder that `make test` names.
#[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
fn model(name: &str) -> PathBuf {
    let dir = std::env::var_os("AZERA_TEST_MODELS");
    let dir = dir.expect("AZERA_TEST_MODELS names the folder of the test models; run `make test`");
    PathBuf::from(dir).join(name).join("model.onnx")
}

static VOICE: LazyLock<PiperVoice> =
    LazyLock::new(|| PiperVoice::open(&model("piper-en-us-joe"), "joe", 1).expect("the voice loads"));

fn same_each_time() -> Style {
    Style { liveliness: 0.0, ..Style::of("joe") }
}

/// Returns the pieces of a sentence's sound.
fn pieces(sentence: &str, style: &Style) -> Vec<Audio> {
    let mut pieces = Vec::new();
    VOICE
        .speak(sentence, style, &mut |piece| {
            pieces.push(piece.audio);
            ControlFlow::Continue(())
        })
        .expect("it speaks");
    pieces
}

fn spoken(sentence: &str, style: &Style) -> Audio {
    let pieces = pieces(sentence, style);
    let rate = VOICE.voices()[0].rate;
    Audio { rate, samples: pieces.iter().flat_map(|piece| piece.samples.iter().copied()).collect() }
}

fn rms(samples: &[f32]) -> f32 {
    (samples.iter().map(|sample| sample * sample).sum::<f32>() / samples.len().max(1) as f32).sqrt()
}

#[test]
fn a_sentence_sounds_as_long_and_as_loud_as_speech() {
    let audio = spoken(SENTENCE, &same_each_time());
    assert_eq!(audio.rate, SampleRate(22_050));
    let seconds = audio.duration().as_secs_f32();
    assert!((2.0..4.5).contains(&seconds), "{seconds}");
    let level = rms(&audio.samples);
    assert!((0.03..0.2).contains(&level), "{level}");
    let peak = audio.samples.iter().fold(0.0_f32, |peak, sample| peak.max(sample.abs()));
    assert!((0.2..0.9).contains(&peak), "{peak}");
    let pause = SampleRate(22_050).samples(Duration::from_millis(300));
    assert!(audio.samples.iter().rev().take(pause).all(|sample| *sample == 0.0), "it ends with a pause");
    assert!(rms(&audio.samples[..pause]) > 0.005, "it begins without one");
}

#[test]
fn the_voice_says_when_its_words_end() {
    let words = LONG.split_whitespace().count();
    for style in [same_each_time(), Style { pace: 1.5, pitch: 1.2, ..same_each_time() }] {
        let (mut before, mut ends, mut loud) = (Duration::ZERO, Vec::new(), Duration::ZERO);
        VOICE
            .speak(LONG, &style, &mut |piece| {
                assert!(piece.word_ends.iter().all(|end| *end <= piece.audio.duration()), "{:?}", piece.word_ends);
                loud = piece.audio.loud().map_or(loud, |(_, end)| before + end);
                ends.extend(piece.word_ends.iter().map(|end| before + *end));
                before += piece.audio.duration();
                ControlFlow::Continue(())
            })
            .expect("it speaks");
        let last = *ends.last().expect("words end");
        assert!(last.abs_diff(loud) < Duration::from_millis(200), "{last:?} and {loud:?}");
        assert_eq!(ends.len(), words);
        assert!(ends.is_sorted() && ends[0] > Duration::from_millis(50), "{ends:?}");
    }
}

#[test]
fn without_liveliness_it_sounds_the_same_each_time() {
    assert!(spoken(SENTENCE, &same_each_time()) == spoken(SENTENCE, &same_each_time()));
    let lively = Style::of("joe");
    assert!(spoken(SENTENCE, &lively) != spoken(SENTENCE, &lively));
}

#[test]
fn pace_changes_the_duration() {
    let seconds = |pace| spoken(SENTENCE, &Style { pace, ..same_each_time() }).duration().as_secs_f32();
    let (slow, own, fast) = (seconds(0.7), seconds(1.0), seconds(1.6));
    assert!(slow > own * 1.25 && fast < own * 0.75, "{slow} {own} {fast}");
}

/// Returns the median pitch of the voiced parts of a sound in Hz, by autocorrelation.
fn hertz(audio: &Audio) -> f32 {
    const WINDOW: usize = 1_024;
    let mut found: Vec<f32> = Vec::new();
    for frame in audio.samples.windows(2 * WINDOW).step_by(WINDOW / 2) {
        let energy = |at: usize| frame[at..at + WINDOW].iter().map(|sample| sample * sample).sum::<f32>();
        let alike = |lag: usize| {
            let product: f32 = frame[..WINDOW].iter().zip(&frame[lag..]).map(|(a, b)| a * b).sum();
            product / (energy(0) * energy(lag)).sqrt().max(f32::MIN_POSITIVE)
        };
        let least = audio.rate.0 as usize / 300;
        let alike: Vec<f32> = (least..audio.rate.0 as usize / 60).map(alike).collect();
        let best = alike.iter().copied().fold(0.0, f32::max);
        if rms(frame) < 0.03 || best < 0.8 {
            continue;
        }
        // The first top: a voice is nearly as much like itself after two periods.
        let mut top = alike.iter().position(|alike| *alike > 0.93 * best).unwrap_or_default();
        while alike.get(top + 1).is_some_and(|next| *next > alike[top]) {
            top += 1;
        }
        found.push(audio.rate.0 as f32 / (least + top) as f32);
    }
    found.sort_by(f32::total_cmp);
    found[found.len() / 2]
}

#[test]
fn pitch_changes_the_height_of_the_voice_and_not_its_pace() {
    let said = |pitch| spoken(SENTENCE, &Style { pitch, ..same_each_time() });
    let own = said(1.0);
    assert!(own == spoken(SENTENCE, &same_each_time()));
    for pitch in [0.8, 1.2] {
        let other = said(pitch);
        let (height, length) =
            (hertz(&other) / hertz(&own), other.duration().as_secs_f32() / own.duration().as_secs_f32());
        assert!((height / pitch - 1.0).abs() < 0.06, "{height}, not {pitch}");
        // Each sound lasts whole frames of the model, so a part of the length does not scale.
        assert!((length - 1.0).abs() < 0.12, "{length} times as long");
    }
}

#[test]
fn a_long_sentence_comes_in_pieces_and_can_be_broken_off() {
    let all = pieces(LONG, &same_each_time());
    assert!(all.len() >= 3, "{}", all.len());
    assert!(all[0].duration().as_secs_f32() < 4.0, "the first sound comes soon: {:?}", all[0].duration());
    let mut taken = 0;
    VOICE
        .speak(LONG, &same_each_time(), &mut |_| {
            taken += 1;
            ControlFlow::Break(())
        })
        .expect("a broken call is no failure");
    assert_eq!(taken, 1);
}

#[test]
fn text_without_words_is_silent() {
    for text in ["", "   ", "...", "?!", "🙂🙂", "—", "\u{0}"] {
        assert!(pieces(text, &same_each_time()).is_empty(), "{text:?}");
    }
}

#[test]
fn words_that_no_lexicon_has_are_heard() {
    for text in ["Azera", "qzxwv", "Kovalenko", "x7k9", "Привет", "你好", "a", "!hello", &"ab".repeat(400)] {
        let audio = spoken(text, &same_each_time());
        assert!(audio.duration().as_secs_f32() > 0.4 && rms(&audio.samples) > 0.01, "{text}: {audio:?}");
    }
}

#[test]
fn an_unknown_voice_and_a_wrong_file_are_named() {
    let error = VOICE.speak("Hello.", &Style::of("nobody"), &mut |_| ControlFlow::Continue(())).unwrap_err();
    assert!(matches!(&error, Error::UnknownVoice { voice, known } if voice == "nobody" && known == &["joe"]));
    let error = PiperVoice::open(&model("silero-vad"), "vad", 1).err().expect("it is no voice").to_string();
    assert!(error.contains("no settings of a Piper voice"), "{error}");
    let error = SileroVad::open(&model("piper-en-us-joe")).err().expect("it is no detector").to_string();
    assert!(error.contains("not the Silero model"), "{error}");
}

/// Returns the share of a sound's frames that are speech.
fn speech_share(samples: &[f32]) -> f32 {
    let mut vad = SileroVad::open(&model("silero-vad")).expect("the detector loads");
    let frames: Vec<&[f32; FRAME_SAMPLES]> = samples.as_chunks().0.iter().collect();
    let speech = frames.iter().filter(|frame| vad.probability(frame).expect("it detects") > 0.5).count();
    speech as f32 / frames.len() as f32
}

/// Returns a sound at 16 kHz, by straight lines between its samples.
fn at_16_khz(audio: &Audio) -> Vec<f32> {
    let step = f64::from(audio.rate.0) / 16_000.0;
    let length = (audio.samples.len() as f64 / step) as usize;
    let sample = |index: usize| audio.samples.get(index).copied().unwrap_or_default();
    (0..length)
        .map(|n| {
            let place = n as f64 * step;
            let share = place.fract() as f32;
            sample(place as usize) * (1.0 - share) + sample(place as usize + 1) * share
        })
        .collect()
}

#[test]
fn speech_is_told_from_silence_noise_and_a_tone() {
    let speech = at_16_khz(&spoken(LONG, &same_each_time()));
    assert!(speech_share(&speech) > 0.7, "{}", speech_share(&speech));
    let quiet: Vec<f32> = speech.iter().map(|sample| sample * 0.1).collect();
    assert!(speech_share(&quiet) > 0.5, "{}", speech_share(&quiet));
    let mut random = fastrand::Rng::with_seed(3);
    let noise: Vec<f32> = (0..48_000).map(|_| random.f32() * 0.4 - 0.2).collect();
    let tone: Vec<f32> =
        (0..48_000).map(|n| 0.3 * (n as f32 * 440.0 * std::f32::consts::TAU / 16_000.0).sin()).collect();
    for (name, sound) in [("silence", vec![0.0; 48_000]), ("noise", noise), ("tone", tone)] {
        assert!(speech_share(&sound) < 0.02, "{name}: {}", speech_share(&sound));
    }
}

/// Returns three seconds with bursts of noise: so many a second, each so long, with this level.
fn bursts(a_second: f32, lasts_s: f32, level: f32) -> Vec<f32> {
    let mut random = fastrand::Rng::with_seed(5);
    let (gap, length) = (16_000.0 / a_second, lasts_s * 16_000.0);
    (0..48_000)
        .map(|n| {
            let since = n as f32 % gap;
            let noise = random.f32() * 2.0 - 1.0;
            if since < length { noise * level * (-4.0 * since / length).exp() } else { 0.0 }
        })
        .collect()
}

/// Returns three seconds of a chord of three notes that is struck twice a second, with its overtones.
fn chords() -> Vec<f32> {
    let note = |frequency: f32, seconds: f32| {
        let wave = |k: f32| (std::f32::consts::TAU * frequency * k * seconds).sin() / k;
        wave(1.0) + wave(2.0) + wave(3.0)
    };
    (0..48_000)
        .map(|n| {
            let seconds = n as f32 / 16_000.0;
            let chord: f32 = [261.6, 329.6, 392.0].iter().map(|frequency| note(*frequency, seconds)).sum();
            0.1 * chord * (-5.0 * (seconds % 0.5)).exp()
        })
        .collect()
}

#[test]
fn speech_is_told_from_keys_chords_and_bursts_like_coughs() {
    for (name, sound) in [("keys", bursts(8.0, 0.01, 0.5)), ("bursts", bursts(1.0, 0.25, 0.5)), ("chords", chords())] {
        println!("{name}: {}", speech_share(&sound));
        assert!(speech_share(&sound) < 0.1, "{name}: {}", speech_share(&sound));
    }
}

#[test]
fn a_detector_forgets_and_shares_its_model() {
    let speech = at_16_khz(&spoken(SENTENCE, &same_each_time()));
    let frames: Vec<[f32; FRAME_SAMPLES]> = speech.as_chunks().0.to_vec();
    let heard =
        |vad: &mut SileroVad| -> Vec<f32> { frames.iter().map(|frame| vad.probability(frame).unwrap()).collect() };
    let mut first = SileroVad::open(&model("silero-vad")).expect("the detector loads");
    let found = heard(&mut first);
    let mut second = first.for_another_stream();
    assert_eq!(heard(&mut second), found);
    first.reset();
    assert_eq!(heard(&mut first), found);
}

#[test]
fn every_voice_of_the_machine_speaks_under_its_own_name() {
    let path = model("piper-en-us-joe");
    let files =
        ["joe", "kristin", "norman"].map(|id| VoiceFile { id: id.to_owned(), path: path.clone(), speaker: None });
    let voices = LocalVoices::new(files.to_vec(), 1);
    let ids = |voices: &LocalVoices| voices.voices().into_iter().map(|voice| voice.id).collect::<Vec<_>>();
    assert_eq!(ids(&voices), ["joe", "kristin", "norman"]);
    let length = |id: &str| {
        let (mut samples, style) = (0, Style { liveliness: 0.0, ..Style::of(id) });
        let spoken = voices.speak("Good morning.", &style, &mut |piece| {
            samples += piece.audio.samples.len();
            ControlFlow::Continue(())
        });
        spoken.map(|()| samples)
    };
    // More of them than stay in memory, and the first one again.
    for (id, open) in [("joe", 1), ("kristin", 2), ("norman", 2), ("joe", 2)] {
        assert!(length(id).expect("it speaks") > 10_000, "{id}");
        assert_eq!(voices.open_count(), open, "{id}");
    }
    // What is closed is opened again when it speaks, and ahead.
    let uses = voices.uses();
    voices.close();
    assert_eq!((voices.open_count(), voices.uses()), (0, uses));
    voices.open("kristin").expect("it opens");
    assert_eq!((voices.open_count(), voices.uses()), (1, uses + 1));
    assert!(length("kristin").expect("it speaks") > 10_000);
    assert_eq!((voices.open_count(), voices.uses()), (1, uses + 2));
    assert!(!voices.is_in_use());
    let said = voices.speak("Good morning.", &Style::of("kristin"), &mut |_| {
        // Closed while it speaks, it is in use until it ends.
        voices.close();
        assert!(voices.is_in_use() && voices.open_count() == 0);
        ControlFlow::Continue(())
    });
    said.expect("it speaks to its end");
    assert!(!voices.is_in_use());
    assert!(matches!(length("nobody"), Err(Error::UnknownVoice { known, .. }) if known.len() == 3));
    assert_eq!(ids(&voices), ["joe", "kristin", "norman"]);
}

#[test]
fn the_usual_voice_speaks_for_one_that_cannot_be_opened() {
    let file = |id: &str, path: PathBuf| VoiceFile { id: id.to_owned(), path, speaker: None };
    let [joe, vad] = [model("piper-en-us-joe"), model("silero-vad")];
    let files = vec![file("joe", joe.clone()), file("norman", joe), file("broken", vad)];
    let voices = LocalVoices::new(files, 1);
    let length = |id: &str| {
        let (mut samples, style) = (0, Style { liveliness: 0.0, ..Style::of(id) });
        let spoken = voices.speak("Good morning.", &style, &mut |piece| {
            samples += piece.audio.samples.len();
            ControlFlow::Continue(())
        });
        spoken.map(|()| samples)
    };
    let usual = length("joe").expect("it speaks");
    length("norman").expect("it speaks");
    assert_eq!(length("broken").expect("the usual one speaks"), usual);
    // No voice that works went for it, and nobody chooses it any more.
    assert_eq!(voices.open_count(), 2);
    let ids: Vec<String> = voices.voices().into_iter().map(|voice| voice.id).collect();
    assert_eq!(ids, ["joe", "norman"]);
    assert_eq!(length("broken").expect("the usual one speaks"), usual);
}

#[test]
fn no_voice_speaks_for_one_that_is_needed() {
    let file = |id: &str, path: PathBuf| VoiceFile { id: id.to_owned(), path, speaker: None };
    let files = vec![file("joe", model("piper-en-us-joe")), file("broken", model("silero-vad"))];
    let voices = LocalVoices::new(files, 1);
    let speak = |id: &str| {
        let style = Style { needs_voice: true, ..Style::of(id) };
        voices.speak("Good morning.", &style, &mut |_| ControlFlow::Continue(()))
    };
    for _ in 0..2 {
        assert!(matches!(speak("broken"), Err(Error::Model { .. })));
        let ids: Vec<String> = voices.voices().into_iter().map(|voice| voice.id).collect();
        assert_eq!(ids, ["joe"], "nobody chooses it any more");
    }
    assert!(speak("joe").is_ok());
}

#[test]
fn a_machine_whose_only_voice_cannot_be_opened_says_why() {
    let voices =
        LocalVoices::new(vec![VoiceFile { id: "vad".to_owned(), path: model("silero-vad"), speaker: None }], 1);
    let speak = || voices.speak("Good morning.", &Style::of("vad"), &mut |_| ControlFlow::Continue(()));
    for _ in 0..2 {
        assert!(matches!(speak(), Err(Error::Model { .. })));
    }
}
