//! What calls share with recordings: people in a call go first.

use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use azera_voice_api::{Audio, Error, Piece, SpeechToText, Style, TextToSpeech, Transcript, Voice};

/// Lets what engines do for calls go before what they do for recordings, which pause meanwhile between two steps. Clones belong
/// together.
#[derive(Clone, Default)]
pub struct Precedence(Arc<Calls>);

/// How many engines work for calls.
#[derive(Default)]
struct Calls {
    count: Mutex<usize>,
    are_over: Condvar,
}

impl Calls {
    fn count(&self) -> MutexGuard<'_, usize> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) -> InCall<'_> {
        *self.count() += 1;
        InCall(self)
    }

    fn wait_until_over(&self) {
        let count = self.count();
        drop(self.are_over.wait_while(count, |count| *count > 0).unwrap_or_else(PoisonError::into_inner));
    }
}

/// Work for a call, until it is dropped.
struct InCall<'a>(&'a Calls);

impl Drop for InCall<'_> {
    fn drop(&mut self) {
        let mut count = self.0.count();
        *count -= 1;
        if *count == 0 {
            self.0.are_over.notify_all();
        }
    }
}

impl Precedence {
    /// Returns a recogniser as calls use it.
    pub fn recogniser_for_calls(&self, engine: Arc<dyn SpeechToText>) -> Arc<dyn SpeechToText> {
        Arc::new(ForCalls { engine, calls: Arc::clone(&self.0) })
    }

    /// Returns a recogniser as recordings use it.
    pub fn recogniser_for_recordings(&self, engine: Arc<dyn SpeechToText>) -> Arc<dyn SpeechToText> {
        Arc::new(ForRecordings { engine, calls: Arc::clone(&self.0) })
    }

    /// Returns voices as calls use them.
    pub fn voices_for_calls(&self, engine: Arc<dyn TextToSpeech>) -> Arc<dyn TextToSpeech> {
        Arc::new(ForCalls { engine, calls: Arc::clone(&self.0) })
    }

    /// Returns voices as recordings use them.
    pub fn voices_for_recordings(&self, engine: Arc<dyn TextToSpeech>) -> Arc<dyn TextToSpeech> {
        Arc::new(ForRecordings { engine, calls: Arc::clone(&self.0) })
    }
}

/// An engine as calls use it.
struct ForCalls<T: ?Sized> {
    engine: Arc<T>,
    calls: Arc<Calls>,
}

impl SpeechToText for ForCalls<dyn SpeechToText> {
    fn name(&self) -> &str {
        self.engine.name()
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
        let _in_call = self.calls.begin();
        self.engine.transcribe_in(utterance, language, is_wanted)
    }
}

impl TextToSpeech for ForCalls<dyn TextToSpeech> {
    fn voices(&self) -> Vec<Voice> {
        self.engine.voices()
    }

    fn reads(&self, voice: &Voice, language: &str) -> bool {
        self.engine.reads(voice, language)
    }

    fn speak(
        &self,
        sentence: &str,
        style: &Style,
        take: &mut dyn FnMut(Piece) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let _in_call = self.calls.begin();
        self.engine.speak(sentence, style, take)
    }
}

/// An engine as recordings use it.
struct ForRecordings<T: ?Sized> {
    engine: Arc<T>,
    calls: Arc<Calls>,
}

impl SpeechToText for ForRecordings<dyn SpeechToText> {
    fn name(&self) -> &str {
        self.engine.name()
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
        // The engine asks this between its steps, and holds nothing then that a call needs.
        let in_turn = || {
            self.calls.wait_until_over();
            is_wanted()
        };
        if !in_turn() {
            return Err(Error::Cancelled);
        }
        self.engine.transcribe_in(utterance, language, &in_turn)
    }
}

impl TextToSpeech for ForRecordings<dyn TextToSpeech> {
    fn voices(&self) -> Vec<Voice> {
        self.engine.voices()
    }

    fn reads(&self, voice: &Voice, language: &str) -> bool {
        self.engine.reads(voice, language)
    }

    fn speak(
        &self,
        sentence: &str,
        style: &Style,
        take: &mut dyn FnMut(Piece) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.calls.wait_until_over();
        self.engine.speak(sentence, style, &mut |piece| {
            let wish = take(piece);
            if wish.is_continue() {
                self.calls.wait_until_over();
            }
            wish
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;

    use azera_voice_api::RECOGNITION_RATE;

    use super::*;

    /// The lengths of what is recognised, which tell it apart.
    const RECORDING: usize = 30;
    const SPEECH: usize = 3;

    /// Recognises a recording in three steps and speech in one, and writes down each. The first step of a recording and that of
    /// speech wait until they may end.
    struct MadeUp {
        done: Mutex<Vec<&'static str>>,
        begins: Sender<&'static str>,
        recording_may: Mutex<Receiver<()>>,
        speech_may: Mutex<Receiver<()>>,
    }

    impl MadeUp {
        fn step(&self, what: &'static str, may_end: Option<&Mutex<Receiver<()>>>) {
            if let Some(may_end) = may_end {
                self.begins.send(what).unwrap();
                may_end.lock().unwrap().recv().unwrap();
            }
            self.done.lock().unwrap().push(what);
        }
    }

    impl SpeechToText for MadeUp {
        fn name(&self) -> &str {
            "made-up"
        }

        fn transcribe(&self, utterance: &Audio, is_wanted: &(dyn Fn() -> bool + Sync)) -> Result<Transcript, Error> {
            if utterance.samples.len() == SPEECH {
                self.step("speech", Some(&self.speech_may));
            } else {
                self.step("recording", Some(&self.recording_may));
                for _ in 0..2 {
                    if !is_wanted() {
                        return Err(Error::Cancelled);
                    }
                    self.step("recording", None);
                }
            }
            Ok(Transcript { text: "done".into(), words: Vec::new(), confidence: 1.0, no_speech: 0.0 })
        }
    }

    fn sound(samples: usize) -> Audio {
        Audio { rate: RECOGNITION_RATE, samples: vec![0.0; samples] }
    }

    /// Lets somebody speak in a call during the first step of a recording. Returns the steps in order, and what became of the
    /// recording, which nobody wants any more once the speech ended unless `is_wanted`.
    fn speech_during_a_recording(is_wanted: bool) -> (Vec<&'static str>, Result<Transcript, Error>) {
        let (begins, begun) = channel();
        let (let_recording, recording_may) = channel();
        let (let_speech, speech_may) = channel();
        let done = Mutex::default();
        let (recording_may, speech_may) = (Mutex::new(recording_may), Mutex::new(speech_may));
        let engine = Arc::new(MadeUp { done, begins, recording_may, speech_may });
        let precedence = Precedence::default();
        let (calls, recordings) =
            (precedence.recogniser_for_calls(engine.clone()), precedence.recogniser_for_recordings(engine.clone()));
        let is_still_wanted = AtomicBool::new(true);
        let wanted = || is_still_wanted.load(Ordering::SeqCst);
        let heard = thread::scope(|scope| {
            let recording = scope.spawn(|| recordings.transcribe(&sound(RECORDING), &wanted));
            assert_eq!(begun.recv(), Ok("recording"));
            let speech = scope.spawn(|| calls.transcribe(&sound(SPEECH), &|| true));
            assert_eq!(begun.recv(), Ok("speech"));
            let_recording.send(()).unwrap();
            is_still_wanted.store(is_wanted, Ordering::SeqCst);
            let_speech.send(()).unwrap();
            speech.join().unwrap().unwrap();
            recording.join().unwrap()
        });
        let done = engine.done.lock().unwrap().clone();
        (done, heard)
    }

    #[test]
    fn a_recording_pauses_between_two_steps_while_somebody_speaks_in_a_call() {
        let (done, heard) = speech_during_a_recording(true);
        let after = done.iter().position(|what| *what == "speech").unwrap();
        // Only the step that had begun may end meanwhile.
        assert!(after <= 1 && done.len() == 4, "{done:?}");
        assert_eq!(&*heard.unwrap().text, "done");
    }

    #[test]
    fn a_recording_that_nobody_wants_any_more_does_not_go_on_after_a_call() {
        let (done, heard) = speech_during_a_recording(false);
        assert!(matches!(heard, Err(Error::Cancelled)));
        assert_eq!(done.iter().filter(|what| **what == "recording").count(), 1);
    }

    /// Says a note in three pieces, and a sentence of a call in one, which waits until it may end.
    struct Talker {
        done: Mutex<Vec<String>>,
        begins: Sender<&'static str>,
        call_may: Mutex<Receiver<()>>,
    }

    impl TextToSpeech for Talker {
        fn voices(&self) -> Vec<Voice> {
            Vec::new()
        }

        fn speak(
            &self,
            sentence: &str,
            _: &Style,
            take: &mut dyn FnMut(Piece) -> ControlFlow<()>,
        ) -> Result<(), Error> {
            let pieces = if sentence == "call" { 1 } else { 3 };
            if sentence == "call" {
                self.begins.send("call").unwrap();
                self.call_may.lock().unwrap().recv().unwrap();
            }
            for _ in 0..pieces {
                self.done.lock().unwrap().push(sentence.to_owned());
                if take(sound(1).into()).is_break() {
                    break;
                }
            }
            Ok(())
        }
    }

    #[test]
    fn a_note_pauses_between_two_pieces_while_a_call_is_spoken_to() {
        let (begins, begun) = channel();
        let (let_call, call_may) = channel();
        let (let_note, note_may) = channel();
        let engine =
            Arc::new(Talker { done: Mutex::default(), begins: begins.clone(), call_may: Mutex::new(call_may) });
        let precedence = Precedence::default();
        let (calls, notes) =
            (precedence.voices_for_calls(engine.clone()), precedence.voices_for_recordings(engine.clone()));
        let style = Style::of("any");
        thread::scope(|scope| {
            let (style, notes) = (&style, &notes);
            let note = scope.spawn(move || {
                let mut is_first = true;
                notes.speak("note", style, &mut |_| {
                    if std::mem::take(&mut is_first) {
                        begins.send("note").unwrap();
                        note_may.recv().unwrap();
                    }
                    ControlFlow::Continue(())
                })
            });
            assert_eq!(begun.recv(), Ok("note"));
            let call = scope.spawn(|| calls.speak("call", style, &mut |_| ControlFlow::Continue(())));
            assert_eq!(begun.recv(), Ok("call"));
            let_note.send(()).unwrap();
            let_call.send(()).unwrap();
            call.join().unwrap().unwrap();
            note.join().unwrap().unwrap();
        });
        assert_eq!(*engine.done.lock().unwrap(), ["note", "call", "note", "note"]);
    }
}
