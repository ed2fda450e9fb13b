//! Speaks texts as voice notes and as WAV files.

use std::ops::ControlFlow;
use std::sync::Arc;

use async_trait::async_trait;
use azera_types::VoiceNote;
use azera_voice_api::{
    Audio, CLONE_MARK, Error, Manner, MissingVoices, Recorded, SampleRate, SpeakError, Speaker, Style, TextToSpeech,
    Voice,
};
use azera_voice_opus::{NOTE_RATE, NoteWriter, OpusError, Waveform};
use azera_voice_recordings::{Resampler, wav_file};
use azera_voice_spoken::{Options, Reader};

use crate::lazy::{Lazy, Open};
use crate::slot::{NotDone, Slot};

/// Silence before the first word, in thousandths of a second. Players lose the begin of a sound.
const LEAD_MS: u32 = 150;

/// Speaks texts with any engine that speaks sentences.
pub struct NoteSpeaker {
    engine: Arc<Lazy<dyn TextToSpeech>>,
    missing: Arc<MissingVoices>,
    most_seconds: u32,
    reading: Options,
    slot: Slot,
}

impl NoteSpeaker {
    /// Makes voice notes of at most this many seconds. `open` is called before the first one.
    pub fn new(open: Open<dyn TextToSpeech>, most_seconds: u32) -> Self {
        let (engine, missing, reading) = (Arc::new(Lazy::new(open)), Arc::default(), Options::default());
        Self { engine, missing, most_seconds, reading, slot: Slot::new() }
    }

    /// Reads texts with these options, such as the time zone. The voice decides on the language.
    pub fn reading(self, options: Options) -> Self {
        Self { reading: options, ..self }
    }

    /// Speaks the sentences of a text into something, on a thread of its own.
    async fn speak_into<T: Send + 'static>(
        &self,
        text: &str,
        manner: &Manner,
        write: impl FnOnce(&Speech<'_>, u32) -> Result<T, SpeakError> + Send + 'static,
    ) -> Result<T, SpeakError> {
        let (text, reading) = (text.to_owned(), self.reading.clone());
        let (engine, missing) = (Arc::clone(&self.engine), Arc::clone(&self.missing));
        let (manner, most_seconds) = (manner.clone(), self.most_seconds);
        let spoken = self.slot.run(move |is_wanted| {
            let engine = engine.get().map_err(unavailable)?;
            let (style, language) = style(engine.as_ref(), &manner)?;
            missing.note(&manner, &style);
            let sentences = sentences(&text, reading.in_language(&language));
            if sentences.is_empty() {
                return Err(SpeakError::Silent);
            }
            write(&Speech { engine: engine.as_ref(), sentences: &sentences, style, is_wanted }, most_seconds)
        });
        match spoken.await {
            Ok(spoken) => spoken,
            Err(NotDone::Busy) => Err(SpeakError::Busy),
            Err(NotDone::Failed) => Err(SpeakError::Unavailable("the voice stopped".to_owned())),
        }
    }
}

#[async_trait]
impl Speaker for NoteSpeaker {
    async fn voices(&self) -> Result<Vec<Voice>, SpeakError> {
        let engine = Arc::clone(&self.engine);
        // The engine may be opened first.
        let voices = tokio::task::spawn_blocking(move || engine.get().map(|engine| engine.voices()));
        voices.await.map_err(|_| SpeakError::Unavailable("the voice stopped".to_owned()))?.map_err(unavailable)
    }

    async fn speak(&self, text: &str, manner: &Manner) -> Result<VoiceNote, SpeakError> {
        self.speak_into(text, manner, note).await
    }

    async fn record(&self, text: &str, manner: &Manner) -> Result<Recorded, SpeakError> {
        self.speak_into(text, manner, recorded).await
    }
}

/// Returns the sentences of a text as they are said.
fn sentences(text: &str, options: Options) -> Vec<String> {
    let mut reader = Reader::new(options);
    let mut sentences = reader.push(text);
    sentences.extend(reader.finish());
    sentences.into_iter().map(|sentence| sentence.spoken).filter(|spoken| !spoken.trim().is_empty()).collect()
}

/// A text that an engine is about to speak.
struct Speech<'a> {
    engine: &'a dyn TextToSpeech,
    sentences: &'a [String],
    style: Style,
    is_wanted: &'a (dyn Fn() -> bool + Sync),
}

impl Speech<'_> {
    /// Speaks all sentences, and hands each piece of sound over.
    fn hand_over(&self, push: &mut dyn FnMut(&Audio) -> Result<(), SpeakError>) -> Result<(), SpeakError> {
        for sentence in self.sentences {
            let mut failed = None;
            let spoken = self.engine.speak(sentence, &self.style, &mut |piece| match push(&piece.audio) {
                Ok(()) if (self.is_wanted)() => ControlFlow::Continue(()),
                Ok(()) => {
                    failed = Some(unavailable(Error::Cancelled));
                    ControlFlow::Break(())
                }
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            });
            spoken.map_err(|error| match error {
                Error::UnknownVoice { .. } if self.style.needs_voice => SpeakError::NoVoice,
                Error::Cancelled => unavailable(error),
                error if self.style.needs_voice => SpeakError::VoiceAway(error.to_string()),
                error => unavailable(error),
            })?;
            if let Some(error) = failed {
                return Err(error);
            }
        }
        Ok(())
    }
}

fn note(speech: &Speech<'_>, most_seconds: u32) -> Result<VoiceNote, SpeakError> {
    let mut file = Vec::new();
    let mut recorder = Recorder::new(&mut file, most_seconds)?;
    speech.hand_over(&mut |audio| recorder.push(audio))?;
    let (duration, waveform) = recorder.finish()?;
    Ok(VoiceNote { bytes: file, duration, waveform })
}

fn recorded(speech: &Speech<'_>, most_seconds: u32) -> Result<Recorded, SpeakError> {
    let mut whole: Option<Audio> = None;
    speech.hand_over(&mut |audio| {
        let whole = whole.get_or_insert_with(|| Audio { rate: audio.rate, samples: Vec::new() });
        if whole.rate != audio.rate {
            return Err(changed_rate());
        }
        if whole.samples.len() + audio.samples.len() > most_seconds as usize * audio.rate.0 as usize {
            return Err(SpeakError::TooLong { most_seconds });
        }
        whole.samples.extend_from_slice(&audio.samples);
        Ok(())
    })?;
    let whole = whole.ok_or(SpeakError::Silent)?;
    Ok(Recorded { duration: whole.duration(), wav: wav_file(&whole) })
}

/// Returns the style of a manner, and the language in which it reads: its own if the voice can, or else that of the voice.
/// Without a voice of its own that the engine has, the engine's first one speaks.
fn style(engine: &dyn TextToSpeech, manner: &Manner) -> Result<(Style, String), SpeakError> {
    let voices = engine.voices();
    let usual = voices
        .iter()
        .find(|voice| !voice.id.starts_with(CLONE_MARK))
        .ok_or_else(|| SpeakError::Unavailable("the engine has no voice".to_owned()))?;
    let style = manner.style(&voices, &Style::of(usual.id.as_str()));
    let known = voices.iter().find(|voice| voice.id == style.voice);
    if style.needs_voice && known.is_none() {
        return Err(SpeakError::NoVoice);
    }
    let voice = known.unwrap_or(usual);
    let own = style.language.clone().filter(|language| engine.reads(voice, language));
    let language = own.unwrap_or_else(|| voice.language.clone());
    Ok((style, language))
}

/// Puts pieces of sound into a voice note.
struct Recorder<'a> {
    writer: NoteWriter<&'a mut Vec<u8>>,
    waveform: Waveform,
    /// Brings the sound to the rate of the note. All pieces have the same rate.
    resampler: Option<(SampleRate, Resampler)>,
    samples: usize,
    most_seconds: u32,
}

impl<'a> Recorder<'a> {
    fn new(file: &'a mut Vec<u8>, most_seconds: u32) -> Result<Self, SpeakError> {
        let writer = NoteWriter::new(file).map_err(encoding)?;
        let mut recorder =
            Self { writer, waveform: Waveform::new(NOTE_RATE), resampler: None, samples: 0, most_seconds };
        recorder.write(&vec![0.0; (NOTE_RATE.0 * LEAD_MS / 1_000) as usize])?;
        Ok(recorder)
    }

    fn push(&mut self, audio: &Audio) -> Result<(), SpeakError> {
        let (rate, resampler) =
            self.resampler.get_or_insert_with(|| (audio.rate, Resampler::new(audio.rate, NOTE_RATE)));
        if *rate != audio.rate {
            return Err(changed_rate());
        }
        let mut sound = Vec::new();
        resampler.push(&audio.samples, &mut sound);
        self.write(&sound)
    }

    fn write(&mut self, sound: &[f32]) -> Result<(), SpeakError> {
        self.samples += sound.len();
        if self.samples > self.most_seconds as usize * NOTE_RATE.0 as usize {
            return Err(SpeakError::TooLong { most_seconds: self.most_seconds });
        }
        self.waveform.push(sound);
        self.writer.push(sound).map_err(encoding)
    }

    /// Completes the note; returns its duration and waveform.
    fn finish(mut self) -> Result<(std::time::Duration, Vec<u8>), SpeakError> {
        let Some((_, resampler)) = self.resampler.take() else { return Err(SpeakError::Silent) };
        let mut rest = Vec::new();
        resampler.finish(&mut rest);
        self.write(&rest)?;
        let duration = self.writer.finish().map_err(encoding)?;
        Ok((duration, self.waveform.bars(VoiceNote::MAX_BARS)))
    }
}

fn changed_rate() -> SpeakError {
    SpeakError::Unavailable("the voice changed its rate".to_owned())
}

fn unavailable(error: Error) -> SpeakError {
    SpeakError::Unavailable(error.to_string())
}

fn encoding(error: OpusError) -> SpeakError {
    SpeakError::Unavailable(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use azera_voice_api::Piece;
    use azera_voice_recordings::read_bytes;

    use super::*;

    /// A sentence at which the engine fails.
    const AWAY: &str = "Nobody says this.";

    /// Says each sentence as a tone of half a second.
    struct Whistle {
        voices: Vec<Voice>,
        said: Mutex<Vec<(String, Style)>>,
    }

    impl Whistle {
        fn new() -> Arc<Self> {
            let voice = |id: &str, language: &str| Voice {
                id: id.to_owned(),
                language: language.to_owned(),
                rate: SampleRate(22_050),
                engine: "whistle".to_owned(),
            };
            Arc::new(Self {
                voices: vec![voice("low", "en"), voice("high", "en"), voice("tief", "de")],
                said: Mutex::default(),
            })
        }

        fn speaker(self: &Arc<Self>, most_seconds: u32) -> NoteSpeaker {
            let engine = Arc::clone(self);
            NoteSpeaker::new(Box::new(move || Ok(Arc::clone(&engine) as Arc<_>)), most_seconds)
        }
    }

    impl TextToSpeech for Whistle {
        fn voices(&self) -> Vec<Voice> {
            self.voices.clone()
        }

        fn speak(
            &self,
            sentence: &str,
            style: &Style,
            take: &mut dyn FnMut(Piece) -> ControlFlow<()>,
        ) -> Result<(), Error> {
            self.said.lock().unwrap().push((sentence.to_owned(), style.clone()));
            if sentence == AWAY {
                return Err(Error::Engine { engine: "whistle".to_owned(), why: "it is away".to_owned() });
            }
            let samples = (0..11_025).map(|n| (n as f32 * 0.12).sin() * 0.5).collect();
            let _end = take(Audio { rate: SampleRate(22_050), samples }.into());
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_text_becomes_a_note_with_duration_and_waveform() {
        let whistle = Whistle::new();
        let manner = Manner { voice: Some("high".to_owned()), pace: Some(1.2), ..Manner::default() };
        let note = whistle.speaker(10).speak("It is **14:05**. Go!", &manner).await.unwrap();
        let said = whistle.said.lock().unwrap().clone();
        let style = Style { pace: 1.2, ..Style::of("high") };
        assert_eq!(said, [("It is fourteen oh five.".to_owned(), style.clone()), ("Go!".to_owned(), style)]);
        assert!((note.duration.as_millis() as i64 - 1_150).abs() <= 1, "{:?}", note.duration);
        assert_eq!((note.waveform.len(), note.waveform.first()), (23, Some(&0)));
        assert!(note.waveform.iter().skip(4).all(|bar| *bar > 200));
        let heard = read_bytes(note.bytes, VoiceNote::MIME, 10).unwrap();
        assert!(heard.duration().abs_diff(note.duration).as_millis() <= 20, "{:?}", heard.duration());
    }

    #[tokio::test]
    async fn a_voice_reads_in_its_language_and_in_the_time_zone_of_the_options() {
        let whistle = Whistle::new();
        let zone = jiff::tz::TimeZone::fixed(jiff::tz::offset(2));
        let speaker = whistle.speaker(10).reading(Options { zone, ..Options::default() });
        let manner = Manner { voice: Some("tief".to_owned()), ..Manner::default() };
        speaker.speak("<t:0:t>, 3 €", &manner).await.unwrap();
        speaker.speak("<t:0:t>, 3 €", &Manner::default()).await.unwrap();
        let said: Vec<String> = whistle.said.lock().unwrap().iter().map(|(said, _)| said.clone()).collect();
        assert_eq!(said, ["zwei Uhr, drei Euro", "two o'clock, three euros"]);
    }

    #[tokio::test]
    async fn a_language_chooses_the_voice_and_how_it_reads() {
        let whistle = Whistle::new();
        let manner = |voice: Option<&str>| Manner {
            voice: voice.map(str::to_owned),
            language: Some("de-AT".to_owned()),
            pitch: Some(1.1),
            ..Manner::default()
        };
        let speaker = whistle.speaker(10);
        speaker.speak("3 €", &manner(None)).await.unwrap();
        speaker.speak("3 €", &manner(Some("high"))).await.unwrap();
        let style = |id: &str| Style { language: Some("de-AT".to_owned()), pitch: 1.1, ..Style::of(id) };
        // An English voice cannot read German.
        let said = |text: &str, id: &str| (text.to_owned(), style(id));
        assert_eq!(*whistle.said.lock().unwrap(), [said("drei Euro", "tief"), said("three euros", "high")]);
        let voices: Vec<String> = speaker.voices().await.unwrap().into_iter().map(|voice| voice.id).collect();
        assert_eq!(voices, ["low", "high", "tief"]);
    }

    #[tokio::test]
    async fn a_voice_that_nobody_has_is_replaced_by_the_usual_one() {
        let whistle = Whistle::new();
        let manner = Manner { voice: Some("none".to_owned()), ..Manner::default() };
        whistle.speaker(10).speak("Hello", &manner).await.unwrap();
        assert_eq!(whistle.said.lock().unwrap()[0].1, Style::of("low"));
    }

    #[tokio::test]
    async fn a_text_becomes_a_wav_file_at_the_rate_of_the_voice() {
        let recorded = Whistle::new().speaker(10).record("Hello. And again.", &Manner::default()).await.unwrap();
        let heard = read_bytes(recorded.wav, "audio/wav", 10).unwrap();
        assert_eq!(recorded.duration, std::time::Duration::from_secs(1));
        assert!(heard.duration().abs_diff(recorded.duration).as_millis() <= 1, "{:?}", heard.duration());
        let long = Whistle::new().speaker(1).record("One. Two. Three.", &Manner::default()).await;
        assert_eq!(long, Err(SpeakError::TooLong { most_seconds: 1 }));
    }

    #[tokio::test]
    async fn no_other_voice_speaks_where_one_is_needed() {
        let manner = Manner { voice: Some("none".to_owned()), needs_voice: true, ..Manner::default() };
        assert_eq!(Whistle::new().speaker(10).record("Hello", &manner).await, Err(SpeakError::NoVoice));
    }

    #[tokio::test]
    async fn a_needed_voice_that_fails_is_told() {
        let speaker = Whistle::new().speaker(10);
        let speak = async |needs_voice| {
            let manner = Manner { voice: Some("high".to_owned()), needs_voice, ..Manner::default() };
            speaker.speak(AWAY, &manner).await.unwrap_err()
        };
        assert!(matches!(speak(true).await, SpeakError::VoiceAway(why) if why.contains("it is away")));
        assert!(matches!(speak(false).await, SpeakError::Unavailable(_)));
    }

    #[tokio::test]
    async fn nothing_to_say_and_too_much_to_say_are_errors() {
        let speaker = Whistle::new().speaker(1);
        let speak = async |text: &'static str| speaker.speak(text, &Manner::default()).await.unwrap_err();
        assert_eq!(speak("* * *").await, SpeakError::Silent);
        assert_eq!(speak("One. Two. Three.").await, SpeakError::TooLong { most_seconds: 1 });
    }
}
