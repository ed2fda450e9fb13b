//! Recordings of voices while Azera runs: those that the operator keeps, and those that people give in chats. Speech
//! engines see only those that were agreed to, and what a server computed for one goes with it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::SystemTime;

use async_trait::async_trait;
use azera_config::{Config, SpeechApi};
use azera_types::{PersonId, Timestamp};
use azera_voice_api::{CLONE_MARK, Given, Sample, SampleError, SampleStore};
use azera_voice_samples::{FolderError, GivenFolder, GivenSample, SampleFolder, prepare};
use azera_voice_servers::{Numbers, Samples, ServerVoices};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::speech_servers;

/// Bytes of the digest in an id.
const ID_BYTES: usize = 6;

/// The folder of what people gave, in the folder of voice samples.
const GIVEN: &str = "given";

/// What can be cloned now.
#[derive(Default)]
struct Index {
    /// When the folders were changed last, as far as this index knows; `None` if it must be built anew.
    changed: Option<[Option<SystemTime>; 2]>,
    recordings: BTreeMap<String, Recording>,
}

/// A recording that may be cloned.
struct Recording {
    /// When it was added, which tells it from a later one of the same name.
    added_at: String,
    numbers: Numbers,
}

/// The recordings in the data folder.
pub struct Clones {
    path: PathBuf,
    kept: SampleFolder,
    given: GivenFolder,
    index: Mutex<Index>,
}

/// The recordings that are in use, by their folder: all speech engines of a process see the same ones.
static IN_USE: Mutex<Vec<Weak<Clones>>> = Mutex::new(Vec::new());

impl Clones {
    /// Returns the recordings in a data folder.
    pub fn of(data: &Path) -> Arc<Self> {
        let path = speech_servers::samples_path(data);
        let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        in_use.retain(|clones| clones.strong_count() > 0);
        if let Some(known) = in_use.iter().filter_map(Weak::upgrade).find(|clones| clones.path == path) {
            return known;
        }
        let given = GivenFolder::new(path.join(GIVEN));
        let clones =
            Arc::new(Self { kept: SampleFolder::new(&path), given, path, index: Mutex::new(Index::default()) });
        in_use.push(Arc::downgrade(&clones));
        clones
    }

    /// Returns what people gave.
    pub fn given(&self) -> &GivenFolder {
        &self.given
    }

    /// Returns the index. It is built anew if a folder was changed, by this process or another.
    fn index(&self) -> MutexGuard<'_, Index> {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = |path: &Path| std::fs::metadata(path).and_then(|about| about.modified()).ok();
        let now = Some([changed(&self.path), changed(&self.path.join(GIVEN))]);
        if index.changed != now {
            let known = std::mem::take(&mut index.recordings);
            match self.agreed() {
                Ok(agreed) => {
                    index.recordings = agreed.into_iter().map(|(id, added_at)| carried(&known, id, added_at)).collect();
                    index.changed = now;
                }
                // Nothing is cloned while it is unknown who agreed.
                Err(error) => {
                    tracing::error!(%error, "cannot read the recordings of voices; nothing speaks with them");
                    index.changed = None;
                }
            }
        }
        index
    }

    /// Returns the ids of all recordings that may be cloned, and when they were added.
    fn agreed(&self) -> Result<Vec<(String, String)>, FolderError> {
        let kept = self.kept.list()?.into_iter().map(|sample| (sample.name, sample.added_at));
        let given = self.given.list()?.into_iter().filter(|(_, sample)| sample.agreed_at.is_some());
        Ok(kept.chain(given.map(|(id, sample)| (format!("{CLONE_MARK}{id}"), sample.at))).collect())
    }

    /// Reads the folders again. What was computed for a recording that is gone goes with it.
    fn refresh(&self) {
        self.index.lock().unwrap_or_else(PoisonError::into_inner).changed = None;
        drop(self.index());
    }
}

/// Returns a recording for the index, with what a server computed for it before.
fn carried(known: &BTreeMap<String, Recording>, id: String, added_at: String) -> (String, Recording) {
    let numbers = known.get(&id).filter(|known| known.added_at == added_at).map(|known| known.numbers.clone());
    (id, Recording { added_at, numbers: numbers.unwrap_or_default() })
}

impl Samples for Clones {
    fn ids(&self) -> Vec<String> {
        self.index().recordings.keys().cloned().collect()
    }

    fn numbers(&self, id: &str) -> Option<Numbers> {
        self.index().recordings.get(id).map(|known| known.numbers.clone())
    }

    fn wav(&self, id: &str) -> Option<Vec<u8>> {
        if !self.index().recordings.contains_key(id) {
            return None;
        }
        let wav = match id.strip_prefix(CLONE_MARK) {
            Some(given) => self.given.wav(given),
            None => self.kept.wav(id),
        };
        wav.inspect_err(|error| tracing::warn!(%error, "cannot read a recording of a voice")).ok()
    }
}

/// Keeps what people give in chats.
pub struct GivenSamples {
    clones: Arc<Clones>,
    api: SpeechApi,
    /// The XTTS server, if one is configured.
    server: Option<ServerVoices>,
}

impl GivenSamples {
    /// # Errors
    /// The configuration names a server in a way that cannot work, or the disk fails.
    pub fn new(config: &Config) -> anyhow::Result<Self> {
        let api = config.speech_server.api;
        let server = if api == SpeechApi::Xtts { speech_servers::voices(config)? } else { None };
        let clones = Clones::of(&config.data_dir()?);
        clones.kept.protect()?;
        clones.given.sweep()?;
        Ok(Self { clones, api, server })
    }

    /// Keeps what people gave in a data folder without anything that speaks with it, as commands that list or forget do.
    ///
    /// # Errors
    /// The disk fails.
    pub fn without_server(data: &Path) -> anyhow::Result<Self> {
        let clones = Clones::of(data);
        clones.given.sweep()?;
        Ok(Self { clones, api: SpeechApi::None, server: None })
    }

    /// Works on the folders on a blocking thread.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Clones) -> Result<T, SampleError> + Send + 'static,
    ) -> Result<T, SampleError> {
        let clones = Arc::clone(&self.clones);
        let done = tokio::task::spawn_blocking(move || work(&clones)).await;
        done.map_err(|error| SampleError::Store(error.to_string()))?
    }
}

#[async_trait]
impl SampleStore for GivenSamples {
    async fn obstacle(&self) -> Option<String> {
        /// Where the operator finds what to do.
        const SEE: &str = "see \"Samples of voices\" in bot/docs/voice.md";
        let Some(server) = &self.server else {
            let instead = if self.api == SpeechApi::OpenAi { " The server that speaks here cannot do it." } else { "" };
            return Some(format!(
                "To speak with a recorded voice I need an XTTS server, which the operator names in `[speech_server]` with `api \
                 = \"xtts\"`; {SEE}.{instead}"
            ));
        };
        match server.takes_samples().await {
            Ok(true) => None,
            Ok(false) => Some(format!(
                "This XTTS server (xtts-api-server) takes no recordings over the network. The operator puts the file into the \
                 server's `speakers` folder and names the voice in the persona's file, or runs Coqui's streaming server; \
                 {SEE}."
            )),
            Err(error) => {
                tracing::warn!(%error, "cannot ask the XTTS server whether it takes recordings");
                Some("The XTTS server does not answer now. Try again later.".to_owned())
            }
        }
    }

    async fn keep(&self, name: &str, given: Given, file: Vec<u8>) -> Result<Sample, SampleError> {
        let name = name.to_owned();
        self.work(move |clones| {
            let prepared = prepare(file).map_err(|error| SampleError::Unfit(error.to_string()))?;
            let about = GivenSample {
                name,
                whose: given.whose.to_string(),
                by: given.by.to_string(),
                place: given.place,
                at: given.at.to_string(),
                agreed_at: given.agreed_at.map(|at| at.to_string()),
                seconds: prepared.seconds,
            };
            let id = id_of(&about, &prepared.wav);
            clones.given.add(&id, &about, &prepared).map_err(unkept)?;
            clones.refresh();
            as_sample(&id, about).ok_or_else(|| SampleError::Store("it cannot be read again".to_owned()))
        })
        .await
    }

    async fn list(&self) -> Result<Vec<Sample>, SampleError> {
        self.work(|clones| {
            let kept = clones.kept.list().map_err(failed)?.into_iter();
            let kept =
                kept.map(|kept| Sample { id: kept.name.clone(), name: kept.name, given: None, seconds: kept.seconds });
            // Nobody could forget them, and they would count for ever.
            let damaged = clones.given.remove_damaged().map_err(failed)?;
            if damaged > 0 {
                tracing::warn!(damaged, "removed recordings of voices whose description cannot be read");
                clones.refresh();
            }
            let given = clones.given.list().map_err(failed)?.into_iter();
            let mut all: Vec<Sample> = kept.chain(given.filter_map(|(id, about)| as_sample(&id, about))).collect();
            all.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(all)
        })
        .await
    }

    async fn agree(&self, id: &str, at: Timestamp) -> Result<bool, SampleError> {
        let id = id.strip_prefix(CLONE_MARK).unwrap_or_default().to_owned();
        self.work(move |clones| {
            let changed = clones.given.change(&id, |about| about.agreed_at = Some(at.to_string()));
            clones.refresh();
            found(changed)
        })
        .await
    }

    async fn remove(&self, id: &str) -> Result<bool, SampleError> {
        let id = id.to_owned();
        self.work(move |clones| {
            let removed = match id.strip_prefix(CLONE_MARK) {
                Some(given) => clones.given.remove(given),
                None => clones.kept.remove(&id),
            };
            clones.refresh();
            found(removed)
        })
        .await
    }
}

/// Returns the id of a recording, which says which one it is and when it was given.
fn id_of(about: &GivenSample, wav: &[u8]) -> String {
    let digest = Sha256::new().chain_update(&about.at).chain_update(&about.by).chain_update(wav).finalize();
    HEXLOWER.encode(digest.get(..ID_BYTES).unwrap_or(&digest))
}

/// Returns a given sample as the engine knows it; `None` if its file holds something else.
fn as_sample(id: &str, about: GivenSample) -> Option<Sample> {
    let given = Given {
        whose: PersonId::new(about.whose).ok()?,
        by: PersonId::new(about.by).ok()?,
        place: about.place,
        at: about.at.parse().ok()?,
        agreed_at: about.agreed_at.map(|at| at.parse()).transpose().ok()?,
    };
    Some(Sample { id: format!("{CLONE_MARK}{id}"), name: about.name, given: Some(given), seconds: about.seconds })
}

fn found(done: Result<(), FolderError>) -> Result<bool, SampleError> {
    match done {
        Ok(()) => Ok(true),
        Err(FolderError::Missing(_) | FolderError::Name) => Ok(false),
        Err(error) => Err(failed(error)),
    }
}

fn unkept(error: FolderError) -> SampleError {
    match error {
        FolderError::Full => SampleError::Unfit(error.to_string()),
        error => failed(error),
    }
}

fn failed(error: FolderError) -> SampleError {
    SampleError::Store(error.to_string())
}

#[cfg(test)]
mod tests {
    use azera_voice_samples::PreparedSample;

    use super::*;

    fn about(agreed: bool) -> GivenSample {
        GivenSample {
            name: "ann".to_owned(),
            whose: "discord:1".to_owned(),
            by: "discord:2".to_owned(),
            place: None,
            at: "2026-03-01T12:00:00Z".to_owned(),
            agreed_at: agreed.then(|| "2026-03-01T12:05:00Z".to_owned()),
            seconds: 4.0,
        }
    }

    #[test]
    fn engines_see_only_what_was_agreed_to_and_nothing_that_is_gone() {
        let scratch = tempfile::tempdir().expect("a folder");
        let clones = Clones::of(scratch.path());
        let sample = PreparedSample { wav: b"RIFF".to_vec(), seconds: 4.0, recorded_lufs: -23.0 };
        clones.given.add("a1", &about(false), &sample).expect("it is kept");
        clones.refresh();
        assert!(clones.ids().is_empty() && clones.wav("~a1").is_none() && clones.numbers("~a1").is_none());
        clones.given.change("a1", |known| known.agreed_at = about(true).agreed_at).expect("it is there");
        clones.refresh();
        assert_eq!((clones.ids(), clones.wav("~a1")), (vec!["~a1".to_owned()], Some(b"RIFF".to_vec())));
        assert!(Arc::ptr_eq(&clones, &Clones::of(scratch.path())), "all engines see the same");
        clones.given.remove("a1").expect("it is there");
        clones.refresh();
        assert!(clones.ids().is_empty() && clones.numbers("~a1").is_none());
    }
}
