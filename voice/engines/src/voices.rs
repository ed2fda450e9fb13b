//! All voices of one machine as one engine.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use azera_voice_api::{Audio, Error, SampleRate, Style, TextToSpeech, Voice};

use crate::piper::{ENGINE, PiperVoice};
use crate::pronounce::Pronouncer;

/// The most voices that are in memory at once. The one that was used longest ago goes first.
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
}

/// The voices of this machine. Each is opened when it is first needed.
pub struct LocalVoices {
    files: Vec<VoiceFile>,
    threads: usize,
    opened: Mutex<Opened>,
}

#[derive(Default)]
struct Opened {
    /// The voice that was used last stands last.
    voices: VecDeque<Arc<PiperVoice>>,
    /// All voices pronounce by one lexicon.
    pronouncer: Option<Arc<Pronouncer>>,
}

impl LocalVoices {
    /// Takes voices that run on this many threads each, the usual one first. Opens none yet.
    pub fn new(files: Vec<VoiceFile>, threads: usize) -> Self {
        Self { files, threads, opened: Mutex::default() }
    }

    /// Opens the usual voice, unless it is open.
    ///
    /// # Errors
    /// [`Error::Model`] if its file cannot be read; [`Error::UnknownVoice`] if there is no voice at all.
    pub fn open_usual(&self) -> Result<(), Error> {
        let id = self.files.first().map(|file| file.id.clone()).unwrap_or_default();
        self.voice(&id).map(|_| ())
    }

    fn voice(&self, id: &str) -> Result<Arc<PiperVoice>, Error> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = opened.voices.iter().position(|voice| voice.id() == id)
            && let Some(voice) = opened.voices.remove(at)
        {
            opened.voices.push_back(Arc::clone(&voice));
            return Ok(voice);
        }
        let Some(file) = self.files.iter().find(|file| file.id == id) else {
            let known = self.files.iter().map(|file| file.id.clone()).collect();
            return Err(Error::UnknownVoice { voice: id.to_owned(), known });
        };
        let pronouncer = Arc::clone(opened.pronouncer.get_or_insert_with(|| Arc::new(Pronouncer::new())));
        // Before the next one is read, so that there are never more than that many in memory.
        while opened.voices.len() >= MOST_OPEN {
            opened.voices.pop_front();
        }
        let voice = Arc::new(PiperVoice::open_with(&file.path, &file.id, self.threads, pronouncer)?);
        opened.voices.push_back(Arc::clone(&voice));
        Ok(voice)
    }
}

impl TextToSpeech for LocalVoices {
    fn voices(&self) -> Vec<Voice> {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let voice = |file: &VoiceFile| {
            let known = opened.voices.iter().find(|voice| voice.id() == file.id).and_then(|voice| voice.voices().pop());
            known.unwrap_or_else(|| Voice {
                id: file.id.clone(),
                language: LANGUAGE.to_owned(),
                rate: USUAL_RATE,
                engine: ENGINE.to_owned(),
            })
        };
        self.files.iter().map(voice).collect()
    }

    fn speak(
        &self,
        sentence: &str,
        style: &Style,
        take: &mut dyn FnMut(Audio) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.voice(&style.voice)?.speak(sentence, style, take)
    }
}
