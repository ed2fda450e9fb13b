//! Engines that are opened when they are first used, such as a fallback that is rarely needed.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use azera_voice_api::{Audio, Error, SpeechToText, Style, TextToSpeech, Transcript, Voice};

/// Opens an engine.
type Open<T> = Box<dyn Fn() -> Result<Arc<T>, Error> + Send + Sync>;

/// An engine and how to open it. A failed attempt is tried again at the next call.
struct Opened<T: ?Sized> {
    open: Open<T>,
    engine: OnceLock<Arc<T>>,
    opening: Mutex<()>,
}

impl<T: ?Sized> Opened<T> {
    fn new(open: Open<T>) -> Self {
        Self { open, engine: OnceLock::new(), opening: Mutex::new(()) }
    }

    fn get(&self) -> Result<&Arc<T>, Error> {
        let _alone = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if self.engine.get().is_none() {
            let engine = (self.open)()?;
            return Ok(self.engine.get_or_init(|| engine));
        }
        self.engine.get().ok_or(Error::Cancelled)
    }
}

/// A recogniser that is opened when it is first used.
pub struct LazyRecognizer {
    name: String,
    opened: Opened<dyn SpeechToText>,
}

impl LazyRecognizer {
    /// Wraps a recogniser of this name.
    pub fn new(
        name: impl Into<String>,
        open: impl Fn() -> Result<Arc<dyn SpeechToText>, Error> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), opened: Opened::new(Box::new(open)) }
    }
}

impl SpeechToText for LazyRecognizer {
    fn name(&self) -> &str {
        &self.name
    }

    fn transcribe(&self, utterance: &Audio, is_wanted: &(dyn Fn() -> bool + Sync)) -> Result<Transcript, Error> {
        self.opened.get()?.transcribe(utterance, is_wanted)
    }

    fn transcribe_in(
        &self,
        utterance: &Audio,
        language: Option<&str>,
        is_wanted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Transcript, Error> {
        self.opened.get()?.transcribe_in(utterance, language, is_wanted)
    }
}

/// Voices whose engine is opened when it is first used.
pub struct LazyVoices {
    voices: Vec<Voice>,
    opened: Opened<dyn TextToSpeech>,
}

impl LazyVoices {
    /// Wraps an engine that has these voices.
    pub fn new(
        voices: Vec<Voice>,
        open: impl Fn() -> Result<Arc<dyn TextToSpeech>, Error> + Send + Sync + 'static,
    ) -> Self {
        Self { voices, opened: Opened::new(Box::new(open)) }
    }
}

impl TextToSpeech for LazyVoices {
    fn voices(&self) -> Vec<Voice> {
        self.voices.clone()
    }

    fn speak(
        &self,
        sentence: &str,
        style: &Style,
        take: &mut dyn FnMut(Audio) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.opened.get()?.speak(sentence, style, take)
    }
}
