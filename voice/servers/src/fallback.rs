//! Another engine answers while a server does not.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use azera_voice_api::{Audio, Error, Piece, SpeechToText, Style, TextToSpeech, Transcript, Voice};
use azera_voice_recordings::Resampler;

/// Uses `first`, and `second` whenever `first` fails. The log says once when that begins, and once when it ends;
/// [`WithFallback::status`] says it as long as it lasts.
///
/// A sentence whose sound broke off in the middle is not spoken again, because its beginning was heard; the next
/// sentence is `second`'s. A voice of `first` that must speak itself ([`Style::needs_voice`]) gets no substitute.
pub struct WithFallback<T: ?Sized> {
    first: Arc<T>,
    second: Arc<T>,
    /// Why `first` failed at last; `None` while it works.
    trouble: Mutex<Option<String>>,
}

impl<T: ?Sized> WithFallback<T> {
    /// Returns why `second` answers at the moment; `None` while `first` does.
    pub fn status(&self) -> Option<String> {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.as_ref().map(|why| format!("the engine on this machine answers: {why}"))
    }

    fn failed(&self, error: &Error) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if trouble.replace(error.to_string()).is_none() {
            tracing::warn!(%error, "a speech server does not answer: the engine on this machine takes its place");
        }
    }

    fn worked(&self) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if trouble.take().is_some() {
            tracing::info!("the speech server answers again");
        }
    }
}

/// Returns the error of both engines as one.
fn both(first: &Error, second: Error) -> Error {
    match second {
        Error::Cancelled => Error::Cancelled,
        second => Error::Engine { engine: "speech".to_owned(), why: format!("{first}; in its place, {second}") },
    }
}

impl WithFallback<dyn SpeechToText> {
    /// Puts `second` behind `first`.
    pub fn recognizer(first: Arc<dyn SpeechToText>, second: Arc<dyn SpeechToText>) -> Self {
        Self { first, second, trouble: Mutex::new(None) }
    }
}

impl SpeechToText for WithFallback<dyn SpeechToText> {
    fn name(&self) -> &str {
        if self.status().is_some() { self.second.name() } else { self.first.name() }
    }

    fn transcribe(&self, utterance: &Audio, is_wanted: &(dyn Fn() -> bool + Sync)) -> Result<Transcript, Error> {
        self.transcribe_in(utterance, None, is_wanted)
    }

    fn transcribe_in(
        &self,
        utterance: &Audio,
        language: Option<&str>,
        is_wanted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Transcript, Error> {
        let error = match self.first.transcribe_in(utterance, language, is_wanted) {
            Ok(transcript) => {
                self.worked();
                return Ok(transcript);
            }
            // The caller's own mistake, or its wish.
            Err(error @ (Error::Cancelled | Error::WrongRate { .. } | Error::TooLong { .. })) => return Err(error),
            Err(error) => error,
        };
        self.failed(&error);
        self.second.transcribe_in(utterance, language, is_wanted).map_err(|second| both(&error, second))
    }
}

impl WithFallback<dyn TextToSpeech> {
    /// Puts `second` behind `first`. The voices are those that either knows. A voice of `second` alone is spoken by
    /// `second`; a voice of `first` alone becomes the first voice of `second` while `first` fails, unless the style
    /// needs it.
    pub fn voices(first: Arc<dyn TextToSpeech>, second: Arc<dyn TextToSpeech>) -> Self {
        Self { first, second, trouble: Mutex::new(None) }
    }

    fn speak_instead(
        &self,
        sentence: &str,
        style: &Style,
        take: &mut dyn FnMut(Piece) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let voices = self.second.voices();
        let same = voices.iter().find(|voice| voice.id == style.voice);
        let voice = same.or_else(|| voices.first()).map_or(&style.voice, |voice| &voice.id);
        let style_instead = Style { voice: voice.clone(), ..style.clone() };
        // The caller expects the rate of the voice that it asked for. One that nobody lists is the usual one of `first`.
        let known = TextToSpeech::voices(self);
        let promised = known.iter().find(|voice| voice.id == style.voice).or(known.first()).map(|voice| voice.rate);
        let Some(promised) = promised else { return self.second.speak(sentence, &style_instead, take) };
        let mut resampler = None;
        let mut wish = ControlFlow::Continue(());
        self.second.speak(sentence, &style_instead, &mut |Piece { audio, word_ends }| {
            let mut samples = Vec::new();
            resampler.get_or_insert_with(|| Resampler::new(audio.rate, promised)).push(&audio.samples, &mut samples);
            if !samples.is_empty() {
                wish = take(Piece { audio: Audio { rate: promised, samples }, word_ends });
            }
            wish
        })?;
        let mut samples = Vec::new();
        if let Some(resampler) = resampler {
            resampler.finish(&mut samples);
        }
        if wish.is_continue() && !samples.is_empty() {
            // It is the end in any case.
            let _wish = take(Audio { rate: promised, samples }.into());
        }
        Ok(())
    }
}

fn has(engine: &dyn TextToSpeech, id: &str) -> bool {
    engine.voices().iter().any(|voice| voice.id == id)
}

impl TextToSpeech for WithFallback<dyn TextToSpeech> {
    fn voices(&self) -> Vec<Voice> {
        let mut voices = self.first.voices();
        let more = self.second.voices().into_iter().filter(|voice| !voices.iter().any(|known| known.id == voice.id));
        let more: Vec<Voice> = more.collect();
        voices.extend(more);
        voices
    }

    fn reads(&self, voice: &Voice, language: &str) -> bool {
        if has(&*self.first, &voice.id) {
            self.first.reads(voice, language)
        } else {
            self.second.reads(voice, language)
        }
    }

    fn speak(
        &self,
        sentence: &str,
        style: &Style,
        take: &mut dyn FnMut(Piece) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        if has(&*self.second, &style.voice) && !has(&*self.first, &style.voice) {
            return self.second.speak(sentence, style, take);
        }
        let mut is_heard = false;
        let result = self.first.speak(sentence, style, &mut |piece| {
            is_heard = true;
            take(piece)
        });
        let error = match result {
            Ok(()) => {
                self.worked();
                return Ok(());
            }
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(error) => error,
        };
        self.failed(&error);
        if is_heard || style.needs_voice {
            return Err(error);
        }
        self.speak_instead(sentence, style, take).map_err(|second| both(&error, second))
    }
}
