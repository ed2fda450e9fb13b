//! Hears recordings.

use std::sync::Arc;

use async_trait::async_trait;
use azera_types::Text;
use azera_voice_api::{Audio, Error, HearError, Heard, Listener, SpeechToText};
use azera_voice_recordings::{ReadError, read_bytes, split};

use crate::lazy::{Lazy, Open};
use crate::slot::{NotDone, Slot};

/// The longest part of a recording that is recognised at once, in seconds. One second of silence still fits into the
/// window of Whisper after it.
const PART_SECONDS: f32 = 29.0;
/// Bytes of a second of sound in the least compressed form that people send: 48 kHz, stereo, 24 bit.
const MAX_BYTES_A_SECOND: u64 = 288_000;
/// The largest recording in any case, in bytes.
const MAX_BYTES: u64 = 25 << 20;

/// Hears recordings with any engine that recognises utterances.
pub struct RecordingListener {
    engine: Arc<Lazy<dyn SpeechToText>>,
    most_seconds: u32,
    slot: Slot,
}

impl RecordingListener {
    /// Hears recordings of at most this many seconds. `open` is called before the first one.
    pub fn new(open: Open<dyn SpeechToText>, most_seconds: u32) -> Self {
        Self { engine: Arc::new(Lazy::new(open)), most_seconds, slot: Slot::new() }
    }
}

#[async_trait]
impl Listener for RecordingListener {
    fn max_bytes(&self) -> u64 {
        (u64::from(self.most_seconds) * MAX_BYTES_A_SECOND).min(MAX_BYTES)
    }

    async fn hear(&self, file: Vec<u8>, mime: &str, language: Option<&str>) -> Result<Heard, HearError> {
        let (engine, mime, most_seconds) = (Arc::clone(&self.engine), mime.to_owned(), self.most_seconds);
        let language = language.map(str::to_owned);
        let heard = self.slot.run(move |is_wanted| {
            let audio = read_bytes(file, &mime, most_seconds as usize).map_err(unreadable)?;
            let engine = engine.get().map_err(unavailable)?;
            recognise(engine.as_ref(), &audio, language.as_deref(), is_wanted)
        });
        match heard.await {
            Ok(heard) => heard,
            Err(NotDone::Busy) => Err(HearError::Busy),
            Err(NotDone::Failed) => Err(HearError::Unavailable("the recogniser stopped".to_owned())),
        }
    }
}

fn recognise(
    engine: &dyn SpeechToText,
    audio: &Audio,
    language: Option<&str>,
    is_wanted: &(dyn Fn() -> bool + Sync),
) -> Result<Heard, HearError> {
    let mut words: Vec<String> = Vec::new();
    for range in split(audio, PART_SECONDS) {
        let samples = audio.samples.get(range).unwrap_or_default().to_vec();
        let part = Audio { rate: audio.rate, samples };
        let transcript = engine.transcribe_in(&part, language, is_wanted).map_err(unavailable)?;
        let said = transcript.text.trim();
        if !said.is_empty() {
            words.push(said.to_owned());
        }
    }
    Ok(Heard { text: Text::new(words.join(" ")) })
}

fn unreadable(error: ReadError) -> HearError {
    match error {
        ReadError::TooLong(seconds) => HearError::TooLong { most_seconds: u32::try_from(seconds).unwrap_or(u32::MAX) },
        error => HearError::Unreadable(error.to_string()),
    }
}

fn unavailable(error: Error) -> HearError {
    HearError::Unavailable(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use azera_voice_api::{RECOGNITION_RATE, Transcript};

    use super::*;

    /// Says how long each utterance is.
    #[derive(Default)]
    struct Meter(Mutex<Vec<usize>>, Mutex<Option<String>>);

    impl SpeechToText for Meter {
        fn name(&self) -> &str {
            "meter"
        }

        fn transcribe(&self, utterance: &Audio, _: &(dyn Fn() -> bool + Sync)) -> Result<Transcript, Error> {
            assert_eq!(utterance.rate, RECOGNITION_RATE);
            let mut lengths = self.0.lock().unwrap();
            lengths.push(utterance.samples.len());
            let text = format!(" part {} ", lengths.len());
            Ok(Transcript { text: text.into(), words: Vec::new(), confidence: 1.0, no_speech: 0.0 })
        }

        fn transcribe_in(
            &self,
            utterance: &Audio,
            language: Option<&str>,
            is_wanted: &(dyn Fn() -> bool + Sync),
        ) -> Result<Transcript, Error> {
            *self.1.lock().unwrap() = language.map(str::to_owned);
            self.transcribe(utterance, is_wanted)
        }
    }

    fn note(seconds: usize) -> Vec<u8> {
        let mut file = Vec::new();
        let mut writer = azera_voice_opus::NoteWriter::new(&mut file).unwrap();
        writer.push(&vec![0.1; seconds * 48_000]).unwrap();
        writer.finish().unwrap();
        file
    }

    #[tokio::test]
    async fn a_long_recording_is_heard_in_parts() {
        let meter = Arc::new(Meter::default());
        let engine = Arc::clone(&meter);
        let listener = RecordingListener::new(Box::new(move || Ok(Arc::clone(&engine) as Arc<_>)), 60);
        let heard = listener.hear(note(40), "audio/ogg", Some("de-AT")).await.unwrap();
        assert_eq!(heard.text.as_str(), "part 1 part 2");
        let heard: usize = meter.0.lock().unwrap().iter().sum();
        assert!((640_000..641_000).contains(&heard), "{heard}");
        assert_eq!(meter.1.lock().unwrap().as_deref(), Some("de-AT"));
    }

    #[tokio::test]
    async fn what_cannot_be_heard_says_why() {
        let broken = || Err(Error::Model { file: "whisper.gguf".to_owned(), why: "it is gone".to_owned() });
        let listener = RecordingListener::new(Box::new(broken), 2);
        let hear = async |file| listener.hear(file, "audio/ogg", None).await.unwrap_err();
        assert_eq!(hear(note(3)).await, HearError::TooLong { most_seconds: 2 });
        assert!(matches!(hear(b"no sound".to_vec()).await, HearError::Unreadable(_)));
        let HearError::Unavailable(why) = hear(note(1)).await else { panic!("it has no model") };
        assert!(why.contains("it is gone"));
    }
}
