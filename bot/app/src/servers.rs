//! Servers of models, as the configuration names them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use azera_config::{Config, Secret, ServerApi};
use azera_model_api::{ChatModel, Embedder, EmbedderInfo};
use azera_model_registry::Kind;
use azera_model_remote::{
    Api, ApiKey, RemoteChat, RemoteChatConfig, RemoteEmbedder, RemoteEmbedderConfig, RetryPolicy, ServerConfig,
};
use serde::{Deserialize, Serialize};

/// The server that stands in the place of a model of this kind on this machine, if one does.
pub fn configured(config: &Config, kind: Kind) -> Option<ServerConfig> {
    let (chat, embedding) = (&config.chat_server, &config.embedding_server);
    match kind {
        Kind::Chat => {
            let mut server = server("chat_server", chat.api, &chat.url, &chat.model, &chat.key)?;
            server.patience.first = Duration::from_secs(chat.first_word_timeout_s);
            Some(server)
        }
        Kind::Embedding => server("embedding_server", embedding.api, &embedding.url, &embedding.model, &embedding.key),
    }
}

fn server(
    section: &str,
    api: ServerApi,
    url: &Option<String>,
    model: &Option<String>,
    key: &Option<Secret>,
) -> Option<ServerConfig> {
    let api = match api {
        ServerApi::None => return None,
        ServerApi::OpenAi => Api::OpenAi,
        ServerApi::LlamaCpp => Api::LlamaCpp,
        ServerApi::Ollama => Api::Ollama,
    };
    let usual = || api.usual_url().unwrap_or_default().to_owned();
    Some(ServerConfig {
        api,
        url: url.clone().unwrap_or_else(usual),
        model: model.clone().unwrap_or_default(),
        key: key.as_ref().map(|key| ApiKey::new(key.expose())),
        section: section.to_owned(),
        patience: RetryPolicy::default(),
    })
}

/// Whether a model's name means the one on the chat server: its plain name, or the one with its host.
pub fn means(config: &Config, name: &str) -> bool {
    configured(config, Kind::Chat).is_some_and(|server| name == server.model || name == server.full_name())
}

/// The model on the chat server.
pub async fn chat(config: &Config, server: ServerConfig) -> anyhow::Result<Arc<dyn ChatModel>> {
    let remote = RemoteChatConfig {
        server,
        family: config.chat_server.family.clone(),
        context_tokens: config.models.context_tokens as usize,
        slots: config.models.slots as usize,
        bytes_per_token: config.chat_server.bytes_per_token,
    };
    Ok(RemoteChat::connect(remote).await?)
}

fn embedder_config(config: &Config, server: ServerConfig) -> RemoteEmbedderConfig {
    let own = &config.embedding_server;
    RemoteEmbedderConfig {
        server,
        similarity_floor: config.memory.similarity_floor.unwrap_or(0.0),
        query_prefix: own.query_prefix.clone(),
        document_prefix: own.document_prefix.clone(),
        max_tokens: own.max_tokens as usize,
    }
}

/// The model on the embedding server. If the server cannot be reached, what it gave last time is taken for what it
/// gives, so that everything else can run without it: memory is then searched by words, and indexing waits.
pub async fn embedder(config: &Config, server: ServerConfig, data: &Path) -> anyhow::Result<Arc<dyn Embedder>> {
    let remote = embedder_config(config, server);
    let query = ServerQuery::of(&remote);
    match RemoteEmbedder::connect(remote.clone()).await {
        Ok(embedder) => {
            query.remember(data, embedder.info())?;
            Ok(embedder)
        }
        Err(error) if error.is_transient() => match query.remembered(data, &remote)? {
            Some(info) => {
                tracing::warn!(%error, "memory is searched by words alone until the embedding server is back");
                Ok(RemoteEmbedder::resume(remote, info)?)
            }
            None => Err(error.into()),
        },
        Err(error) => Err(error.into()),
    }
}

/// The model on the embedding server as it is now, or why it cannot be used.
pub async fn try_embedder(
    config: &Config,
    server: ServerConfig,
) -> Result<Arc<RemoteEmbedder>, azera_model_remote::Error> {
    RemoteEmbedder::connect(embedder_config(config, server)).await
}

/// Whether it is known what the embedding server gives, so that everything else runs while it is away.
pub fn is_known(config: &Config, server: ServerConfig, data: &Path) -> anyhow::Result<bool> {
    let remote = embedder_config(config, server);
    Ok(ServerQuery::of(&remote).remembered(data, &remote)?.is_some())
}

/// What the stores must know of the embedding server: what it gave last time, or else what it says now.
pub async fn embedder_info(config: &Config, server: ServerConfig, data: &Path) -> anyhow::Result<EmbedderInfo> {
    let remote = embedder_config(config, server.clone());
    match ServerQuery::of(&remote).remembered(data, &remote)? {
        Some(info) => Ok(info),
        None => Ok(embedder(config, server, data).await?.info().clone()),
    }
}

/// What a server was asked for. Only the same question has the same answer.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct ServerQuery {
    api: String,
    url: String,
    model: String,
    query_prefix: String,
    document_prefix: String,
}

/// The answer, in the data folder.
#[derive(Debug, Serialize, Deserialize)]
struct Remembered {
    #[serde(rename = "asked")]
    query: ServerQuery,
    id: String,
    dimension: usize,
}

fn file(data: &Path) -> PathBuf {
    data.join("embedding_server.json")
}

impl ServerQuery {
    fn of(remote: &RemoteEmbedderConfig) -> Self {
        Self {
            api: remote.server.api.as_str().to_owned(),
            url: remote.server.url.clone(),
            model: remote.server.model.clone(),
            query_prefix: remote.query_prefix.clone(),
            document_prefix: remote.document_prefix.clone(),
        }
    }

    fn remember(self, data: &Path, info: &EmbedderInfo) -> anyhow::Result<()> {
        let remembered = Remembered { query: self, id: info.id.clone(), dimension: info.dimension };
        std::fs::create_dir_all(data).with_context(|| format!("making the folder {}", data.display()))?;
        let file = file(data);
        // Beside it first: a crash leaves the old one or the new one.
        let new = file.with_extension("new");
        std::fs::write(&new, serde_json::to_vec_pretty(&remembered)?)
            .and_then(|()| std::fs::rename(&new, &file))
            .with_context(|| format!("writing {}", file.display()))
    }

    fn remembered(&self, data: &Path, remote: &RemoteEmbedderConfig) -> anyhow::Result<Option<EmbedderInfo>> {
        let file = file(data);
        let bytes = match std::fs::read(&file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("reading {}", file.display())),
        };
        // One that cannot be read is as good as none: the server is asked.
        let found = serde_json::from_slice::<Remembered>(&bytes).ok().filter(|found| found.query == *self);
        Ok(found.map(|found| EmbedderInfo {
            id: found.id,
            dimension: found.dimension,
            similarity_floor: remote.similarity_floor,
            asks_otherwise: remote.query_prefix != remote.document_prefix,
        }))
    }
}
