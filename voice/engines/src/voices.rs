//! All voices of one machine as one engine.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak};

use azera_voice_api::{Error, Piece, SampleRate, Style, TextToSpeech, Voice};

use crate::kokoro::{self, KokoroModel, KokoroVoice};
use crate::piper::{ENGINE, PiperVoice};
use crate::pronounce::{Accent, Pronouncer};

/// The most voices that are in memory. The one that was used longest ago goes first. While one is opened, there is one
/// more: a voice that works does not go for one that cannot be opened.
const MOST_OPEN: usize = 2;
/// The rate of Piper's voices of medium and high quality, which is shown for a voice that is not open yet.
const USUAL_RATE: SampleRate = SampleRate(22_050);
/// The language that is shown for a voice that is not open yet. Voices of other languages cannot be opened.
const LANGUAGE: &str = "en-US";

/// The file of a voice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoiceFile {
    /// The id by which people choose the voice.
    pub id: String,
    /// The model file.
    pub path: PathBuf,
    /// The voice's name in its model, such as `af_heart`, if that is a Kokoro model with several voices. Without one, the
    /// file is a Piper voice.
    pub speaker: Option<String>,
}

impl VoiceFile {
    /// Returns what is known of the voice without its file.
    fn described(&self) -> Voice {
        match &self.speaker {
            Some(name) => kokoro::described(name, &self.id),
            None => Voice {
                id: self.id.clone(),
                language: LANGUAGE.to_owned(),
                rate: USUAL_RATE,
                engine: ENGINE.to_owned(),
            },
        }
    }
}

/// A voice in memory.
struct OpenVoice {
    id: String,
    engine: Box<dyn TextToSpeech>,
}

/// The voices of this machine. Each is opened when it is first needed. One that cannot be opened is no longer listed, and
/// the usual one speaks in its place unless the style needs that voice.
pub struct LocalVoices {
    files: Vec<KnownFile>,
    threads: usize,
    /// The voices in memory. The one that was used last stands last. No model is loaded under this lock.
    opened: Mutex<VecDeque<Arc<OpenVoice>>>,
    /// Held while a model is loaded, so that two are never loaded at once.
    loading: Mutex<()>,
    /// All voices of an accent pronounce by one lexicon, which is in memory as long as one of them is.
    pronouncers: Mutex<Lexicons>,
    /// The model whose voices spoke last. It is in memory as long as one of them is.
    model: Mutex<(PathBuf, Weak<KokoroModel>)>,
    /// How often a voice was used.
    uses: AtomicU64,
}

/// The lexicons in memory.
#[derive(Default)]
struct Lexicons {
    american: Weak<Pronouncer>,
    british: Weak<Pronouncer>,
}

/// A file, and what is known of it.
struct KnownFile {
    file: VoiceFile,
    /// What the file says of the voice, once it was opened.
    voice: OnceLock<Voice>,
    /// The voice, if it is in memory. One that speaks still is after it was closed, and is not opened a second time.
    living: Mutex<Weak<OpenVoice>>,
    /// True if it could not be opened.
    is_broken: AtomicBool,
}

impl KnownFile {
    fn works(&self) -> bool {
        !self.is_broken.load(Ordering::Relaxed)
    }

    fn living(&self) -> MutexGuard<'_, Weak<OpenVoice>> {
        self.living.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LocalVoices {
    /// Takes voices that run on this many threads each, the usual one first. Opens none yet.
    pub fn new(files: Vec<VoiceFile>, threads: usize) -> Self {
        let known = |file| KnownFile {
            file,
            voice: OnceLock::new(),
            living: Mutex::new(Weak::new()),
            is_broken: AtomicBool::new(false),
        };
        let files = files.into_iter().map(known).collect();
        let (opened, loading) = (Mutex::default(), Mutex::default());
        let (pronouncers, model) = (Mutex::default(), Mutex::default());
        Self { files, threads, opened, loading, pronouncers, model, uses: AtomicU64::new(0) }
    }

    /// Whether these are its voices, in this order.
    pub fn has(&self, files: &[VoiceFile]) -> bool {
        self.files.iter().map(|known| &known.file).eq(files)
    }

    /// Opens a voice ahead, or the usual one if its file cannot be opened, unless it is open.
    ///
    /// # Errors
    /// [`Error::Model`] if no file can be read; [`Error::UnknownVoice`] if there is no such voice.
    pub fn open(&self, id: &str) -> Result<(), Error> {
        self.voice_or_usual(id).map(|_| ())
    }

    /// Closes all voices. The next use opens its voice again. One that speaks ends first.
    pub fn close(&self) {
        let closed = std::mem::take(&mut *self.opened());
        // Their memory goes after the lock does.
        drop(closed);
    }

    /// Returns true while a voice is opened, or speaks. Waits for no voice.
    pub fn is_in_use(&self) -> bool {
        if matches!(self.loading.try_lock(), Err(TryLockError::WouldBlock)) {
            return true;
        }
        let kept: Vec<String> = self.opened().iter().map(|voice| voice.id.clone()).collect();
        self.files.iter().any(|known| {
            let is_kept = kept.contains(&known.file.id);
            known.living().strong_count() > usize::from(is_kept)
        })
    }

    /// Returns how often a voice was used or opened since the start.
    pub fn uses(&self) -> u64 {
        self.uses.load(Ordering::Relaxed)
    }

    /// Returns how many voices are in memory.
    pub fn open_count(&self) -> usize {
        self.opened().len()
    }

    fn opened(&self) -> MutexGuard<'_, VecDeque<Arc<OpenVoice>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a voice that is in memory, as the one that was used last.
    fn opened_voice(&self, id: &str) -> Option<Arc<OpenVoice>> {
        let mut opened = self.opened();
        let at = opened.iter().position(|voice| voice.id == id)?;
        let voice = opened.remove(at)?;
        opened.push_back(Arc::clone(&voice));
        Some(voice)
    }

    /// Returns a voice, or the usual one if its file cannot be opened.
    fn voice_or_usual(&self, id: &str) -> Result<Arc<OpenVoice>, Error> {
        self.uses.fetch_add(1, Ordering::Relaxed);
        let mut wanted = id;
        if self.files.iter().any(|known| known.file.id == id && !known.works()) {
            wanted = self.files.iter().find(|known| known.works()).map_or(id, |known| known.file.id.as_str());
        }
        loop {
            let error = match self.voice(wanted) {
                Err(error @ Error::Model { .. }) => error,
                other => return other,
            };
            let Some(next) = self.leave_out(wanted, &error) else { return Err(error) };
            wanted = next;
        }
    }

    /// Lists the voices of a file no longer, because it cannot be opened: all of them fail with it. Returns the voice that
    /// takes the place of `id`; `None` if no other file works, and then this one is tried again each time.
    fn leave_out(&self, id: &str, error: &Error) -> Option<&str> {
        let path = self.files.iter().find(|known| known.file.id == id).map(|known| &known.file.path);
        let shares_file = |known: &&KnownFile| Some(&known.file.path) == path;
        let next = self.files.iter().find(|known| known.works() && !shares_file(known))?.file.id.as_str();
        tracing::warn!(%error, voice = id, usual = next, "a voice cannot be opened");
        self.files.iter().filter(shares_file).for_each(|known| known.is_broken.store(true, Ordering::Relaxed));
        Some(next)
    }

    /// Returns a voice, and no other one in its place.
    fn needed(&self, id: &str) -> Result<Arc<OpenVoice>, Error> {
        self.uses.fetch_add(1, Ordering::Relaxed);
        let voice = self.voice(id);
        if let Err(error @ Error::Model { .. }) = &voice {
            self.leave_out(id, error);
        }
        voice
    }

    /// Returns the lexicon of an accent, and loads it if no voice has it.
    fn pronouncer(&self, accent: Accent) -> Arc<Pronouncer> {
        let mut kept = self.pronouncers.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = match accent {
            Accent::American => &mut kept.american,
            Accent::British => &mut kept.british,
        };
        kept.upgrade().unwrap_or_else(|| {
            let loaded = Arc::new(Pronouncer::new(accent));
            *kept = Arc::downgrade(&loaded);
            loaded
        })
    }

    /// Returns a model with several voices, and loads it if no voice has it.
    fn model(&self, path: &Path) -> Result<Arc<KokoroModel>, Error> {
        let mut kept = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = kept.1.upgrade().filter(|_| kept.0 == path) {
            return Ok(model);
        }
        let model = Arc::new(KokoroModel::open(path, self.threads)?);
        *kept = (path.to_owned(), Arc::downgrade(&model));
        Ok(model)
    }

    /// Opens a voice.
    fn opened_from(&self, file: &VoiceFile) -> Result<OpenVoice, Error> {
        let engine: Box<dyn TextToSpeech> = match &file.speaker {
            None => {
                let pronouncer = self.pronouncer(Accent::American);
                Box::new(PiperVoice::open_with(&file.path, &file.id, self.threads, pronouncer)?)
            }
            Some(name) => {
                let model = self.model(&file.path)?;
                Box::new(KokoroVoice::new(model, name, &file.id, self.pronouncer(kokoro::accent(name)))?)
            }
        };
        tracing::info!(voice = file.id.as_str(), "a model of speech is loaded");
        Ok(OpenVoice { id: file.id.clone(), engine })
    }

    fn voice(&self, id: &str) -> Result<Arc<OpenVoice>, Error> {
        let Some(known) = self.files.iter().find(|known| known.file.id == id) else {
            let works = self.files.iter().filter(|known| known.works());
            let known = works.map(|known| known.file.id.clone()).collect();
            return Err(Error::UnknownVoice { voice: id.to_owned(), known });
        };
        if let Some(voice) = self.opened_voice(id) {
            return Ok(voice);
        }
        let _loading = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        // Another one may have opened it meanwhile.
        if let Some(voice) = self.opened_voice(id) {
            return Ok(voice);
        }
        let file = &known.file;
        let living = known.living().upgrade();
        let voice = match living {
            Some(voice) => voice,
            None => Arc::new(self.opened_from(file)?),
        };
        *known.living() = Arc::downgrade(&voice);
        if let Some(told) = voice.engine.voices().pop() {
            known.voice.get_or_init(|| told);
        }
        let mut opened = self.opened();
        opened.push_back(Arc::clone(&voice));
        while opened.len() > MOST_OPEN {
            opened.pop_front();
        }
        Ok(voice)
    }
}

impl TextToSpeech for LocalVoices {
    fn voices(&self) -> Vec<Voice> {
        let voice = |known: &KnownFile| known.voice.get().cloned().unwrap_or_else(|| known.file.described());
        self.files.iter().filter(|known| known.works()).map(voice).collect()
    }

    fn speak(
        &self,
        sentence: &str,
        style: &Style,
        take: &mut dyn FnMut(Piece) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let voice = if style.needs_voice { self.needed(&style.voice)? } else { self.voice_or_usual(&style.voice)? };
        voice.engine.speak(sentence, &Style { voice: voice.id.clone(), ..style.clone() }, take)
    }
}
