//! Wires the parts together: from a configuration to a running engine.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use azera_config::Config;
use azera_engine::{BackgroundWriter, Engine, EngineDependencies};
use azera_memory::{Layers, Memory, MemoryConfig, Store};
use azera_memory_backup::Folder;
use azera_memory_blobs::DiskBlobs;
use azera_memory_sled::SledStore;
use azera_memory_text::TantivyText;
use azera_memory_vector::{EmbeddedVectors, VectorConfig};
use azera_model_api::{ChatModel, Embedder, EmbedderInfo, ScriptedModel};
use azera_model_llama::{Dates, LlamaChat, LlamaChatConfig, LlamaEmbedder, LlamaEmbedderConfig};
use azera_model_registry::{InstalledModel, Kind, Models, Options};
use azera_types::Clock;
use azera_voice_call_recordings::RecordingFolder;
use tokio::sync::Notify;

use crate::backup::{BackupJob, Backups};
use crate::chat_config::chat_config;
use crate::classifiers::classifiers;
use crate::data::DataFolder;
use crate::model_catalog::RegistryCatalog;
use crate::persona::bring_personas;
use crate::progress::Bar;
use crate::room::RoomyStore;
use crate::stores::OnServers;
use crate::{call_recordings, chosen, loras, reranker, servers, stores, trust, vault};

pub use crate::model_choice::ModelChoice;

/// Size of the key-value cache, in conversations of full length.
const FULL_CONVERSATIONS: usize = 4;

/// What [`open`] needs besides the configuration.
pub struct BootstrapOptions {
    pub answers: ModelChoice,
    pub clock: Arc<dyn Clock>,
    pub seed: Option<u64>,
    /// Lets the model answer people in danger before it has passed the safety check. Only that check sets this.
    pub on_trial: bool,
}

/// A running engine and its parts.
pub struct App {
    pub engine: Engine,
    pub memory: Arc<Memory>,
    pub model: Arc<dyn ChatModel>,
    pub embedder: Arc<dyn Embedder>,
    pub data: PathBuf,
    pub backups: Arc<BackupJob>,
    pub servers: OnServers,
    pub recordings: RecordingFolder,
    /// Notified when a hook left a transcript.
    pub transcripts: Arc<Notify>,
    /// Keeps the data folder locked while the stores are open.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only `azera mcp` takes it back"))]
    folder: DataFolder,
}

#[cfg(feature = "http")]
impl App {
    /// Closes everything but the memory and the folder, which must be held until nothing else has the memory.
    pub fn into_memory(self) -> (Arc<Memory>, DataFolder) {
        (self.memory, self.folder)
    }
}

/// The open stores of a data folder. The folder belongs to this process while they are open.
pub struct Stores {
    pub memory: Memory,
    servers: OnServers,
    folder: DataFolder,
}

/// Opens the models folder.
pub fn models(config: &Config) -> anyhow::Result<Models> {
    let mut options = Options::new(config.models_dir()?);
    if let Some(endpoint) = &config.models.hub_endpoint {
        options.hub_endpoint.clone_from(endpoint);
    }
    options.hub_token = config.models.hub_token.as_ref().map(|token| token.expose().to_owned());
    Ok(Models::open(options)?)
}

/// Returns the name of the model in use for a kind. A voice may be named by itself; its model is in use then.
pub fn chosen(config: &Config, models: &Models, kind: Kind) -> anyhow::Result<String> {
    let configured = match kind {
        Kind::Chat => &config.models.chat,
        Kind::Embedding => &config.models.embedding,
        Kind::Speech => &config.voice.speech_model,
        Kind::Voice => &config.voice.voice,
        Kind::Vad => &None,
        Kind::Reranker => &config.reranker.model,
    };
    match configured {
        Some(name) => Ok(match models.registry()?.with_voice(name) {
            Some(model) if kind == Kind::Voice => model.name.clone(),
            _ => name.clone(),
        }),
        None => {
            let entry = models.selected(kind)?;
            Ok(entry.with_context(|| format!("the registry has no {kind} model"))?.name)
        }
    }
}

/// Returns an installed model. Fetches it first if it is missing, and shows progress on the error output.
pub async fn installed(models: &Models, name: &str) -> anyhow::Result<InstalledModel> {
    if let Some(found) = models.find(name)? {
        return Ok(found);
    }
    eprintln!("fetching the model {name}");
    let bar = Bar::new();
    models.pull(name, &now_text(), &|step| bar.show(step)).await?;
    models.find(name)?.with_context(|| format!("the model {name} was fetched and is not there"))
}

/// Returns the current time as text, for manifests.
pub fn now_text() -> String {
    azera_types::SystemClock.now().to_string()
}

/// Loads a chat model with its LoRAs.
pub fn load_chat(
    config: &Config,
    models: &Models,
    installed: &InstalledModel,
    on_trial: bool,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<Arc<dyn ChatModel>> {
    let loras = loras::of(config, models, installed)?;
    // Reserve memory for the LoRAs of single places only if the Hearth can make some.
    let adaptable = config.hearth.enabled;
    let reading_lora = loras::reading(config, models, installed)?;
    match loras::of_another(loras.iter().chain(&reading_lora), &installed.manifest.sha256) {
        Ok(None) => {}
        Ok(Some(lora)) => {
            let file = lora.path.display();
            tracing::warn!(%file, "this LoRA was trained on another file than the model that it is used with");
        }
        // The loader reports what is wrong with the file.
        Err(error) => tracing::debug!(%error, "cannot read which model a LoRA was trained on"),
    }
    let trusted_in_danger = on_trial || trust::is_trusted(config, installed, &loras)?;
    let dates = dates(config, clock);
    let llama = LlamaChatConfig { dates, ..llama_config(config, installed)? };
    Ok(LlamaChat::load(LlamaChatConfig { loras, reading_lora, adaptable, trusted_in_danger, ..llama })?)
}

/// Returns the present day in the configured time zone, for chat templates that name it.
fn dates(config: &Config, clock: Arc<dyn Clock>) -> Dates {
    let zone = jiff::tz::TimeZone::get(&config.gardener.time_zone).unwrap_or(jiff::tz::TimeZone::UTC);
    Dates::new(move |format| {
        let now = clock.now().to_zoned(zone.clone());
        // A template may have a format that does not exist.
        jiff::fmt::strtime::format(format, &now).unwrap_or_default()
    })
}

/// Returns the model's family, by which prompts choose their format.
pub fn family(installed: &InstalledModel) -> anyhow::Result<String> {
    let family = serde_json::to_value(installed.entry.family)?;
    Ok(family.as_str().unwrap_or("generic").to_owned())
}

/// Returns the settings to load a chat model with, without LoRAs.
pub fn llama_config(config: &Config, installed: &InstalledModel) -> anyhow::Result<LlamaChatConfig> {
    let mut llama = LlamaChatConfig::new(&installed.path, &installed.entry.name, family(installed)?);
    llama.identity.clone_from(&installed.manifest.sha256);
    llama.context_tokens = config.models.context_tokens as usize;
    llama.cache_tokens = llama.context_tokens * FULL_CONVERSATIONS;
    llama.slots = config.models.slots as usize;
    llama.threads = (config.models.threads > 0).then_some(config.models.threads as usize);
    llama.gpu_layers = config.models.gpu_layers;
    llama.prefix_disk_bytes = u64::from(config.models.prefix_cache_mb) << 20;
    llama.prefix_dir = match config.models.prefix_cache_mb {
        0 => None,
        _ => Some(config.models_dir()?.join("prefixes")),
    };
    Ok(llama)
}

/// Loads an embedding model.
pub fn load_embedder(config: &Config, installed: &InstalledModel) -> anyhow::Result<Arc<dyn Embedder>> {
    let entry = &installed.entry;
    let Some(embedding) = &entry.embedding else { bail!("{} is no embedding model", entry.name) };
    let info = embedder_info(config, installed)?;
    let mut llama = LlamaEmbedderConfig::new(&installed.path, info.id);
    llama.similarity_floor = info.similarity_floor;
    llama.query_prefix.clone_from(&embedding.query_prefix);
    llama.document_prefix.clone_from(&embedding.document_prefix);
    llama.window_tokens = embedding.max_tokens as usize;
    llama.threads = (config.models.threads > 0).then_some(config.models.threads as usize);
    llama.gpu_layers = config.models.gpu_layers;
    Ok(LlamaEmbedder::load(llama)?)
}

/// Returns the embedding model in use, loaded here or reached on a server.
pub async fn embedder(config: &Config) -> anyhow::Result<Arc<dyn Embedder>> {
    if let Some(server) = servers::configured(config, Kind::Embedding) {
        return servers::embedder(config, server, &config.data_dir()?).await;
    }
    let models = models(config)?;
    let installed = installed(&models, &chosen(config, &models, Kind::Embedding)?).await?;
    let config = config.clone();
    tokio::task::spawn_blocking(move || load_embedder(&config, &installed)).await?
}

/// Returns what the stores need to know about an embedding model, without loading it. See [`present_embedder_info`] for
/// the one in use.
fn embedder_info(config: &Config, installed: &InstalledModel) -> anyhow::Result<EmbedderInfo> {
    let entry = &installed.entry;
    let Some(embedding) = &entry.embedding else { bail!("{} is no embedding model", entry.name) };
    let digest: String = installed.manifest.sha256.chars().take(16).collect();
    Ok(EmbedderInfo {
        id: format!("{}@{digest}", entry.name),
        dimension: embedding.dimension as usize,
        similarity_floor: config.memory.similarity_floor.unwrap_or(embedding.similarity_floor),
        asks_otherwise: !embedding.query_prefix.is_empty(),
    })
}

/// Returns what the stores need to know about the embedding model in use, here or on a server.
pub async fn present_embedder_info(config: &Config) -> anyhow::Result<EmbedderInfo> {
    if let Some(server) = servers::configured(config, Kind::Embedding) {
        return servers::embedder_info(config, server, &config.data_dir()?).await;
    }
    let models = models(config)?;
    embedder_info(config, &installed(&models, &chosen(config, &models, Kind::Embedding)?).await?)
}

/// Opens the stores of a data folder.
pub fn open_stores(config: &Config, data: &Path, info: &EmbedderInfo) -> anyhow::Result<Stores> {
    open_stores_in(config, DataFolder::take(data)?, info)
}

/// Opens the stores of a data folder that this process holds.
fn open_stores_in(config: &Config, folder: DataFolder, info: &EmbedderInfo) -> anyhow::Result<Stores> {
    let (floor_bytes, data) = (u64::from(config.data.min_free_mb) << 20, folder.dir().to_owned());
    let wrap = |store: SledStore| -> Arc<dyn Store> {
        let store: Arc<dyn Store> = Arc::new(store);
        if floor_bytes == 0 { store } else { Arc::new(RoomyStore::new(store, &data, floor_bytes)) }
    };
    open_stores_with(config, folder, info, &wrap)
}

/// Opens the stores like [`open_stores`], with a wrapper around the record's store.
pub fn open_stores_with(
    config: &Config,
    mut folder: DataFolder,
    info: &EmbedderInfo,
    wrap: &dyn Fn(SledStore) -> Arc<dyn Store>,
) -> anyhow::Result<Stores> {
    // No other process works in this folder. So an index that fails has damaged files, and the record can rebuild it.
    let data = &folder.dir().to_owned();
    let was_killed = folder.was_left_running();
    let store = SledStore::open(folder.record()).map_err(|error| folder.record_error(&error))?;
    let opening_failed = folder.begin_opening()?;
    let needs_rebuild =
        opening_failed || azera_memory::rebuild_wanted(&store).map_err(|error| folder.record_error(&error))?;
    if needs_rebuild {
        remove_indexes(data)?;
    }
    let (vectors, text, indexes_recreated) = open_indexes(data, info.dimension, was_killed)?;
    folder.end_opening()?;
    let mut on_servers = OnServers::default();
    let layers = Layers {
        store: wrap(store),
        vectors: stores::vectors(config, data, vectors, info.dimension, &mut on_servers)?,
        text: Arc::new(text),
        working: stores::working(config, data, &mut on_servers)?,
        blobs: Arc::new(DiskBlobs::open(folder.blobs())?),
    };
    let memory = Memory::open(
        layers,
        MemoryConfig {
            session_gap: Duration::from_secs(u64::from(config.memory.session_gap_minutes) * 60),
            min_age: Duration::from_secs(config.memory.min_age_s),
            snippet_chars: config.memory.snippet_chars as usize,
            similarity_floor: info.similarity_floor,
            near_duplicate: config.memory.near_duplicate,
            embedder: info.id.clone(),
            blob_max_bytes: config.memory.blob_max_bytes,
            blobs_max_bytes: config.memory.blobs_max_bytes,
        },
    )
    .map_err(|error| folder.record_error(&error))?;
    if was_killed {
        memory.indexing().mark_indexes_suspect().map_err(|error| folder.record_error(&error))?;
        folder.mark_recorded();
    }
    if let Some(queued) = memory.indexing().follow_embedder()? {
        let model = &info.id;
        tracing::warn!(memories = queued, %model, "the embedding model changed: embedding all memories again");
    } else if indexes_recreated || needs_rebuild {
        let queued = memory.indexing().rebuild()?;
        if queued > 0 {
            tracing::warn!(memories = queued, "an index is missing or damaged: rebuilding both from the record");
        }
    }
    Ok(Stores { memory, servers: on_servers, folder })
}

/// Returns the backup folder.
pub fn backups(config: &Config) -> anyhow::Result<Folder> {
    Ok(Folder::new(config.backup_dir()?, env!("CARGO_PKG_VERSION")))
}

/// Opens both indexes. The flag is true if one had to be created again, because it was missing or damaged or holds
/// vectors of another length.
///
/// After an unclean stop, also verifies the checksums of files that have some.
fn open_indexes(
    data: &Path,
    dimension: usize,
    was_killed: bool,
) -> anyhow::Result<(EmbeddedVectors, TantivyText, bool)> {
    let (vectors_dir, text_dir) = (data.join("vectors"), data.join("text"));
    // A missing index covers nothing of the record.
    let missing = !vectors_dir.exists() || !text_dir.exists();
    let config = VectorConfig::new(dimension);
    let (vectors, vectors_recreated) = match EmbeddedVectors::open(&vectors_dir, config) {
        Ok(vectors) => (vectors, false),
        Err(error) => (EmbeddedVectors::open(remove_index(&vectors_dir, &error)?, config)?, true),
    };
    let opened = TantivyText::open(&text_dir).and_then(|text| if was_killed { text.verified() } else { Ok(text) });
    let (text, text_recreated) = match opened {
        Ok(text) => (text, false),
        Err(error) => (TantivyText::open(remove_index(&text_dir, &error)?)?, true),
    };
    Ok((vectors, text, missing || vectors_recreated || text_recreated))
}

/// Removes both indexes.
fn remove_indexes(data: &Path) -> anyhow::Result<()> {
    for index in ["vectors", "text"] {
        match std::fs::remove_dir_all(data.join(index)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("removing {}", data.join(index).display()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Removes an index that cannot be opened, and returns its path. Fails on a disk error, because the index may be
/// intact.
fn remove_index<'a>(dir: &'a Path, error: &azera_memory::Error) -> anyhow::Result<&'a Path> {
    if let azera_memory::Error::Io { .. } | azera_memory::Error::Full { .. } = error {
        bail!("{}: {error}", dir.display());
    }
    tracing::warn!(index = %dir.display(), %error, "removing the index");
    std::fs::remove_dir_all(dir).with_context(|| format!("removing {}", dir.display()))?;
    Ok(dir)
}

/// The source of a model.
enum Source<M: ?Sized> {
    /// A file that must be loaded.
    File(Box<InstalledModel>),
    /// A model that is ready.
    Ready(Arc<M>),
}

/// Opens everything and starts nothing. Attach platforms, then call [`Engine::start`].
pub async fn open(config: &Config, opening: BootstrapOptions) -> anyhow::Result<App> {
    with_inner_life(config, open_without_inner_life(config, opening).await?)
}

/// Does the same as [`open`] in a data folder that this process holds.
#[cfg(feature = "http")]
pub async fn open_in(config: &Config, folder: DataFolder, opening: BootstrapOptions) -> anyhow::Result<App> {
    with_inner_life(config, open_parts(config, Some(folder), opening).await?)
}

/// Adds moods, tags, notes, background writing and the Hearth.
fn with_inner_life(config: &Config, app: App) -> anyhow::Result<App> {
    let (learning, embedder_for_learning) = (config.clone(), app.embedder.clone());
    app.engine.learn(move || {
        let (config, embedder) = (learning.clone(), embedder_for_learning.clone());
        async move { classifiers(&config, &embedder, &|_, _| {}).await }
    });
    app.engine.add_job(Arc::new(BackgroundWriter::of(&app.engine)));
    // Whatever draws is judged, in the terminal too.
    if crate::vision::give_sight(&app.engine, config) {
        crate::images::draw(&app.engine, config);
    } else {
        app.engine.set_pictures_aside();
    }
    if let Some(hearth) = crate::hearth::hearth(config, models(config)?, &app.data)? {
        let folder = hearth.folder.clone();
        app.engine.light(hearth).with_context(|| format!("opening {}", folder.display()))?;
    }
    Ok(app)
}

/// Returns where the model that answers comes from.
async fn chat_source(config: &Config, models: &Models, answers: &ModelChoice) -> anyhow::Result<Source<dyn ChatModel>> {
    Ok(match (answers, servers::configured(config, Kind::Chat)) {
        (ModelChoice::Scripted, _) => Source::Ready(Arc::new(ScriptedModel::saying("Noted."))),
        (ModelChoice::Chosen, Some(server)) => Source::Ready(servers::chat(config, server).await?),
        (ModelChoice::Named(name), Some(server)) if servers::is_server_model(config, name) => {
            Source::Ready(servers::chat(config, server).await?)
        }
        (ModelChoice::Named(name), _) => Source::File(Box::new(installed(models, name).await?)),
        (ModelChoice::Chosen, None) => {
            Source::File(Box::new(installed(models, &chosen(config, models, Kind::Chat)?).await?))
        }
    })
}

/// Opens everything except moods, tags, notes, background writing and the Hearth. Benchmarks measure their cost with
/// this.
pub async fn open_without_inner_life(config: &Config, opening: BootstrapOptions) -> anyhow::Result<App> {
    open_parts(config, None, opening).await
}

/// Opens the parts, in a data folder that this process holds or takes.
async fn open_parts(config: &Config, folder: Option<DataFolder>, opening: BootstrapOptions) -> anyhow::Result<App> {
    let data = config.data_dir()?;
    let models = models(config)?;
    let embedding = match servers::configured(config, Kind::Embedding) {
        Some(server) => Source::Ready(servers::embedder(config, server, &data).await?),
        None => Source::File(Box::new(installed(&models, &chosen(config, &models, Kind::Embedding)?).await?)),
    };
    let chat = chat_source(config, &models, &opening.answers).await?;
    // Load the model and open the stores in parallel.
    let chat = {
        let (config, models, on_trial) = (config.clone(), models.clone(), opening.on_trial);
        let clock = opening.clock.clone();
        tokio::task::spawn_blocking(move || -> anyhow::Result<Arc<dyn ChatModel>> {
            match chat {
                Source::File(installed) => load_chat(&config, &models, &installed, on_trial, clock),
                Source::Ready(model) => Ok(model),
            }
        })
    };
    let stores = {
        let (config, data) = (config.clone(), data.clone());
        tokio::task::spawn_blocking(move || -> anyhow::Result<(Arc<dyn Embedder>, Stores)> {
            let embedder = match embedding {
                Source::File(installed) => load_embedder(&config, &installed)?,
                Source::Ready(embedder) => embedder,
            };
            let stores = match folder {
                Some(folder) => open_stores_in(&config, folder, embedder.info())?,
                None => open_stores(&config, &data, embedder.info())?,
            };
            Ok((embedder, stores))
        })
    };
    let reranking = {
        let (config, models) = (config.clone(), models.clone());
        tokio::task::spawn_blocking(move || reranker::load(&config, &models))
    };
    let (embedder, Stores { memory, servers, folder }) = stores.await??;
    let model = chat.await??;
    let memory = Arc::new(memory);
    let backups = backups(config)?;
    bring_personas(&memory, &data, opening.clock.as_ref()).map_err(|error| {
        match error.downcast_ref::<azera_memory::Error>() {
            Some(record_failure) => folder.record_error(record_failure),
            None => error,
        }
    })?;
    chosen::ensure_personas(config, &chosen::persona_ids(&memory)?)?;
    if let Some(note) = chosen::role_left_out(config, model.info()) {
        tracing::warn!("{note}");
    }
    let engine = Engine::new(EngineDependencies {
        memory: memory.clone(),
        model: model.clone(),
        embedder: embedder.clone(),
        clock: opening.clock.clone(),
        models: Arc::new(RegistryCatalog::new(config.clone(), models, opening.clock)),
        params: Arc::new(azera_affect::MindParams {
            constants: config.mind.clone(),
            zone: jiff::tz::TimeZone::get(&config.gardener.time_zone).unwrap_or(jiff::tz::TimeZone::UTC),
        }),
        config: chat_config(config, model.info(), opening.seed)?,
    });
    reranker::give_reranker(&engine, config, reranking.await?);
    vault::give_keys(&engine, config, &memory.record())?;
    let backups = Arc::new(BackupJob::new(memory.clone(), backups, data.clone(), &config.backup));
    engine.add_job(Arc::new(Backups(backups.clone())));
    let recordings = call_recordings::open(config, &data)?;
    engine.give_recordings(Arc::new(recordings.clone()));
    let transcripts = Arc::new(Notify::new());
    Ok(App { engine, memory, model, embedder, data, backups, servers, recordings, transcripts, folder })
}
