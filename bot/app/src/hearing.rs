//! The model on this machine that recognises speech. Voice messages and calls share it, so that it is in memory once, and it is
//! unloaded once nobody needed it for a while. Calls go first.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use azera_config::Config;
use azera_model_registry::InstalledModel;
use azera_voice_api::{Audio, Error, SpeechToText, Transcript};
use azera_voice_call::{Loadable, OnDemand};
use azera_voice_servers::LazyRecognizer;
use azera_voice_whisper::{Options, Whisper};

use crate::local_speech;

/// The most threads; more do not make these small models faster.
const MAX_THREADS: usize = 8;

/// The recogniser of this machine.
pub struct Hearing {
    path: PathBuf,
    engine: Arc<LazyRecognizer>,
    /// Unloads it, as long as somebody holds this.
    _watch: Arc<OnDemand>,
}

/// What hears now.
static HEARING: Mutex<Weak<Hearing>> = Mutex::new(Weak::new());

impl Hearing {
    /// Returns the recogniser with this model, which is shared while somebody uses it. It is not loaded yet. Call it in a
    /// runtime.
    pub fn of(config: &Config, model: &InstalledModel) -> Arc<Self> {
        let options = Options { threads: crate::speech::threads(config).min(MAX_THREADS), language: None };
        let (path, name) = (model.path.clone(), model.entry.name.clone());
        let open =
            move || -> Result<Arc<dyn SpeechToText>, Error> { Ok(Arc::new(Whisper::load(&path, &name, &options)?)) };
        let unload_after = Duration::from_secs(config.voice.unload_after_s.into());
        let unload_after = Some(unload_after).filter(|after| !after.is_zero());
        Self::shared(&model.path, &model.entry.name, unload_after, open)
    }

    fn shared(
        path: &Path,
        name: &str,
        unload_after: Option<Duration>,
        open: impl Fn() -> Result<Arc<dyn SpeechToText>, Error> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let mut shared = HEARING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(hearing) = shared.upgrade().filter(|hearing| hearing.path == path) {
            return hearing;
        }
        let engine = Arc::new(LazyRecognizer::new(name, open));
        let watch = OnDemand::new(vec![Box::new(Watched(Arc::clone(&engine)))], unload_after);
        let hearing = Arc::new(Self { path: path.to_owned(), engine, _watch: watch });
        *shared = Arc::downgrade(&hearing);
        hearing
    }

    /// Returns it as calls use it. It hears them before recordings.
    pub fn for_calls(self: &Arc<Self>) -> Arc<dyn SpeechToText> {
        local_speech::calls_first().recogniser_for_calls(Arc::clone(self) as Arc<_>)
    }

    /// Returns it as voice messages and other recordings use it. They pause while it hears what somebody says in a call.
    pub fn for_recordings(self: &Arc<Self>) -> Arc<dyn SpeechToText> {
        local_speech::calls_first().recogniser_for_recordings(Arc::clone(self) as Arc<_>)
    }

    /// Loads it ahead, unless it is loaded.
    ///
    /// # Errors
    /// The model cannot be read.
    pub fn load(&self) -> Result<(), Error> {
        self.engine.open()
    }
}

impl SpeechToText for Hearing {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn transcribe(&self, utterance: &Audio, is_wanted: &(dyn Fn() -> bool + Sync)) -> Result<Transcript, Error> {
        self.engine.transcribe(utterance, is_wanted)
    }

    fn transcribe_in(
        &self,
        utterance: &Audio,
        language: Option<&str>,
        is_wanted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Transcript, Error> {
        self.engine.transcribe_in(utterance, language, is_wanted)
    }
}

/// The recogniser, as what unloads it sees it.
struct Watched(Arc<LazyRecognizer>);

impl Loadable for Watched {
    fn load(&self, _: &str) -> Result<(), Error> {
        self.0.open()
    }

    fn unload(&self) {
        self.0.close();
    }

    fn speaks(&self) -> bool {
        false
    }

    fn is_in_use(&self) -> bool {
        self.0.is_in_use()
    }

    fn uses(&self) -> u64 {
        self.0.uses()
    }
}

#[cfg(test)]
mod tests {
    use azera_voice_api::RECOGNITION_RATE;
    use tokio::sync::oneshot::{Receiver, Sender, channel};

    use super::*;

    /// An engine that tells when it leaves memory.
    struct Fixed {
        _unloaded: Sender<()>,
    }

    impl SpeechToText for Fixed {
        fn name(&self) -> &str {
            "fixed"
        }

        fn transcribe(&self, _: &Audio, _: &(dyn Fn() -> bool + Sync)) -> Result<Transcript, Error> {
            Ok(Transcript { text: "Good day.".into(), words: Vec::new(), confidence: 1.0, no_speech: 0.0 })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn voice_messages_and_calls_share_the_recogniser_and_it_is_unloaded_when_nobody_needs_it() {
        let opened = Arc::<Mutex<Vec<Receiver<()>>>>::default();
        let hearing = |path: &str| {
            let opened = opened.clone();
            Hearing::shared(Path::new(path), "fixed", Some(Duration::from_secs(300)), move || {
                let (unloaded, is_unloaded) = channel();
                opened.lock().unwrap().push(is_unloaded);
                Ok(Arc::new(Fixed { _unloaded: unloaded }))
            })
        };
        let (of_messages, of_calls) = (hearing("one").for_recordings(), hearing("one"));
        assert!(opened.lock().unwrap().is_empty());
        let utterance = Audio { rate: RECOGNITION_RATE, samples: vec![0.0; 160] };
        of_calls.load().unwrap();
        assert_eq!(&*of_messages.transcribe(&utterance, &|| true).unwrap().text, "Good day.");
        assert_eq!(opened.lock().unwrap().len(), 1, "it is in memory once");
        let unloaded = opened.lock().unwrap().remove(0);
        // The clock goes on by itself while everything waits.
        assert!(unloaded.await.is_err());
        of_calls.for_calls().transcribe(&utterance, &|| true).unwrap();
        assert_eq!(opened.lock().unwrap().len(), 1, "it is loaded again");
        assert!(!Arc::ptr_eq(&of_calls, &hearing("another")));
    }
}
