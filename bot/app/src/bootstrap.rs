//! Wiring: from a configuration to a running core.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use azera_config::Config;
use azera_engine::{BackgroundWriter, ChatConfig, Engine, EngineParts};
use azera_memory::{Answering, Layers, Limits, Memory, MemoryConfig, Store};
use azera_memory_backup::Folder;
use azera_memory_sled::SledStore;
use azera_memory_text::TantivyText;
use azera_memory_vector::{EdgeVectors, VectorConfig};
use azera_model_api::{ChatModel, Embedder, EmbedderInfo, Sampling, ScriptedModel};
use azera_model_llama::{LlamaChat, LlamaChatConfig, LlamaEmbedder, LlamaEmbedderConfig};
use azera_model_registry::{InstalledModel, Kind, Models, Options};
use azera_types::{Clock, PersonaId};

use crate::backup::{BackupJob, Backups};
use crate::classifiers::classifiers;
use crate::data::DataFolder;
use crate::model_catalog::RegistryCatalog;
use crate::persona::bring_personas;
use crate::progress::Bar;
use crate::stores::OnServers;
use crate::{loras, servers, stores, trust};

/// Tokens of key-value cache for each token of a conversation's window: so many conversations of full length fit.
const FULL_CONVERSATIONS: usize = 4;

/// Which model answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelChoice {
    /// The configured or chosen one.
    Chosen,
    /// One by name.
    Named(String),
    /// A short fixed acknowledgement: for timelines in which only memory matters.
    Scripted,
}

impl ModelChoice {
    /// The one somebody names: `default`, `scripted`, or a model's name.
    pub fn named(name: &str) -> Self {
        match name {
            "default" => Self::Chosen,
            "scripted" => Self::Scripted,
            name => Self::Named(name.to_owned()),
        }
    }
}

/// What a core is opened with besides the configuration.
pub struct BootstrapOptions {
    pub answers: ModelChoice,
    pub clock: Arc<dyn Clock>,
    pub seed: Option<u64>,
    /// The model speaks to people in danger whether it passed the safety check or not: for that check alone.
    pub on_trial: bool,
}

/// A running core and what stands around it.
pub struct App {
    pub azera: Engine,
    pub memory: Arc<Memory>,
    pub model: Arc<dyn ChatModel>,
    pub embedder: Arc<dyn Embedder>,
    pub data: PathBuf,
    pub backups: Folder,
    pub servers: OnServers,
    /// Held as long as the stores are open.
    _folder: DataFolder,
}

/// The stores of a data folder, which is this process's as long as they are open.
pub struct Stores {
    pub memory: Memory,
    servers: OnServers,
    folder: DataFolder,
}

/// The models folder of this machine.
pub fn models(config: &Config) -> anyhow::Result<Models> {
    let mut options = Options::new(config.models_dir()?);
    if let Some(endpoint) = &config.models.hub_endpoint {
        options.hub_endpoint.clone_from(endpoint);
    }
    options.hub_token = config.models.hub_token.as_ref().map(|token| token.expose().to_owned());
    Ok(Models::open(options)?)
}

/// The name of the model of a kind that runs.
pub fn chosen(config: &Config, models: &Models, kind: Kind) -> anyhow::Result<String> {
    let configured = match kind {
        Kind::Chat => &config.models.chat,
        Kind::Embedding => &config.models.embedding,
    };
    match configured {
        Some(name) => Ok(name.clone()),
        None => {
            let entry = models.selected(kind)?;
            Ok(entry.with_context(|| format!("the ledger has no {kind} model"))?.name)
        }
    }
}

/// An installed model; one that is not here yet is fetched first, with progress on the error output.
pub async fn installed(models: &Models, name: &str) -> anyhow::Result<InstalledModel> {
    if let Some(found) = models.find(name)? {
        return Ok(found);
    }
    eprintln!("fetching the model {name}");
    let bar = Bar::new();
    models.pull(name, &now_text(), &|step| bar.show(step)).await?;
    models.find(name)?.with_context(|| format!("the model {name} was fetched and is not there"))
}

/// The time, for manifests.
pub fn now_text() -> String {
    azera_types::SystemClock.now().to_string()
}

/// Loads a chat model, with the adapters that belong to it.
pub fn load_chat(
    config: &Config,
    models: &Models,
    installed: &InstalledModel,
    on_trial: bool,
) -> anyhow::Result<Arc<dyn ChatModel>> {
    let loras = loras::of(config, models, installed)?;
    // Room for adapters of single places is made where there may be some.
    let adaptable = config.hearth.enabled;
    let reading_lora = loras::reading(config, models, installed)?;
    match loras::of_another(loras.iter().chain(&reading_lora), &installed.manifest.sha256) {
        Ok(None) => {}
        Ok(Some(lora)) => {
            let file = lora.path.display();
            tracing::warn!(%file, "this adapter was learnt on another file than the model it is used with");
        }
        // Whoever loads it says what is wrong with it.
        Err(error) => tracing::debug!(%error, "what an adapter was learnt on cannot be read"),
    }
    let trusted_in_danger = on_trial || trust::is_trusted(config, installed, &loras)?;
    let llama = llama_config(config, installed)?;
    Ok(LlamaChat::load(LlamaChatConfig { loras, reading_lora, adaptable, trusted_in_danger, ..llama })?)
}

/// The family of a model, as prompts know it.
pub fn family(installed: &InstalledModel) -> anyhow::Result<String> {
    let family = serde_json::to_value(installed.entry.family)?;
    Ok(family.as_str().unwrap_or("generic").to_owned())
}

/// What a chat model is loaded from, without adapters.
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

/// The embedding model that runs, here or on a server.
pub async fn embedder(config: &Config) -> anyhow::Result<Arc<dyn Embedder>> {
    if let Some(server) = servers::configured(config, Kind::Embedding) {
        return servers::embedder(config, server, &config.data_dir()?).await;
    }
    let models = models(config)?;
    let installed = installed(&models, &chosen(config, &models, Kind::Embedding)?).await?;
    let config = config.clone();
    tokio::task::spawn_blocking(move || load_embedder(&config, &installed)).await?
}

/// What the stores must know of a model on this machine; known without loading it. [`present_embedder_info`] is of the one
/// that runs.
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

/// What the stores must know of the embedding model that runs, here or on a server.
pub async fn present_embedder_info(config: &Config) -> anyhow::Result<EmbedderInfo> {
    if let Some(server) = servers::configured(config, Kind::Embedding) {
        return servers::embedder_info(config, server, &config.data_dir()?).await;
    }
    let models = models(config)?;
    embedder_info(config, &installed(&models, &chosen(config, &models, Kind::Embedding)?).await?)
}

/// Opens the stores of a data folder.
pub fn open_stores(config: &Config, data: &Path, info: &EmbedderInfo) -> anyhow::Result<Stores> {
    open_stores_with(config, data, info, &|store| Arc::new(store))
}

/// The same, with something around the record.
pub fn open_stores_with(
    config: &Config,
    data: &Path,
    info: &EmbedderInfo,
    enclosing: &dyn Fn(SledStore) -> Arc<dyn Store>,
) -> anyhow::Result<Stores> {
    // Nobody else works in this folder, so what is wrong with an index is wrong with its files, and it can be made anew
    // from the record.
    let mut folder = DataFolder::take(data)?;
    let doubtful = folder.was_left_running();
    let store = SledStore::open(folder.record()).map_err(|error| record_error(&error, &folder))?;
    let fatal = folder.begin_opening()?;
    let failed = fatal || azera_memory::rebuild_wanted(&store).map_err(|error| record_error(&error, &folder))?;
    if failed {
        remove_indexes(data)?;
    }
    let (vectors, text, made_anew) = open_indexes(data, info.dimension, doubtful)?;
    folder.end_opening()?;
    let mut on_servers = OnServers::default();
    let layers = Layers {
        store: enclosing(store),
        vectors: stores::vectors(config, data, vectors, info.dimension, &mut on_servers)?,
        text: Arc::new(text),
        working: stores::working(config, data, &mut on_servers)?,
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
        },
    )
    .map_err(|error| record_error(&error, &folder))?;
    if doubtful {
        memory.mark_indexes_suspect().map_err(|error| record_error(&error, &folder))?;
        folder.noted();
    }
    if let Some(queued) = memory.follow_embedder()? {
        tracing::warn!(memories = queued, model = %info.id, "the embedding model changed: everything is embedded anew");
    } else if made_anew || failed {
        let queued = memory.rebuild()?;
        if queued > 0 {
            tracing::warn!(memories = queued, "an index is missing or damaged: both are built anew from the record");
        }
    }
    Ok(Stores { memory, servers: on_servers, folder })
}

/// What to do about a record that does not open.
fn record_error(error: &azera_memory::Error, folder: &DataFolder) -> anyhow::Error {
    let record = folder.record();
    match error {
        azera_memory::Error::Full { .. } => {
            anyhow!("{error}: make some in {} and start again; nothing is lost", record.display())
        }
        azera_memory::Error::Io { .. } => anyhow!("{error} ({})", record.display()),
        azera_memory::Error::Invalid(_) => anyhow!("{error}"),
        azera_memory::Error::Backend { transient: true, .. } => anyhow!("{error}"),
        _ => anyhow!(
            "the record in {} is damaged ({error}). `azera restore --replace` brings back the newest backup, `azera restore \
             --salvage --replace` what can still be read; either puts what is there aside",
            record.display()
        ),
    }
}

/// The folder of the backups.
pub fn backups(config: &Config) -> anyhow::Result<Folder> {
    Ok(Folder::new(config.backup_dir()?, env!("CARGO_PKG_VERSION")))
}

/// Opens both indexes; the flag says whether one had to be made anew, because it was missing or damaged or holds vectors
/// of another length.
///
/// Where one is not sure of them, what has checksums is compared with those.
fn open_indexes(data: &Path, dimension: usize, doubtful: bool) -> anyhow::Result<(EdgeVectors, TantivyText, bool)> {
    let (vectors_dir, text_dir) = (data.join("vectors"), data.join("text"));
    // An index that is not there holds nothing of what the record does.
    let missing = !vectors_dir.exists() || !text_dir.exists();
    let config = VectorConfig::new(dimension);
    let (vectors, vectors_anew) = match EdgeVectors::open(&vectors_dir, config) {
        Ok(vectors) => (vectors, false),
        Err(error) => (EdgeVectors::open(emptied(&vectors_dir, &error)?, config)?, true),
    };
    let opened = TantivyText::open(&text_dir).and_then(|text| if doubtful { text.verified() } else { Ok(text) });
    let (text, text_anew) = match opened {
        Ok(text) => (text, false),
        Err(error) => (TantivyText::open(emptied(&text_dir, &error)?)?, true),
    };
    Ok((vectors, text, missing || vectors_anew || text_anew))
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

/// Removes an index that cannot be opened; a failing disk is no reason to.
fn emptied<'a>(dir: &'a Path, error: &azera_memory::Error) -> anyhow::Result<&'a Path> {
    if let azera_memory::Error::Io { .. } | azera_memory::Error::Full { .. } = error {
        bail!("{}: {error}", dir.display());
    }
    tracing::warn!(index = %dir.display(), %error, "removing the index");
    std::fs::remove_dir_all(dir).with_context(|| format!("removing {}", dir.display()))?;
    Ok(dir)
}

/// Where a model comes from.
enum Source<M: ?Sized> {
    /// A file, to be loaded.
    File(Box<InstalledModel>),
    /// Nothing needs to be loaded.
    Ready(Arc<M>),
}

/// Opens everything and starts nothing: attach platforms, then [`Engine::start`].
pub async fn open(config: &Config, opening: BootstrapOptions) -> anyhow::Result<App> {
    let app = open_without_inner_life(config, opening).await?;
    let (learning, teacher) = (config.clone(), app.embedder.clone());
    app.azera.learn(move || {
        let (config, embedder) = (learning.clone(), teacher.clone());
        async move { classifiers(&config, &embedder, &|_, _| {}).await }
    });
    app.azera.add_job(Arc::new(BackgroundWriter::of(&app.azera)));
    if let Some(hearth) = crate::hearth::hearth(config, models(config)?, &app.data)? {
        let folder = hearth.folder.clone();
        app.azera.light(hearth).with_context(|| format!("opening {}", folder.display()))?;
    }
    Ok(app)
}

/// The same, but that nothing is felt or noticed, and nothing written between messages: to measure what that costs.
pub async fn open_without_inner_life(config: &Config, opening: BootstrapOptions) -> anyhow::Result<App> {
    let data = config.data_dir()?;
    let models = models(config)?;
    let embedding = match servers::configured(config, Kind::Embedding) {
        Some(server) => Source::Ready(servers::embedder(config, server, &data).await?),
        None => Source::File(Box::new(installed(&models, &chosen(config, &models, Kind::Embedding)?).await?)),
    };
    let chat: Source<dyn ChatModel> = match (&opening.answers, servers::configured(config, Kind::Chat)) {
        (ModelChoice::Scripted, _) => Source::Ready(Arc::new(ScriptedModel::saying("Noted."))),
        (ModelChoice::Chosen, Some(server)) => Source::Ready(servers::chat(config, server).await?),
        (ModelChoice::Named(name), Some(server)) if servers::means(config, name) => {
            Source::Ready(servers::chat(config, server).await?)
        }
        (ModelChoice::Named(name), _) => Source::File(Box::new(installed(&models, name).await?)),
        (ModelChoice::Chosen, None) => {
            Source::File(Box::new(installed(&models, &chosen(config, &models, Kind::Chat)?).await?))
        }
    };
    // Loading a model and opening the stores each take their time; together they take the longer one's.
    let chat = {
        let (config, models, on_trial) = (config.clone(), models.clone(), opening.on_trial);
        tokio::task::spawn_blocking(move || -> anyhow::Result<Arc<dyn ChatModel>> {
            match chat {
                Source::File(installed) => load_chat(&config, &models, &installed, on_trial),
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
            let stores = open_stores(&config, &data, embedder.info())?;
            Ok((embedder, stores))
        })
    };
    let (embedder, Stores { memory, servers, folder }) = stores.await??;
    let model = chat.await??;
    let memory = Arc::new(memory);
    let backups = backups(config)?;
    bring_personas(&memory, &data, opening.clock.as_ref()).map_err(|error| {
        match error.downcast_ref::<azera_memory::Error>() {
            Some(of_record) => record_error(of_record, &folder),
            None => error,
        }
    })?;
    let azera = Engine::new(EngineParts {
        memory: memory.clone(),
        model: model.clone(),
        embedder: embedder.clone(),
        clock: opening.clock,
        models: Arc::new(RegistryCatalog::new(config.clone(), models)),
        params: Arc::new(azera_affect::MindParams {
            constants: config.mind.clone(),
            zone: jiff::tz::TimeZone::get(&config.gardener.time_zone).unwrap_or(jiff::tz::TimeZone::UTC),
        }),
        config: chat_config(config, model.info().family.as_str(), opening.seed)?,
    });
    let job = BackupJob::new(memory.clone(), backups.clone(), data.clone(), &config.backup);
    azera.add_job(Arc::new(Backups(Arc::new(job))));
    Ok(App { azera, memory, model, embedder, data, backups, servers, _folder: folder })
}

fn chat_config(config: &Config, family: &str, seed: Option<u64>) -> anyhow::Result<ChatConfig> {
    let form = azera_prompt::form_for(family);
    let (usual, own) = (form.sampling, &config.sampling);
    let sampling = Sampling {
        temperature: own.temperature.unwrap_or(usual.temperature),
        top_k: own.top_k.unwrap_or(usual.top_k),
        top_p: own.top_p.unwrap_or(usual.top_p),
        min_p: own.min_p.unwrap_or(usual.min_p),
        repeat_penalty: own.repeat_penalty.unwrap_or(usual.repeat_penalty),
        frequency_penalty: own.frequency_penalty.unwrap_or(usual.frequency_penalty),
        presence_penalty: own.presence_penalty.unwrap_or(usual.presence_penalty),
        penalty_last_n: own.penalty_last_n.unwrap_or(usual.penalty_last_n),
        ..usual
    };
    let reply_tokens = config.models.max_reply_tokens as usize;
    let window = config.models.context_tokens as usize;
    let context_tokens = match config.chat.prompt_tokens {
        Some(prompt) => (prompt as usize + reply_tokens).min(window),
        None => window,
    };
    Ok(ChatConfig {
        persona: PersonaId::new(&config.chat.persona).context("chat.persona")?,
        user_persona: PersonaId::new(&config.chat.user_persona).context("chat.user_persona")?,
        wake_names: config.chat.wake_names.clone(),
        answering: match config.chat.answer {
            azera_config::Answer::Addressed => Answering::Addressed,
            azera_config::Answer::Always => Answering::Always,
            azera_config::Answer::Never => Answering::Never,
        },
        queue_per_chat: config.chat.queue_per_chat as usize,
        history_messages: config.chat.history_messages as usize,
        reply_tokens,
        context_tokens,
        thinking: config.models.thinking,
        sampling: (*own != azera_config::Sampling::default()).then_some(sampling),
        seed,
        recalled: config.memory.top_k.map(|lines| lines as usize),
        locale: config.chat.locale.clone(),
        limits: Limits { candidates: config.memory.candidates as usize },
        garden: config.gardener.clone(),
    })
}
