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
use super::shape::{BaseShape, write_temp_file};
use super::{LoadedLoras, LoraSetKey};
use crate::backend;
use crate::config::LlamaChatConfig;

/// The sets of LoRAs in memory.
#[derive(Debug)]
pub(crate) struct LoraPool {
    reader: Option<Arc<Reader>>,
    /// The LoRAs that the model was loaded with. Every request has them, besides its own.
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
    /// Loads the LoRAs that a model is served with, and reserves room for those that requests may name. The model's
    /// context must not exist yet.
    pub(crate) fn open(config: &LlamaChatConfig, model: &mut LlamaModel) -> Result<Self, Error> {
        let (own, limit_bytes) = (active(&config.loras)?, config.lora_bytes);
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

    /// Returns the key of the LoRAs that the model was loaded with.
    pub(crate) fn own_set(&self) -> Option<LoraSetKey> {
        self.own_set.as_ref().map(|set| set.key.clone())
    }

    /// Returns the set for a request with these LoRAs, and loads it if needed. `None` is the bare model.
    pub(crate) async fn set(&self, loras: &[Lora]) -> Result<Option<Arc<LoadedLoras>>, Error> {
        let loras = active(loras)?;
        if loras.is_empty() {
            return Ok(self.own_set.clone());
        }
        let Some(reader) = &self.reader else {
            return Err(Error::Invalid("this model was loaded without room for LoRAs".into()));
        };
        let loras: Vec<Lora> = self.own.iter().cloned().chain(loras).collect();
        let key = LoraSetKey::of(&loras);
        let set = self.place(&key);
        let loaded = set.get_or_try_init(|| load_apart(Arc::clone(reader), loras)).await;
        let loaded = loaded.cloned().inspect_err(|_| self.drop_if_empty(&key))?;
        Ok(Some(loaded))
    }

    /// Removes every set with a LoRA from the pool. Current users keep theirs.
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

    /// Removes the least recently used sets, except `except`, until the others are within the limit. Returns false if
    /// they already were.
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
        // Nothing between a change and its end can panic.
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Loads LoRAs for a model.
struct Reader {
    base: BaseShape,
    gpu_layers: Option<u32>,
    /// Held while a set is loaded, so that many loads at once do not take the processor from live chat.
    one_at_a_time: Mutex<()>,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("architecture", &self.base.architecture).finish_non_exhaustive()
    }
}

impl Reader {
    /// Loads a set that is not empty.
    fn load(&self, loras: &[Lora]) -> Result<LoadedLoras, Error> {
        let _turn = self.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        let mut parts = Vec::new();
        for lora in loras {
            let file = read(&lora.path, &lora.id).and_then(|file| LoraFile::read(file, &self.base));
            parts.push((file.map_err(|reason| rejected(&lora.path, reason))?, lora.scale));
        }
        let (file, scale) = join(&self.base.architecture, &parts);
        drop(parts);
        let bytes = file.tensors.iter().map(|tensor| tensor.data.len() as u64).sum();
        let failed = |error: &dyn std::error::Error| Error::Engine(format!("adapters could not be loaded: {error}"));
        let path = write_temp_file(|out| {
            let mut out = BufWriter::new(out);
            file.write(&mut out)?;
            out.flush()
        });
        let path = path.map_err(|error| failed(&error))?;
        drop(file);
        let mut skeleton = self.base.skeleton(self.gpu_layers)?;
        let lora = skeleton.lora_adapter_init(&path).map_err(|error| failed(&error))?;
        Ok(LoadedLoras { key: LoraSetKey::of(loras), lora: Mutex::new(lora), scale, bytes, _skeleton: skeleton })
    }
}

/// Loads a set on a thread with low priority.
async fn load_apart(reader: Arc<Reader>, loras: Vec<Lora>) -> Result<Arc<LoadedLoras>, Error> {
    let (done, loaded) = oneshot::channel();
    let load = move || {
        backend::give_way(backend::BACKGROUND_NICENESS);
        // A caller that left needs no answer.
        done.send(reader.load(&loras)).ok();
    };
    std::thread::Builder::new()
        .name("llama-adapter".into())
        .spawn(load)
        .map_err(|error| Error::Engine(format!("no thread to load LoRAs: {error}")))?;
    loaded.await.map_err(|_| Error::Engine("the thread that loads LoRAs ended".into()))?.map(Arc::new)
}

/// Checks that a LoRA's file is the named one, and fits a model's file.
///
/// # Errors
/// [`Error::Lora`] says what is wrong with the LoRA. [`Error::Load`] if the model's file cannot be read.
pub fn check_lora(model: &Path, lora: &Lora) -> Result<(), Error> {
    let base = BaseShape::read(model)?;
    let read = read(&lora.path, &lora.id).and_then(|file| LoraFile::read(file, &base));
    read.map(|_| ()).map_err(|reason| rejected(&lora.path, reason))
}

/// Returns the LoRAs whose scale is not 0.
fn active(loras: &[Lora]) -> Result<Vec<Lora>, Error> {
    if loras.len() > MAX_LORAS {
        return Err(Error::Invalid(format!("there are more than {MAX_LORAS} LoRAs")));
    }
    if loras.iter().any(|lora| !lora.scale.is_finite()) {
        return Err(Error::Invalid("the scale of a LoRA is not a number".into()));
    }
    Ok(loras.iter().filter(|lora| lora.scale != 0.0).cloned().collect())
}

/// Reads a LoRA's file, and checks its hash.
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

fn rejected(path: &Path, reason: String) -> Error {
    Error::Lora { path: path.to_path_buf(), reason }
}
