//! Engines that are opened when they are first used, such as a fallback that is rarely needed.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError, Weak};

use azera_voice_api::{Audio, Error, Piece, SpeechToText, Style, TextToSpeech, Transcript, Voice};

/// Opens an engine.
type Open<T> = Box<dyn Fn() -> Result<Arc<T>, Error> + Send + Sync>;

/// An engine and how to open it. A failed attempt is tried again at the next call.
struct Opened<T: ?Sized> {
    open: Open<T>,
    /// Locked while it is opened, so that it is never opened twice.
    engine: Mutex<Held<T>>,
    uses: AtomicU64,
}

/// An engine that may be in memory.
struct Held<T: ?Sized> {
    /// It stays in memory until it is closed.
    kept: Option<Arc<T>>,
    /// It is still in memory if it was closed while it worked. Then it is used again, and no second one is opened.
    living: Option<Weak<T>>,
}

impl<T: ?Sized> Opened<T> {
    fn new(open: Open<T>) -> Self {
        let nothing = Held { kept: None, living: None };
        Self { open, engine: Mutex::new(nothing), uses: AtomicU64::new(0) }
    }

    fn get(&self) -> Result<Arc<T>, Error> {
        self.uses.fetch_add(1, Ordering::Relaxed);
        let mut held = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        let engine = match held.kept.clone().or_else(|| held.living.as_ref()?.upgrade()) {
            Some(engine) => engine,
            None => {
                let opened = (self.open)()?;
                tracing::info!("a model of speech is loaded");
                opened
            }
        };
        *held = Held { kept: Some(Arc::clone(&engine)), living: Some(Arc::downgrade(&engine)) };
        Ok(engine)
    }

    /// Closes it. Waits while it is opened.
    fn close(&self) {
        let closed = self.engine.lock().unwrap_or_else(PoisonError::into_inner).kept.take();
        // Its memory goes after the lock does.
        drop(closed);
    }

    /// Returns true while it is opened, or works. Waits for nothing.
    fn is_in_use(&self) -> bool {
        let held = match self.engine.try_lock() {
            Ok(held) => held,
            Err(TryLockError::Poisoned(held)) => held.into_inner(),
            Err(TryLockError::WouldBlock) => return true,
        };
        let holders = held.living.as_ref().map_or(0, Weak::strong_count);
        holders > usize::from(held.kept.is_some())
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

    /// Opens it ahead, unless it is open.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(&self) -> Result<(), Error> {
        self.opened.get().map(|_| ())
    }

    /// Closes it. The next use opens it again. Recognition that goes on ends first. Waits while it is opened.
    pub fn close(&self) {
        self.opened.close();
    }

    /// Returns true while it is opened, or recognises. Waits for nothing.
    pub fn is_in_use(&self) -> bool {
        self.opened.is_in_use()
    }

    /// Returns how often it was used or opened ahead.
    pub fn uses(&self) -> u64 {
        self.opened.uses.load(Ordering::Relaxed)
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
        take: &mut dyn FnMut(Piece) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.opened.get()?.speak(sentence, style, take)
    }
}
