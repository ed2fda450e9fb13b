use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use azera_model_api::{Error, Lora, LoraId, MAX_LORAS};
use llama_cpp_2::model::LlamaModel;
use sha2::{Digest, Sha256};
use tokio::sync::{OnceCell, oneshot};

use super::file::{LoraFile, MAX_LORA_BYTES, join};
use super::shape::{BaseShape, written};
use super::{LoadedLoras, LoraSetKey};
use crate::backend;
use crate::config::LlamaChatConfig;

/// The sets of adapters that are in memory.
#[derive(Debug)]
pub(crate) struct LoraPool {
    reader: Option<Arc<Reader>>,
    /// Those the model was loaded with, under whatever a request asks for.
    own: Vec<Lora>,
    own_set: Option<Arc<LoadedLoras>>,
    limit_bytes: u64,
    sets: Mutex<Sets>,
}

#[derive(Debug, Default)]
struct Sets {
    places: HashMap<LoraSetKey, Place>,
    clock: u64,
}

#[derive(Debug)]
struct Place {
    used: u64,
    set: Arc<OnceCell<Arc<LoadedLoras>>>,
}

impl LoraPool {
    /// Loads the adapters that a model is to be served with, and makes room in it for those that requests may name. The
    /// model's context must not be there yet.
    pub(crate) fn open(config: &LlamaChatConfig, model: &mut LlamaModel) -> Result<Self, Error> {
        let (own, limit_bytes) = (at_work(&config.loras)?, config.lora_bytes);
        let mut pool = Self { reader: None, own, own_set: None, limit_bytes, sets: Mutex::default() };
        if config.adaptable || !pool.own.is_empty() {
            let (base, gpu_layers) = (BaseShape::read(&config.path)?, config.gpu_layers);
            base.make_room(model)?;
            let reader = Reader { base, gpu_layers, one_at_a_time: Mutex::new(()) };
            if !pool.own.is_empty() {
                pool.own_set = Some(Arc::new(reader.load(&pool.own)?));
            }
            pool.reader = Some(Arc::new(reader));
        }
        Ok(pool)
    }

    /// The adapters the model was loaded with, by their name.
    pub(crate) fn own_set(&self) -> Option<LoraSetKey> {
        self.own_set.as_ref().map(|set| set.key.clone())
    }

    /// The set that a request with these adapters is served with; loaded if it is not there. `None` is the bare model.
    pub(crate) async fn set(&self, loras: &[Lora]) -> Result<Option<Arc<LoadedLoras>>, Error> {
        let loras = at_work(loras)?;
        if loras.is_empty() {
            return Ok(self.own_set.clone());
        }
        let Some(reader) = &self.reader else {
            return Err(Error::Invalid("this model was loaded without room for adapters".into()));
        };
        let loras: Vec<Lora> = self.own.iter().cloned().chain(loras).collect();
        let key = LoraSetKey::of(&loras);
        let set = self.place(&key);
        let loaded = set.get_or_try_init(|| load_apart(Arc::clone(reader), loras)).await;
        let loaded = loaded.cloned().inspect_err(|_| self.drop_if_empty(&key))?;
        Ok(Some(loaded))
    }

    /// Takes every set with an adapter off the shelf. Those who use one keep it.
    pub(crate) fn forget(&self, lora: &LoraId) {
        self.sets().places.retain(|key, _| !key.has(lora));
    }

    fn place(&self, key: &LoraSetKey) -> Arc<OnceCell<Arc<LoadedLoras>>> {
        let mut sets = self.sets();
        sets.clock += 1;
        let used = sets.clock;
        let place = sets.places.entry(key.clone()).or_insert_with(|| Place { used, set: Arc::default() });
        place.used = used;
        Arc::clone(&place.set)
    }

    fn drop_if_empty(&self, key: &LoraSetKey) {
        let mut sets = self.sets();
        if sets.places.get(key).is_some_and(|place| place.set.get().is_none()) {
            sets.places.remove(key);
        }
    }

    /// Takes the sets off the shelf that were used longest ago until the others, and `except`, take few enough bytes;
    /// false when they did already.
    pub(crate) fn make_room(&self, except: Option<&LoraSetKey>) -> bool {
        let mut sets = self.sets();
        let mut made = false;
        loop {
            let loaded = sets.places.iter().filter_map(|(key, place)| Some((key, place.used, place.set.get()?.bytes)));
            let bytes: u64 = loaded.clone().map(|(_, _, bytes)| bytes).sum();
            let oldest = loaded.filter(|(key, ..)| Some(*key) != except).min_by_key(|(_, used, _)| *used);
            let Some(oldest) = oldest.filter(|_| bytes > self.limit_bytes).map(|(key, ..)| key.clone()) else {
                return made;
            };
            sets.places.remove(&oldest);
            made = true;
        }
    }

    fn sets(&self) -> MutexGuard<'_, Sets> {
        // Nothing that can panic stands between a change and its end.
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads adapters for a model.
struct Reader {
    base: BaseShape,
    gpu_layers: Option<u32>,
    /// Held while one is read, so that many that are wanted at once do not take the processor from those who talk.
    one_at_a_time: Mutex<()>,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("architecture", &self.base.architecture).finish_non_exhaustive()
    }
}

impl Reader {
    /// Reads a set that is not empty.
    fn load(&self, loras: &[Lora]) -> Result<LoadedLoras, Error> {
        let _turn = self.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        let mut parts = Vec::new();
        for lora in loras {
            let file = read(&lora.path, &lora.id).and_then(|file| LoraFile::read(file, &self.base));
            parts.push((file.map_err(|reason| refused(&lora.path, reason))?, lora.scale));
        }
        let (file, scale) = join(&self.base.architecture, &parts);
        drop(parts);
        let bytes = file.tensors.iter().map(|tensor| tensor.data.len() as u64).sum();
        let failed = |error: &dyn std::error::Error| Error::Engine(format!("adapters could not be loaded: {error}"));
        let path = written(|out| {
            let mut out = BufWriter::new(out);
            file.write(&mut out)?;
            out.flush()
        });
        let path = path.map_err(|error| failed(&error))?;
        drop(file);
        let mut hull = self.base.hull(self.gpu_layers)?;
        let lora = hull.lora_adapter_init(&path).map_err(|error| failed(&error))?;
        Ok(LoadedLoras { key: LoraSetKey::of(loras), lora: Mutex::new(lora), scale, bytes, _hull: hull })
    }
}

/// Loads a set on a thread that gives way to those that compute.
async fn load_apart(reader: Arc<Reader>, loras: Vec<Lora>) -> Result<Arc<LoadedLoras>, Error> {
    let (done, loaded) = oneshot::channel();
    let load = move || {
        backend::give_way(backend::BACKGROUND_NICENESS);
        // Whoever left needs no answer.
        done.send(reader.load(&loras)).ok();
    };
    std::thread::Builder::new()
        .name("llama-adapter".into())
        .spawn(load)
        .map_err(|error| Error::Engine(format!("no thread to load adapters: {error}")))?;
    loaded.await.map_err(|_| Error::Engine("the thread that loads adapters ended".into()))?.map(Arc::new)
}

/// Whether an adapter's file is the one that is named, and fits a model's file.
///
/// # Errors
/// [`Error::Lora`] with what is wrong with it, or [`Error::Load`] when the model's file cannot be read.
pub fn check_lora(model: &Path, lora: &Lora) -> Result<(), Error> {
    let base = BaseShape::read(model)?;
    let read = read(&lora.path, &lora.id).and_then(|file| LoraFile::read(file, &base));
    read.map(|_| ()).map_err(|reason| refused(&lora.path, reason))
}

/// Those of the adapters that do something.
fn at_work(loras: &[Lora]) -> Result<Vec<Lora>, Error> {
    if loras.len() > MAX_LORAS {
        return Err(Error::Invalid(format!("there are more than {MAX_ADAPTERS} adapters")));
    }
    if loras.iter().any(|lora| !lora.scale.is_finite()) {
        return Err(Error::Invalid("the scale of an adapter is no number".into()));
    }
    Ok(loras.iter().filter(|lora| lora.scale != 0.0).cloned().collect())
}

/// The bytes of an adapter's file, if they are those that were named.
fn read(path: &Path, id: &LoraId) -> Result<Vec<u8>, String> {
    let unreadable = |error: std::io::Error| format!("its file cannot be read: {error}");
    let mut file = Vec::new();
    File::open(path).and_then(|it| it.take(MAX_LORA_BYTES + 1).read_to_end(&mut file)).map_err(unreadable)?;
    if file.len() as u64 > MAX_LORA_BYTES {
        return Err(format!("its file has more than {} MB", MAX_LORA_BYTES >> 20));
    }
    let found = LoraId::new(Sha256::digest(&file).into());
    if found != *id {
        return Err(format!("its file has the SHA-256 {found}, and {id} was asked for"));
    }
    Ok(file)
}

fn refused(path: &Path, reason: String) -> Error {
    Error::Lora { path: path.to_path_buf(), reason }
}
